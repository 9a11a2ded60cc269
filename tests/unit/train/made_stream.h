#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "event/batch.h"
#include "event/feature_transform.h"
#include "event/raw_records.h"
#include "event/schema.h"

namespace tacit::train {

// A stream of clicks of a random shape: features, users, label rate, missing values. What producers
// do to it (accidents, or days like any other) is set from outside between two runs of records.
class MadeStream {
 public:
  // An Event is an accident of the producers, or a day like any other.
  struct Event {
    double share = 0;           // of the records it happens to
    bool all_positive = false;  // labels are 1
    int missing_feature = -1;   // a column that is not filled in
    bool twice = false;         // records come again
    bool seconds = false;       // timestamps in seconds
    bool users_gone = false;    // `share` of the users stays away
    bool other_values = false;  // every category is another topic's
    double label_factor = 1;    // click rates are higher or lower
    int new_category = -1;      // a column with a value that was not there before
    int64_t times_ms = 0;       // every timestamp; 0: as time goes
  };

  explicit MadeStream(uint64_t seed) : random_(seed) {
    const int dense = Between(0, 3), categorical = Between(2, 6);
    for (int i = 0; i < dense; ++i) schema_.dense.push_back({.name = fmt::format("n{}", i)});
    for (int i = 0; i < categorical; ++i)
      schema_.categorical.push_back(
          {.name = fmt::format("c{}", i), .buckets = uint64_t{1} << Between(5, 20), .dim = 4});
    transform_ = std::make_unique<event::FeatureTransform>(schema_);
    for (int i = 0; i < dense + categorical; ++i)
      missing_.push_back(Uniform() < .5 ? 0 : .2 * Uniform());
    users_ = static_cast<uint64_t>(Between(1000, 20'000));
    click_rate_ = .05 + .35 * Uniform();
    user_.reserve(users_);
    for (uint64_t i = 0; i < users_; ++i) user_.push_back(fmt::format("user-{}", i));
  }

  const event::FeatureSchema& schema() const { return schema_; }
  size_t columns() const { return missing_.size(); }
  double click_rate() const { return click_rate_; }

  // The next `count` records.
  void Next(size_t count, const Event& event) {
    records_.Clear();
    records_.first_offset = next_;
    transform_->StartBatch(&batch_);
    while (batch_.size() < count) {
      const bool hit = Uniform() < event.share;
      Append(hit, event);
      if (hit && event.twice) AppendAgain();
    }
    records_.end.resize(batch_.size());
    next_ += batch_.size();
  }
  const event::RawRecords& records() const { return records_; }
  const event::Batch& batch() const { return batch_; }

 private:
  int Between(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random_);
  }
  double Uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  // A number below `n`, small ones more often: about as many in each octave.
  uint64_t Skewed(uint64_t n) {
    return static_cast<uint64_t>(std::pow(static_cast<double>(n), Uniform()) - .999);
  }

  void AppendAgain() {
    event::Batch last = event::EmptyLike(batch_);
    last.AppendRange(batch_, batch_.size() - 1, batch_.size());
    batch_.AppendRange(last, 0, 1);
    ++batch_.offset.back();
  }

  void Append(bool hit, const Event& event) {
    batch_.offset.push_back(next_ + batch_.size());
    uint64_t user = Skewed(users_);
    if (event.users_gone)
      while (static_cast<double>(user * 7919 % 1000) < 1000 * event.share) user = Skewed(users_);
    const double rate = std::min(.95, click_rate_ * event.label_factor);
    batch_.label.push_back((hit && event.all_positive) || Uniform() < rate ? 1.0f : 0.0f);
    const int64_t ms = 1'600'000'000'000 + static_cast<int64_t>(next_ + batch_.size());
    const int64_t own = hit && event.seconds ? ms / 1000 : ms;
    batch_.timestamp_ms.push_back(event.times_ms != 0 ? event.times_ms : own);
    batch_.user.Append(user_[user]);
    const int dense = static_cast<int>(schema_.dense.size());
    for (int i = 0; i < static_cast<int>(columns()); ++i) {
      const bool missing =
          (hit && event.missing_feature == i) || Uniform() < missing_[static_cast<size_t>(i)];
      if (i < dense)
        batch_.dense.push_back(missing ? event::kMissingNumber : static_cast<float>(Uniform()));
      else
        AppendRow(static_cast<size_t>(i - dense), missing, hit, event);
    }
  }

  void AppendRow(size_t slot, bool missing, bool hit, const Event& event) {
    const auto& table = transform_->row_space().tables()[slot];
    // Half of the table's rows are this stream's.
    const uint64_t half = (table.rows - 1) / 2;
    uint64_t bucket = missing ? 0 : 1 + Skewed(half);
    // They are hashed, and meet this stream's in some rows.
    if (bucket > 0 && hit && event.other_values)
      bucket = 1 + (bucket * 2'654'435'761u + 17) % (table.rows - 1);
    if (hit && event.new_category == static_cast<int>(slot)) bucket = table.rows - 1;
    batch_.row.push_back(table.first + bucket);
    batch_.slot_end.push_back(static_cast<uint32_t>(batch_.row.size()));
  }

  std::mt19937_64 random_;
  event::FeatureSchema schema_;
  std::unique_ptr<event::FeatureTransform> transform_;
  std::vector<double> missing_;
  uint64_t users_ = 0, next_ = 0;
  double click_rate_ = 0;
  std::vector<std::string> user_;
  event::RawRecords records_;
  event::Batch batch_;
};

}  // namespace tacit::train
