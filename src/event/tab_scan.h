#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tacit::event {

// Writes the positions of the first out.size() tabs of `record` to `out`; returns how many tabs
// there are in all. REQUIRES record.size() < 2^32.
size_t FindTabs(std::string_view record, std::span<uint32_t> out);
// The same, a byte at a time: for other machines, and to compare with.
size_t FindTabsPortable(std::string_view record, std::span<uint32_t> out);

}  // namespace tacit::event
