#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tacit::http {

// The bytes of a body as they arrive. It takes memory only for bytes that came, never for an
// announced length, and returns it at once: large bodies lie in pages of their own, which grow
// without being copied and which no heap keeps. Not thread-safe.
class BodyBuffer {
 public:
  BodyBuffer() = default;
  ~BodyBuffer() { Clear(); }
  BodyBuffer(const BodyBuffer&) = delete;
  BodyBuffer& operator=(const BodyBuffer&) = delete;

  // Returns false, and leaves the buffer unchanged, when the system has no memory for the bytes.
  bool Append(const char* bytes, size_t count);
  void Clear();

  size_t size() const { return mapped_ != nullptr ? size_ : small_.size(); }
  std::string_view view() const {
    return mapped_ != nullptr ? std::string_view(mapped_, size_) : std::string_view(small_);
  }

 private:
  bool Map(size_t needed);

  std::string small_;           // up to kSmallBytes
  char* mapped_ = nullptr;      // from then on
  size_t size_ = 0, room_ = 0;  // of the mapped pages
};

}  // namespace tacit::http
