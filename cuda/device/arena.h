#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"

namespace tacit::cuda {

// The plan of what will lie in device memory, made before a device is opened: names, sizes and the
// sum, so that a configuration can be judged without a device.
class ArenaPlan {
 public:
  static constexpr size_t kAlignment = 256;
  struct Piece {
    std::string name;
    size_t bytes = 0;
    size_t offset = 0;
  };

  // Adds a piece of `count` numbers T and returns its number in the plan. The name is for messages.
  template <class T>
  size_t Add(std::string name, size_t count) {
    TACIT_CHECK(count <= SIZE_MAX / 2 / sizeof(T), "a piece beyond all memory");
    return AddBytes(std::move(name), count * sizeof(T));
  }

  const std::vector<Piece>& pieces() const { return pieces_; }
  // The bytes that the arena takes, alignment included.
  size_t bytes() const { return bytes_; }
  // One line a piece, the largest first, and the sum.
  std::string Describe() const;

 private:
  size_t AddBytes(std::string name, size_t bytes);

  std::vector<Piece> pieces_;
  size_t bytes_ = 0;
};

// All device memory of a process, taken by one call at the start and cut as the plan says. Nothing
// is taken later, so memory cannot run out in the middle of a step. Uninitialised.
class Arena {
 public:
  // Fails if the device has less free memory: the error says what the plan asks for, what is free,
  // what takes the most, and which key to lower.
  static Result<Arena> Make(Device& device, ArenaPlan plan);
  Arena(Arena&&) noexcept = default;
  Arena& operator=(Arena&&) = delete;
  ~Arena();

  // REQUIRES that the piece was added as numbers of a type of that size.
  template <class T>
  DeviceSpan<T> Piece(size_t number) const {
    TACIT_CHECK(number < plan_.pieces().size(), "no such piece of the arena");
    const ArenaPlan::Piece& piece = plan_.pieces()[number];
    TACIT_CHECK(piece.bytes % sizeof(T) == 0, "a piece of another type");
    auto* begin = static_cast<unsigned char*>(memory_.data()) + piece.offset;
    return {reinterpret_cast<T*>(begin), piece.bytes / sizeof(T)};
  }

  // Fills all pieces with zeros: they hold raw records and sums without noise. For an orderly end.
  Status Wipe(Stream& stream) const;

 private:
  Arena(ArenaPlan plan, RawBuffer memory) : plan_(std::move(plan)), memory_(std::move(memory)) {}

  ArenaPlan plan_;
  RawBuffer memory_;
};

}  // namespace tacit::cuda
