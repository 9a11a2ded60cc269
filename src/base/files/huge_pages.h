#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace tacit {

inline constexpr size_t kHugePage = size_t{2} << 20;

// Asks for huge pages in this memory, as far as whole ones lie in it: what is read here and there
// then finds its pages faster. To be called before the memory is first written. It changes no
// number, and a system that has none is none the worse.
inline void AdviseHugePages(void* memory, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t begin = (at + kHugePage - 1) / kHugePage * kHugePage,
                  end = (at + bytes) / kHugePage * kHugePage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace tacit
