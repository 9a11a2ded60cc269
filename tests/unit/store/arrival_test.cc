// Commits whose rows come from elsewhere: what happens if they do not come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "forget_script.h"
#include "script.h"
#include "store/rows/row_arrival.h"

namespace tacit::store {
namespace {

using testing::HasSubstr;

constexpr LearnerIndex kFirst(0);
constexpr char kLost[] = "the device is lost";

RowDelta OneRow(uint64_t row, float number) {
  const RowLayout layout = TestLearners()[0].rows;
  const size_t floats = layout.RowFloats(layout.space.TableOf(row));
  return RowDelta{.rows = {row}, .end = {floats}, .floats = std::vector<float>(floats, number)};
}

// Passes on a commit whose rows are what `bring` brings.
Status CommitElsewhere(Store& store, RowArrival::Bring bring,
                       const std::function<void(Status)>& done = {}) {
  WorkingRows& working = store.working_rows(kFirst);
  TACIT_RETURN_IF_ERROR(working.Expect(std::make_shared<RowArrival>(std::move(bring))));
  const uint64_t seq = store.Latest()->version().value + 1;
  CommitRequest request{.learners = {}, .source_identity = "source"};
  request.learners.push_back(
      {kFirst, working.TakeDelta(), nullptr, Script::PositionOf(seq), {TestCharge("ctr", seq)}});
  return store.Commit(std::move(request), done);
}

RowArrival::Bring Bringing(uint64_t row, float number) {
  return [=](RowDelta* delta) -> Status {
    const RowDelta one = OneRow(row, number);
    delta->rows = one.rows;
    delta->end = one.end;
    delta->floats = one.floats;
    return {};
  };
}
// Some of the rows are there when the device is lost.
Status LoseHalfway(RowDelta* delta) {
  TACIT_RETURN_IF_ERROR(Bringing(3, 1)(delta));
  delta->rows.push_back(4);
  return Fail(ErrorCode::kIo, kLost);
}

class ArrivalTest : public testing::Test {
 protected:
  ArrivalTest() : options_(TestOptions(folder_)), store_(MustOpen(options_)) {}

  // Commits a row that comes, and then one that does not.
  void LoseTheSecond() {
    ASSERT_TRUE(CommitElsewhere(*store_, Bringing(3, 7)));
    ASSERT_TRUE(store_->Flush());
    Status told;
    ASSERT_TRUE(CommitElsewhere(*store_, LoseHalfway, [&](Status status) { told = status; }));
    const Status flushed = store_->Flush();
    ASSERT_FALSE(flushed);
    EXPECT_EQ(flushed.error().message, std::string("commit 2: ") + kLost);
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().message, flushed.error().message);
  }
  void ExpectTheFirst() {
    RowModel model(&options_.learners[0].rows);
    model.Set(3, OneRow(3, 7).floats);
    EXPECT_EQ(store_->Latest()->version(), CommitSeq(1));
    EXPECT_EQ(store_->State(kFirst).position, Script::PositionOf(1));
    EXPECT_EQ(store_->Latest()->learners()[0].steps, 1u);
    ExpectRows(*store_->Latest(), kFirst, model);
  }

  const TestFolder folder_;
  StoreOptions options_;
  std::unique_ptr<Store> store_;
};

TEST_F(ArrivalTest, RowsThatDoNotComeAreInNoCommitAndNeitherIsAnythingElseOfIt) {
  LoseTheSecond();
  ExpectTheFirst();
  const Status next = CommitElsewhere(*store_, Bringing(3, 9));
  ASSERT_FALSE(next);
  EXPECT_THAT(next.error().message, HasSubstr(kLost));
  ExpectTheFirst();
  // The database is closed, and opened again in the same process.
  store_.reset();
  store_ = MustOpen(options_);
  ExpectTheFirst();
  ASSERT_TRUE(CommitElsewhere(*store_, Bringing(3, 9)));
  ASSERT_TRUE(store_->Flush());
  EXPECT_EQ(store_->Latest()->version(), CommitSeq(2));
}

// A fault of a device is none of the disk's.
TEST_F(ArrivalTest, UsersAreForgottenAndCheckpointsMadeThoughRowsDidNotCome) {
  ASSERT_TRUE(ForgetScript::Append(*store_, {ForgetScript::HistoryOf(ForgetScript::kAda)}));
  ASSERT_TRUE(CommitElsewhere(*store_, LoseHalfway));
  ASSERT_FALSE(store_->Flush());
  const Status forgotten = store_->ForgetUsers({&ForgetScript::kAda, 1});
  ASSERT_TRUE(forgotten) << forgotten.error().message;
  const auto history = store_->Latest()->History(kFirst, ForgetScript::kAda);
  ASSERT_TRUE(history);
  EXPECT_TRUE(history->empty());
  const auto made = store_->MakeCheckpoint(
      {.kind = CheckpointKind::kFull, .parent = folder_.root() + "/checkpoints", .schema = ""});
  ASSERT_TRUE(made) << made.error().message;
  std::atomic<bool> given_up = false;
  const auto erased = store_->EraseForgotten("", &given_up);
  ASSERT_TRUE(erased) << erased.error().message;
  EXPECT_EQ(*erased, 1u);
}

// The trainer's next gather wants room, which the fold of a commit would make that never was.
TEST_F(ArrivalTest, NobodyWaitsForTheFoldOfACommitThatNeverWas) {
  store_.reset();
  options_.row_cache_bytes = 1;
  store_ = MustOpen(options_);
  LoseTheSecond();
  WorkingRows& working = store_->working_rows(kFirst);
  for (uint64_t row = 10; row < 20; ++row) {
    float* place = nullptr;
    static_cast<void>(working.Gather({&row, 1}, {&place, 1}));
  }
  ExpectTheFirst();
}

}  // namespace
}  // namespace tacit::store
