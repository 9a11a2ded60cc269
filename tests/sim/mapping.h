#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>

namespace tacit::sim {

// Takes memory from one mapping, which forked processes share.
class Mapping final : public std::pmr::memory_resource {
 public:
  Mapping(char* begin, char* end) : next_(begin), end_(end) {}

 private:
  void* do_allocate(size_t bytes, size_t alignment) override {
    char* const at = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(next_) + alignment - 1) /
                                             alignment * alignment);
    if (at + bytes > end_) throw std::bad_alloc();
    next_ = at + bytes;
    return at;
  }
  void do_deallocate(void*, size_t, size_t) override {}
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
  char *next_, *end_;
};

}  // namespace tacit::sim
