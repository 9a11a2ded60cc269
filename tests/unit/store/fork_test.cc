// Copies of a store that continue on their own, and stores that are put back together with what
// should have revealed it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "script.h"
#include "store/witness/witness.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

void Copy(const std::string& from, const std::string& to) {
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
}

void Train(const StoreOptions& options, int commits) {
  const auto store = MustOpen(options);
  for (int i = 0; i < commits; ++i) ASSERT_TRUE(Script::Step(*store));
}

void ExpectRefusal(const StoreOptions& options, const std::string& says) {
  const auto store = Store::Open(options);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kRefused) << store.error().message;
  EXPECT_THAT(store.error().message, HasSubstr(says));
}

WitnessRecord Witnessed(const std::string& path) {
  const auto read = WitnessFile::Read(path);
  TACIT_CHECK(read && *read);
  return (*read)->record;
}

class ForkTest : public testing::Test {
 protected:
  ForkTest() : options_(TestOptions(folder_)), fork_(options_) {
    fork_.path = folder_.root() + "/fork";
    fork_.witness = folder_.root() + "/fork-witness";
  }
  // The store as it is, with its witness, under other names.
  void Fork() {
    Copy(options_.path, fork_.path);
    fs::copy_file(options_.witness, fork_.witness, fs::copy_options::overwrite_existing);
  }
  void PutForkInPlace() { Copy(fork_.path, options_.path); }

  const TestFolder folder_;
  StoreOptions options_, fork_;
};

// The fork has seen everything that lies before it, and more commits than the witness: only who
// made the commit that the witness has seen distinguishes them.
TEST_F(ForkTest, AForkThatOvertookIsRefused) {
  Train(options_, 4);
  Fork();
  Train(options_, 3);
  for (int more : {1, 2, 3, 1, 20}) {  // before, at and beyond the witness; folded and not
    Train(fork_, more);
    PutForkInPlace();
    ExpectRefusal(options_, "is not the one its witness");
    const auto reader = OpenReadOnly(options_.path, options_.witness, options_.learners);
    ASSERT_FALSE(reader);
    EXPECT_EQ(reader.error().code, ErrorCode::kRefused) << reader.error().message;
  }
  ExpectRefusal(options_, "its own commit 7 is not the one that the witness has seen");
}

TEST_F(ForkTest, AForkFromAStoreThatWasCopiedWhileItLearntIsRefused) {
  options_.fold_after_commits = 100;  // no file goes away while they are copied
  {
    const auto store = MustOpen(options_);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(Script::Step(*store));
    Fork();
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(Script::Step(*store));
  }
  Train(fork_, 9);
  PutForkInPlace();
  ExpectRefusal(options_, "continued on its own");
}

// Commits that the witness has not seen were never shown: a copy that continued from its last
// commit leaves nothing out.
TEST_F(ForkTest, AStoreThatRanWithoutItsWitnessMayComeBackToIt) {
  Train(options_, 4);
  Fork();
  Train(fork_, 30);
  PutForkInPlace();
  Script::ExpectStore(*MustOpen(options_));
  Train(options_, 2);
  EXPECT_EQ(Witnessed(options_.witness).seq.value, 36u);
}

TEST_F(ForkTest, ManyStartsAreManyTerms) {
  for (int start = 0; start < 5; ++start) {
    Train(options_, 2);
    { MustOpen(options_); }  // one without a commit is none
  }
  const auto store = MustOpen(options_);
  const Terms terms = store->terms();
  ASSERT_EQ(terms.all().size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(terms.all()[i].first.value, 1 + 2 * i);
    for (size_t j = 0; j < i; ++j) EXPECT_NE(terms.all()[i].id, terms.all()[j].id);
  }
  EXPECT_EQ(store->Latest()->term(), terms.all()[4].id);
  ASSERT_TRUE(Script::Step(*store));
  EXPECT_EQ(store->terms().all().size(), 6u);
  EXPECT_EQ(store->Latest()->term(), store->terms().all()[5].id);
  EXPECT_EQ(Witnessed(options_.witness).term, store->Latest()->term());
}

class MarkTest : public ForkTest {
 protected:
  MarkTest() { options_.mark = folder_.root() + "/input/tacit.mark"; }
};

TEST_F(MarkTest, StoreAndWitnessPutBackTogetherAreNoticed) {
  Train(options_, 4);
  Fork();
  Train(options_, 3);
  Copy(fork_.path, options_.path);
  fs::copy_file(fork_.witness, options_.witness, fs::copy_options::overwrite_existing);
  ExpectRefusal(options_, "the mark has seen commit 7");
  options_.mark.clear();  // without it nothing shows it
  Script::ExpectStore(*MustOpen(options_));
}

TEST_F(MarkTest, AForkThatOvertookIsNoticedByTheMarkToo) {
  Train(options_, 4);
  Fork();
  Train(options_, 3);
  Train(fork_, 8);
  PutForkInPlace();
  fs::copy_file(fork_.witness, options_.witness, fs::copy_options::overwrite_existing);
  ExpectRefusal(options_, "is not the one its mark");
}

TEST_F(MarkTest, IsWrittenBeforeEachCommitIsPublished) {
  const auto store = MustOpen(options_);
  for (uint64_t seq = 1; seq <= 4; ++seq) {
    const uint64_t before = Witnessed(options_.mark).seq.value;
    EXPECT_EQ(before, seq - 1);
    ASSERT_TRUE(Script::Step(*store));
    EXPECT_EQ(Witnessed(options_.mark).seq.value, seq);
    EXPECT_EQ(Witnessed(options_.mark).head, store->Latest()->head());
  }
}

TEST_F(MarkTest, AMissingOneIsMadeAndTheStoreOpens) {
  Train(options_, 2);
  fs::remove(options_.mark);
  testing::internal::CaptureStdout();
  Train(options_, 1);
  const std::string log = testing::internal::GetCapturedStdout();
  EXPECT_THAT(log, HasSubstr("its mark " + options_.mark + " is missing"));
  EXPECT_EQ(Witnessed(options_.mark).seq.value, 3u);
  fs::remove_all(options_.path);
  ExpectRefusal(options_, "has seen 3 commits");
}

TEST_F(MarkTest, ItsPlaceIsNeitherTheStoreNorTheWitness) {
  for (const std::string& place : {options_.path + "/mark", options_.witness}) {
    options_.mark = place;
    const auto store = Store::Open(options_);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, ErrorCode::kInvalidArgument);
  }
}

// A commit is not published while its witness cannot be written, and the store is not opened as if
// nothing had been.
TEST_F(ForkTest, AWitnessThatIsReplacedWhileTheStoreIsOpenEndsItsCommits) {
  StoreOptions other = options_;
  other.path = folder_.root() + "/other";
  other.witness = folder_.root() + "/other-witness";
  Train(other, 1);
  {
    const auto store = MustOpen(options_);
    ASSERT_TRUE(Script::Step(*store));
    fs::rename(other.witness, options_.witness);
    const Status step = Script::Step(*store);
    ASSERT_FALSE(step);
    EXPECT_EQ(step.error().code, ErrorCode::kRefused);
    EXPECT_THAT(step.error().message, HasSubstr("was replaced while the store was open"));
    EXPECT_EQ(store->Latest()->version().value, 1u);
  }
  // The store that failed is held until this process ends; a reader may look at it.
  const auto reader = OpenReadOnly(options_.path, options_.witness, options_.learners);
  ASSERT_FALSE(reader);
  EXPECT_THAT(reader.error().message, HasSubstr("lineage"));
}

TEST_F(ForkTest, AWitnessThatIsRemovedWhileTheStoreIsOpenIsWrittenAnew) {
  const auto store = MustOpen(options_);
  ASSERT_TRUE(Script::Step(*store));
  EXPECT_EQ(store->stats().witnesses_lost, 0u);
  fs::remove(options_.witness);
  ASSERT_TRUE(Script::Step(*store));
  EXPECT_EQ(store->stats().witnesses_lost, 1u);
  ASSERT_TRUE(Script::Step(*store));
  EXPECT_EQ(store->stats().witnesses_lost, 1u);
  EXPECT_EQ(Witnessed(options_.witness).seq.value, 3u);
}

// A later restore is charged by these values.
TEST_F(ForkTest, TheWitnessHoldsWhatLiesBetweenItAndAnOlderCopy) {
  for (int start = 0; start < 2; ++start) {
    const auto store = MustOpen(options_);
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(Script::Step(*store));
      const uint64_t seq = store->Latest()->version().value;
      const WitnessRecord record = Witnessed(options_.witness);
      ASSERT_EQ(record.learners.size(), 2u);
      const WitnessedLearner& ctr = record.learners[0];
      EXPECT_EQ(ctr.name, "ctr");
      EXPECT_EQ(ctr.position, Script::PositionOf(seq));
      EXPECT_EQ(ctr.steps, seq);
      ASSERT_TRUE(ctr.charged);
      EXPECT_EQ(ctr.charged->charge, TestCharge("ctr", seq).charge);
      EXPECT_EQ(ctr.charged->unit, options_.learners[0].promise.unit);
      EXPECT_EQ(ctr.charged->delta, options_.learners[0].promise.delta);
      EXPECT_FALSE(record.learners[1].charged);
      EXPECT_EQ(record.learners[1].position, "");
    }
  }
}

}  // namespace
}  // namespace tacit::store
