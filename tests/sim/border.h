#pragma once

#include <string>
#include <vector>

namespace tacit::sim {

// Reads each function and variable of the C library that this program and its libraries refer to,
// and the libraries of these, but not those that only a library called `without` brings. Returns a
// sentence for each that is not in the list at this path (calls.txt), and for each that the list
// calls ours though a library gets the C library's.
std::vector<std::string> CheckBorder(const std::string& list, const std::string& without = "");

}  // namespace tacit::sim
