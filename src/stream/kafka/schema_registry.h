#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "event/envelope.h"

namespace tacit::event {
class AvroSchemas;
}  // namespace tacit::event

namespace tacit::stream {

struct SchemaRegistryOptions {
  std::string url;                           // "http://HOST:PORT", without a slash at its end
  std::string username = {}, password = {};  // basic authentication, if there is a user name
  std::string ca_file = {};                  // certificates to trust; if empty, the system's
  std::chrono::milliseconds timeout{2000};   // of one question
  // The time that records wait for a registry that does not answer, from its first failure on.
  // Without a value they wait until it answers.
  std::optional<std::chrono::milliseconds> wait = std::chrono::milliseconds(60'000);
  event::PayloadKind kind = event::PayloadKind::kJson;
  std::shared_ptr<event::AvroSchemas> avro = {};  // gets what is accepted; of kind kAvro
  size_t denied_most = 100'000;                   // denials that are remembered
};

// Makes a book that asks a schema registry (Confluent's API: /schemas/ids/7,
// /schemas/guids/5f0c...) and judges its answers (event::JudgeSchema).
//
// Anybody who may write to the topic may name any of 2^32 ids (2^128 GUIDs), so an id decides about
// its own records alone, and costs one question. The rules:
//
// - Good is for ever. A schema that was accepted once is accepted from then on, also when the
//   registry forgets it. A schema that was judged and found wrong is rejected as long as it is
//   remembered.
// - A denial lasts 5 s. Where the registry has no such schema (404, or another refusal of the
//   question itself), the record that is read is rejected at once. The denial holds for the next
//   records of that id, and the first one that is read 5 s or more after the question was asked
//   waits for a new answer. So a record is accepted if the registry has known its schema for 5 s.
//   (A registry that takes more than 4 s for an answer: for 1 s more than it takes.)
// - Up to 64 questions are under way at once: that of the record that is read, and those of records
//   that were fetched behind it.
// - No answer is no verdict. Where the registry does not answer (it is not reached in time, answers
//   5xx, 401, 403, 408, 429, or something that is no schema), records of ids that were never
//   accepted wait. The wait is the registry's, not the record's: it begins with the first failure,
//   and ends with an answer to a question that was asked later. Meanwhile one question at a time is
//   asked, after pauses of 0 to 5 s. When a question that was asked `wait` or more after the first
//   failure has failed too, these records are rejected, until the registry answers.
// - An id that fails alone is denied. After a failure another id is asked first, if need be one
//   that was answered before. An id that has failed three times, and each time the registry
//   answered a later question, is treated like a 404: its failure is its own.
//
// Bounded: 64 questions and as many answers of event::kSchemaAnswerBytesMax, `denied_most` denials
// (all are forgotten when there are more), and the accepted ids, which the registry bounds.
// Redirections are not followed: they would take the password elsewhere. Not thread-safe; `clock`
// must outlive it.
std::unique_ptr<event::SchemaBook> MakeSchemaRegistry(SchemaRegistryOptions options,
                                                      const Clock& clock);

}  // namespace tacit::stream
