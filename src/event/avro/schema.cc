// Schemas as JSON (Avro 1.12, "Schema Declaration"). The parser calls itself for each level of
// JSON, of which there are at most 64; a type that is referred to by its name is not parsed again.
#include "event/avro/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <boost/json.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "event/avro/wire.h"
#include "event/run_codec.h"

namespace tacit::event {
namespace {

namespace json = boost::json;
constexpr size_t kAvroJsonLevels = 64;
constexpr std::array<std::string_view, 8> kPrimitives = {"null",  "boolean", "int",   "long",
                                                         "float", "double",  "bytes", "string"};

tl::unexpected<Error> NoAvroSchema(std::string what) {
  return Fail(ErrorCode::kInvalidArgument, "no valid Avro schema: " + std::move(what));
}

std::string_view JsonTextAt(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  const json::string* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

std::optional<uint64_t> CountAt(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  const int64_t* count = value == nullptr ? nullptr : value->if_int64();
  if (count == nullptr || *count < 0) return std::nullopt;
  return static_cast<uint64_t>(*count);
}

std::string FullName(std::string_view name, std::string_view space) {
  if (space.empty() || name.find('.') != name.npos) return std::string(name);
  return fmt::format("{}.{}", space, name);
}

// Logical types that do not fit are passed over, as the specification has it.
void ReadLogical(const json::object& object, AvroType* type) {
  struct Time {
    std::string_view name;
    AvroKind kind;
    AvroLogical logical;
    bool local = false;
  };
  static constexpr Time kTimes[] = {
      {"date", AvroKind::kInt, AvroLogical::kDate},
      {"time-millis", AvroKind::kInt, AvroLogical::kTimeOfDay},
      {"time-micros", AvroKind::kLong, AvroLogical::kTimeOfDay},
      {"timestamp-millis", AvroKind::kLong, AvroLogical::kMillis},
      {"timestamp-micros", AvroKind::kLong, AvroLogical::kMicros},
      {"timestamp-nanos", AvroKind::kLong, AvroLogical::kNanos},
      {"local-timestamp-millis", AvroKind::kLong, AvroLogical::kMillis, true},
      {"local-timestamp-micros", AvroKind::kLong, AvroLogical::kMicros, true},
      {"local-timestamp-nanos", AvroKind::kLong, AvroLogical::kNanos, true}};
  const std::string_view name = JsonTextAt(object, "logicalType");
  for (const Time& time : kTimes) {
    if (time.name != name || time.kind != type->kind) continue;
    type->logical = time.logical;
    type->local = time.local;
  }
  if (name != "decimal" || (type->kind != AvroKind::kBytes && type->kind != AvroKind::kFixed))
    return;
  const uint64_t precision = CountAt(object, "precision").value_or(0);
  const uint64_t scale = CountAt(object, "scale").value_or(0);
  if (precision == 0 || scale > precision || scale > kAvroScaleMost) return;
  type->logical = AvroLogical::kDecimal;
  type->scale = static_cast<uint32_t>(scale);
}

class AvroParser {
 public:
  Result<AvroSchema> Read(const json::value& value) {
    TACIT_ASSIGN(schema_.root, Type(value, ""));
    FindEmpty();
    for (const Default& fallback : defaults_) {
      AvroType::Field& field = schema_.types[fallback.record].fields[fallback.field];
      std::string bytes;
      if (!Encode(field.type, *fallback.value, &bytes))
        return NoAvroSchema(
            fmt::format("the default of field {} is no value of its type, or defaults "
                        "take more than {} bytes",
                        Quoted(field.name), AvroSchema::kDefaultBytesMost));
      encoded_ += bytes.size();
      field.fallback = std::move(bytes);
    }
    return std::move(schema_);
  }

 private:
  struct Default {
    uint32_t record = 0;
    size_t field = 0;
    const json::value* value = nullptr;
  };

  Result<uint32_t> Add(AvroType type) {
    if (schema_.types.size() == AvroSchema::kTypesMost)
      return NoAvroSchema(fmt::format("it has more than {} types", AvroSchema::kTypesMost));
    schema_.types.push_back(std::move(type));
    return static_cast<uint32_t>(schema_.types.size() - 1);
  }

  Result<uint32_t> Type(const json::value& value, std::string_view space) {
    if (const json::string* name = value.if_string()) return Named(*name, space);
    if (const json::array* branches = value.if_array()) return Union(*branches, space);
    const json::object* object = value.if_object();
    if (object == nullptr || !object->contains("type"))
      return NoAvroSchema("a type is neither a name, a list nor an object with a type");
    const json::string* name = object->at("type").if_string();
    if (name == nullptr) return Type(object->at("type"), space);
    const std::string_view kind = *name;
    if (kind == "array" || kind == "map") return Several(*object, kind == "map", space);
    if (kind == "fixed" || kind == "enum" || kind == "record" || kind == "error")
      return Defined(*object, kind, space);
    TACIT_ASSIGN(const uint32_t type, Named(kind, space));
    if (schema_.types[type].kind < AvroKind::kFixed) ReadLogical(*object, &schema_.types[type]);
    return type;
  }

  Result<uint32_t> Named(std::string_view name, std::string_view space) {
    for (size_t i = 0; i < kPrimitives.size(); ++i)
      if (name == kPrimitives[i]) return Add({.kind = static_cast<AvroKind>(i)});
    auto found = named_.find(FullName(name, space));
    if (found == named_.end()) found = named_.find(name);
    if (found == named_.end())
      return NoAvroSchema(fmt::format("there is no type {}", Quoted(name)));
    return found->second;
  }

  Result<uint32_t> Union(const json::array& branches, std::string_view space) {
    AvroType type{.kind = AvroKind::kUnion};
    for (const json::value& branch : branches) {
      if (branch.is_array()) return NoAvroSchema("a union is right within another");
      TACIT_ASSIGN(const uint32_t one, Type(branch, space));
      type.types.push_back(one);
    }
    if (type.types.empty()) return NoAvroSchema("a union has no types");
    return Add(std::move(type));
  }

  Result<uint32_t> Several(const json::object& object, bool is_map, std::string_view space) {
    const json::value* of = object.if_contains(is_map ? "values" : "items");
    if (of == nullptr) return NoAvroSchema("a list or map does not say of which type");
    TACIT_ASSIGN(const uint32_t type, Type(*of, space));
    return Add({.kind = is_map ? AvroKind::kMap : AvroKind::kArray, .types = {type}});
  }

  // Parses the declaration of a type with a name, which its own fields may refer to.
  Result<uint32_t> Defined(const json::object& object, std::string_view kind,
                           std::string_view space) {
    const std::string_view name = JsonTextAt(object, "name");
    if (name.empty()) return NoAvroSchema(fmt::format("a type of kind {} has no name", kind));
    AvroType type{.kind = kind == "fixed"  ? AvroKind::kFixed
                          : kind == "enum" ? AvroKind::kEnum
                                           : AvroKind::kRecord};
    if (object.contains("namespace")) space = JsonTextAt(object, "namespace");
    type.name = FullName(name, space);
    const std::string its_space =
        type.name.substr(0, std::max<size_t>(type.name.rfind('.') + 1, 1) - 1);
    for (std::string& alias : TextsAt(object, "aliases"))
      type.aliases.push_back(FullName(alias, its_space));
    if (type.kind == AvroKind::kFixed) {
      const auto size = CountAt(object, "size");
      if (!size || *size > std::numeric_limits<int32_t>::max())
        return NoAvroSchema(fmt::format("{} has no size", Quoted(name)));
      type.size = *size;
      ReadLogical(object, &type);
    }
    if (type.kind == AvroKind::kEnum) {
      type.symbols = TextsAt(object, "symbols");
      if (type.symbols.empty()) return NoAvroSchema(fmt::format("{} has no symbols", Quoted(name)));
      for (uint32_t i = 0; object.contains("default") && i < type.symbols.size(); ++i)
        if (!type.fallback && type.symbols[i] == JsonTextAt(object, "default")) type.fallback = i;
      if (object.contains("default") && !type.fallback)
        return NoAvroSchema(fmt::format("the default of {} is none of its symbols", Quoted(name)));
    }
    const bool is_record = type.kind == AvroKind::kRecord;
    std::string full_name = type.name;
    TACIT_ASSIGN(const uint32_t index, Add(std::move(type)));
    if (!named_.emplace(std::move(full_name), index).second)
      return NoAvroSchema(fmt::format("there are two types {}", Quoted(name)));
    if (is_record) TACIT_RETURN_IF_ERROR(Fields(object, index, its_space));
    return index;
  }

  Status Fields(const json::object& object, uint32_t record, std::string_view space) {
    const json::value* fields = object.if_contains("fields");
    if (fields == nullptr || !fields->is_array())
      return NoAvroSchema(
          fmt::format("{} has no list of fields", Quoted(JsonTextAt(object, "name"))));
    std::map<std::string_view, size_t> seen;
    for (const json::value& value : fields->get_array()) {
      const json::object* declared = value.if_object();
      const std::string_view name = declared == nullptr ? "" : JsonTextAt(*declared, "name");
      if (name.empty() || !declared->contains("type"))
        return NoAvroSchema(fmt::format("a field of {} has no name or no type",
                                        Quoted(JsonTextAt(object, "name"))));
      if (!seen.emplace(name, seen.size()).second)
        return NoAvroSchema(fmt::format("there are two fields {}", Quoted(name)));
      AvroType::Field field{.name = std::string(name), .aliases = TextsAt(*declared, "aliases")};
      TACIT_ASSIGN(field.type, Type(declared->at("type"), space));
      if (const json::value* fallback = declared->if_contains("default"))
        defaults_.push_back({record, schema_.types[record].fields.size(), fallback});
      schema_.types[record].fields.push_back(std::move(field));
    }
    return {};
  }

  static std::vector<std::string> TextsAt(const json::object& object, std::string_view key) {
    std::vector<std::string> texts;
    const json::value* list = object.if_contains(key);
    if (list == nullptr || !list->is_array()) return texts;
    for (const json::value& text : list->get_array())
      if (text.is_string()) texts.emplace_back(std::string_view(text.get_string()));
    return texts;
  }

  // A record that holds itself takes bytes, or no value of it ends.
  void FindEmpty() {
    for (bool found = true; found;) {
      found = false;
      for (AvroType& type : schema_.types) {
        if (type.takes_no_bytes) continue;
        type.takes_no_bytes =
            type.kind == AvroKind::kNull || (type.kind == AvroKind::kFixed && type.size == 0) ||
            (type.kind == AvroKind::kRecord &&
             std::ranges::all_of(type.fields, [this](const AvroType::Field& field) {
               return schema_.types[field.type].takes_no_bytes;
             }));
        found = found || type.takes_no_bytes;
      }
    }
  }

  // Writes a default as a value is written. Returns false if it is none of the type.
  bool Encode(uint32_t index, const json::value& value, std::string* out) {
    const AvroType& type = schema_.types[index];
    if (++encoded_ > AvroSchema::kDefaultBytesMost || out->size() > AvroSchema::kDefaultBytesMost)
      return false;
    switch (type.kind) {
      case AvroKind::kNull:
        return value.is_null();
      case AvroKind::kBoolean:
        if (!value.is_bool()) return false;
        out->push_back(value.get_bool() ? 1 : 0);
        return true;
      case AvroKind::kInt:
      case AvroKind::kLong:
        return EncodeInteger(type.kind, value, out);
      case AvroKind::kFloat:
      case AvroKind::kDouble:
        return EncodeNumber(type.kind, value, out);
      case AvroKind::kBytes:
      case AvroKind::kString:
      case AvroKind::kFixed:
        return EncodeText(type, value, out);
      case AvroKind::kEnum:
        for (size_t i = 0; value.is_string() && i < type.symbols.size(); ++i) {
          if (type.symbols[i] != std::string_view(value.get_string())) continue;
          PutAvroLong(static_cast<int64_t>(i), out);
          return true;
        }
        return false;
      case AvroKind::kArray:
      case AvroKind::kMap:
        return EncodeSeveral(type, value, out);
      case AvroKind::kUnion:
        for (size_t i = 0; i < type.types.size(); ++i) {
          const size_t before = out->size();
          PutAvroLong(static_cast<int64_t>(i), out);
          if (Encode(type.types[i], value, out)) return true;
          out->resize(before);
        }
        return false;
      case AvroKind::kRecord:
        return EncodeRecord(type, value, out);
    }
    return false;
  }

  static bool EncodeInteger(AvroKind kind, const json::value& value, std::string* out) {
    const int64_t* integer = value.if_int64();
    if (integer == nullptr ||
        (kind == AvroKind::kInt && *integer != static_cast<int32_t>(*integer)))
      return false;
    PutAvroLong(*integer, out);
    return true;
  }

  static bool EncodeNumber(AvroKind kind, const json::value& value, std::string* out) {
    if (!value.is_number()) return false;
    const double number = value.to_number<double>();
    if (kind == AvroKind::kFloat)
      PutAvroFixed(std::bit_cast<uint32_t>(static_cast<float>(number)), out);
    else
      PutAvroFixed(std::bit_cast<uint64_t>(number), out);
    return true;
  }

  // Bytes are written as characters of these numbers.
  static bool EncodeText(const AvroType& type, const json::value& value, std::string* out) {
    if (!value.is_string()) return false;
    std::string bytes(std::string_view(value.get_string()));
    if (type.kind != AvroKind::kString) {
      std::string narrow;
      for (size_t i = 0; i < bytes.size(); ++i) {
        const auto byte = static_cast<uint8_t>(bytes[i]);
        if (byte > 0xc3 || i + (byte < 0x80 ? 0 : 1) >= bytes.size()) return false;
        narrow +=
            byte < 0x80 ? bytes[i] : static_cast<char>((byte & 3) << 6 | (bytes[i + 1] & 0x3f));
        i += byte < 0x80 ? 0 : 1;
      }
      bytes = std::move(narrow);
    }
    if (type.kind == AvroKind::kFixed && bytes.size() != type.size) return false;
    if (type.kind != AvroKind::kFixed) PutAvroLong(static_cast<int64_t>(bytes.size()), out);
    *out += bytes;
    return true;
  }

  bool EncodeSeveral(const AvroType& type, const json::value& value, std::string* out) {
    const bool is_map = type.kind == AvroKind::kMap;
    if (is_map ? !value.is_object() : !value.is_array()) return false;
    const size_t size = is_map ? value.get_object().size() : value.get_array().size();
    if (size > 0) PutAvroLong(static_cast<int64_t>(size), out);
    if (is_map) {
      for (const auto& [key, element] : value.get_object()) {
        PutAvroLong(static_cast<int64_t>(key.size()), out);
        out->append(key.data(), key.size());
        if (!Encode(type.types[0], element, out)) return false;
      }
    } else {
      for (const json::value& element : value.get_array())
        if (!Encode(type.types[0], element, out)) return false;
    }
    PutAvroLong(0, out);
    return true;
  }

  // A field that the default leaves out has its own default.
  bool EncodeRecord(const AvroType& type, const json::value& value, std::string* out) {
    if (!value.is_object()) return false;
    for (const AvroType::Field& field : type.fields) {
      const json::value* own = value.get_object().if_contains(field.name);
      if (own != nullptr && !Encode(field.type, *own, out)) return false;
      if (own != nullptr) continue;
      if (!field.fallback || out->size() + field.fallback->size() > AvroSchema::kDefaultBytesMost)
        return false;
      *out += *field.fallback;
    }
    return true;
  }

  AvroSchema schema_;
  std::map<std::string, uint32_t, std::less<>> named_;
  std::vector<Default> defaults_;  // in the order of their fields' types
  size_t encoded_ = 0;             // values of defaults, and the bytes of whole ones
};

}  // namespace

Result<std::shared_ptr<const AvroSchema>> AvroSchema::Parse(std::string_view text) {
  if (text.size() > kBytesMost)
    return NoAvroSchema(fmt::format("it has more than {} bytes", kBytesMost));
  json::parse_options options;
  options.max_depth = kAvroJsonLevels;
  json::stream_parser parser({}, options);
  boost::system::error_code error;
  const size_t taken = parser.write_some(text.data(), text.size(), error);
  if (!error) parser.finish(error);
  if (!error && text.find_first_not_of(" \t\r\n", taken) != text.npos)
    error = json::error::extra_data;
  if (error) return NoAvroSchema(fmt::format("byte {}: {}", taken, error.message()));
  const json::value value = parser.release();
  TACIT_ASSIGN(AvroSchema schema, AvroParser().Read(value));
  return std::make_shared<const AvroSchema>(std::move(schema));
}

}  // namespace tacit::event
