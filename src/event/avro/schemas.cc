#include "event/avro/schemas.h"

#include <utility>

namespace tacit::event {

Result<std::shared_ptr<AvroSchemas>> AvroSchemas::Make(std::string_view reader, AvroPlaces places) {
  std::shared_ptr<AvroSchemas> made(new AvroSchemas(std::string(reader), std::move(places)));
  if (reader.empty()) return made;
  TACIT_ASSIGN(made->reader_, AvroSchema::Parse(reader));
  TACIT_ASSIGN(made->own_, AvroProgram::Compile(made->reader_, nullptr, made->places_));
  return made;
}

Status AvroSchemas::Add(const SchemaKey& key, std::string_view schema) {
  if (Find(key) != nullptr) return {};
  TACIT_ASSIGN(auto writer, AvroSchema::Parse(schema));
  TACIT_ASSIGN(auto program, AvroProgram::Compile(std::move(writer), reader_, places_));
  const MutexLock lock(mutex_);
  programs_.emplace(key, std::move(program));
  return {};
}

std::shared_ptr<const AvroProgram> AvroSchemas::Find(const SchemaKey& key) const {
  const MutexLock lock(mutex_);
  const auto found = programs_.find(key);
  return found == programs_.end() ? nullptr : found->second;
}

}  // namespace tacit::event
