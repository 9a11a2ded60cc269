#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

// Notation of the byte grammars in the heads of the files that encode and decode:
//     name    := field:type ...        the fields, one right after the other
//     x*n                              n times x; n is a field before it or a number
//     [x]                              x, or nothing; a comment says when
//     u8 u16 u32 u64 i16 i32 i64       numbers, f32 f64: IEEE 754; all little-endian
//     string  := bytes:u32 byte*bytes
//     digest  := byte*32               a SHA-256
// A flag is a u8, 0 or 1.
namespace tacit {

static_assert(std::endian::native == std::endian::little, "formats are little-endian");

// Appends fixed-width little-endian numbers and length-prefixed strings to a byte string.
class ByteWriter {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> ByteWriter& Put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  // u32 length, then the bytes.
  ByteWriter& PutString(std::string_view text) {
    Put(static_cast<uint32_t>(text.size()));
    bytes_.append(text);
    return *this;
  }
  // Appends the elements without their number, which the reader must know.
  template <class T>
  ByteWriter& PutArray(std::span<const T> values) {
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    return *this;
  }
  void Reserve(size_t bytes) { bytes_.reserve(bytes_.size() + bytes); }
  size_t size() const { return bytes_.size(); }
  std::string Take() && { return std::move(bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads what ByteWriter wrote. Once a read runs past the end, ok() stays false and every further
// read gives zeros: check ok() once, at the end.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  requires std::is_arithmetic_v<T> T Get() {
    T value{};
    if (Take(sizeof(T))) std::memcpy(&value, taken_.data(), sizeof(T));
    return value;
  }
  std::string_view GetString() {
    const auto length = Get<uint32_t>();
    return Take(length) ? taken_ : std::string_view{};
  }
  // Fills `out`, or leaves it unchanged if too few bytes are left.
  template <class T>
  void GetArray(std::span<T> out) {
    if (Take(out.size_bytes()) && !out.empty())
      std::memcpy(out.data(), taken_.data(), out.size_bytes());
  }
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && rest_.empty(); }
  size_t remaining() const { return rest_.size(); }

 private:
  bool Take(size_t n) {
    if (!ok_ || rest_.size() < n) {
      ok_ = false;
      return false;
    }
    taken_ = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return true;
  }

  std::string_view rest_, taken_;
  bool ok_ = true;
};

}  // namespace tacit
