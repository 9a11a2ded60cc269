#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "event/envelope.h"

namespace tacit::event {

class AvroSchemas;

// Parses "7", or a GUID in its usual form. Fails for anything else.
Result<SchemaKey> ParseSchemaKey(std::string_view text);

// Makes a book of schemas known from the start: those with value true are accepted, those with
// false rejected. Other schemas are looked up in `next`; without it they are rejected.
std::unique_ptr<SchemaBook> MakePinnedSchemas(std::map<SchemaKey, bool> schemas,
                                              std::unique_ptr<SchemaBook> next);

// Makes a book that accepts every schema, for records that are looked at or counted, not judged.
std::unique_ptr<SchemaBook> MakeEverySchema();

// A registry's answer that is as long as this, or longer, is refused unread.
inline constexpr size_t kSchemaAnswerBytesMax = 1 << 20;

// Judges a schema from a registry's answer, {"schema","schemaType"}, against what our codec of this
// kind reads. Its type must match the kind, and its declarations must not contradict how we read
// our fields: a Protobuf message must not use one of our numbers for something else, and a JSON
// schema's `features` must be an object. Each message shows what its schema leaves open. A schema
// that cannot be read is rejected. kWait if the answer is none of a registry.
//
// Anybody may have registered the schema. Before it is parsed it is bounded: kSchemaAnswerBytesMax
// bytes, 64 levels, and for Protobuf 2,000 statements and blocks, 50,000 tokens, 400 `optional`
// fields of proto3, and no options that ranges of extensions share; a reason names at most 24 bytes
// of it.
// An Avro schema is rejected where records of it cannot be read; `avro`, which must not be null
// then, gets the others by their key.
SchemaVerdict JudgeSchema(std::string_view answer, PayloadKind kind, const SchemaKey& key = 0,
                          AvroSchemas* avro = nullptr);

}  // namespace tacit::event
