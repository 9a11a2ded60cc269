#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace tacit::test {

// Measures how far three replicas are behind a trainer with this configuration, which learns from
// the beginning to the end of its log or until the time is up: from the moment at which the trainer
// serves a commit until a replica serves it, or a later one. A line for each replica. Failures are
// the test's.
std::vector<std::string> MeasureLag(const std::string& config, std::chrono::seconds most);

}  // namespace tacit::test
