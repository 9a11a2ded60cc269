// Users are forgotten: at once in answers, soon after in every byte of the store's files, and
// again whenever an older copy is restored.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "forget_script.h"
#include "restore_script.h"
#include "store/care/remains.h"
#include "store/care/verify.h"
#include "store/users/forgotten.h"
#include "support/eventually.h"
#include "support/files_below.h"

namespace tacit::store {
namespace {

constexpr Hash128 kAda = ForgetScript::kAda, kBen = ForgetScript::kBen;

class EarlierClock final : public Clock {
 public:
  explicit EarlierClock(int64_t millis) : millis_(millis) {}
  TimePoint Now() const override { return SystemClock().Now(); }
  int64_t UnixMillis() const override { return millis_; }

 private:
  const int64_t millis_;
};

class ForgetTest : public testing::Test {
 protected:
  ForgetTest() : options_(TestOptions(folder_)) { Open(); }

  void Open() {
    store_.reset();
    store_ = MustOpen(options_);
  }
  void Append(std::vector<UserHistory> appended) {
    const Status done = ForgetScript::Append(*store_, std::move(appended));
    ASSERT_TRUE(done) << done.error().message;
  }
  // Items of a time that lies ahead are not kept of somebody who was forgotten.
  static void UntilAfter(int64_t time_ms) {
    ASSERT_TRUE(test::Eventually("a millisecond passes",
                                 [&] { return SystemClock().UnixMillis() > time_ms; }));
  }
  void Forget(const Hash128& user) {
    const Status done = store_->ForgetUsers({&user, 1});
    ASSERT_TRUE(done) << done.error().message;
  }
  uint64_t Erase(const std::string& checkpoints = "") {
    std::atomic<bool> given_up = false;
    const auto erased = store_->EraseForgotten(checkpoints, &given_up);
    EXPECT_TRUE(erased) << erased.error().message;
    return erased ? *erased : 0;
  }
  size_t Items(const Hash128& user) {
    std::vector<UserHistory> users{{.user = user, .items = {}}};
    EXPECT_TRUE(store_->ReadHistories(LearnerIndex(0), users));
    const auto shown = store_->Latest()->History(LearnerIndex(0), user);
    EXPECT_TRUE(shown && *shown == users[0].items);
    return users[0].items.size();
  }
  uint32_t Used(const Hash128& user) {
    UserUses uses{.user = user};
    EXPECT_TRUE(store_->ReadAllowances(LearnerIndex(0), {&uses, 1}));
    return uses.used;
  }
  bool IsOnDisk(const Hash128& user) const {
    return ForgetScript::IsInFiles(folder_.store(), ForgetScript::ItemOf(user, 1));
  }
  std::string checkpoints() const { return folder_.root() + "/checkpoints"; }
  std::string MakeFull() {
    const auto made =
        store_->MakeCheckpoint({.kind = CheckpointKind::kFull, .parent = checkpoints()});
    EXPECT_TRUE(made) << made.error().message;
    return made ? made->place.folder : "";
  }

  const TestFolder folder_;
  StoreOptions options_;
  std::unique_ptr<Store> store_;
};

TEST_F(ForgetTest, AForgottenUserIsGoneAtOnceAndThenFromEveryFile) {
  Append({ForgetScript::HistoryOf(kAda), ForgetScript::HistoryOf(kBen)});
  ASSERT_TRUE(store_->Settle());  // some of it is in tables
  Append({ForgetScript::HistoryOf(kAda), ForgetScript::HistoryOf(kBen)});
  ASSERT_EQ(Items(kAda), 6u);
  ASSERT_TRUE(IsOnDisk(kAda));

  Forget(kAda);
  EXPECT_EQ(Items(kAda), 0u);
  EXPECT_EQ(Items(kBen), 6u);
  EXPECT_TRUE(IsOnDisk(kAda)) << "a deletion alone leaves the bytes";
  ASSERT_TRUE(store_->Forgotten(kAda));
  EXPECT_FALSE(store_->Forgotten(kAda)->erased);
  EXPECT_FALSE(store_->Forgotten(kBen));

  EXPECT_EQ(Erase(), 1u);
  EXPECT_FALSE(IsOnDisk(kAda));
  EXPECT_TRUE(IsOnDisk(kBen));
  EXPECT_TRUE(store_->Forgotten(kAda)->erased);
  EXPECT_EQ(Erase(), 0u);
  // The used allowance stays, so that a request gives nobody a new one.
  EXPECT_EQ(Used(kAda), 2u);
  EXPECT_EQ(store_->Latest()->version().value, 2u) << "it is no commit";
  Open();
  EXPECT_EQ(Items(kAda), 0u);
  EXPECT_EQ(Items(kBen), 6u);
  EXPECT_EQ(Used(kAda), 2u);
  EXPECT_TRUE(store_->Forgotten(kAda)->erased);
}

TEST_F(ForgetTest, WhatIsReadAgainIsNotRememberedAgain) {
  Append({ForgetScript::HistoryOf(kAda)});
  Forget(kAda);
  const int64_t before = store_->Forgotten(kAda)->before_ms;
  for (int start = 0; start < 2; ++start) {
    // Read again after a crash, without a time, and at the time of the request itself.
    Append({ForgetScript::HistoryOf(kAda), ForgetScript::HistoryOf(kBen)});
    Append({{.user = kAda, .items = {{.item = 7, .timestamp_ms = 0}}}});
    Append({{.user = kAda, .items = {{.item = 8, .timestamp_ms = before}}}});
    EXPECT_EQ(Items(kAda), 0u);
    EXPECT_EQ(Items(kBen), 3u + 3u * start);
    Open();
  }
  EXPECT_EQ(Erase(), 1u);
  EXPECT_FALSE(IsOnDisk(kAda));
  // A user who comes back is remembered from then on.
  UntilAfter(before + 1);
  Append({{.user = kAda, .items = {{.item = 9, .timestamp_ms = before + 1}}}});
  EXPECT_EQ(Items(kAda), 1u);
  // A time that lies ahead may be that of a record from before the request.
  Append({{.user = kAda, .items = {{.item = 10, .timestamp_ms = before + 3'600'000}}}});
  EXPECT_EQ(Items(kAda), 1u);
  // And forgotten again by a second request.
  Forget(kAda);
  EXPECT_EQ(Items(kAda), 0u);
  EXPECT_FALSE(store_->Forgotten(kAda)->erased);
  EXPECT_EQ(Erase(), 1u);
}

TEST_F(ForgetTest, ARequestBeforeAnErasureHasEndedIsNotLost) {
  Append({ForgetScript::HistoryOf(kAda)});
  Forget(kAda);
  Open();  // as after a crash between the deletion and the erasure
  EXPECT_EQ(Items(kAda), 0u);
  EXPECT_FALSE(store_->Forgotten(kAda)->erased);
  EXPECT_EQ(Erase(), 1u);
  EXPECT_FALSE(IsOnDisk(kAda));
}

// A reader of an older snapshot may still read what was deleted since.
TEST_F(ForgetTest, AReaderHoldsAnErasureUp) {
  Append({ForgetScript::HistoryOf(kAda)});
  const std::string before_request = MakeFull();
  auto reader = store_->Latest();
  Forget(kAda);
  std::atomic<bool> given_up = false;
  std::thread stops([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    given_up = true;
  });
  const auto erased = store_->EraseForgotten("", &given_up);
  stops.join();
  ASSERT_FALSE(erased);
  EXPECT_EQ(erased.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(reader->History(LearnerIndex(0), kAda)->size(), 3u);
  EXPECT_FALSE(store_->Forgotten(kAda)->erased);
  // Checkpoints are made meanwhile, and those from before list the user first of all.
  const auto waits = store_->EraseForgotten(checkpoints(), &given_up);
  ASSERT_FALSE(waits);
  EXPECT_EQ(ReadManifest(before_request)->forgotten.size(), 1u);
  Append({ForgetScript::HistoryOf(kBen)});
  EXPECT_NE(MakeFull(), before_request);
  reader.reset();
  EXPECT_EQ(Erase(), 1u);
  EXPECT_FALSE(IsOnDisk(kAda));
}

TEST_F(ForgetTest, ManyUsersAreErasedWhileCommitsGoOn) {
  std::vector<UserHistory> everybody;
  for (uint64_t u = 0; u < 40; ++u)
    everybody.push_back(ForgetScript::HistoryOf({.low = 10 + u, .high = u}));
  Append(everybody);
  std::vector<Hash128> asks;
  for (uint64_t u = 0; u < 30; ++u) asks.push_back(everybody[u].user);
  ASSERT_TRUE(store_->ForgetUsers(asks));
  std::atomic<bool> erased = false;
  std::thread eraser([&] {
    EXPECT_EQ(Erase(), 30u);
    erased = true;
  });
  int commits = 0;
  while (!erased || commits < 3) {
    Append({ForgetScript::HistoryOf(kBen, 1)});
    ++commits;
    if (HasFatalFailure()) break;
  }
  eraser.join();
  for (uint64_t u = 0; u < 40; ++u) {
    EXPECT_EQ(Items(everybody[u].user), u < 30 ? 0u : 3u);
    EXPECT_EQ(IsOnDisk(everybody[u].user), u >= 30) << u;
  }
}

TEST_F(ForgetTest, AFullCheckpointListsWhoAskedSinceAndARestoreForgetsThem) {
  Append({ForgetScript::HistoryOf(kAda), ForgetScript::HistoryOf(kBen)});
  const std::string checkpoint = MakeFull();
  const std::string release =
      store_->MakeCheckpoint({.kind = CheckpointKind::kRelease, .parent = checkpoints()})
          ->place.folder;
  Forget(kAda);
  EXPECT_EQ(Erase(checkpoints()), 1u);
  ASSERT_TRUE(ForgetScript::IsInFiles(checkpoint, ForgetScript::ItemOf(kAda, 1)));
  const auto checked = CheckCheckpoint(checkpoint, CheckpointCheck::kEveryByte);
  ASSERT_TRUE(checked) << checked.error().message;
  ASSERT_EQ(checked->forgotten.size(), 1u);
  EXPECT_EQ(checked->forgotten[0].user, kAda);
  EXPECT_EQ(checked->forgotten[0].before_ms, store_->Forgotten(kAda)->before_ms);
  EXPECT_TRUE(CheckCheckpoint(release, CheckpointCheck::kEveryByte)->forgotten.empty());
  const auto remains = ReadRemains(checkpoint);
  ASSERT_TRUE(remains);
  ASSERT_EQ(remains->forgotten.size(), 1u);

  // All that is left is the checkpoint.
  const Digest head = store_->Latest()->head();
  store_.reset();
  std::filesystem::remove_all(options_.path);
  RestoreRequest request = RestoreOfScript(options_, checkpoint, 1, 1, head);
  request.forgotten = remains->forgotten;
  const auto restored = RestoreStore(request);
  ASSERT_TRUE(restored) << restored.error().message;
  std::filesystem::remove(options_.witness);
  options_.accept_missing_witness = true;
  Open();
  EXPECT_EQ(Items(kAda), 0u);
  EXPECT_EQ(Items(kBen), 3u);
  EXPECT_FALSE(store_->Forgotten(kAda)->erased) << "tables are shared with the checkpoint";
  EXPECT_EQ(Erase(), 1u);
  EXPECT_FALSE(IsOnDisk(kAda));
  EXPECT_TRUE(IsOnDisk(kBen));
}

// A checkpoint that cannot be read may hold the user: the user is not said to be erased.
TEST_F(ForgetTest, ACheckpointThatCannotBeReadHoldsAnErasureUp) {
  Append({ForgetScript::HistoryOf(kAda)});
  const std::string damaged = MakeFull();
  Append({ForgetScript::HistoryOf(kBen)});
  const std::string other = MakeFull();
  const std::string manifest = damaged + "/" + kCheckpointManifestName, aside = manifest + ".aside";
  std::filesystem::rename(manifest, aside);
  std::ofstream(manifest) << "no manifest";
  Forget(kAda);
  std::atomic<bool> given_up = false;
  const auto held_up = store_->EraseForgotten(checkpoints(), &given_up);
  ASSERT_FALSE(held_up);
  EXPECT_EQ(held_up.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(held_up.error().message, testing::HasSubstr(damaged));
  EXPECT_FALSE(store_->Forgotten(kAda)->erased);
  EXPECT_FALSE(IsOnDisk(kAda)) << "the store's own files do not wait for it";
  const auto listed = CheckCheckpoint(other, CheckpointCheck::kEveryByte);
  ASSERT_TRUE(listed) << listed.error().message;
  EXPECT_EQ(listed->forgotten.size(), 1u);
  const auto tables = test::FilesBelow(folder_.store());
  EXPECT_FALSE(store_->EraseForgotten(checkpoints(), &given_up));
  EXPECT_EQ(test::FilesBelow(folder_.store()), tables) << "nothing is rewritten twice";
  std::filesystem::rename(aside, manifest);
  EXPECT_EQ(Erase(checkpoints()), 1u);
  EXPECT_EQ(CheckCheckpoint(damaged, CheckpointCheck::kEveryByte)->forgotten.size(), 1u);
}

// A copy beside the store is what a restore works on, or one that somebody has made by hand.
TEST_F(ForgetTest, ACopyBesideTheStoreHoldsAnErasureUp) {
  Append({ForgetScript::HistoryOf(kAda)});
  const std::string copy = folder_.store() + ".restoring", lock = copy + ".lock";
  const auto leave = [&] {
    std::filesystem::copy(MakeFull(), copy, std::filesystem::copy_options::recursive);
    EXPECT_TRUE(ForgetScript::IsInFiles(copy, ForgetScript::ItemOf(kAda, 1)));
  };
  leave();
  Forget(kAda);
  std::atomic<bool> given_up = false;
  const auto held_up = store_->EraseForgotten(checkpoints(), &given_up);
  ASSERT_FALSE(held_up);
  EXPECT_EQ(held_up.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(held_up.error().message, testing::HasSubstr(copy + " may hold users"));
  EXPECT_FALSE(store_->Forgotten(kAda)->erased);
  EXPECT_FALSE(IsOnDisk(kAda)) << "the store's own files do not wait for it";
  std::ofstream(lock).put('x');  // a restore that was killed has left it
  EXPECT_EQ(Erase(checkpoints()), 1u);
  EXPECT_FALSE(std::filesystem::exists(copy));
  EXPECT_FALSE(std::filesystem::exists(lock));
}

// The clock was set back between two requests, and the copy knows of the first one alone.
TEST_F(ForgetTest, ASecondRequestIsLaterWhateverTheClockSays) {
  Forget(kAda);
  const int64_t first = store_->Forgotten(kAda)->before_ms;
  const EarlierClock clock(first - 1'000'000);
  store_.reset();
  options_.clock = &clock;
  Open();
  Forget(kAda);
  EXPECT_EQ(store_->Forgotten(kAda)->before_ms, first + 1);
  store_.reset();
}

// A copy from after the request knows of it, and has what the user did since.
TEST_F(ForgetTest, ARestoreForgetsNothingFromAfterTheRequest) {
  Forget(kAda);
  const int64_t before = store_->Forgotten(kAda)->before_ms;
  UntilAfter(before + 1);
  Append({{.user = kAda, .items = {{.item = 9, .timestamp_ms = before + 1}}}});
  const std::string checkpoint = MakeFull();
  const Digest head = store_->Latest()->head();
  store_.reset();
  std::filesystem::remove_all(options_.path);
  RestoreRequest request = RestoreOfScript(options_, checkpoint, 1, 1, head);
  request.forgotten = {{.user = kAda, .before_ms = before}, {.user = kAda, .before_ms = 5}};
  ASSERT_TRUE(RestoreStore(request));
  std::filesystem::remove(options_.witness);
  options_.accept_missing_witness = true;
  Open();
  EXPECT_EQ(Items(kAda), 1u);
}

TEST_F(ForgetTest, VerifyNamesADamagedRecord) {
  Append({ForgetScript::HistoryOf(kAda)});
  Forget(kAda);
  store_.reset();
  {
    const auto rocks =
        Rocks::Open(folder_.store(), uint64_t{32} << 20, std::make_shared<FailureLatch>());
    ASSERT_TRUE(rocks);
    rocksdb::WriteBatch batch;
    batch.Put((*rocks)->family(Family::kMeta),
              std::string(meta::kForgottenPrefix) + std::string(16, 'x'), "no record");
    ASSERT_TRUE((*rocks)->WriteSynced(batch));
  }
  const auto check = VerifyStore(folder_.store(), {});
  ASSERT_TRUE(check);
  EXPECT_FALSE(check->damage.empty());
  const auto opened = Store::Open(options_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kCorruption);
}

}  // namespace
}  // namespace tacit::store
