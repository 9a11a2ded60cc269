#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// The brokers that the contract is held against: real ones, or the simulated ones of tests/sim.
// Each test program links one of them.
namespace tacit::test::subject {

std::string Bootstrap();
// Returns the reason why there are no brokers, or "". A test then skips, or fails if they are
// required.
std::string Missing();
bool Required();

// A name that no other test has used.
std::string NewName(const std::string& stem);
void CreateTopic(const std::string& name, int32_t partitions,
                 const std::vector<std::pair<std::string, std::string>>& settings = {});
void GrowTopic(const std::string& name, int32_t partitions);
void DeleteTopic(const std::string& name);
// Makes a topic whose records Compact replaces by the newest of each key, and takes tombstones
// away.
void CreateCompacted(const std::string& name);
void Compact(const std::string& name);

// The brokers go away with their connections, and come back with what they had.
void GoAway();
void ComeBack();
// The brokers stand still with their connections open, and go on.
void StandStill();
void GoOn();

}  // namespace tacit::test::subject
