#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/clock.h"
#include "event/envelope.h"

namespace tacit::stream {

struct SchemaRegistryOptions {
  std::string url;                          // "http://HOST:PORT", without a slash at its end
  std::string username, password;           // basic authentication, if there is a user name
  std::string ca_file;                      // certificates to trust; empty: the system's
  std::chrono::milliseconds timeout{2000};  // of one request
  event::PayloadKind kind = event::PayloadKind::kJson;
};

// Makes a book that asks a schema registry (Confluent's API: /schemas/ids/7,
// /schemas/guids/5f0c...), judges the answers (event::JudgeSchema) and remembers them. Look waits
// for an answer only a moment and otherwise returns kUnknown; the next call continues the request.
// A failed request is repeated after half a second, then after twice as long, up to 5 s.
// Redirections are not followed: they would take the password elsewhere. Not thread-safe; `clock`
// must outlive it.
std::unique_ptr<event::SchemaBook> MakeSchemaRegistry(SchemaRegistryOptions options,
                                                      const Clock& clock);

}  // namespace tacit::stream
