#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "event/envelope.h"

namespace tacit::event {

// "7", or a GUID in its usual form. Fails for anything else.
Result<SchemaKey> ParseSchemaKey(std::string_view text);

// A book of schemas that are known from the start: accepted where the value is true, rejected where
// it is false. Others are `next`'s to know, or unknown for ever where that is null.
std::unique_ptr<SchemaBook> MakePinnedSchemas(std::map<SchemaKey, bool> schemas,
                                              std::unique_ptr<SchemaBook> next);

// What a schema registry answers about a schema, {"schema","schemaType"}, held against what our
// codec of this kind reads. Its type must be the kind's, and what it says of our fields must not
// rule out what we take them for: a Protobuf message that gives one of our numbers to something
// else, a JSON schema whose `features` are no object. What a schema leaves open is seen in each
// message. kUnknown where the answer or its schema cannot be understood.
SchemaVerdict JudgeSchema(std::string_view answer, PayloadKind kind);

}  // namespace tacit::event
