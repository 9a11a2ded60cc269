#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "event/feature_transform.h"
#include "unit/model/loop_model.h"

namespace tacit::store {
class Snapshot;
}

namespace tacit::test {

// Finds from the model alone how often each event was learnt from. Every event has a value whose
// row no other event activates; the learner `exact` has neither noise nor clip, plain SGD, and
// dense parameters that stand still. So the row of an event lies where k steps of gradient descent
// lead from its initial value, k being the number of times it was applied; the path is computed
// here, in float64, by loops that share nothing with the code under test. No offset, no count of
// steps and no ledger is asked.
//
// Not thread-safe.
class Oracle {
 public:
  // Events of different seeds have different values.
  explicit Oracle(uint64_t seed);

  // An event that has never been, and its number. A bad one cannot be learnt from: its line names
  // the value too, so that its row would show it.
  size_t Invent(bool bad = false);
  size_t size() const { return events_.size(); }
  bool IsBad(size_t event) const { return events_[event].bad; }
  // Its record as Criteo TSV, without the newline. No two events have the same.
  std::string Line(size_t event) const;
  // The same as JSON, with a user and an event id.
  std::string Json(size_t event, const std::string& user) const;
  const std::string& Value(size_t event) const { return events_[event].value; }
  // The same as a bucket, which is how packed messages have it.
  uint32_t Bucket(size_t event) const { return static_cast<uint32_t>(events_[event].row); }
  static constexpr uint64_t kBuckets = uint64_t{1} << 23;
  float Label(size_t event) const { return events_[event].label; }
  // A record that is learnt from and moves no event's row.
  static std::string Filler() { return "1\t1\t"; }
  static std::string JsonFiller() { return R"({"label":1,"user":"none","features":{"I1":1}})"; }
  // The event that a record in any format is about.
  std::optional<size_t> EventIn(std::string_view record) const;

  // `schema` and `learners` of the daemon's configuration. Beside `exact` stand `period`, each of
  // whose events is in each of its period's two steps (`poisson` with probability 1; left out
  // without `periods`), and `private`, which pays for what it learns: its unit is the event, or
  // with `users` the user, who may be in kAllowance steps and pays for each.
  static std::string Yaml(bool periods, bool users = false);
  static constexpr uint32_t kBatch = 16, kPeriod = 64, kStepsPerPeriod = 2;
  static constexpr double kEpsilon = 2, kDelta = 1e-6;
  static constexpr uint64_t kAllowance = 100'000;

  // The epsilon that `private` has to report after this many steps: events were in one each, users
  // in as many as they may. A closed form (Balle and Wang 2018), computed here.
  static double EpsilonAfter(uint64_t steps, bool users);

  // Returns how often a learner (0: exact, 1: period) has applied each event, by its rows in the
  // store of this configuration; -1 if no number of times leads there. Fails if the store cannot be
  // read, or if the dense parameters have moved.
  Result<std::vector<int>> Applied(const std::string& config_path, size_t learner = 0) const;
  // The same of a store that is open.
  Result<std::vector<int>> AppliedIn(const store::Snapshot& snapshot, size_t learner = 0) const;
  // Lists the differences, one sentence an event, at most twenty. `expected` has a number per
  // event.
  std::vector<std::string> Differences(const std::vector<int>& applied,
                                       const std::vector<int>& expected) const;

 private:
  struct Event {
    std::string value;
    uint64_t row = 0;
    float label = 0;
    bool bad = false;
  };
  static constexpr int kTimesMax = 8;

  std::vector<double> InitialRowOf(const Event& event) const;
  model::testing::LoopExample Example(const Event& event) const;
  // One step of plain SGD on the event's row, alone in its place of the batch.
  std::vector<double> After(const Event& event, const std::vector<double>& row) const;
  // True if one application moves the row far enough, and away from where a ReLU bends.
  bool IsVisible(const Event& event) const;
  int TimesApplied(const Event& event, const float* row) const;

  const uint64_t seed_;
  const event::FeatureTransform transform_;
  model::testing::LoopModel model_;
  std::vector<double> dense_;
  std::vector<Event> events_;
  std::vector<bool> row_taken_;
  uint64_t tried_ = 0;
};

}  // namespace tacit::test
