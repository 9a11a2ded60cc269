// Fuzzes Avro: the schema of a writer, which anybody may register, and of a reader, and a record;
// or a whole container file. The three parts of the input end with a zero byte.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>

#include "event/avro/codec.h"
#include "event/json_shape.h"
#include "fuzz.h"
#include "stream/log/container_reader.h"

namespace tacit::event {
namespace {

FeatureSchema Schema() {
  return {.dense = {{.name = "I1"}, {.name = "I2"}},
          .categorical = {
              {.name = "C1", .buckets = 10, .dim = 1},
              {.name = "tags", .buckets = 10, .dim = 1, .multi_hot = true, .max_values = 3}}};
}
const FeatureTransform& Transform() {
  static const FeatureTransform transform(Schema());
  return transform;
}
AvroShape Shape() {
  AvroShape shape;
  shape.label_rule.at_least = 1;
  shape.weight = "/weight";
  shape.features = {{"I1", "/list/0"}, {"tags", "/tags"}};
  shape.features_at = "/f";
  return shape;
}

std::string_view TakePart(std::string_view* bytes) {
  const std::string_view part = bytes->substr(0, bytes->find('\0'));
  bytes->remove_prefix(std::min(part.size() + 1, bytes->size()));
  return part;
}

void ReadRecord(std::string_view bytes) {
  const std::string_view writer = TakePart(&bytes), reader = TakePart(&bytes);
  fuzz::DemandGoodError(AvroSchema::Parse(writer));
  for (const bool all : {true, false}) {
    const auto schemas = AvroSchemas::Make(reader, all ? nullptr : AvroPlacesOf(Shape(), Schema()));
    fuzz::DemandGoodError(schemas);
    if (!schemas) return;
    const Status added = (*schemas)->Add(SchemaKey(7), writer);
    fuzz::DemandGoodError(added);
    if (!added) return;
    std::string json;
    if (all && bytes.size() > 5) (void)WriteAsJson(*(*schemas)->Find(SchemaKey(7)), bytes, &json);
    if (all) continue;
    RawRecords records;
    records.bytes = std::string("\0\0\0\0\7", 5).append(bytes);
    records.end = {static_cast<uint32_t>(records.bytes.size())};
    Batch batch;
    Transform().StartBatch(&batch);
    std::vector<DeadLetter> dead;
    MakeAvroCodec(Transform(), Shape(), *schemas, /*framed=*/true, {.weight_most = 5})
        ->Decode(records, &batch, &dead);
    fuzz::Demand(batch.size() + dead.size() == 1, "a record is an example or a dead letter");
    for (const float number : batch.dense)
      fuzz::Demand(std::isfinite(number), "numbers are finite");
    for (const uint64_t row : batch.row)
      fuzz::Demand(row < Transform().row_space().rows(), "rows are of the tables");
    for (const DeadLetter& letter : dead) fuzz::Demand(!letter.reason.empty(), "it has a reason");
  }
}

void ReadContainer(std::string_view bytes) {
  const int file = memfd_create("fuzz", 0);
  fuzz::Demand(write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
               "the input is written");
  auto opened = stream::InputFile::Open("/proc/self/fd/" + std::to_string(file));
  fuzz::Demand(opened.has_value(), "the input is a file");
  stream::ContainerReader reader(*std::move(opened), 1000, *AvroSchemas::Make("", nullptr));
  RawRecords records;
  while (true) {
    records.Clear();
    const Status read = reader.Read(100, 10'000, &records);
    fuzz::DemandGoodError(read);
    if (!read || records.size() == 0) break;
  }
  close(file);
}

}  // namespace
}  // namespace tacit::event

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes = tacit::fuzz::TextOf(data, size);
  if (tacit::fuzz::TakeChoice(&bytes) % 2 == 0)
    tacit::event::ReadRecord(bytes);
  else
    tacit::event::ReadContainer(bytes);
  return 0;
}
