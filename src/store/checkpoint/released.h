#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/terms.h"
#include "store/types/snapshot.h"
#include "store/view/delta_codec.h"

// The part of a commit that may be shown to anybody, value by value, for a publisher: the
// same things that a release checkpoint holds.
namespace tacit::store {

struct ReleasedLearner {
  uint16_t key = 0;  // in the store; learners that the configuration lacks are among them
  Digest fingerprint{};
  std::string record;            // EncodeLearner: name, fingerprint and layout
  uint32_t step = 0;             // the last step of its moving average; 0: it keeps none
  std::span<const float> dense;  // as served; empty if none
  CommitSeq dense_seq;           // the commit that wrote it
  std::shared_ptr<const std::string> released;  // of its mechanism; null if none
  CommitSeq released_seq;
};

// Valid as long as its snapshot, which it holds.
struct Release {
  std::shared_ptr<const Snapshot> snapshot;
  CommitTip tip;
  TermId term = kNoTerm;
  std::vector<ReleasedLearner> learners;  // ascending by key
};

// A row as serving needs it: the embedding and, with a moving average, what MovingAverage::Read
// takes (the average and its step). `state` are the optimiser's own floats: serving needs none.
struct ReleasedRow {
  uint16_t learner = 0;
  uint16_t table = 0;  // the table's number in the store's keys
  uint64_t bucket = 0;
  std::span<const float> floats, state;
};
using EachReleasedRow = std::function<Status(const ReleasedRow&)>;

}  // namespace tacit::store
