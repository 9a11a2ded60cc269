#pragma once

#include <memory>
#include <string>
#include <vector>

#include "event/batch.h"
#include "event/feature_transform.h"
#include "event/item_catalogue.h"
#include "event/raw_records.h"

namespace tacit::event {

// A record that cannot be learnt from, and why. Holds no payload: the record is where it was.
struct DeadLetter {
  std::string origin;  // file or topic
  uint64_t line = 0;   // in the file; 0: not a file
  int32_t partition = 0;
  uint64_t offset = 0;
  std::string reason;  // names the column or field
};

// Turns raw records into examples. Called once per run of records; nothing is allocated per record
// once the batch has grown. Implementations are immutable and thread-safe.
class Codec {
 public:
  virtual ~Codec() = default;
  // Appends the good records to `batch` (StartBatch'ed) and the bad ones to `dead`; never fails.
  virtual void Decode(const RawRecords& records, Batch* batch,
                      std::vector<DeadLetter>* dead) const = 0;
};

// Criteo's click logs as published: label, the dense columns as integers (empty = missing, may be
// negative), the categorical columns as text (empty = missing), separated by tabs. The schema says
// how many of each. `transform` must outlive the codec.
std::unique_ptr<Codec> MakeCriteoTsvCodec(const FeatureTransform& transform);

// What becomes of an example that lacks a feature of the schema.
enum class MissingPolicy {
  kDefault,  // it has the missing value: 0, or the table's row 0
  kReject,   // it is a dead letter
};

struct InteractionOptions {
  MissingPolicy missing = MissingPolicy::kDefault;
  // How far a record's own time may lie ahead of when the source took it, where the source says.
  int64_t ahead_max_ms = 24 * 3'600'000;
  // What Batch::item is filled from: a record's item may be unknown to it, or missing, and the
  // record is learnt from all the same by who needs none. Null: the column stays empty.
  std::shared_ptr<const ItemCatalogue> items = nullptr;
};

// JSON objects by schemas/interaction.schema.json: named features, in any order; fields and
// features that the schema does not know are passed over. `transform` must outlive the codec.
std::unique_ptr<Codec> MakeJsonCodec(const FeatureTransform& transform,
                                     const InteractionOptions& options);
// Protobuf messages by schemas/interaction.proto: features by name, or packed in the schema's
// order. The same rules otherwise.
std::unique_ptr<Codec> MakeProtobufCodec(const FeatureTransform& transform,
                                         const InteractionOptions& options);

}  // namespace tacit::event
