#pragma once

#include <map>
#include <string>
#include <vector>

namespace tacit::wiring {

// The figures that `tacit generate` wrote next to these log files; empty if there are none
// that can be read.
std::map<std::string, double> ReadBestAuc(const std::vector<std::string>& files);

// The name of the file that holds them.
inline constexpr char kGroundTruthFile[] = "ground-truth.json";

}  // namespace tacit::wiring
