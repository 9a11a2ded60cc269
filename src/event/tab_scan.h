#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tacit::event {

// A record is scanned sooner if `out` has room for this many tabs more.
inline constexpr size_t kTabsAtOnce = 8;

// Writes the positions of the first out.size() tabs of `record` to `out`, whose rest may be
// overwritten; returns the number of all tabs. REQUIRES record.size() < 2^32.
size_t FindTabs(std::string_view record, std::span<uint32_t> out);
// The same, one byte at a time: for other machines, and for tests to compare with.
size_t FindTabsPortable(std::string_view record, std::span<uint32_t> out);

}  // namespace tacit::event
