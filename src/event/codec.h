#pragma once

#include <memory>
#include <string>
#include <vector>

#include "event/batch.h"
#include "event/feature_transform.h"
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

}  // namespace tacit::event
