#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacit::event {

// A type of a schema. It refers to others by their places in AvroSchema::types.
struct AvroType {
  enum class Kind : uint8_t {
    kNull,
    kBoolean,
    kInt,
    kLong,
    kFloat,
    kDouble,
    kBytes,
    kString,
    kFixed,
    kEnum,
    kArray,
    kMap,
    kUnion,
    kRecord,
  };
  // A logical type that decides how a value is read. A text for a UUID, say, is a text anyway.
  enum class Logical : uint8_t { kNone, kDecimal, kDate, kTimeOfDay, kMillis, kMicros, kNanos };
  struct Field {
    std::string name;
    std::vector<std::string> aliases = {};
    uint32_t type = 0;
    std::optional<std::string> fallback = {};  // the default, as a value of the type is written
  };

  bool is_named() const {
    return kind == Kind::kFixed || kind == Kind::kEnum || kind == Kind::kRecord;
  }

  Kind kind = Kind::kNull;
  Logical logical = Logical::kNone;
  bool local = false;                     // a time by the clock of a zone that is not told
  uint32_t scale = 0;                     // kDecimal
  uint64_t size = 0;                      // kFixed
  std::string name = {};                  // of a named type, with its namespace
  std::vector<std::string> aliases = {};  // the same
  std::vector<std::string> symbols = {};  // kEnum
  std::optional<uint32_t> fallback = {};  // kEnum: the default's place in `symbols`
  std::vector<uint32_t> types = {};       // of elements and values, or a union's
  std::vector<Field> fields = {};         // kRecord
  bool takes_no_bytes = false;            // as null, or a record of nulls
};

using AvroKind = AvroType::Kind;
using AvroLogical = AvroType::Logical;

// A schema of Avro 1.12, parsed. Immutable.
//
// Anybody may have written it. It is bounded: kBytesMost bytes, 64 levels of JSON, kTypesMost
// types, and defaults of kDefaultBytesMost in all. A message names at most 24 bytes of it.
struct AvroSchema {
  static constexpr size_t kBytesMost = 1 << 20, kTypesMost = 5000, kDefaultBytesMost = 1 << 20;

  // Fails for a text that is no schema; the message names the byte, or the type or field.
  static Result<std::shared_ptr<const AvroSchema>> Parse(std::string_view text);

  std::vector<AvroType> types;
  uint32_t root = 0;
};

}  // namespace tacit::event
