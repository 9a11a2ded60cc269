#pragma once

#include <string>
#include <vector>

namespace tacit::sim {

// Reads each function and variable of the C library that this program and the libraries it has
// loaded refer to. Returns a sentence for each that is not in the list at this path (calls.txt),
// and for each that the list calls ours though a library gets the C library's.
std::vector<std::string> CheckBorder(const std::string& list);

}  // namespace tacit::sim
