#include <gtest/gtest.h>

#include <random>
#include <set>

#include "script.h"
#include "store/rows/row_arrival.h"

namespace tacit::store {
namespace {

// Two learners as of one commit.
struct ModelState {
  std::vector<RowModel> rows;
  std::vector<std::string> positions{"", ""};
  std::vector<std::string> released{"none", "none"};
  std::vector<float> dense{0, 0};
};

// Random gathers, changes, commits, folds, reopens and readers, held against maps in memory.
class StoreModel {
 public:
  explicit StoreModel(uint64_t seed) : random_(seed), options_(TestOptions(folder_)) {
    options_.fold_after_commits = 1 + seed % 4;
    options_.row_cache_bytes = seed % 3 == 0 ? 2000 : 1 << 20;
    if (seed % 5 == 0) options_.overlay_bytes = 4000;
    if (seed % 2 == 0) options_.fold_file_bytes = 1 << 20;  // folds go through the log
    options_.shards = 1 + seed % 7;
    for (const auto& learner : options_.learners) working_.rows.emplace_back(&learner.rows);
    history_.push_back(working_);
    store_ = MustOpen(options_);
  }

  void Run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFatalFailure(); ++step) {
      const uint64_t dice = random_() % 100;
      if (dice < 60)
        Train();
      else if (dice < 80)
        Commit();
      else if (dice < 88)
        Hold();
      else if (dice < 94)
        Compare();
      else if (dice < 97)
        Reopen();
      else
        ReadBeside();
    }
    Reopen();
  }

 private:
  // Rows change elsewhere, and come home when somebody needs them.
  void TrainElsewhere(LearnerIndex learner, RowModel& model, const std::vector<uint64_t>& rows) {
    auto now = std::make_shared<RowDelta>();
    for (const uint64_t row : rows) {
      std::vector<float> floats = model.Row(row);
      for (float& number : floats) number = static_cast<float>(random_() % 1000);
      model.Set(row, floats);
      now->rows.push_back(row);
      now->floats.insert(now->floats.end(), floats.begin(), floats.end());
      now->end.push_back(now->floats.size());
    }
    ASSERT_TRUE(
        store_->working_rows(learner).Expect(std::make_shared<RowArrival>([now](RowDelta* delta) {
          delta->rows = now->rows;
          delta->end = now->end;
          delta->floats = now->floats;
          return Status{};
        })));
  }

  void Train() {
    const LearnerIndex learner(random_() % 2);
    RowModel& model = working_.rows[learner.value];
    std::set<uint64_t> chosen;
    for (int i = 0; i < 40; ++i) chosen.insert(random_() % model.layout().space.rows());
    const std::vector<uint64_t> rows(chosen.begin(), chosen.end());
    if (random_() % 4 == 0) return TrainElsewhere(learner, model, rows);
    std::vector<float*> places(rows.size());
    ASSERT_TRUE(store_->working_rows(learner).Gather(rows, places));
    std::vector<uint64_t> changed;
    for (size_t i = 0; i < rows.size(); ++i) {
      const uint32_t floats = model.layout().RowFloats(model.layout().space.TableOf(rows[i]));
      ASSERT_EQ(std::vector<float>(places[i], places[i] + floats), model.Row(rows[i]))
          << "row " << rows[i] << " of learner " << learner.value;
      if (random_() % 3 == 0) continue;
      for (uint32_t j = 0; j < floats; ++j) places[i][j] = static_cast<float>(random_() % 1000);
      model.Set(rows[i], {places[i], floats});
      changed.push_back(rows[i]);
    }
    store_->working_rows(learner).MarkChanged(changed);
  }

  void Commit() {
    const uint64_t seq = history_.size();
    CommitRequest request;
    request.source_identity = "source " + std::to_string(seq);
    ModelState committed = history_.back();
    for (uint16_t i = 0; i < 2; ++i) {
      if (random_() % 4 == 0) continue;  // this learner's changes go into a later commit
      auto dense = std::make_shared<DenseState>();
      dense->parameters = {static_cast<float>(seq)};
      const std::string position = "at " + std::to_string(seq);
      request.learners.push_back({LearnerIndex(i),
                                  store_->working_rows(LearnerIndex(i)).TakeDelta(),
                                  dense,
                                  position,
                                  {TestCharge(options_.learners[i].name, seq)}});
      if (random_() % 3 == 0) {
        committed.released[i] = std::string(random_() % 50, static_cast<char>(seq));
        request.learners.back().released =
            std::make_shared<const std::string>(committed.released[i]);
      }
      committed.rows[i] = working_.rows[i];
      committed.positions[i] = position;
      committed.dense[i] = static_cast<float>(seq);
    }
    const auto done = [](Status status) { EXPECT_TRUE(status); };
    ASSERT_TRUE(store_->Commit(std::move(request), done));
    history_.push_back(std::move(committed));
  }

  void Hold() {
    held_.push_back(store_->Latest());
    if (held_.size() > 6) held_.erase(held_.begin() + static_cast<ptrdiff_t>(random_() % 6));
    Expect(*held_[random_() % held_.size()]);
  }

  void Compare() {
    ASSERT_TRUE(store_->Flush());
    ASSERT_EQ(store_->Latest()->version().value, history_.size() - 1);
    Expect(*store_->Latest());
  }

  void Reopen() {
    ASSERT_TRUE(store_->Flush());
    held_.clear();
    store_.reset();
    store_ = MustOpen(options_);
    working_ = history_.back();
    ASSERT_EQ(store_->Latest()->version().value, history_.size() - 1);
    Expect(*store_->Latest());
    for (uint16_t i = 0; i < 2; ++i) {
      const LearnerState state = store_->State(LearnerIndex(i));
      ASSERT_EQ(state.position, working_.positions[i]);
      ASSERT_EQ(state.released ? *state.released : "none", working_.released[i]);
    }
  }

  void ReadBeside() {
    const uint64_t at_least = store_->Latest()->version().value;
    const auto reader = OpenReadOnly(folder_.store(), folder_.witness(), options_.learners);
    if (at_least == 0 && !reader) return;
    ASSERT_TRUE(reader) << reader.error().message;
    ASSERT_GE(reader->snapshot->version().value, at_least);
    Expect(*reader->snapshot);
    ASSERT_TRUE(privacy::VerifyChain(reader->entries));
  }

  void Expect(const Snapshot& snapshot) {
    const ModelState& model = history_[snapshot.version().value];
    for (uint16_t i = 0; i < 2; ++i) {
      ExpectRows(snapshot, LearnerIndex(i), model.rows[i]);
      const auto dense = snapshot.Dense(LearnerIndex(i));
      ASSERT_EQ(dense ? dense->parameters[0] : 0, model.dense[i]);
    }
  }

  const TestFolder folder_;
  std::mt19937_64 random_;
  StoreOptions options_;
  ModelState working_;
  std::vector<ModelState> history_;  // by commit
  std::unique_ptr<Store> store_;
  std::vector<std::shared_ptr<const Snapshot>> held_;
};

TEST(StoreModelTest, EqualsMapsUnderRandomOperations) {
  const uint64_t first = std::random_device()();
  for (uint64_t seed = first; seed < first + 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    StoreModel(seed).Run(150);
    if (HasFatalFailure()) return;
  }
}

TEST(StoreModelTest, TheBudgetCountsWhatIsEnqueued) {
  const TestFolder folder;
  const auto store = MustOpen(TestOptions(folder));
  const auto charge = TestCharge("ctr", 1);
  const double once = store->EpsilonAfter({&charge, 1});
  CommitRequest request;
  request.learners.push_back({LearnerIndex(0), nullptr, nullptr, "p", {charge}});
  ASSERT_TRUE(store->Commit(std::move(request), {}));
  EXPECT_GT(store->EpsilonAfter({&charge, 1}), once);  // the same records again
  ASSERT_TRUE(store->Flush());
  EXPECT_EQ(store->Latest()->learners()[0].epsilon, once);
}

}  // namespace
}  // namespace tacit::store
