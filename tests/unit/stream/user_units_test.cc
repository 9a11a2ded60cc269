// Unit user against a naive model that sees the whole stream at once: who is in which step, how
// often, with which records.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "seeded_coins.h"
#include "stream/steps/participation.h"
#include "support/silent_noise.h"

namespace tacit::stream {
namespace {

constexpr SipHash::Key kKey{1, 2, 3};

// The store as a participation sees it: it has what was committed, and no more.
class FakeStore final : public AllowanceView {
 public:
  Result<uint64_t> Read(std::span<UserUses> users) override {
    if (broken) return Fail(ErrorCode::kIo, "the disk is gone");
    for (UserUses& uses : users) {
      const auto found = uses_.find(uses.user);
      uses = found == uses_.end() ? UserUses{.user = uses.user} : found->second;
    }
    return step_;
  }
  void Commit(const StepBatch& step) {
    for (const UserUses& uses : step.uses) uses_[uses.user] = uses;
    step_ = step.after.step;
    position = step.after;
  }
  uint32_t UsedBy(const std::string& user) const {
    const auto found = uses_.find(SipHash(kKey)(user));
    return found == uses_.end() ? 0 : found->second.used;
  }

  bool broken = false;
  Position position;

 private:
  std::map<Hash128, UserUses> uses_;
  uint64_t step_ = 0;
};

// Offset o is a record of users[o]; "-" did not decode.
struct UserStream {
  std::vector<std::string> users;
  std::set<uint64_t> cuts;

  void Frame(uint64_t from, uint64_t to, event::RawRecords* frame, event::Batch* batch) const {
    frame->first_offset = from;
    frame->end.resize(to - from);
    for (uint64_t cut : cuts)
      if (cut > from && cut <= to)
        frame->cuts.push_back({event::PublicCut::Kind::kFileEnd, cut, "day"});
    batch->dense_width = 1;
    batch->slots = 1;
    for (uint64_t offset = from; offset < to; ++offset) {
      if (users[offset] == "-") continue;
      batch->offset.push_back(offset);
      batch->timestamp_ms.push_back(0);
      batch->label.push_back(0);
      batch->dense.push_back(static_cast<float>(offset));
      batch->row.push_back(offset);
      batch->slot_end.push_back(static_cast<uint32_t>(batch->row.size()));
      batch->user.Append(users[offset]);
      batch->event_id.Append("");
    }
  }
};

UserStream RandomUserStream(std::mt19937_64& random, uint64_t n, uint64_t users) {
  UserStream stream;
  for (uint64_t i = 0; i < n; ++i) {
    // A few users have most of the records.
    const uint64_t user = std::min(random() % users, random() % users);
    stream.users.push_back(random() % 20 == 0 ? "-" : "u" + std::to_string(user));
    if (random() % 60 == 0) stream.cuts.insert(i + 1);
  }
  return stream;
}

// Cuts what follows the store's position in random pieces, until emit says stop.
void CutInPieces(const UserStream& stream, Participation& participation, const Position& start,
                 std::mt19937_64& random, const Participation::Emit& emit) {
  uint64_t next = start.next.empty() ? 0 : start.next[0].begin;
  while (next < stream.users.size()) {
    const uint64_t to = std::min<uint64_t>(stream.users.size(), next + 1 + random() % 50);
    event::RawRecords frame;
    event::Batch batch;
    stream.Frame(next, to, &frame, &batch);
    if (!participation.Cut(frame, batch, emit)) return;
    next = to;
  }
  participation.Finish(emit);
}

// Lists which user is in a step with which offsets, in order; and checks that the step is
// well-formed.
using Members = std::map<std::string, std::vector<uint64_t>>;
Members MembersOf(const StepBatch& step) {
  Members members;
  EXPECT_EQ(step.unit_of.size(), step.examples.size());
  std::set<std::string> done;
  for (size_t i = 0; i < step.examples.size(); ++i) {
    const std::string user(step.examples.user[i]);
    const bool begins = i == 0 || step.unit_of[i] != step.unit_of[i - 1];
    if (begins) {
      EXPECT_EQ(step.unit_of[i], i == 0 ? 0 : step.unit_of[i - 1] + 1);
      EXPECT_TRUE(done.insert(user).second) << user << " is two units of a step";
    } else {
      EXPECT_EQ(user, step.examples.user[i - 1]) << "two users are one unit";
    }
    // Every column has come along.
    EXPECT_EQ(step.examples.dense[i], static_cast<float>(step.examples.offset[i]));
    EXPECT_EQ(step.examples.Slot(i, 0)[0], step.examples.offset[i]);
    members[user].push_back(step.examples.offset[i]);
  }
  EXPECT_EQ(step.units, done.size());
  return members;
}

struct OnceSettings {
  uint64_t per_step = 10, allowance = 3, per_period = 0, period = 0, cuts = 0, records_max = 0;
  uint32_t files = 1;
};

OnceOptions OptionsOf(const OnceSettings& s, const Position& start, AllowanceBook& book) {
  return {.offsets_per_step = s.per_step,
          .start = start,
          .files_per_step = s.files,
          .users = UserOptions{.key = kKey,
                               .allowances = &book,
                               .allowance = s.allowance,
                               .records_max = s.records_max,
                               .per_period = s.per_period,
                               .period_offsets = s.period,
                               .period_cuts = s.cuts}};
}

std::vector<Members> NaiveOnce(const UserStream& stream, const OnceSettings& s) {
  std::vector<Members> steps;
  std::map<std::string, uint64_t> used, in_period;
  uint64_t offsets = 0, cuts = 0;
  for (uint64_t begin = 0; begin < stream.users.size();) {
    uint64_t end = std::min<uint64_t>(begin + s.per_step, stream.users.size());
    auto cut = stream.cuts.upper_bound(begin);
    for (uint32_t ended = 1; ended < s.files && cut != stream.cuts.end(); ++ended) ++cut;
    if (cut != stream.cuts.end()) end = std::min(end, *cut);
    Members all, members;
    for (uint64_t offset = begin; offset < end; ++offset)
      if (stream.users[offset] != "-") all[stream.users[offset]].push_back(offset);
    for (auto& [user, records] : all) {
      if (used[user] == s.allowance) continue;
      if (s.per_period > 0 && in_period[user] == s.per_period) continue;
      ++used[user];
      ++in_period[user];
      if (s.records_max > 0 && records.size() > s.records_max) records.resize(s.records_max);
      members[user] = records;
    }
    steps.push_back(members);
    offsets += end - begin;
    cuts += static_cast<uint64_t>(
        std::distance(stream.cuts.upper_bound(begin), stream.cuts.upper_bound(end)));
    if ((s.period > 0 && offsets >= s.period) || (s.cuts > 0 && cuts >= s.cuts)) {
      in_period.clear();
      offsets = cuts = 0;
    }
    begin = end;
  }
  return steps;
}

// However commits lag, and whenever it is cut off and begun again at the last commit, the steps are
// those of the naive model, each once.
TEST(UserOnceTest, StepsAreThoseOfTheDefinitionOverCrashesAtAnyMoment) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 150; ++round) {
    const UserStream stream = RandomUserStream(random, 1 + random() % 600, 1 + random() % 40);
    const OnceSettings settings{.per_step = 1 + random() % 30,
                                .allowance = 1 + random() % 6,
                                .per_period = random() % 3,
                                .period = random() % 2 * (1 + random() % 100),
                                .cuts = random() % 3,
                                .records_max = random() % 4,
                                .files = static_cast<uint32_t>(1 + random() % 3)};
    const std::vector<Members> want = NaiveOnce(stream, settings);
    FakeStore store;
    std::vector<Members> committed;
    for (int life = 0; committed.size() < want.size(); ++life) {
      ASSERT_LT(life, 1000);
      AllowanceBook book(store);
      const auto once = MakeOnceParticipation(OptionsOf(settings, store.position, book));
      std::vector<StepBatch> taken;  // and not committed
      uint64_t until_crash = 1 + random() % 40;
      CutInPieces(stream, *once, store.position, random, [&](StepBatch&& step) {
        EXPECT_TRUE(step.counts_users);
        taken.push_back(std::move(step));
        if (random() % 4 == 0) {
          for (const StepBatch& one : taken) {
            store.Commit(one);
            committed.push_back(MembersOf(one));
          }
          taken.clear();
        }
        return --until_crash > 0;
      });
      ASSERT_TRUE(once->status());
    }
    ASSERT_EQ(committed, want) << "round " << round;
    std::map<std::string, uint64_t> steps_of;
    for (const Members& step : committed)
      for (const auto& [user, records] : step) ++steps_of[user];
    for (const auto& [user, steps] : steps_of) {
      ASSERT_LE(steps, settings.allowance);
      ASSERT_EQ(store.UsedBy(user), steps);
    }
  }
}

// Zero-out: with a user's records nulled, every other user is where they were.
TEST(UserOnceTest, AUserChangesNobodyElsesPart) {
  std::mt19937_64 random(7);
  const OnceSettings settings{
      .per_step = 30, .allowance = 2, .per_period = 1, .cuts = 3, .files = 2};
  const UserStream with = RandomUserStream(random, 500, 20);
  UserStream without = with;
  std::replace(without.users.begin(), without.users.end(), std::string("u3"), std::string("-"));
  std::vector<Members> a = NaiveOnce(with, settings), b = NaiveOnce(without, settings);
  const auto run = [&](const UserStream& stream) {
    FakeStore store;
    std::vector<Members> steps;
    AllowanceBook book(store);
    const auto once = MakeOnceParticipation(OptionsOf(settings, {}, book));
    CutInPieces(stream, *once, {}, random, [&](StepBatch&& step) {
      steps.push_back(MembersOf(step));
      return true;
    });
    return steps;
  };
  std::vector<Members> steps = run(with), others = run(without);
  ASSERT_EQ(steps.size(), others.size());
  size_t of_the_user = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    of_the_user += steps[i].erase("u3");
    ASSERT_EQ(steps[i], others[i]) << i;
  }
  EXPECT_EQ(of_the_user, 2u);
}

// A pass begins while nothing of the one before it is committed.
TEST(UserOnceTest, WhatIsCutInOnePassCountsInTheNext) {
  FakeStore store;
  AllowanceBook book(store);
  UserStream stream;
  stream.users = {"a", "b", "a", "c"};
  std::mt19937_64 random(1);
  Position position;
  std::map<std::string, int> steps_of;
  for (int pass = 0; pass < 4; ++pass) {
    position.next.clear();
    const auto once =
        MakeOnceParticipation(OptionsOf({.per_step = 2, .allowance = 3}, position, book));
    CutInPieces(stream, *once, position, random, [&](StepBatch&& step) {
      for (const auto& [user, records] : MembersOf(step)) ++steps_of[user];
      position = step.after;
      return true;
    });
  }
  EXPECT_EQ(steps_of, (std::map<std::string, int>{{"a", 3}, {"b", 3}, {"c", 3}}));
}

TEST(UserOnceTest, RecordsOfNobodyAreInNoStep) {
  FakeStore store;
  UserStream stream;
  stream.users = {"a", "", "", "b", ""};
  AllowanceBook book(store);
  const auto once = MakeOnceParticipation(OptionsOf({.per_step = 5, .allowance = 1}, {}, book));
  std::mt19937_64 random(1);
  int steps = 0;
  CutInPieces(stream, *once, {}, random, [&](StepBatch&& step) {
    EXPECT_EQ(MembersOf(step), (Members{{"a", {0}}, {"b", {3}}}));
    ++steps;
    return true;
  });
  EXPECT_EQ(steps, 1);
}

TEST(UserOnceTest, ACountThatCannotBeReadEndsTheFeed) {
  FakeStore store;
  store.broken = true;
  UserStream stream;
  stream.users = {"a", "b"};
  AllowanceBook book(store);
  const auto once = MakeOnceParticipation(OptionsOf({.per_step = 1}, {}, book));
  std::mt19937_64 random(1);
  CutInPieces(stream, *once, {}, random, [&](StepBatch&&) {
    ADD_FAILURE() << "a step of users who were not counted";
    return true;
  });
  ASSERT_FALSE(once->status());
  EXPECT_EQ(once->status().error().message, "the disk is gone");
}

// ---- poisson ----

PoissonOptions PoissonOf(uint64_t period, uint64_t steps, double rate, uint64_t allowance,
                         const Position& start, AllowanceBook& book) {
  return {.offsets_per_period = period,
          .steps_per_period = steps,
          .sampling_rate = rate,
          .start = start,
          .users = UserOptions{.key = kKey, .allowances = &book, .allowance = allowance}};
}

// By period, the users who are let in, with all their records.
std::vector<Members> NaivePeriods(const UserStream& stream, uint64_t period, uint64_t steps,
                                  uint64_t allowance) {
  std::vector<Members> periods;
  std::map<std::string, uint64_t> used;
  for (uint64_t begin = 0; begin < stream.users.size();) {
    uint64_t end = std::min<uint64_t>(begin + period, stream.users.size());
    const auto cut = stream.cuts.upper_bound(begin);
    if (cut != stream.cuts.end()) end = std::min(end, *cut);
    Members all;
    for (uint64_t offset = begin; offset < end; ++offset)
      if (stream.users[offset] != "-") all[stream.users[offset]].push_back(offset);
    Members& in = periods.emplace_back();
    for (const auto& [user, records] : all) {
      if (used[user] + steps > allowance) continue;
      used[user] += steps;
      in[user] = records;
    }
    begin = end;
  }
  return periods;
}

// At rate 1 every user of the period who is let in is in every step of it; over crashes, whenever
// they come, none is in more steps than the allowance, and previews show whom the steps can hold,
// once more after a crash.
TEST(UserPoissonTest, PeriodsAreThoseOfTheDefinitionOverCrashesAtAnyMoment) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 100; ++round) {
    const UserStream stream = RandomUserStream(random, 1 + random() % 500, 1 + random() % 30);
    const uint64_t period = 20 + random() % 100, steps = 1 + random() % 4;
    const uint64_t allowance = steps * (1 + random() % 3) + random() % steps;
    const auto want = NaivePeriods(stream, period, steps, allowance);
    FakeStore store;
    std::vector<Members> committed;
    for (int life = 0; committed.size() < want.size() * steps; ++life) {
      ASSERT_LT(life, 1000);
      AllowanceBook book(store);
      const auto poisson =
          MakePoissonParticipation(PoissonOf(period, steps, 1, allowance, store.position, book),
                                   std::make_unique<SeededCoins>(seed));
      std::vector<StepBatch> taken;
      Members previewed;
      bool again = false;
      uint64_t until_crash = 1 + random() % 12;
      CutInPieces(stream, *poisson, store.position, random, [&](StepBatch&& step) {
        if (step.preview()) {
          EXPECT_FALSE(step.counts_users);
          again = step.kind == StepBatch::Kind::kPreviewAgain;
          previewed.merge(MembersOf(step));
          return true;
        }
        const bool resumed =
            taken.empty() && step.kind != StepBatch::Kind::kPeriodFirst && !previewed.empty();
        if (step.kind == StepBatch::Kind::kPeriodFirst || resumed) {
          EXPECT_EQ(previewed, MembersOf(step));
          if (!previewed.empty()) {
            EXPECT_EQ(again, step.kind != StepBatch::Kind::kPeriodFirst);
          }
          previewed.clear();
        }
        taken.push_back(std::move(step));
        if (random() % 3 == 0) {
          for (const StepBatch& one : taken) {
            store.Commit(one);
            committed.push_back(MembersOf(one));
          }
          taken.clear();
        }
        return --until_crash > 0;
      });
      ASSERT_TRUE(poisson->status());
    }
    std::vector<Members> want_steps;
    for (const Members& one : want) want_steps.insert(want_steps.end(), steps, one);
    ASSERT_EQ(committed, want_steps) << "round " << round;
  }
}

// Each user with the rate, with all records or none, independently of the others.
TEST(UserPoissonTest, UsersAreSampledNotRecords) {
  constexpr double kRate = 0.25;
  constexpr uint64_t kUsers = 60, kSteps = 3000;
  UserStream stream;
  for (uint64_t i = 0; i < 4 * kUsers; ++i)
    stream.users.push_back("u" + std::to_string(i % kUsers));
  FakeStore store;
  AllowanceBook book(store);
  const auto poisson = MakePoissonParticipation(PoissonOf(1000, kSteps, kRate, kSteps, {}, book),
                                                std::make_unique<SeededCoins>(5));
  std::mt19937_64 random(1);
  std::map<std::string, double> seen;
  double pairs = 0;
  CutInPieces(stream, *poisson, {}, random, [&](StepBatch&& step) {
    if (step.preview()) return true;
    const Members members = MembersOf(step);
    for (const auto& [user, records] : members) {
      EXPECT_EQ(records.size(), 4u);
      seen[user] += 1;
    }
    pairs += members.contains("u0") && members.contains("u1");
    return true;
  });
  const double sd = std::sqrt(kSteps * kRate * (1 - kRate));
  for (const auto& [user, steps] : seen) EXPECT_NEAR(steps, kSteps * kRate, 5 * sd) << user;
  const double both = kRate * kRate;
  EXPECT_NEAR(pairs, kSteps * both, 5 * std::sqrt(kSteps * both * (1 - both)));
  EXPECT_EQ(store.UsedBy("u0"), 0u) << "nothing was committed";
}

// A period that grows while it is under way, by another configuration, counts for more.
TEST(UserPoissonTest, MoreStepsThanAPeriodWasOpenedWithAreCounted) {
  FakeStore store;
  UserStream stream;
  stream.users = {"a", "b", "a"};
  std::mt19937_64 random(1);
  {
    AllowanceBook book(store);
    const auto poisson =
        MakePoissonParticipation(PoissonOf(3, 4, 1, 9, {}, book), std::make_unique<SeededCoins>(1));
    CutInPieces(stream, *poisson, {}, random, [&](StepBatch&& step) {
      if (!step.preview()) store.Commit(step);
      return step.preview();  // one step, and the process is gone
    });
  }
  EXPECT_EQ(store.UsedBy("a"), 4u);
  AllowanceBook book(store);
  const auto longer = MakePoissonParticipation(PoissonOf(3, 7, 1, 9, store.position, book),
                                               std::make_unique<SeededCoins>(1));
  CutInPieces(stream, *longer, store.position, random, [&](StepBatch&& step) {
    EXPECT_TRUE(!step.preview() || step.kind == StepBatch::Kind::kPreviewAgain);
    if (!step.preview()) store.Commit(step);
    return step.preview();
  });
  EXPECT_EQ(store.UsedBy("a"), 7u);
  AllowanceBook later(store);
  const auto too_long = MakePoissonParticipation(PoissonOf(3, 12, 1, 9, store.position, later),
                                                 std::make_unique<SeededCoins>(1));
  CutInPieces(stream, *too_long, store.position, random, [&](StepBatch&& step) {
    EXPECT_EQ(step.units, 0u) << "nobody's allowance has room for what is left of the period";
    return false;
  });
}

}  // namespace
}  // namespace tacit::stream
