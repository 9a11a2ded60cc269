#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/siphash.h"
#include "lab/next_item/method.h"
#include "privacy/bill.h"
#include "stream/steps/participation.h"
#include "train/counts/recent_histories.h"
#include "train/learner/learner.h"

namespace tacit::lab {

// Hands periods of histories in memory to a learner of train: the steps and histories that a
// daemon's learner gets from its stream and its store, and the bill that a trainer keeps. It stays
// where it was made, and outlives its learner. Not thread-safe.
class PeriodDriver {
 public:
  // `context`: the most items of a user from before a period.
  PeriodDriver(uint32_t catalogue, uint32_t context) : catalogue_(catalogue), context_(context) {}
  PeriodDriver(const PeriodDriver&) = delete;
  PeriodDriver& operator=(const PeriodDriver&) = delete;

  // The options and the reader that the learner is made with.
  train::RecentHistoriesOptions histories() const {
    return {.catalogue = catalogue_, .items_most = context_};
  }
  train::RecentHistories::Reader reader() {
    return [this](std::span<store::UserHistory> users) { return Read(users); };
  }

  // Begins a period and an empty bill. A learner that opens periods sees all events first. The
  // period must outlive its steps. kInvalidArgument for histories that are none.
  Status Begin(const StreamPeriod& period, train::Learner* opens);
  // Has the learner take its next step of the period, with the chosen users of it, or with all.
  Status Step(train::Learner& learner, std::span<const uint64_t> chosen);
  Status StepOfAll(train::Learner& learner);
  // Has the learner take the whole period as one step of `once`.
  Status StepOnce(train::Learner& learner);

  // The period's, so far.
  const privacy::Bill& bill() const { return bill_; }

 private:
  Result<uint64_t> Read(std::span<store::UserHistory> users) const;
  Status Take(train::Learner& learner, stream::StepBatch* step);

  const uint32_t catalogue_, context_;
  const StreamPeriod* period_ = nullptr;
  std::unordered_map<Hash128, size_t> unit_of_;  // by the hash of the user's name
  stream::StepBatch all_;                        // every user's new items
  std::vector<size_t> unit_end_;                 // per unit: the end of its examples
  std::vector<OffsetRange> ranges_;              // a period's number stands for its offsets
  uint64_t periods_ = 0, steps_ = 0;             // begun; taken in all
  bool opened_ = false;                          // the period's first step was taken
  privacy::Bill bill_;
};

}  // namespace tacit::lab
