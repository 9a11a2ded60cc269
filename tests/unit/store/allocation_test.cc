// The allocation of an unfinished period is a secret: it changes with commits, is nowhere but in
// the owner's store and its full copies, and a copy that may be older than its original forgets it.
#include "store/users/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "script.h"
#include "store/care/restore.h"
#include "store/view/delta_codec.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr char kSecret[] = "the allocation of the period";

class AllocationTest : public testing::Test {
 protected:
  AllocationTest() : options_(TestOptions(folder_)) {}

  static void Commit(Store& store, std::optional<std::string> allocation) {
    const uint64_t seq = store.Latest()->version().value + 1;
    CommitRequest request{.learners = {}, .source_identity = "log"};
    request.learners.push_back({.learner = LearnerIndex(0),
                                .position = Script::PositionOf(seq),
                                .charges = {TestCharge("ctr", seq)}});
    request.learners.back().allocation = std::move(allocation);
    ASSERT_TRUE(store.Commit(std::move(request), {}));
    ASSERT_TRUE(store.Flush());
  }
  static std::string AllocationOf(const Store& store) {
    const auto allocation = store.ReadAllocation(LearnerIndex(0));
    EXPECT_TRUE(allocation) << allocation.error().message;
    EXPECT_EQ(*store.ReadAllocation(LearnerIndex(1)), "") << "another learner's";
    return *allocation;
  }
  static std::string BytesOf(const fs::path& place) {
    std::string all;
    const auto add = [&](const fs::path& file) {
      std::ifstream in(file, std::ios::binary);
      all.append(std::istreambuf_iterator<char>(in), {});
    };
    if (!fs::is_directory(place)) {
      add(place);
      return all;
    }
    for (const auto& file : fs::recursive_directory_iterator(place))
      if (file.is_regular_file()) add(file.path());
    return all;
  }

  const TestFolder folder_;
  StoreOptions options_;
};

TEST_F(AllocationTest, LastsUntilACommitForgetsIt) {
  for (const bool reopen : {false, true}) {
    auto store = MustOpen(options_);
    const auto again = [&] {
      if (!reopen) return;
      store.reset();
      store = MustOpen(options_);
    };
    EXPECT_EQ(AllocationOf(*store), "");
    Commit(*store, kSecret);
    again();
    EXPECT_EQ(AllocationOf(*store), kSecret);
    Commit(*store, std::nullopt);
    again();
    EXPECT_EQ(AllocationOf(*store), kSecret);
    Commit(*store, "another");
    again();
    EXPECT_EQ(AllocationOf(*store), "another");
    Commit(*store, "");
    again();
    EXPECT_EQ(AllocationOf(*store), "");
  }
}

TEST_F(AllocationTest, IsInNoWitnessAndNoRelease) {
  const auto store = MustOpen(options_);
  Commit(*store, kSecret);
  EXPECT_THAT(BytesOf(options_.witness), Not(HasSubstr(kSecret)));
  const auto make = [&](CheckpointKind kind) {
    const auto made = store->MakeCheckpoint(
        {.kind = kind, .parent = folder_.root() + "/checkpoints", .schema = "a schema"});
    EXPECT_TRUE(made) << made.error().message;
    return BytesOf(made->place.folder);
  };
  EXPECT_THAT(make(CheckpointKind::kRelease), Not(HasSubstr(kSecret)));
  EXPECT_THAT(make(CheckpointKind::kFull), HasSubstr(kSecret)) << "the search finds what is there";
  DeltaRecord record;
  record.learners.emplace_back(0, LearnerCommit{.position = "p", .allocation = kSecret});
  const DeltaBlob blob(record);
  for (std::string_view piece : blob.pieces())
    EXPECT_EQ(piece.find(kSecret), std::string_view::npos);
}

TEST_F(AllocationTest, ARestoredCopyForgetsIt) {
  std::string checkpoint;
  Digest head{};
  {
    const auto store = MustOpen(options_);
    Commit(*store, kSecret);
    const auto made = store->MakeCheckpoint({.kind = CheckpointKind::kFull,
                                             .parent = folder_.root() + "/checkpoints",
                                             .schema = "a schema"});
    ASSERT_TRUE(made) << made.error().message;
    checkpoint = made->place.folder;
    head = store->Latest()->head();
  }
  fs::rename(options_.path, options_.path + "-lost");
  const auto restored = RestoreStore({.from = checkpoint,
                                      .counts_of = "",
                                      .store = options_,
                                      .through = CommitSeq(1),
                                      .head = head,
                                      .gaps = {}});
  ASSERT_TRUE(restored) << restored.error().message;
  const auto store = MustOpen(options_);
  EXPECT_EQ(AllocationOf(*store), "");
  EXPECT_EQ(store->State(LearnerIndex(0)).position, Script::PositionOf(1));
}

// Without its witness a store may be an older copy, even if its operator accepted that.
TEST_F(AllocationTest, AStoreTakenOnTrustForgetsIt) {
  for (const bool lost : {false, true}) {
    {
      const auto store = MustOpen(options_);
      Commit(*store, kSecret);
    }
    if (lost) fs::remove(options_.witness);
    options_.accept_missing_witness = lost;
    EXPECT_EQ(AllocationOf(*MustOpen(options_)), lost ? "" : kSecret);
    options_.accept_missing_witness = false;
  }
}

}  // namespace
}  // namespace tacit::store
