// Reads Avro as Tacit does and prints each record as a line of JSON, for avro_test.py. A line of
// standard input is a task, its words in hex with blanks between them:
//     bare WRITER READER RECORD
//     framed WRITER READER RECORD    the record comes in Confluent's frame
//     file READER PATH
// An empty READER is "-". The answer ends with a line "end", or "error REASON".
#include <fmt/format.h>

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "event/avro/codec.h"
#include "event/envelope.h"
#include "event/schema_books.h"
#include "stream/log/log_source.h"

namespace tacit {
namespace {

using Words = std::vector<std::string>;

std::string FromHexWord(const std::string& word) {
  std::string bytes;
  if (word == "-") return bytes;
  for (size_t i = 0; i + 1 < word.size(); i += 2)
    bytes += static_cast<char>(std::stoi(word.substr(i, 2), nullptr, 16));
  return bytes;
}

std::string InJson(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    json += c;
  }
  return json + '"';
}

// Knows one schema, as a registry answers for it.
class OneSchema final : public event::SchemaBook {
 public:
  OneSchema(std::string schema, std::shared_ptr<event::AvroSchemas> schemas)
      : answer_("{\"schema\":" + InJson(schema) + "}"), schemas_(std::move(schemas)) {}
  event::SchemaVerdict Look(const event::SchemaKey& key) override {
    return event::JudgeSchema(answer_, event::PayloadKind::kAvro, key, schemas_.get());
  }

 private:
  const std::string answer_;
  const std::shared_ptr<event::AvroSchemas> schemas_;
};

// Prints a record, or returns why it cannot be read.
std::string Print(const event::AvroProgram* program, std::string_view record) {
  if (program == nullptr) return "its schema is not known";
  std::string json;
  if (const event::MaybeBad bad = event::WriteAsJson(*program, record, &json)) return bad->reason;
  std::cout << json << '\n';
  return "";
}

// Prints a record of a frame with a schema's key.
std::string PrintFramed(const event::AvroSchemas& schemas, std::string_view record) {
  const bool guid = record.starts_with('\1');
  const size_t size = guid ? event::kGuidFrameBytes : 0;
  event::Unframed unframed;
  if (auto wrong = event::Unframe(record.substr(size), record.substr(0, size),
                                  event::PayloadKind::kAvro, &unframed))
    return *wrong;
  return Print(schemas.Find(unframed.schema).get(), unframed.payload);
}

std::string ReadFramed(const Words& words, std::shared_ptr<event::AvroSchemas> schemas) {
  event::Envelope envelope({.framed = true, .kind = event::PayloadKind::kAvro},
                           std::make_unique<OneSchema>(FromHexWord(words[1]), schemas));
  const std::string value = std::string("\0\0\0\1\2", 5) + FromHexWord(words[3]);
  std::string_view payload;
  std::string reason;
  if (envelope.Open({.value = value, .headers = {}}, &payload, &reason) !=
      event::Envelope::Outcome::kPayload)
    return reason;
  return PrintFramed(*schemas, payload);
}

std::string ReadFile(const std::string& path, std::shared_ptr<event::AvroSchemas> schemas) {
  const auto source =
      stream::OpenLogSource({.files = {path}, .records_per_poll = 7, .avro = schemas});
  if (!source) return source.error().message;
  event::RawRecords records;
  while (true) {
    const auto outcome = (*source)->Poll(std::chrono::milliseconds(0), &records);
    if (!outcome) return outcome.error().message;
    if (*outcome != stream::PollOutcome::kRecords) return "";
    if (!records.faults.empty()) return records.faults[0].reason;
    for (size_t i = 0; i < records.size(); ++i)
      if (std::string wrong = PrintFramed(*schemas, records[i]); !wrong.empty()) return wrong;
  }
}

std::string Answer(const Words& words) {
  const bool file = words[0] == "file";
  auto schemas = event::AvroSchemas::Make(FromHexWord(words[file ? 1 : 2]), nullptr);
  if (!schemas) return schemas.error().message;
  if (file) return ReadFile(FromHexWord(words[2]), *schemas);
  if (words[0] == "framed") return ReadFramed(words, *schemas);
  const event::SchemaKey key = 1;
  if (const Status added = (*schemas)->Add(key, FromHexWord(words[1])); !added)
    return added.error().message;
  return Print((*schemas)->Find(key).get(), FromHexWord(words[3]));
}

}  // namespace
}  // namespace tacit

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    tacit::Words words;
    for (std::string word; in >> word;) words.push_back(word);
    const std::string wrong = tacit::Answer(words);
    std::cout << (wrong.empty() ? "end" : "error " + wrong) << std::endl;
  }
  return 0;
}
