// Fuzzes records of streams, in each format. A record is an example or a dead letter, and an
// example holds what a model may take.
#include <cmath>

#include "event/codec.h"
#include "event/confluent.h"
#include "event/csv_codec.h"
#include "event/json_shape.h"
#include "event/letter_line.h"
#include "fuzz.h"
#include "support/criteo_schema.h"
#include "unit/serve/fake_snapshot.h"

namespace tacit::event {
namespace {

constexpr double kWeightMost = 5;

const FeatureTransform& Small() {
  static const FeatureTransform transform(serve::SmallSchema());
  return transform;
}
const FeatureTransform& Criteo() {
  static const uint64_t kBuckets[] = {10, 100, 1000};
  static const FeatureTransform transform(CriteoSchema(2, kBuckets));
  return transform;
}
const InteractionOptions& Options() {
  static const InteractionOptions options{.weight_most = kWeightMost};
  return options;
}

struct Reader {
  const FeatureTransform& transform;
  std::unique_ptr<Codec> codec;
};
JsonShape OwnShape() {
  JsonShape shape;
  shape.label = "/what";
  shape.label_rule.values = {{"buy", true}, {"view", false}};
  shape.user = "/who/id";
  shape.item = "";
  shape.event_id = "";
  shape.timestamp = "/at";
  shape.timestamp_unit = TimeUnit::kRfc3339;
  shape.weight = "/paid";
  shape.features = {{"I1", "/list/0"}, {"tags", "/a~1b/tags"}};
  shape.features_at = "/f";
  return shape;
}
CsvShape OwnLines() {
  CsvShape shape;
  shape.columns = {"label", "who", "when", "I1", "I2", "C1", "C2", "tags", "paid"};
  shape.header = false;
  shape.user = "who";
  shape.timestamp = "when";
  shape.timestamp_unit = TimeUnit::kSeconds;
  shape.weight = "paid";
  return shape;
}
const std::vector<Reader>& Readers() {
  static const auto* const readers = [] {
    auto* made = new std::vector<Reader>;
    made->push_back({Criteo(), MakeCriteoTsvCodec(Criteo())});
    made->push_back({Small(), MakeJsonCodec(Small(), Options())});
    made->push_back({Small(), MakeProtobufCodec(Small(), Options())});
    fuzz::Demand(CheckShape(OwnShape(), serve::SmallSchema()).has_value(), "the shape is one");
    made->push_back({Small(), MakeShapedJsonCodec(Small(), OwnShape(), Options())});
    fuzz::Demand(CheckCsvShape(OwnLines(), serve::SmallSchema()).has_value(), "the shape is one");
    made->push_back({Small(), MakeCsvCodec(Small(), OwnLines(), Options())});
    return made;
  }();
  return *readers;
}

void DemandGood(const Batch& batch, const FeatureTransform& transform) {
  fuzz::Demand(batch.dense.size() == batch.size() * batch.dense_width, "each has its numbers");
  fuzz::Demand(batch.slot_end.size() == batch.size() * batch.slots, "each has its slots");
  for (const float label : batch.label) fuzz::Demand(label == 0 || label == 1, "labels are bits");
  for (const float number : batch.dense) fuzz::Demand(std::isfinite(number), "numbers are finite");
  for (const uint64_t row : batch.row)
    fuzz::Demand(row < transform.row_space().rows(), "rows are of the tables");
  for (const float weight : batch.weight)
    fuzz::Demand(weight >= 0 && weight <= 1, "weights are shares");
  for (size_t i = 0; i < batch.size(); ++i)
    for (size_t s = 0; s < batch.slots; ++s) {
      const auto& feature = transform.schema().categorical[s];
      const size_t most = feature.multi_hot ? feature.max_values : 1;
      fuzz::Demand(!batch.Slot(i, s).empty() && batch.Slot(i, s).size() <= most,
                   "a slot has a row, and no more than its feature allows");
    }
}

// The input's lines are the records: one, or the input as a whole for bytes that are no text.
void ReadRecords(const Reader& reader, bool lines, std::string_view bytes) {
  RawRecords records;
  records.origin = "fuzz";
  const auto add = [&](std::string_view record) {
    records.bytes += record;
    records.end.push_back(static_cast<uint32_t>(records.bytes.size()));
  };
  while (lines && bytes.find('\n') != std::string_view::npos) {
    add(bytes.substr(0, bytes.find('\n')));
    bytes.remove_prefix(bytes.find('\n') + 1);
  }
  add(bytes);
  Batch batch;
  reader.transform.StartBatch(&batch);
  std::vector<DeadLetter> dead;
  reader.codec->Decode(records, &batch, &dead);
  fuzz::Demand(batch.size() + dead.size() == records.size(), "no record is lost");
  DemandGood(batch, reader.transform);
  for (const DeadLetter& letter : dead) {
    fuzz::Demand(!letter.reason.empty(), "a dead letter has a reason");
    const std::string line = ToLine(letter);
    const auto place = ParseLine(std::string_view(line).substr(0, line.size() - 1));
    fuzz::Demand(place && place->offset == letter.offset, "a letter's line is read again");
  }
}

void ReadFrame(std::string_view bytes) {
  for (const PayloadKind kind : {PayloadKind::kJson, PayloadKind::kProtobuf}) {
    Unframed unframed;
    const size_t header = std::min<size_t>(17, bytes.size());
    if (!Unframe(bytes, {}, kind, &unframed)) (void)Text(unframed.schema);
    (void)Unframe(bytes.substr(header), bytes.substr(0, header), kind, &unframed);
  }
  (void)ParseLine(bytes);
  (void)MayBeginLine(bytes);
}

}  // namespace
}  // namespace tacit::event

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tacit::event;
  std::string_view bytes = tacit::fuzz::TextOf(data, size);
  const uint8_t choice = tacit::fuzz::TakeChoice(&bytes) % 8;
  if (choice < Readers().size())
    ReadRecords(Readers()[choice], choice != 2, bytes);
  else
    ReadFrame(bytes);
  return 0;
}
