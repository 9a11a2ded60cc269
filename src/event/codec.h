#pragma once

#include <memory>
#include <string>
#include <vector>

#include "event/bad_record.h"
#include "event/batch.h"
#include "event/feature_transform.h"
#include "event/item_catalogue.h"
#include "event/raw_records.h"

namespace tacit::event {

// A record that cannot be learnt from, and the reason. Holds no payload: the record stays where it
// is.
struct DeadLetter {
  std::string origin;  // file or topic
  uint64_t line = 0;   // in the file; 0: not a file
  int32_t partition = 0;
  uint64_t offset = 0;
  std::string reason;  // names the column or field
  BadPart part = BadPart::kValue;
};

// Turns raw records into examples. Called once per run of records; allocates nothing per record
// once the batch has grown. Implementations are immutable and thread-safe.
class Codec {
 public:
  virtual ~Codec() = default;
  // Appends the good records to `batch` (StartBatch'ed) and the bad ones to `dead`; never fails.
  virtual void Decode(const RawRecords& records, Batch* batch,
                      std::vector<DeadLetter>* dead) const = 0;
};

// The use of a record's label. Records to learn from must have one; in records to score, what
// stands there is passed over, and the batch has 0.
enum class LabelUse { kLearnt, kPassedOver };

// Makes a codec for Criteo's click logs as published: label, the dense columns as integers (empty =
// missing, may be negative), the categorical columns as text (empty = missing), separated by tabs.
// The schema says how many columns of each kind there are. `transform` must outlive the codec.
std::unique_ptr<Codec> MakeCriteoTsvCodec(const FeatureTransform& transform,
                                          LabelUse label = LabelUse::kLearnt);

// The treatment of an example that lacks a feature of the schema.
enum class MissingPolicy {
  kDefault,  // it has the missing value: 0, or the table's row 0
  kReject,   // it is a dead letter
};

struct InteractionOptions {
  LabelUse label = LabelUse::kLearnt;
  MissingPolicy missing = MissingPolicy::kDefault;
  // The most that a record's own time may lie ahead of the time at which the source took it, if
  // that is known.
  int64_t ahead_max_ms = 24 * 3'600'000;
  // The weight from which on a record has all the weight there is; a record that does not say has a
  // weight of 1. 0: records have no weights, and Batch::weight stays empty.
  double weight_most = 0;
  // The catalogue that Batch::item is filled from. A record whose item is unknown to it or missing
  // is still learnt from by learners that need no item. If null, the column stays empty.
  std::shared_ptr<const ItemCatalogue> items = nullptr;
};

// Makes a codec for JSON objects by schemas/interaction.schema.json: named features, in any order.
// It skips fields and features that the schema does not know. `transform` must outlive the codec.
std::unique_ptr<Codec> MakeJsonCodec(const FeatureTransform& transform,
                                     const InteractionOptions& options);
// Makes a codec for Protobuf messages by schemas/interaction.proto: features by name, or packed in
// the schema's order. The other rules are the same.
std::unique_ptr<Codec> MakeProtobufCodec(const FeatureTransform& transform,
                                         const InteractionOptions& options);

}  // namespace tacit::event
