// A store is lost, and made anew out of an older checkpoint: what was learnt in between stays
// charged, and a learner that remembers the lost store goes on with the new one.
#include "store/care/restore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "restore_script.h"
#include "store/disk/unfinished_restore.h"
#include "store/users/allowance.h"
#include "store/witness/witness.h"
#include "support/files_below.h"
#include "support/stranger.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Asks as a user who is neither root nor this one, if that can be.
Restoring AskAsStranger(const std::string& store) {
  const test::Stranger stranger;
  const auto asked = IsBeingRestored(store);
  EXPECT_TRUE(asked) << asked.error().message;
  return asked.value_or(Restoring::kNo);
}

class RestoreTest : public testing::Test {
 protected:
  RestoreTest() : options_(TestOptions(folder_)) {}

  // A store that makes `from` commits, a checkpoint, and goes on to commit `through`. Then it is
  // lost: it has another place, where it could be started again.
  void LoseStore(uint64_t from, uint64_t through, CheckpointKind kind = CheckpointKind::kFull) {
    from_ = from, through_ = through;
    {
      const auto store = MustOpen(options_);
      Train(*store, from);
      const auto made = store->MakeCheckpoint(
          {.kind = kind, .parent = folder_.root() + "/checkpoints", .schema = "a schema"});
      ASSERT_TRUE(made) << made.error().message;
      checkpoint_ = made->place.folder;
      Train(*store, through);
      lost_ = Remember(*store);
    }
    fs::rename(options_.path, lost_path());
  }
  // A record of the store that is gone.
  struct Lost {
    std::string lineage;
    Digest head{};
    double epsilon = 0, delta = 0;
    std::vector<privacy::LedgerTotal> learners;
  };
  static Lost Remember(const Store& store) {
    const auto last = store.Latest();
    return {.lineage = last->lineage(),
            .head = last->head(),
            .epsilon = last->total().epsilon,
            .delta = last->total().delta,
            .learners = {last->learners().begin(), last->learners().end()}};
  }
  static void Train(Store& store, uint64_t through) {
    while (store.Latest()->version().value < through) {
      const Status step = Script::Step(store);
      ASSERT_TRUE(step) << step.error().message;
    }
  }

  RestoreRequest Request() const {
    return RestoreOfScript(options_, checkpoint_, from_, through_, lost_.head);
  }
  Restored MustRestore() {
    auto restored = RestoreStore(Request());
    if (!restored) ADD_FAILURE() << restored.error().message;
    TACIT_CHECK(restored.has_value());
    return *std::move(restored);
  }
  void ExpectRefusal(const RestoreRequest& request, ErrorCode code, const std::string& says) {
    const auto restored = RestoreStore(request);
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().code, code) << restored.error().message;
    EXPECT_THAT(restored.error().message, HasSubstr(says));
    EXPECT_FALSE(fs::exists(options_.path) && !fs::is_empty(options_.path));
    ExpectNoOtherCopy();
  }
  // Nothing is left where a restore works: not in PATH.restoring, nor on other disks.
  void ExpectNoOtherCopy() const {
    EXPECT_FALSE(fs::exists(options_.path + ".restoring"));
    for (const std::string& disk : options_.shard_paths)
      EXPECT_TRUE(!fs::exists(disk) || fs::is_empty(disk)) << disk;
  }

  // Every user has used at least what it had in the lost store, and no more than the rule says.
  void ExpectUsers(const Store& store) {
    std::vector<UserUses> users;
    for (uint64_t u = 0; u <= Script::kUsers; ++u) users.push_back({.user = {u, ~u}});
    const auto step = store.ReadAllowances(LearnerIndex(0), users);
    ASSERT_TRUE(step) << step.error().message;
    EXPECT_EQ(*step, through_);
    const LearnerGap gap = Request().gaps.at(0);
    for (uint64_t u = 0; u <= Script::kUsers; ++u) {
      UserUses before{.user = {u, ~u}}, truth = before;
      if (u < Script::kUsers)
        before = Script::UsesOf(u, from_), truth = Script::UsesOf(u, through_);
      EXPECT_GE(users[u].used, truth.used) << "user " << u;
      EXPECT_EQ(users[u].used, std::min(before.used + gap.gap.steps, gap.gap.allowance))
          << "user " << u;
      EXPECT_EQ(users[u].period, gap.gap.period);
      EXPECT_GE(users[u].in_period, truth.period == gap.gap.period ? truth.in_period : 0);
    }
  }

  std::string lost_path() const { return options_.path + "-lost"; }

  const TestFolder folder_;
  StoreOptions options_;
  std::string checkpoint_;
  uint64_t from_ = 0, through_ = 0;
  Lost lost_;
};

TEST_F(RestoreTest, ChargesEverythingThatTheLostStoreHadCharged) {
  LoseStore(3, 11);
  const Restored restored = MustRestore();
  EXPECT_DOUBLE_EQ(restored.epsilon, lost_.epsilon);
  EXPECT_EQ(restored.delta, lost_.delta);
  EXPECT_EQ(restored.commit, CommitSeq(4));
  EXPECT_EQ(restored.from_commit, CommitSeq(3));
  EXPECT_NE(restored.lineage, lost_.lineage);

  const auto store = MustOpen(options_);
  const auto now = store->Latest();
  EXPECT_EQ(now->lineage(), restored.lineage);
  EXPECT_DOUBLE_EQ(now->total().epsilon, lost_.epsilon);
  ASSERT_EQ(now->learners().size(), lost_.learners.size());
  for (size_t i = 0; i < now->learners().size(); ++i) {
    EXPECT_EQ(now->learners()[i].steps, lost_.learners[i].steps);
    EXPECT_DOUBLE_EQ(now->learners()[i].epsilon, lost_.learners[i].epsilon);
  }
  Script::ExpectLedger(*now);
}

TEST_F(RestoreTest, GoesOnFromTheCheckpointsRowsAtTheLostStoresPosition) {
  LoseStore(3, 11);
  std::shared_ptr<const Snapshot> then;
  {
    auto reader = OpenReadOnly(checkpoint_, "", options_.learners);
    ASSERT_TRUE(reader) << reader.error().message;
    Script::ExpectSnapshot(*reader->snapshot);
    then = reader->snapshot;
  }
  MustRestore();
  const auto store = MustOpen(options_);
  const auto now = store->Latest();
  std::vector<uint64_t> rows(40);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = i;
  std::vector<float> expected(rows.size() * 4), got(expected.size());
  ASSERT_TRUE(then->Rows(LearnerIndex(0), rows, expected));
  ASSERT_TRUE(now->Rows(LearnerIndex(0), rows, got));
  EXPECT_EQ(got, expected);
  EXPECT_EQ(now->Dense(LearnerIndex(0))->parameters, Script::DenseOf(3));
  EXPECT_EQ(store->State(LearnerIndex(0)).position, Script::PositionOf(11));
  // Histories are the checkpoint's, and are taken as read up to the new position.
  std::vector<UserHistory> users(1);
  users[0].user = {4, ~uint64_t{4}};
  const auto step = store->ReadHistories(LearnerIndex(0), users);
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_EQ(*step, 11u);
  EXPECT_EQ(users[0].items, Script::HistoryOf(4, 3));
}

TEST_F(RestoreTest, ChargesEveryUser) {
  LoseStore(1, 7);  // the checkpoint does not know users 1, 4, 7...
  MustRestore();
  const auto store = MustOpen(options_);
  ExpectUsers(*store);
  // A commit that counts a user replaces its floor, and all stays.
  CommitRequest request{.learners = {}, .source_identity = "another"};
  UserUses used{.user = {1, ~uint64_t{1}}, .used = 20, .in_period = 1, .period = 8};
  request.learners.push_back({.learner = LearnerIndex(0),
                              .position = Script::PositionOf(8),
                              .charges = {TestCharge("ctr", 8)}});
  request.learners.back().allowances = {.step = 8, .uses = {used}};
  ASSERT_TRUE(store->Commit(std::move(request), {}));
  ASSERT_TRUE(store->Flush());
  std::vector<UserUses> users{{.user = {1, ~uint64_t{1}}}, {.user = {Script::kUsers, 0}}};
  ASSERT_TRUE(store->ReadAllowances(LearnerIndex(0), users));
  EXPECT_EQ(users[0], used);
  EXPECT_EQ(users[1].used, AllowanceOfScript(7));
}

// The rule itself: it covers what any user can have used, and no more. A user who has used more
// than the allowance of the gap had a larger one before, and was in no step of it.
TEST(UsersGapTest, IsTheMostThatAUserCanHaveUsed) {
  constexpr uint32_t kSteps = 4;
  for (uint32_t allowance = 0; allowance <= 12; ++allowance)
    for (uint32_t before = 0; before <= 14; ++before)
      for (uint32_t meanwhile = 0; meanwhile <= kSteps; ++meanwhile)
        for (uint32_t in_last = 0; in_last <= meanwhile; ++in_last)
          for (bool same_period : {false, true}) {
            const uint32_t truth = before + meanwhile;
            if (meanwhile > 0 && truth > allowance) continue;
            const UsersGap gap{.steps = kSteps, .allowance = allowance, .period = 9};
            const UserUses from{
                .user = {}, .used = before, .in_period = before, .period = same_period ? 9u : 8u};
            const UserUses to = AfterGap(from, gap);
            ASSERT_GE(to.used, truth);
            ASSERT_LE(to.used, std::max(before, allowance));
            ASSERT_GE(to.in_period, same_period ? truth : in_last);
            ASSERT_EQ(to.period, 9u);
          }
}

// A user of held periods: counted for all steps of a period that opens, if the allowance has room
// for them, and else left out of it.
class HeldUser {
 public:
  static constexpr uint32_t kSteps = 4;
  static constexpr uint32_t kAllowance = 3 * kSteps;

  // Takes the user into a period that opens now, or goes on with one that is open.
  static bool Admit(UserUses* uses, uint64_t period, bool opens) {
    const bool is_in = uses->in_period > 0 && uses->period == period;
    if (!opens && !is_in) return false;
    const uint32_t counted = is_in ? std::min(uses->in_period, kSteps) : 0;
    if (uses->used + (kSteps - counted) > kAllowance) return counted == kSteps;
    uses->used += kSteps - counted;
    uses->in_period = kSteps;
    uses->period = period;
    return true;
  }
};

// After anything the user did before the copy, in the gap and after it, and wherever copy and end
// are within their periods: no user is in more steps than the allowance.
TEST(UsersGapTest, NobodyIsInMoreStepsOfHeldPeriodsThanTheAllowance) {
  using Periods = UsersGap::Periods;
  constexpr uint32_t kSteps = HeldUser::kSteps;
  std::mt19937_64 random(3);
  uint32_t fullest = 0, left_out = 0;
  for (int round = 0; round < 200'000; ++round) {
    UserUses known, uses;  // of the copy, and of the lost store
    const uint64_t copy_at = random() % 20, end_at = copy_at + 1 + random() % 20;
    uint32_t taken = 0;  // steps that the user was really in
    bool in = false;
    uint64_t steps_of_gap = 0;
    for (uint64_t step = 0; step < end_at; ++step) {
      if (step == copy_at) known = uses;
      const bool opens = step % kSteps == 0;
      if (opens) in = random() % 3 != 0 && HeldUser::Admit(&uses, step / kSteps, true);
      taken += in;
      steps_of_gap += step >= copy_at;
    }
    const uint64_t period = end_at / kSteps;
    const bool open = end_at % kSteps != 0, same = copy_at / kSteps == period;
    const UsersGap gap{.steps = static_cast<uint32_t>(steps_of_gap) + kSteps,
                       .allowance = HeldUser::kAllowance,
                       .period = period,
                       .periods = !open                           ? Periods::kBetween
                                  : same && copy_at % kSteps != 0 ? Periods::kOpen
                                                                  : Periods::kOpened,
                       .period_steps = kSteps};
    UserUses after = AfterGap(known, gap);
    for (uint64_t step = end_at; step < end_at + 20; ++step) {
      const bool opens = step % kSteps == 0;
      if (opens || step == end_at) {
        in = random() % 3 != 0 && HeldUser::Admit(&after, step / kSteps, opens);
        left_out += !in;
      }
      taken += in;
    }
    ASSERT_LE(taken, HeldUser::kAllowance) << round;
    fullest += taken == HeldUser::kAllowance;
  }
  EXPECT_GT(fullest, 1000u);
  EXPECT_GT(left_out, 1000u);
}

TEST_F(RestoreTest, TakesTheLostStoresWitnessOver) {
  LoseStore(3, 11);
  MustRestore();
  {
    const auto reader = OpenReadOnly(options_.path, options_.witness, options_.learners);
    ASSERT_TRUE(reader) << reader.error().message;
  }
  for (uint64_t commits = 4; commits < 6; ++commits) {
    const auto store = MustOpen(options_);
    ASSERT_EQ(store->Latest()->version().value, commits);
    ASSERT_TRUE(Script::Step(*store));
  }
  // The store that was believed lost turns up: it would spend the same budget again.
  StoreOptions found = options_;
  found.path = lost_path();
  const auto store = Store::Open(found);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kRefused);
  EXPECT_THAT(store.error().message, HasSubstr("is not the one its witness"));
}

// Somebody started the lost store again after the restore had looked: what it spent is charged
// nowhere.
TEST_F(RestoreTest, AStoreThatWentOnIsNotTakenOver) {
  LoseStore(3, 11);
  MustRestore();
  {
    StoreOptions found = options_;
    found.path = lost_path();
    const auto store = MustOpen(found);
    ASSERT_TRUE(Script::Step(*store));
  }
  const auto store = Store::Open(options_);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kRefused);
  EXPECT_THAT(store.error().message, HasSubstr("is not the one its witness"));
}

// The records of the gap were read again: users who were in none of it are not charged.
TEST_F(RestoreTest, ChargesCountedUsersAlone) {
  LoseStore(3, 9);
  RestoreRequest request = Request();
  LearnerGap& gap = request.gaps[0];
  gap.users = LearnerGap::Users::kCounted;
  gap.counted = {{.user = {0, ~uint64_t{0}}, .steps = 2}, {.user = {77, 0}, .steps = 900}};
  ASSERT_TRUE(RestoreStore(request));
  const auto store = MustOpen(options_);
  std::vector<UserUses> users{{.user = {0, ~uint64_t{0}}},
                              {.user = {1, ~uint64_t{1}}},
                              {.user = {77, 0}},
                              {.user = {5, 5}}};
  const auto step = store->ReadAllowances(LearnerIndex(0), users);
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_EQ(*step, 9u);
  EXPECT_EQ(users[0].used, std::min(Script::UsesOf(0, 3).used + 2,
                                    std::max(gap.gap.allowance, Script::UsesOf(0, 3).used)));
  EXPECT_EQ(users[1].used, Script::UsesOf(1, 3).used);
  EXPECT_EQ(users[2].used, std::min(gap.gap.steps, gap.gap.allowance));
  EXPECT_EQ(users[3].used, 0u);
}

// The lost store's own counts can be read still: every user has exactly what was used.
TEST_F(RestoreTest, TakesTheLostStoresCountsOver) {
  LoseStore(3, 9);
  RestoreRequest request = Request();
  request.counts_of = lost_path();
  request.gaps[0].users = LearnerGap::Users::kNone;
  ASSERT_TRUE(RestoreStore(request));
  const auto store = MustOpen(options_);
  for (uint64_t u = 0; u < Script::kUsers; ++u) {
    std::vector<UserUses> user{{.user = {u, ~u}}};
    ASSERT_TRUE(store->ReadAllowances(LearnerIndex(0), user));
    EXPECT_EQ(user[0], Script::UsesOf(u, 9)) << "user " << u;
  }
}

TEST_F(RestoreTest, TakesNoCountsOfAnotherStore) {
  LoseStore(3, 9);
  StoreOptions other = options_;
  other.path += "-other";
  other.witness += "-other";
  {
    const auto store = MustOpen(other);
    Train(*store, 9);
  }
  RestoreRequest request = Request();
  request.counts_of = other.path;
  ExpectRefusal(request, ErrorCode::kRefused, "counts the users of another store");
}

// The copy has histories and keys, and nobody looks for it where it lies.
TEST_F(RestoreTest, ARefusedRestoreLeavesNoCopy) {
  LoseStore(3, 11);
  options_.shard_paths = {folder_.root() + "/disk-0", folder_.root() + "/disk-1"};
  RestoreRequest request = Request();
  request.store.learners[0] = MakeLearner("ctr", {{"site", 40, 5, 1}});
  ExpectRefusal(request, ErrorCode::kRefused, "learner 'ctr'");
  // Something takes the store's name while the restore works.
  request = Request();
  request.store.on_open = [&](const OpenProgress&) {
    fs::create_directories(options_.path + "/taken");
    return true;
  };
  const auto restored = RestoreStore(request);
  ASSERT_FALSE(restored);
  EXPECT_THAT(restored.error().message, HasSubstr("giving its name to " + options_.path));
  ExpectNoOtherCopy();
  fs::remove_all(options_.path);
  MustRestore();
}

// A restore was killed, and the store that was believed lost is found again.
TEST_F(RestoreTest, TheNextStartRemovesWhatAKilledRestoreHasLeft) {
  LoseStore(3, 5);
  fs::rename(lost_path(), options_.path);
  const std::string copy = options_.path + ".restoring", lock = copy + ".lock";
  const auto leave = [&] { fs::copy(checkpoint_, copy, fs::copy_options::recursive); };
  leave();
  // Without the lock's file no restore has left it.
  MustOpen(options_);
  EXPECT_TRUE(fs::exists(copy + "/CURRENT"));
  {
    const auto held = RestoreLock::Take(options_.path);
    ASSERT_TRUE(held) << held.error().message;
    MustOpen(options_);
    EXPECT_TRUE(fs::exists(copy + "/CURRENT")) << "a restore runs";
  }
  std::ofstream(lock).put('x');  // as after a kill
  Script::ExpectStore(*MustOpen(options_));
  EXPECT_FALSE(fs::exists(copy));
  EXPECT_FALSE(fs::exists(lock));
}

// An older copy in the store's own place: it is replaced.
TEST_F(RestoreTest, AnOlderCopyIsRestoredInItsPlace) {
  {
    const auto store = MustOpen(options_);
    Train(*store, from_ = 4);
  }
  const std::string copy = options_.path + "-copy";
  fs::copy(options_.path, copy, fs::copy_options::recursive);
  {
    const auto store = MustOpen(options_);
    Train(*store, through_ = 9);
    lost_ = Remember(*store);
  }
  fs::remove_all(options_.path);
  fs::rename(copy, options_.path);
  ASSERT_FALSE(Store::Open(options_));
  RestoreRequest request = RestoreOfScript(options_, options_.path, from_, through_, lost_.head);
  const auto restored = RestoreStore(request);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_FALSE(fs::exists(options_.path + ".restoring"));
  EXPECT_DOUBLE_EQ(restored->epsilon, lost_.epsilon);
  const auto store = MustOpen(options_);
  EXPECT_EQ(store->Latest()->lineage(), restored->lineage);
  ExpectUsers(*store);
}

TEST_F(RestoreTest, NothingWasLearntSince) {
  LoseStore(4, 4);
  const Restored restored = MustRestore();
  EXPECT_EQ(restored.commit, CommitSeq(4));
  EXPECT_DOUBLE_EQ(restored.epsilon, lost_.epsilon);
  Script::ExpectStore(*MustOpen(options_));
}

TEST_F(RestoreTest, ARestoredStoreIsRestoredAgain) {
  LoseStore(1, 7);
  MustRestore();
  // The second store: two commits, a checkpoint, three more; then it is lost too.
  std::string checkpoint;
  Lost last;
  {
    const auto store = MustOpen(options_);
    Train(*store, 4);
    const auto made = store->MakeCheckpoint(
        {.kind = CheckpointKind::kFull, .parent = folder_.root() + "/later", .schema = "a schema"});
    ASSERT_TRUE(made) << made.error().message;
    checkpoint = made->place.folder;
    Train(*store, 7);
    last = Remember(*store);
  }
  fs::rename(options_.path, options_.path + "-lost-too");
  const auto restored = RestoreStore(RestoreOfScript(options_, checkpoint, 4, 7, last.head));
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_DOUBLE_EQ(restored->epsilon, last.epsilon);
  const auto store = MustOpen(options_);
  EXPECT_EQ(store->Latest()->ancestors().size(), 2u);
  EXPECT_EQ(store->Latest()->ancestors()[0].lineage, lost_.lineage);
  EXPECT_EQ(store->Latest()->ancestors()[1].lineage, last.lineage);
}

TEST_F(RestoreTest, OnlyWhereThereIsNoStore) {
  LoseStore(3, 5);
  fs::create_directories(options_.path);  // an empty folder is in nobody's way
  MustRestore();
  const auto again = RestoreStore(Request());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kRefused);
  EXPECT_THAT(again.error().message, HasSubstr("is there already"));
}

TEST_F(RestoreTest, AReleaseCheckpointIsNoStore) {
  LoseStore(3, 5, CheckpointKind::kRelease);
  ExpectRefusal(Request(), ErrorCode::kRefused, "is a release checkpoint");
}

// It came after the checkpoint: it begins anew at the lost store's position, with all charges, and
// its users are counted. The learner that the checkpoint knows keeps what it has.
TEST_F(RestoreTest, ALearnerThatTheCheckpointDoesNotKnowIsDeclaredAndCharged) {
  LoseStore(3, 5);
  RestoreRequest request = Request();
  request.store.learners[0].name = request.store.learners[0].promise.learner = "newer";
  for (auto& charge : request.gaps[0].charges) charge.learner = "newer";
  const auto restored = RestoreStore(request);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(restored->from_commit, CommitSeq(3));
  const auto store = MustOpen(request.store);
  EXPECT_EQ(store->State(LearnerIndex(0)).position, Script::PositionOf(5));
  std::vector<UserUses> users{{.user = {0, ~uint64_t(0)}}, {.user = {77, ~uint64_t(77)}}};
  const auto step = store->ReadAllowances(LearnerIndex(0), users);
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_EQ(*step, 5u);
  for (const UserUses& user : users)
    EXPECT_EQ(user.used, std::min(request.gaps[0].gap.steps, request.gaps[0].gap.allowance));
  std::map<std::string, uint64_t> steps;
  for (const auto& total : store->Latest()->learners()) steps[total.learner] = total.steps;
  uint64_t lost = 0;
  for (const auto& charge : request.gaps[0].charges) lost += charge.steps;
  EXPECT_EQ(steps["newer"], lost);
  EXPECT_GT(steps["ctr"], 0u);
}

// A flipped bit is found before anything is made of it, and the checkpoint itself is never touched.
TEST_F(RestoreTest, ADamagedCheckpointIsRefused) {
  LoseStore(3, 5);
  for (const fs::path& file : test::FilesBelow(checkpoint_)) {
    if (fs::file_size(file) == 0) continue;
    std::string bytes;
    {
      std::ifstream in(file, std::ios::binary);
      bytes.assign(std::istreambuf_iterator<char>(in), {});
    }
    const auto put = [&](const std::string& content) {
      fs::remove(file);  // it may be linked
      std::ofstream(file, std::ios::binary) << content;
    };
    std::string damaged = bytes;
    damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 4);
    put(damaged);
    ExpectRefusal(Request(), ErrorCode::kCorruption, "");
    put(bytes);
  }
  MustRestore();
}

TEST_F(RestoreTest, LeavesTheCheckpointAsItWas) {
  LoseStore(3, 5);
  MustRestore();
  {
    const auto store = MustOpen(options_);
    Train(*store, 12);
  }
  const auto still = CheckCheckpoint(checkpoint_, CheckpointCheck::kEveryByte);
  ASSERT_TRUE(still) << still.error().message;
  fs::rename(options_.path, options_.path + "-lost-too");
  MustRestore();
}

// The second of two restores at once is refused before it touches anything, and a lock that a crash
// left behind holds nobody up.
TEST_F(RestoreTest, OneAtATimeRestoresAStore) {
  const std::string file = options_.path + ".restoring.lock";
  {
    const auto first = RestoreLock::Take(options_.path + "/");
    ASSERT_TRUE(first) << first.error().message;
    const auto second = RestoreLock::Take(options_.path);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(second.error().message,
                HasSubstr("another process restores store " + options_.path));
  }
  EXPECT_FALSE(fs::exists(file));
  std::ofstream(file).put('x');
  EXPECT_TRUE(RestoreLock::Take(options_.path));
  EXPECT_FALSE(fs::exists(file));
}

// A restore as root, with a daemon of another user that stands by: it can ask, and where an earlier
// program's file lets nobody ask, a restore may run.
TEST_F(RestoreTest, AnotherUserMayAsk) {
  fs::permissions(folder_.root(), fs::perms(0755));
  const std::string file = options_.path + ".restoring.lock";
  EXPECT_EQ(AskAsStranger(options_.path), Restoring::kNo);
  {
    const auto lock = RestoreLock::Take(options_.path);
    ASSERT_TRUE(lock) << lock.error().message;
    EXPECT_EQ(AskAsStranger(options_.path), Restoring::kYes);
  }
  std::ofstream(file).put('x');  // as after a kill
  EXPECT_EQ(AskAsStranger(options_.path), Restoring::kNo);
  fs::permissions(file, geteuid() == 0 ? fs::perms(0600) : fs::perms::none);
  EXPECT_EQ(AskAsStranger(options_.path), Restoring::kMayBe);
}

}  // namespace
}  // namespace tacit::store
