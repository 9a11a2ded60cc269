// Compares a producer's schema with ours. Rejects only what is certainly wrong: a producer may have
// more fields, fewer, or none of the optional ones.
#include <fmt/format.h>
#include <google/protobuf/compiler/parser.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <boost/json.hpp>
#include <optional>
#include <vector>

#include "event/avro/schemas.h"
#include "event/run_codec.h"
#include "event/schema_books.h"

namespace tacit::event {
namespace {

namespace json = boost::json;
namespace protobuf = google::protobuf;
using Proto = protobuf::FieldDescriptorProto;
using Reason = std::optional<std::string>;

constexpr int kLevelsMost = 64;
// Each token may cost the parser 400 bytes.
constexpr int kStatementsMost = 2000, kTokensMost = 50'000;
// The parser looks for a free name for each `optional` field of proto3, and takes the longer the
// more names there are: 2,000 fields of one name took it seconds.
constexpr int kOptionalsMost = 400;

std::string Unreadable(std::string_view kind, std::string_view why) {
  return fmt::format("its {} schema cannot be read: {}; accept it in source.registry.schemas", kind,
                     why);
}

// Takes the depth that a schema may have for the depth of JSON.
json::value ParseJson(std::string_view text, boost::system::error_code& error) {
  json::parse_options options;
  options.max_depth = kLevelsMost;
  return json::parse({text.data(), text.size()}, error, {}, options);
}

std::string TextOf(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  const json::string* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? "" : std::string(*text);
}

// Returns true if a JSON schema allows one of these types. A schema without a type allows all.
bool Allows(const json::value& schema, const std::vector<std::string_view>& types) {
  const json::object* object = schema.if_object();
  const json::value* type = object == nullptr ? nullptr : object->if_contains("type");
  if (type == nullptr) return true;
  const auto is_one = [&](const json::value& name) {
    const json::string* text = name.if_string();
    return text == nullptr || std::ranges::find(types, std::string_view(*text)) != types.end();
  };
  if (const json::array* several = type->if_array()) return std::ranges::any_of(*several, is_one);
  return is_one(*type);
}

Reason JudgeJson(const std::string& text) {
  struct Field {
    std::string_view name;
    std::vector<std::string_view> types;
  };
  static const Field kFields[] = {{"label", {"integer", "number", "boolean"}},
                                  {"features", {"object"}},
                                  {"timestamp_ms", {"integer", "number"}},
                                  {"event_id", {"string", "integer", "number", "null"}},
                                  {"user", {"string", "integer", "number", "null"}},
                                  {"item", {"string", "integer", "number", "null"}}};
  boost::system::error_code error;
  const json::value schema = ParseJson(text, error);
  if (error) return Unreadable("JSON", error.message());
  if (!Allows(schema, {"object"})) return "it is no object's";
  const json::value* properties =
      schema.is_object() ? schema.get_object().if_contains("properties") : nullptr;
  if (properties == nullptr || !properties->is_object()) return std::nullopt;
  for (const Field& field : kFields) {
    const json::value* property = properties->get_object().if_contains(field.name);
    if (property != nullptr && !Allows(*property, field.types))
      return fmt::format("its {} is of another type than ours", field.name);
  }
  return std::nullopt;
}

// A field of ours and the types that a producer may declare for it with the same wire form.
struct WireField {
  int number;
  std::string_view name;
  std::vector<Proto::Type> types;
  bool repeated = false;
};

// TYPE_MESSAGE stands for every type with a name: messages and enumerations.
const std::vector<WireField>& InteractionFields() {
  static const std::vector<WireField> kFields = {
      {1, "event_id", {Proto::TYPE_STRING, Proto::TYPE_BYTES}},
      {2, "user", {Proto::TYPE_STRING, Proto::TYPE_BYTES}},
      {3, "item", {Proto::TYPE_STRING, Proto::TYPE_BYTES}},
      {4, "timestamp_ms", {Proto::TYPE_INT64, Proto::TYPE_UINT64}},
      {5, "outcome", {Proto::TYPE_MESSAGE, Proto::TYPE_INT32, Proto::TYPE_UINT32}},
      {6, "features", {Proto::TYPE_MESSAGE}, true},
      {7, "dense", {Proto::TYPE_FLOAT}, true},
      {8, "buckets", {Proto::TYPE_FIXED32}, true}};
  return kFields;
}

Reason JudgeMessage(const protobuf::DescriptorProto& message) {
  bool has_outcome = false;
  for (const Proto& field : message.field()) {
    const auto ours = std::ranges::find(InteractionFields(), field.number(), &WireField::number);
    if (ours == InteractionFields().end()) continue;
    const Proto::Type type = field.has_type_name() ? Proto::TYPE_MESSAGE : field.type();
    const bool repeated = field.label() == Proto::LABEL_REPEATED;
    if (repeated != ours->repeated || std::ranges::find(ours->types, type) == ours->types.end())
      return fmt::format("its field {} ({}) is of another type than our {}", field.number(),
                         Quoted(field.name()), ours->name);
    has_outcome = has_outcome || ours->name == "outcome";
  }
  if (!has_outcome) return "it has no outcome (5)";
  return std::nullopt;
}

class FirstError final : public protobuf::io::ErrorCollector {
 public:
  // The message may hold pieces of the schema.
  void AddError(int line, int, const std::string&) override {
    if (text_.empty()) text_ = fmt::format("line {}", line + 1);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Finds ranges of `extensions` that share options, "extensions 1, 5 to max [o = 2]": the parser
// copies all options for each range, so that 10 kB of schema need 4 GB.
class SharedOptions {
 public:
  // Takes the next token. Returns true if options of several ranges begin with it.
  bool Take(const protobuf::io::Tokenizer::Token& token) {
    if (token.text == "[" && ranges_ > 1) return true;
    const bool goes_on = token.type == protobuf::io::Tokenizer::TYPE_INTEGER ||
                         token.text == "to" || token.text == "max";
    if (token.text == "extensions")
      ranges_ = 1;
    else if (token.text == "," && ranges_ > 0)
      ranges_ = 2;
    else if (!goes_on)
      ranges_ = 0;
    return false;
  }

 private:
  int ranges_ = 0;  // so far, 2 for more; 0: the last tokens are none of a list of ranges
};

// Counts `optional` where the schema is not proto2's, which may have it before every field. A file
// that names its syntax begins with it.
class Optionals {
 public:
  using Token = protobuf::io::Tokenizer::Token;

  // Takes the next token. Returns true if it is one too many.
  bool Take(const Token& token) {
    if (behind_syntax_ == kBefore && token.type == protobuf::io::Tokenizer::TYPE_IDENTIFIER)
      behind_syntax_ = token.text == "syntax" ? 0 : kCounted;
    else if (behind_syntax_ >= 0 && behind_syntax_ < kCounted && ++behind_syntax_ == 2)
      counts_ = token.text != "\"proto2\"" && token.text != "'proto2'";
    return counts_ && token.text == "optional" && ++count_ > kOptionalsMost;
  }

 private:
  static constexpr int kBefore = -1, kCounted = 3;
  int behind_syntax_ = kBefore;  // tokens behind the word
  bool counts_ = false;
  int count_ = 0;
};

// Looks at the tokens of a Protobuf schema, of which its parser calls itself for each level of
// braces and keeps each statement. Returns what is too much of it.
Reason IsTooMuch(const std::string& text) {
  protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  FirstError error;
  protobuf::io::Tokenizer tokens(&stream, &error);
  SharedOptions shared;
  Optionals optionals;
  int level = 0, statements = 0, count = 0;
  const auto too_much = [&](std::string_view what) {
    return fmt::format("line {}: {}", tokens.current().line + 1, what);
  };
  while (tokens.Next()) {
    const std::string& token = tokens.current().text;
    if (token == "}") level = std::max(level - 1, 0);
    if (token == "{" && ++level > kLevelsMost)
      return too_much(fmt::format("more than {} levels", kLevelsMost));
    if ((token == "{" || token == ";") && ++statements > kStatementsMost)
      return too_much(fmt::format("more than {} statements", kStatementsMost));
    if (++count > kTokensMost) return too_much(fmt::format("more than {} tokens", kTokensMost));
    if (optionals.Take(tokens.current()))
      return too_much(fmt::format("more than {} optional fields", kOptionalsMost));
    if (shared.Take(tokens.current())) return too_much("ranges of extensions share options");
  }
  return std::nullopt;
}

Reason JudgeProtobuf(const std::string& text) {
  if (const Reason much = IsTooMuch(text)) return Unreadable("Protobuf", *much);
  protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  FirstError error;
  protobuf::io::Tokenizer tokens(&stream, &error);
  protobuf::compiler::Parser parser;
  parser.RecordErrorsTo(&error);
  const protobuf::LogSilencer quiet;  // else it warns of each schema without a syntax
  protobuf::FileDescriptorProto file;
  if (!parser.Parse(&tokens, &file)) return Unreadable("Protobuf", error.text());
  if (file.message_type_size() == 0) return "it has no message";
  return JudgeMessage(file.message_type(0));  // frames name the first one
}

// The types that a schema takes from others are not looked up.
SchemaVerdict JudgeAvro(const json::object& answer, const std::string& schema, const SchemaKey& key,
                        AvroSchemas* avro) {
  const json::value* others = answer.if_contains("references");
  if (others != nullptr && others->is_array() && !others->get_array().empty()) {
    const json::object* first = others->get_array()[0].if_object();
    return {SchemaVerdict::Kind::kReject,
            fmt::format("refers to another schema ({}), and such are not looked up: register it as "
                        "one",
                        first == nullptr ? "'?'" : Quoted(TextOf(*first, "name")))};
  }
  if (const Status added = avro->Add(key, schema); !added)
    return {SchemaVerdict::Kind::kReject, added.error().message};
  return {SchemaVerdict::Kind::kAccept};
}

}  // namespace

SchemaVerdict JudgeSchema(std::string_view answer, PayloadKind kind, const SchemaKey& key,
                          AvroSchemas* avro) {
  if (answer.size() >= kSchemaAnswerBytesMax)
    return {SchemaVerdict::Kind::kReject,
            fmt::format("the registry's answer has {} bytes or more", kSchemaAnswerBytesMax)};
  boost::system::error_code error;
  const json::value value = ParseJson(answer, error);
  if (error || !value.is_object() || !value.get_object().contains("schema"))
    return {SchemaVerdict::Kind::kWait, "the answer is no schema"};
  const json::object& object = value.get_object();
  std::string type = TextOf(object, "schemaType");
  if (type.empty()) type = "AVRO";  // which a registry does not name
  const std::string_view wanted = kind == PayloadKind::kJson   ? "JSON"
                                  : kind == PayloadKind::kAvro ? "AVRO"
                                                               : "PROTOBUF";
  if (type != wanted)
    return {SchemaVerdict::Kind::kReject,
            fmt::format("is of type {}, {} expected{}", Quoted(type), wanted,
                        type == "AVRO" ? "; source.format avro reads it" : "")};
  const std::string schema = TextOf(object, "schema");
  if (kind == PayloadKind::kAvro) return JudgeAvro(object, schema, key, avro);
  if (Reason wrong = kind == PayloadKind::kJson ? JudgeJson(schema) : JudgeProtobuf(schema))
    return {SchemaVerdict::Kind::kReject, *std::move(wrong)};
  return {SchemaVerdict::Kind::kAccept};
}

}  // namespace tacit::event
