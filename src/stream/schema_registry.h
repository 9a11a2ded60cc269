#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/clock.h"
#include "event/envelope.h"

namespace tacit::stream {

struct SchemaRegistryOptions {
  std::string url;                          // "http://HOST:PORT", without a slash at its end
  std::string username, password;           // basic authentication, where there is a user name
  std::string ca_file;                      // certificates to trust; empty: the system's
  std::chrono::milliseconds timeout{2000};  // of one question
  event::PayloadKind kind = event::PayloadKind::kJson;
};

// Asks a schema registry (Confluent's API: /schemas/ids/7, /schemas/guids/5f0c...) what it has been
// asked about before, and judges the answer (event::JudgeSchema). Look waits for an answer a moment
// at most and otherwise says kUnknown; the question goes on when it is called again. What failed is
// asked again after half a second, then after twice as long, up to 30 s. Redirections are not
// followed: they would take the password elsewhere. Not thread-safe; `clock` must outlive it.
std::unique_ptr<event::SchemaBook> MakeSchemaRegistry(SchemaRegistryOptions options,
                                                      const Clock& clock);

}  // namespace tacit::stream
