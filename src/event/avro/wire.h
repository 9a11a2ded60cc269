#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

// Values as Avro writes them (Avro 1.12, "Binary Encoding").
namespace tacit::event {

// The most digits behind the point of a decimal.
inline constexpr uint64_t kAvroScaleMost = 38;

// Appends an integer as a zigzag varint.
inline void PutAvroLong(int64_t value, std::string* out) {
  uint64_t rest = static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
  for (; rest >= 0x80; rest >>= 7) out->push_back(static_cast<char>(rest | 0x80));
  out->push_back(static_cast<char>(rest));
}

// Appends the bytes of an integer, the least significant first.
template <class Bits>
void PutAvroFixed(Bits bits, std::string* out) {
  out->append(reinterpret_cast<const char*>(&bits), sizeof(bits));
}

// Takes values off the front of bytes. Damage leaves nothing to take.
class AvroBytes {
 public:
  AvroBytes() = default;
  explicit AvroBytes(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  bool damaged() const { return damaged_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  std::string_view rest() const { return {at_, left()}; }

  int64_t Long() {
    if (at_ != end_ && static_cast<uint8_t>(*at_) < 0x80) [[likely]] {
      const auto value = static_cast<uint8_t>(*at_++);
      return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
    }
    return LongOfSeveral();
  }
  // Bytes behind their length.
  std::string_view Bytes() { return Take(static_cast<uint64_t>(Long())); }
  // A negative length, as a number without a sign, is more than there are.
  std::string_view Take(uint64_t size) {
    if (size > left()) return Damage(), std::string_view();
    at_ += size;
    return {at_ - size, static_cast<size_t>(size)};
  }
  template <class Bits>
  Bits Fixed() {
    Bits bits{};
    const std::string_view bytes = Take(sizeof(bits));
    if (!damaged_) std::memcpy(&bits, bytes.data(), sizeof(bits));
    return bits;
  }
  void Damage() {
    at_ = end_;
    damaged_ = true;
  }

 private:
  int64_t LongOfSeveral() {
    uint64_t value = 0;
    for (int shift = 0; at_ != end_ && shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at_++);
      if (shift == 63 && byte > 1) break;
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
    }
    Damage();
    return 0;
  }

  const char* at_ = nullptr;
  const char* end_ = nullptr;
  bool damaged_ = false;
};

}  // namespace tacit::event
