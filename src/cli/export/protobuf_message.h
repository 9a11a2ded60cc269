#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tacit::cli {

// The bytes of a protobuf message, field by field, by the published encoding. A value.
class ProtobufMessage {
 public:
  // An integer, a boolean or an enumerator. Negative ones of type int64 are given as their bits.
  ProtobufMessage& Integer(uint32_t field, uint64_t value);
  // A string, or bytes.
  ProtobufMessage& Bytes(uint32_t field, std::string_view value);
  ProtobufMessage& Message(uint32_t field, const ProtobufMessage& value) {
    return Bytes(field, value.bytes());
  }
  // The fields of another message, after those that are there.
  ProtobufMessage& Append(const ProtobufMessage& more) {
    bytes_ += more.bytes_;
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value);

  std::string bytes_;
};

}  // namespace tacit::cli
