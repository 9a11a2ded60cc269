#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "base/threads/mutex.h"
#include "event/avro/program.h"
#include "event/confluent.h"

namespace tacit::event {

// The schemas that a source's records were written by, each as a program that reads the wanted
// places. A source adds them, from a registry or a file's header, before it hands its records on;
// the codec finds them. Thread-safe. Bounded by who answers for the schemas: a
// registry, or the log's files.
class AvroSchemas {
 public:
  // `reader` is the schema that records are read by; if empty, each is read as it was written.
  // `places` as for AvroProgram. Fails where `reader` is no schema.
  static Result<std::shared_ptr<AvroSchemas>> Make(std::string_view reader, AvroPlaces places);

  // Adds the schema with this key. Fails where records of it cannot be read.
  Status Add(const SchemaKey& key, std::string_view schema);
  // Returns null if there is none. A program that was returned is never replaced by another.
  std::shared_ptr<const AvroProgram> Find(const SchemaKey& key) const;
  // The program of records without a frame: `reader`'s. Null without it.
  const AvroProgram* own() const { return own_.get(); }
  const std::string& reader() const { return reader_text_; }

 private:
  AvroSchemas(std::string reader_text, AvroPlaces places)
      : reader_text_(std::move(reader_text)), places_(std::move(places)) {}

  const std::string reader_text_;
  const AvroPlaces places_;
  std::shared_ptr<const AvroSchema> reader_;
  std::shared_ptr<const AvroProgram> own_;
  mutable Mutex mutex_;
  std::unordered_map<SchemaKey, std::shared_ptr<const AvroProgram>, SchemaKeyHash> programs_
      TACIT_GUARDED_BY(mutex_);
};

}  // namespace tacit::event
