#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/threads/worker_pool.h"
#include "model/sequence/logit_prior.h"
#include "model/transitions/options.h"
#include "model/transitions/public_items.h"
#include "noise/noise.h"
#include "privacy/charge.h"
#include "train/counts/recent_histories.h"

namespace tacit::train {

// The release that a sequence model makes at the opening of each period, before the period's steps.
struct SequenceStartOptions {
  enum class Kind : uint8_t {
    kNone,
    kPopularity,  // a histogram of the period's items
    kCounts,      // the shaped count model of the period's pairs
  };
  Kind kind = Kind::kNone;
  double noise_multiplier = 0;  // of the release: 1 / mu. 0: no noise and no promise
  double forget = 1;            // the factor for earlier histograms at each new one
  // The histogram's logits are added to the model's. False: its shares correct attention alone.
  bool popularity_is_prior = true;
  double counts_weight = 3;  // of the counts' logits
  // For kCounts.
  model::transitions::Options counts = {};
  std::shared_ptr<const model::transitions::PublicItems> catalogue = {};
};

// kInvalidArgument names what is out of its domain, for a model of this many items.
Status CheckOptions(const SequenceStartOptions& options, uint32_t items);
// Tells whether rows of the released logits are made where they are needed, out of counts of a
// catalogue without room for all pairs.
bool HasNoTable(const SequenceStartOptions& options);
// The cost of the release to each unit in the period. Unbounded without noise.
privacy::Charge OpeningCharge(const SequenceStartOptions& options);

// A start in use: what it has released so far and the logits that follow from it. Made of released
// numbers alone, so that keeping, storing and showing it is free. Not thread-safe.
class SequenceStart {
 public:
  virtual ~SequenceStart() = default;

  // Releases one period. `users` is the number of its units, or a public number in its place.
  // After a failure nothing was released.
  virtual Status Release(const StepHistories& period, double users, noise::NoiseSource& noise) = 0;
  // The logits that are added to the model's; only Release and Load change them. Null if
  // nothing is added.
  virtual const model::LogitPrior* prior() const = 0;
  // The chance that a user has each item, for Re-Attention; empty if unknown.
  virtual std::vector<float> ItemShares() const { return {}; }

  // The stored form, and its reader. Load fails where the bytes are damaged or of another model.
  virtual std::string Encode() const = 0;
  virtual Status Load(std::string_view bytes) = 0;
};

// The stored form of what was released, for a catalogue that begins with the items of before and
// has more. `before` and `after` differ in their catalogues alone.
Result<std::string> GrownStart(std::string_view released, const SequenceStartOptions& before,
                               uint32_t items_before, const SequenceStartOptions& after,
                               uint32_t items_after, WorkerPool& workers,
                               std::span<const uint32_t> places = {});

// Returns null for kNone. REQUIRES CheckOptions. `workers` must outlive it.
std::unique_ptr<SequenceStart> MakeSequenceStart(const SequenceStartOptions& options,
                                                 uint32_t items, WorkerPool& workers);

}  // namespace tacit::train
