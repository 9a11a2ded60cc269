// Models that grow: rows follow their tables, and nothing is charged (crash_test.cc has the kills).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <random>

#include "growth_script.h"
#include "restore_script.h"
#include "store/care/verify.h"
#include "store/checkpoint/checkpoint.h"

namespace tacit::store {
namespace {

using testing::HasSubstr;

class GrowthTest : public testing::Test {
 protected:
  StoreOptions Options(const LearnerLayout& layout) const {
    return GrowthScript::Options(folder_.root(), layout);
  }
  // A store of the learner before, with some commits, and all its rows.
  GrowthScript::Rows Train(uint64_t commits) const {
    const LearnerLayout before = GrowthScript::Before();
    const auto store = MustOpen(Options(before));
    for (uint64_t i = 0; i < commits; ++i)
      EXPECT_TRUE(GrowthScript::Step(*store, before.rows, Script::RowsOf(i + 1)));
    return GrowthScript::RowsOf(*store, before.rows);
  }
  // Readers see of the rows what the trainer has.
  static void ExpectServed(const Snapshot& snapshot, const RowLayout& layout,
                           const GrowthScript::Rows& rows) {
    std::vector<uint64_t> numbers(rows.size());
    std::vector<float> expected;
    for (size_t row = 0; row < rows.size(); ++row) {
      numbers[row] = row;
      const uint32_t dim = layout.space.tables()[layout.space.TableOf(row)].dim;
      expected.insert(expected.end(), rows[row].begin(), rows[row].begin() + dim);
    }
    std::vector<float> got(expected.size());
    const Status read = snapshot.Rows(LearnerIndex(0), numbers, got);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(got, expected);
  }

  const TestFolder folder_;
};

// Restores a copy from before commit 6, whose one step is charged.
RestoreRequest RestoreOfLastCommit(const StoreOptions& options, const std::string& checkpoint,
                                   const std::string& learner, const Digest& head) {
  RestoreRequest request = RestoreOfScript(options, checkpoint, 6, 6, head);
  LearnerGap gap;
  gap.learner = LearnerIndex(0);
  gap.charges = {TestCharge(learner, 6)};
  gap.position = Script::PositionOf(6);
  gap.step = 5;
  request.gaps.push_back(std::move(gap));
  return request;
}

TEST_F(GrowthTest, TablesAreLargerNewGoneAndInAnotherOrder) {
  const LearnerLayout before = GrowthScript::Before(), after = GrowthScript::After();
  const auto was = Train(5);
  const auto planned = PlanGrowth(folder_.store(), {after});
  ASSERT_TRUE(planned) << planned.error().message;
  ASSERT_EQ(planned->size(), 1u);
  EXPECT_EQ(planned->front().learner, "ctr");
  EXPECT_THAT(planned->front().gained, testing::ElementsAre("hour is new"));
  EXPECT_THAT(planned->front().lost, testing::ElementsAre("ad is gone"));

  StoreOptions options = Options(after);
  const auto refused = Store::Open(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_THAT(refused.error().message,
              testing::AllOf(HasSubstr("ad is gone"), HasSubstr("tacit store migrate")));
  EXPECT_EQ(MustOpen(Options(before))->Latest()->version().value, 5u) << "nothing has changed";

  options.may_lose = true;
  const auto expected = GrowthScript::Grown(was, before.rows, after.rows);
  {
    const auto store = MustOpen(options);
    EXPECT_EQ(store->Latest()->version().value, 6u);
    EXPECT_EQ(GrowthScript::RowsOf(*store, after.rows), expected);
    ExpectServed(*store->Latest(), after.rows, expected);
    EXPECT_EQ(store->State(LearnerIndex(0)).position, Script::PositionOf(5));
    EXPECT_EQ(store->State(LearnerIndex(0)).dense->parameters, Script::DenseOf(5));
    // It goes on, and is the same model at the next start, which takes nothing over.
    ASSERT_TRUE(GrowthScript::Step(*store, after.rows, {0, 3, 30, 141}));
  }
  options.may_lose = false;
  const auto store = MustOpen(options);
  EXPECT_EQ(store->Latest()->version().value, 7u);
  auto later = expected;
  for (const uint64_t row : {0, 3, 30, 141}) Script::Change(7, later[row]);
  EXPECT_EQ(GrowthScript::RowsOf(*store, after.rows), later);
  EXPECT_TRUE(store->Settle());
}

TEST_F(GrowthTest, NothingIsChargedAndTheLedgerSaysSo) {
  Train(5);
  const double epsilon = MustOpen(Options(GrowthScript::Before()))->Latest()->learners()[0].epsilon;
  StoreOptions options = Options(GrowthScript::After());
  options.may_lose = true;
  const auto store = MustOpen(options);
  const auto entries = GrowthScript::Entries(*store);
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_TRUE(entries[2].is_growth);
  EXPECT_EQ(entries[2].steps, 0u);
  EXPECT_EQ(entries[2].epsilon, epsilon);
  EXPECT_EQ(entries[2].first_commit, 6u);
  EXPECT_EQ(entries[2].model_fingerprint, options.learners[0].promise.model_fingerprint);
  EXPECT_NE(entries[1].model_fingerprint, entries[2].model_fingerprint);
  EXPECT_EQ(store->Latest()->learners()[0].epsilon, epsilon);
  EXPECT_EQ(store->Latest()->learners()[0].steps, 5u);
  GrowthScript::ExpectChain(*store);
  ASSERT_TRUE(GrowthScript::Step(*store, options.learners[0].rows, {5}));
  EXPECT_FALSE(GrowthScript::Entries(*store).back().is_growth);
  GrowthScript::ExpectChain(*store);
}

TEST_F(GrowthTest, ReadersAreOfOneModel) {
  Train(3);
  const auto open = [&](const LearnerLayout& layout) {
    return OpenReadOnly(folder_.store(), folder_.witness(), {layout});
  };
  ASSERT_TRUE(open(GrowthScript::Before()));
  const auto early = open(GrowthScript::After());
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, ErrorCode::kRefused);
  StoreOptions options = Options(GrowthScript::After());
  options.may_lose = true;
  const auto store = MustOpen(options);
  const auto late = open(GrowthScript::Before());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kRefused);
  const auto now = open(GrowthScript::After());
  ASSERT_TRUE(now) << now.error().message;
  ExpectServed(*now->snapshot, options.learners[0].rows,
               GrowthScript::RowsOf(*store, options.learners[0].rows));
}

TEST_F(GrowthTest, CheckpointsHoldTheGrownModel) {
  Train(4);
  StoreOptions options = Options(GrowthScript::After());
  options.may_lose = true;
  auto store = MustOpen(options);
  const RowLayout& layout = options.learners[0].rows;
  ASSERT_TRUE(GrowthScript::Step(*store, layout, {1, 50, 141}));
  const auto rows = GrowthScript::RowsOf(*store, layout);
  for (const CheckpointKind kind : {CheckpointKind::kFull, CheckpointKind::kRelease}) {
    const auto made = store->MakeCheckpoint(
        {.kind = kind, .parent = folder_.root() + "/checkpoints", .schema = ""});
    ASSERT_TRUE(made) << made.error().message;
    const auto read = OpenReadOnly(made->place.folder, "", options.learners);
    ASSERT_TRUE(read) << read.error().message;
    ExpectServed(*read->snapshot, layout, rows);
  }
  store.reset();
  const auto check = VerifyStore(folder_.store(), {.witness = folder_.witness()});
  ASSERT_TRUE(check);
  EXPECT_TRUE(check->damage.empty());
}

// A copy from before the model grew becomes the grown model, and is charged for what came after.
TEST_F(GrowthTest, ACopyFromBeforeIsRestoredAsTheModelThatIsConfigured) {
  const auto was = Train(4);
  const LearnerLayout before = GrowthScript::Before(), after = GrowthScript::After();
  std::string checkpoint;
  {
    const auto store = MustOpen(Options(before));
    const auto made = store->MakeCheckpoint(
        {.kind = CheckpointKind::kFull, .parent = folder_.root() + "/checkpoints", .schema = ""});
    ASSERT_TRUE(made) << made.error().message;
    checkpoint = made->place.folder;
  }
  StoreOptions options = Options(after);
  options.may_lose = true;
  Digest head;
  double epsilon = 0;
  {
    const auto store = MustOpen(options);
    ASSERT_TRUE(GrowthScript::Step(*store, after.rows, {1, 2, 3}));
    head = store->Latest()->head();
    epsilon = store->Latest()->learners()[0].epsilon;
  }
  std::filesystem::remove_all(options.path);
  options.may_lose = false;
  const RestoreRequest request = RestoreOfLastCommit(options, checkpoint, "ctr", head);
  const auto restored = RestoreStore(request);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_DOUBLE_EQ(restored->epsilon, epsilon);
  const auto store = MustOpen(options);
  EXPECT_EQ(GrowthScript::RowsOf(*store, after.rows),
            GrowthScript::Grown(was, before.rows, after.rows));
  EXPECT_EQ(store->Latest()->learners()[0].steps, 5u);
  GrowthScript::ExpectChain(*store);
}

TEST_F(GrowthTest, ALearnerIsCalledOtherwise) {
  const auto was = Train(5);
  const LearnerLayout before = GrowthScript::Before();
  double epsilon = 0;
  std::vector<uint32_t> read;
  {
    const auto store = MustOpen(Options(before));
    epsilon = store->Latest()->learners()[0].epsilon;
    read = GrowthScript::Read(*store);
  }
  ASSERT_EQ(read.size(), 5u);
  // Nothing but the name.
  LearnerLayout other = before;
  other.name = other.promise.learner = "clicks";
  StoreOptions options = Options(other);
  options.renames = {{"clicks", "ctr"}};
  const auto planned = PlanGrowth(folder_.store(), {other}, options.renames);
  ASSERT_TRUE(planned) << planned.error().message;
  ASSERT_EQ(planned->size(), 1u);
  EXPECT_THAT(planned->front().gained,
              testing::ElementsAre("it was called 'ctr', and its account goes on"));
  EXPECT_TRUE(planned->front().lost.empty());
  {
    const auto store = MustOpen(options);
    EXPECT_EQ(store->Latest()->version().value, 6u);
    EXPECT_EQ(GrowthScript::RowsOf(*store, other.rows), was);
    EXPECT_EQ(GrowthScript::Read(*store), read);
    EXPECT_EQ(store->State(LearnerIndex(0)).position, Script::PositionOf(5));
    const auto entries = GrowthScript::Entries(*store);
    EXPECT_TRUE(entries.back().is_growth);
    EXPECT_EQ(entries.back().learner, "clicks");
    EXPECT_EQ(entries.back().before, "ctr");
    ASSERT_EQ(store->Latest()->learners().size(), 1u);
    EXPECT_EQ(store->Latest()->learners()[0].learner, "clicks");
    EXPECT_EQ(store->Latest()->learners()[0].epsilon, epsilon);
    EXPECT_EQ(store->Latest()->learners()[0].steps, 5u);
    ASSERT_TRUE(GrowthScript::Step(*store, other.rows, {1, 2}, "clicks"));
    GrowthScript::ExpectChain(*store);
    EXPECT_EQ(store->Latest()->learners()[0].steps, 6u);
    EXPECT_GE(store->Latest()->learners()[0].epsilon, epsilon);
  }
  // It is so at the next start, whether that is told again or not; the old name is not given again.
  EXPECT_EQ(MustOpen(options)->Latest()->version().value, 7u);
  EXPECT_EQ(MustOpen(Options(other))->Latest()->version().value, 7u);
  const auto old = Store::Open(Options(before));
  ASSERT_FALSE(old);
  EXPECT_THAT(old.error().message, HasSubstr("it is called 'clicks' now"));
  EXPECT_EQ(MustOpen(Options(other))->Latest()->version().value, 7u);
  // A third name, beside a larger model whose items have moved.
  StoreOptions third = GrowthScript::RenamedOptions(folder_.root());
  third.renames = {{"ads", "clicks"}};
  const auto store = MustOpen(third);
  auto moved = GrowthScript::Read(*store);
  ASSERT_EQ(moved.size(), 6u);
  for (size_t i = 0; i < read.size(); ++i) EXPECT_EQ(moved[i], GrowthScript::MovedItem(read[i]));
  EXPECT_EQ(store->Latest()->learners()[0].learner, "ads");
  GrowthScript::ExpectChain(*store);
}

TEST_F(GrowthTest, ANameThatCannotBeGivenIsRefused) {
  Train(2);
  LearnerLayout other = GrowthScript::Before();
  other.name = other.promise.learner = "clicks";
  const auto refusal = [&](const std::vector<LearnerLayout>& learners,
                           const std::map<std::string, std::string>& renames) {
    const auto planned = PlanGrowth(folder_.store(), learners, renames);
    return planned ? "taken" : planned.error().message;
  };
  EXPECT_THAT(refusal({other}, {{"clicks", "ctx"}}), HasSubstr("has no learner 'ctx'"));
  EXPECT_THAT(refusal({other}, {{"click", "ctr"}}), HasSubstr("configuration has no such learner"));
  EXPECT_THAT(refusal({other, GrowthScript::Before()}, {{"clicks", "ctr"}}),
              HasSubstr("still has it under the old name"));
  EXPECT_EQ(refusal({other}, {{"clicks", "ctr"}}), "taken");
}

// A copy from before the learner got its name becomes the learner of that name, and is charged on
// its account.
TEST_F(GrowthTest, ACopyFromBeforeIsRestoredUnderTheNewName) {
  Train(4);
  std::string checkpoint;
  {
    const auto store = MustOpen(Options(GrowthScript::Before()));
    const auto made = store->MakeCheckpoint(
        {.kind = CheckpointKind::kFull, .parent = folder_.root() + "/checkpoints", .schema = ""});
    ASSERT_TRUE(made) << made.error().message;
    checkpoint = made->place.folder;
  }
  StoreOptions options = GrowthScript::RenamedOptions(folder_.root());
  const RowLayout layout = options.learners[0].rows;
  Digest head;
  double epsilon = 0;
  {
    const auto store = MustOpen(options);
    ASSERT_TRUE(GrowthScript::Step(*store, layout, {1, 2, 3}, "ads"));
    head = store->Latest()->head();
    epsilon = store->Latest()->learners()[0].epsilon;
  }
  std::filesystem::remove_all(options.path);
  const RestoreRequest request = RestoreOfLastCommit(options, checkpoint, "ads", head);
  const auto restored = RestoreStore(request);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_DOUBLE_EQ(restored->epsilon, epsilon);
  const auto store = MustOpen(options);
  EXPECT_EQ(store->Latest()->learners()[0].learner, "ads");
  EXPECT_EQ(store->Latest()->learners()[0].steps, 5u);
  GrowthScript::ExpectChain(*store);
}

TEST_F(GrowthTest, AHistoryWithAnItemWithoutANumberIsRefused) {
  Train(3);
  StoreOptions options = GrowthScript::RenamedOptions(folder_.root());
  options.learners[0].grow = [grow = options.learners[0].grow](const StoredModel& stored) {
    auto grown = grow(stored);
    grown->items.resize(GrowthScript::ItemAt(2));
    return grown;
  };
  const auto refused = Store::Open(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kCorruption);
  EXPECT_EQ(MustOpen(Options(GrowthScript::Before()))->Latest()->version().value, 3u);
}

TEST_F(GrowthTest, AModelThatCannotGrowSaysWhy) {
  Train(2);
  StoreOptions options = Options(GrowthScript::After());
  options.learners[0].grow = [](const StoredModel& stored) -> Result<GrownModel> {
    EXPECT_EQ(stored.form, "form site ad");
    return Fail(ErrorCode::kRefused, "it is too old");
  };
  const auto refused = Store::Open(options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              testing::AllOf(HasSubstr("learner 'ctr'"), HasSubstr("it is too old")));
  options = Options(GrowthScript::After());
  options.learners[0].promise.delta = 1e-3;
  options.may_lose = true;
  const auto promise = Store::Open(options);
  ASSERT_FALSE(promise);
  EXPECT_THAT(promise.error().message, HasSubstr("delta was"));
  EXPECT_EQ(MustOpen(Options(GrowthScript::Before()))->Latest()->version().value, 2u);
}

// Inputs that stand in another order are another form of a model with the same fingerprint.
TEST_F(GrowthTest, AnotherOrderOfInputsIsNoticed) {
  Train(2);
  LearnerLayout other = GrowthScript::Before();
  other.form = "form in another order";
  EXPECT_EQ(MustOpen(Options(other))->Latest()->version().value, 3u);
  EXPECT_EQ(MustOpen(Options(other))->Latest()->version().value, 3u);
}

// Tables that come, grow, go and change places again and again, beside a model that has all rows in
// memory.
TEST_F(GrowthTest, RowsFollowTheirTablesUnderRandomChanges) {
  std::mt19937_64 random(21);
  std::vector<std::pair<std::string, uint64_t>> tables = {{"a", 12}, {"b", 30}};
  const auto layout = [&] {
    std::vector<TestTable> made;
    for (const auto& [name, rows] : tables) made.push_back({name.c_str(), rows, 3, 2});
    return GrowthScript::Make(made);
  };
  LearnerLayout now = layout();
  GrowthScript::Rows rows;
  uint64_t seq = 0;
  int growths = 0;
  for (int round = 0; round < 60; ++round) {
    if (round > 0 && random() % 2 == 0) {
      const LearnerLayout before = now;
      const uint64_t kind = random() % 4, at = random() % tables.size();
      if (kind == 0) tables.emplace_back("t" + std::to_string(round), 5 + random() % 20);
      if (kind == 1 && tables.size() > 1) tables.erase(tables.begin() + static_cast<ptrdiff_t>(at));
      if (kind == 2 && tables[at].second < 200)
        tables[at].second = 1 + (tables[at].second - 1) * (2 + random() % 2);
      if (kind == 3) std::shuffle(tables.begin(), tables.end(), random);
      now = layout();
      if (now.form != before.form || now.rows.space.rows() != before.rows.space.rows()) {
        // A model that has learnt nothing yet is made anew.
        rows = seq == 0 ? GrowthScript::Rows() : GrowthScript::Grown(rows, before.rows, now.rows);
        growths += seq > 0;
        seq += seq > 0;
      }
    }
    StoreOptions options = Options(now);
    options.may_lose = true;
    const auto store = MustOpen(options);
    if (rows.empty()) rows = GrowthScript::RowsOf(*store, now.rows);
    ASSERT_EQ(store->Latest()->version().value, seq) << "round " << round;
    ASSERT_EQ(GrowthScript::RowsOf(*store, now.rows), rows) << "round " << round;
    for (uint64_t commits = random() % 4; commits > 0; --commits) {
      std::vector<uint64_t> changed;
      for (uint64_t row = random() % 7; row < rows.size(); row += 1 + random() % 9)
        changed.push_back(row);
      ASSERT_TRUE(GrowthScript::Step(*store, now.rows, changed));
      ++seq;
      for (const uint64_t row : changed) Script::Change(seq, rows[row]);
    }
    ExpectServed(*store->Latest(), now.rows, rows);
    if (seq > 0) GrowthScript::ExpectChain(*store);
    if (HasFailure()) return;
  }
  EXPECT_GT(growths, 15);
}

}  // namespace
}  // namespace tacit::store
