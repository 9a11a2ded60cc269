#include "http/body_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace tacit::http {
namespace {

constexpr size_t kSmallBytes = 64 << 10;

}  // namespace

bool BodyBuffer::Append(const char* bytes, size_t count) {
  if (mapped_ == nullptr && small_.size() + count <= kSmallBytes) {
    small_.append(bytes, count);
    return true;
  }
  const size_t before = size();
  if (before + count > room_ && !Map(before + count)) return false;
  std::memcpy(mapped_ + before, bytes, count);
  size_ = before + count;
  return true;
}

// Maps twice what is needed: pages that were never written take no memory.
bool BodyBuffer::Map(size_t needed) {
  const size_t room = std::max(2 * needed, 4 * kSmallBytes);
  void* const pages = mapped_ != nullptr ? ::mremap(mapped_, room_, room, MREMAP_MAYMOVE)
                                         : ::mmap(nullptr, room, PROT_READ | PROT_WRITE,
                                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return false;
  if (mapped_ == nullptr) {
    std::memcpy(pages, small_.data(), small_.size());
    size_ = small_.size();
    std::string().swap(small_);
  }
  mapped_ = static_cast<char*>(pages);
  room_ = room;
  return true;
}

void BodyBuffer::Clear() {
  if (mapped_ != nullptr) ::munmap(mapped_, room_);
  mapped_ = nullptr;
  size_ = room_ = 0;
  std::string().swap(small_);
}

}  // namespace tacit::http
