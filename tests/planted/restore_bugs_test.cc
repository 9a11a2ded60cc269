// Mistakes in charging users for the steps that a restored store lost, made on purpose. Random
// streams are learnt from, lost from a copy on, restored and learnt on from, once as they are and
// once with one user's records nulled. Each criterion follows from what unit user promises; the
// product meets it in every round, and with the mistake in it does not.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/witness/price_tally.h"
#include "train/learner/position.h"
#include "unit/stream/seeded_coins.h"
#include "wiring/restore/gap.h"

namespace tacit::wiring {
namespace {

using store::UsersGap;
using stream::Position;

constexpr SipHash::Key kKey{9};
const std::string kNulled = "v";  // the user whose records one world lacks

// The user of each offset; empty where nothing could be decoded.
using Records = std::vector<std::string>;

// The settings from one start to the next.
struct Phase {
  uint64_t steps = 0;
  uint32_t allowance = 0;
  uint32_t block = 0;  // held periods: steps in each block; `poisson` has one
};

using Mode = privacy::ParticipationMode;

// The remains of the store, which are of the end of the first start that was lost.
enum class Remains { kNothing, kLedger, kLedgerAndCounts };

struct Setting {
  Mode mode = Mode::kOnce;
  uint64_t offsets = 0;      // of a step, or of a held period
  uint32_t per_period = 0;   // `once`
  uint32_t blocks = 1;       // `allocate`
  bool begins_anew = false;  // `allocate`: a period whose allocation is lost
  bool read_again = false;   // else every user is charged
  Remains remains = Remains::kNothing;
  int restores = 1;
  std::vector<Phase> phases;  // the first ends with the copy; the last one is after the restore

  bool held() const { return mode != Mode::kOnce; }
  bool in_blocks() const { return mode == Mode::kAllocate; }
  uint32_t PeriodSteps(const Phase& phase) const { return held() ? phase.block * blocks : 0; }
  std::span<const Phase> lost() const { return std::span(phases).subspan(1, phases.size() - 2); }
  const Phase& last_lost() const { return phases[phases.size() - 2]; }
};

Setting RandomSetting(std::mt19937_64& random) {
  Setting setting;
  setting.mode = std::array{Mode::kOnce, Mode::kPoisson, Mode::kAllocate}[random() % 3];
  setting.offsets = 2 + random() % 6;
  if (!setting.held() && random() % 3 == 0) setting.per_period = 1 + random() % 2;
  if (setting.in_blocks()) setting.blocks = 1 + random() % 2;
  setting.begins_anew = random() % 2 == 0;
  setting.read_again = random() % 2 == 0;
  setting.restores = 1 + random() % 2;
  setting.remains =
      std::array{Remains::kNothing, Remains::kLedger, Remains::kLedgerAndCounts}[random() % 3];
  Phase phase;
  const size_t phases = 3 + random() % 3;
  for (size_t i = 0; i < phases; ++i) {
    phase.steps = 1 + random() % 8;
    if (i == 0 || random() % 3 == 0) phase.allowance = 1 + random() % 12;
    if (i == 0 || random() % 4 == 0) phase.block = 1 + random() % 4;
    setting.phases.push_back(phase);
  }
  setting.phases.back().steps = 20;
  return setting;
}

Records RandomRecords(std::mt19937_64& random) {
  Records records(600);
  const uint64_t heavy = 1 + random() % 8;
  for (std::string& user : records)
    user = random() % 8 < heavy ? kNulled : "u" + std::to_string(random() % 6);
  return records;
}

Records WithoutTheNulled(Records records) {
  for (std::string& user : records)
    if (user == kNulled) user.clear();
  return records;
}

// The counts of a store; a restored one has a floor.
class Counts final : public stream::AllowanceView {
 public:
  Result<uint64_t> Read(std::span<UserUses> users) override {
    for (UserUses& uses : users) uses = Of(uses.user);
    return step_;
  }
  void Commit(const stream::StepBatch& step) {
    for (const UserUses& uses : step.uses) uses_[uses.user] = uses;
    step_ = step.after.step;
  }
  UserUses Of(const Hash128& user) const {
    const auto found = uses_.find(user);
    UserUses uses = found == uses_.end() ? floor_ : found->second;
    uses.user = user;
    return uses;
  }
  UserUses Of(const std::string& user) const { return Of(SipHash(kKey)(user)); }
  void Put(const UserUses& uses) { uses_[uses.user] = uses; }
  void ChargeAll(const std::function<UserUses(UserUses)>& charge) {
    for (auto& [user, uses] : uses_) uses = charge(uses);
    floor_ = charge(floor_);
  }
  void SetStep(uint64_t step) { step_ = step; }
  uint32_t most() const {
    uint32_t most = floor_.used;
    for (const auto& [user, uses] : uses_) most = std::max(most, uses.used);
    return most;
  }

 private:
  std::map<Hash128, UserUses> uses_;
  UserUses floor_;
  uint64_t step_ = 0;
};

// A learner's life so far.
struct Life {
  Counts counts;
  Position at;
  std::vector<privacy::LedgerEntry> entries;
  Phase charged;  // the last phase that anything was charged in
  std::vector<std::vector<uint64_t>> parts_of_others;  // their offsets in each step
  // Steps that each user was in, or was drawn from: one of a block.
  std::map<std::string, uint32_t> taken;

  uint64_t steps() const {
    uint64_t steps = 0;
    for (const privacy::LedgerEntry& entry : entries) steps += entry.steps;
    return steps;
  }
};

privacy::Promise PromiseOf(const Setting& setting, const Phase& phase) {
  return {.learner = "it",
          .unit = privacy::Unit::kUser,
          .participation = setting.mode,
          .epsilon = 8,
          .delta = 1e-6,
          .bounds = {.allowance = phase.allowance,
                     .per_period = setting.per_period,
                     .period_steps = setting.PeriodSteps(phase)}};
}

privacy::Charge ChargeOf(const Setting& setting, const Phase& phase) {
  return {.mechanism = privacy::MechanismKind::kDpSgd,
          .noise_multiplier = 2,
          .sigma_gradient = 2,
          .clip_gradient = 1,
          .sampling_rate = setting.in_blocks() ? privacy::Draw::Allocate(phase.block).rate : 1,
          .block_steps = setting.in_blocks() ? phase.block : 0};
}

std::unique_ptr<stream::Participation> Cut(const Setting& setting, const Phase& phase,
                                           const Position& start, stream::AllowanceBook* book) {
  stream::UserOptions users{.key = kKey, .allowances = book, .allowance = phase.allowance};
  if (setting.in_blocks())
    return stream::MakeAllocationParticipation({.offsets_per_period = setting.offsets,
                                                .block_steps = phase.block,
                                                .blocks = setting.blocks,
                                                .start = start,
                                                .full_at_once = true,
                                                .users = users,
                                                .begins_anew = setting.begins_anew},
                                               std::make_unique<stream::SeededCoins>(start.step));
  if (setting.held())
    return stream::MakePoissonParticipation({.offsets_per_period = setting.offsets,
                                             .steps_per_period = phase.block,
                                             .sampling_rate = 1,  // everybody is in each step
                                             .start = start,
                                             .full_at_once = true,
                                             .users = users},
                                            std::make_unique<stream::SeededCoins>(1));
  users.per_period = setting.per_period;
  users.period_offsets = 3 * setting.offsets;
  return stream::MakeOnceParticipation(
      {.offsets_per_step = setting.offsets, .start = start, .full_at_once = true, .users = users});
}

void Decode(const Records& records, uint64_t first, event::RawRecords* frame, event::Batch* batch) {
  frame->first_offset = first;
  frame->end.resize(records.size() - first);
  for (uint64_t offset = first; offset < records.size(); ++offset) {
    if (records[offset].empty()) continue;
    batch->offset.push_back(offset);
    batch->timestamp_ms.push_back(0);
    batch->label.push_back(0);
    batch->user.Append(records[offset]);
    batch->event_id.Append("");
  }
}

// Blocks are charged with their period's first step.
void Charge(const Setting& setting, const Phase& phase, bool opens, Life* life) {
  if (setting.in_blocks() && !opens) return;
  life->charged = phase;
  const privacy::Promise promise = PromiseOf(setting, phase);
  const privacy::Charge charge = ChargeOf(setting, phase);
  if (life->entries.empty() || life->entries.back().bounds != promise.bounds ||
      life->entries.back().charge != charge) {
    privacy::LedgerEntry entry;
    entry.learner = promise.learner;
    entry.charge = charge;
    entry.unit = promise.unit;
    entry.participation = promise.participation;
    entry.bounds = promise.bounds;
    entry.delta = promise.delta;
    life->entries.push_back(std::move(entry));
  }
  life->entries.back().steps += setting.in_blocks() ? setting.PeriodSteps(phase) : 1;
}

// Takes the phase's steps, and commits each.
void Learn(const Setting& setting, const Phase& phase, const Records& records, Life* life) {
  stream::AllowanceBook book(life->counts);
  const auto participation = Cut(setting, phase, life->at, &book);
  event::RawRecords frame;
  event::Batch batch;
  Decode(records, life->at.next.empty() ? 0 : life->at.next[0].begin, &frame, &batch);
  uint64_t left = phase.steps;
  participation->Cut(frame, batch, [&](stream::StepBatch&& step) {
    if (step.preview()) return true;
    std::vector<uint64_t> others;
    std::set<std::string> in;
    for (size_t i = 0; i < step.examples.size(); ++i) {
      const std::string user(step.examples.user[i]);
      in.insert(user);
      if (user != kNulled) others.push_back(step.examples.offset[i]);
    }
    for (const std::string& user : in) life->taken[user] += setting.in_blocks() ? phase.block : 1;
    std::ranges::sort(others);
    life->parts_of_others.push_back(std::move(others));
    Charge(setting, phase, step.kind == stream::StepBatch::Kind::kPeriodFirst, life);
    life->counts.Commit(step);
    life->at = step.after;
    return --left > 0;
  });
  ASSERT_EQ(left, 0u) << "too few records";
}

// A rule charges a user for a gap; `most` is the most steps that any user had used.
using Rule =
    std::function<UserUses(const UserUses&, UsersGap, const Setting& setting, uint32_t most)>;

UserUses AsTheProduct(const UserUses& uses, const UsersGap& gap, const Setting&, uint32_t) {
  return store::AfterGap(uses, gap);
}

FoundGap MustFindGap(const Setting& setting, const Life& copy, const Life& later,
                     const Life& lost) {
  LearnerPlan plan;
  plan.id = "it";
  plan.promise = PromiseOf(setting, lost.charged);
  plan.charge = ChargeOf(setting, lost.charged);
  config::Learner learner;
  learner.participation.steps_per_period = setting.PeriodSteps(lost.charged);
  const store::PriceTally tally(lost.entries);
  const auto prices = tally.Of("it");
  LearnerTrail trail{.copy = {"it", copy.steps(), train::EncodePosition(copy.at)},
                     .entries_of_copy = copy.entries,
                     .later = {},
                     .entries = {},
                     .last = {.name = "it",
                              .steps = lost.steps(),
                              .charged = store::ChargedIn(lost.entries.back()),
                              .position = train::EncodePosition(lost.at),
                              .prices = {prices.begin(), prices.end()}}};
  if (setting.remains != Remains::kNothing) {
    trail.later = {"it", later.steps(), train::EncodePosition(later.at)};
    trail.entries = later.entries;
    trail.later_has_users = setting.remains == Remains::kLedgerAndCounts;
  }
  auto found = FindGap(plan, learner, trail, "log");
  TACIT_CHECK(found && *found, found ? "no gap" : found.error().message);
  return **std::move(found);
}

// The copy, brought to where the lost store stood: as store::AddGap and store::AddGapOf do it.
Life Restored(const Setting& setting, const Records& records, const Life& copy, const Life& later,
              const Life& lost, const Rule& rule) {
  const FoundGap found = MustFindGap(setting, copy, later, lost);
  const UsersGap& gap = found.gap.gap;
  const uint32_t most = lost.counts.most();
  Life restored = copy;
  restored.entries = lost.entries;  // the lost steps are charged
  restored.charged = lost.charged;
  restored.taken = lost.taken;  // and count, for they were served
  if (setting.remains == Remains::kLedgerAndCounts) restored.counts = later.counts;
  const Counts counted = restored.counts;
  restored.at = *train::DecodePosition(found.gap.position);
  restored.counts.SetStep(found.gap.step);
  if (found.gap.users == store::LearnerGap::Users::kNone) return restored;
  if (!setting.read_again || found.unaccounted.empty()) {
    restored.counts.ChargeAll([&](const UserUses& uses) { return rule(uses, gap, setting, most); });
    return restored;
  }
  std::map<std::string, uint64_t> steps;
  for (const OffsetRange& range : found.unaccounted)
    for (uint64_t offset = range.begin; offset < range.end; ++offset)
      if (!records[offset].empty()) steps[records[offset]] += found.steps_per_record;
  for (const auto& [user, own_steps] : steps) {
    UsersGap own = gap;
    own.steps = static_cast<uint32_t>(std::min<uint64_t>(gap.steps, own_steps));
    restored.counts.Put(rule(counted.Of(user), own, setting, most));
  }
  return restored;
}

// One world: its last restore, and the restored learner at its end.
struct World {
  Life copy, lost, restored, end;
};

World LiveThrough(const Setting& setting, const Records& records, const Rule& rule) {
  World world;
  for (int restores = 0; restores < setting.restores; ++restores) {
    world.copy = world.restored;
    Learn(setting, setting.phases[0], records, &world.copy);
    world.lost = world.copy;
    Life later;
    for (const Phase& phase : setting.lost()) {
      Learn(setting, phase, records, &world.lost);
      if (&phase == setting.lost().data()) later = world.lost;
    }
    world.restored = Restored(setting, records, world.copy, later, world.lost, rule);
  }
  world.end = world.restored;
  Learn(setting, setting.phases.back(), records, &world.end);
  return world;
}

std::vector<std::string> Others() {
  std::vector<std::string> others{"a new one"};
  for (int user = 0; user < 6; ++user) others.push_back("u" + std::to_string(user));
  return others;
}

bool DecidesAboutOthers(const World& one, const World& other) {
  if (one.end.parts_of_others != other.end.parts_of_others) return true;
  return std::ranges::any_of(Others(), [&](const std::string& user) {
    return one.restored.counts.Of(user) != other.restored.counts.Of(user);
  });
}

bool ChargesTooLittle(const Setting& setting, const World& world) {
  std::vector<std::string> users = Others();
  users.push_back(kNulled);
  return std::ranges::any_of(users, [&](const std::string& user) {
    const UserUses known = world.restored.counts.Of(user), truth = world.lost.counts.Of(user);
    const bool paced = !setting.held() && truth.period == world.lost.at.period;
    return known.used < truth.used || (paced && known.in_period < truth.in_period);
  });
}

bool TakesTooOften(const Setting& setting, const World& world) {
  const uint32_t allowance = std::ranges::max(setting.phases, {}, &Phase::allowance).allowance;
  return std::ranges::any_of(world.end.taken,
                             [&](const auto& user) { return user.second > allowance; });
}

// The most steps of `once` that a user can have used in the end, who has a record in each and had
// used this many at the copy.
uint32_t MostUsed(const Setting& setting, uint32_t used) {
  for (const Phase& phase : setting.lost())
    for (uint64_t step = 0; step < phase.steps; ++step) used += used < phase.allowance;
  return used;
}

// The number of rounds that a rule fails in, by how.
struct Found {
  int others = 0, too_little = 0, too_often = 0;
  int off_the_model = 0;
  int cut = 0, most_differs = 0;  // rounds in which there was something to find
};

// Counts users off the model, which tells the charge of every user for steps of `once`: exactly, if
// the allowance was the same in all.
void HoldAgainstModel(const Setting& setting, const World& world, Found* found) {
  if (setting.held() || setting.read_again || setting.per_period > 0) return;
  if (setting.remains == Remains::kLedgerAndCounts) return;
  const uint32_t allowance = setting.last_lost().allowance;
  const bool steady = std::ranges::all_of(
      setting.lost(), [&](const Phase& phase) { return phase.allowance == allowance; });
  for (const std::string& user : Others()) {
    const uint32_t before = world.copy.counts.Of(user).used, most = MostUsed(setting, before);
    const uint32_t known = world.restored.counts.Of(user).used;
    found->off_the_model += steady ? known != most : known < most;
    found->cut += known > before && known == allowance;
  }
}

Found Judge(const Rule& rule) {
  Found found;
  std::mt19937_64 random(5);
  for (int round = 0; round < 2000; ++round) {
    const Setting setting = RandomSetting(random);
    const Records records = RandomRecords(random);
    const World one = LiveThrough(setting, records, rule);
    const World other = LiveThrough(setting, WithoutTheNulled(records), rule);
    found.others += DecidesAboutOthers(one, other);
    for (const World* world : {&one, &other}) {
      found.too_little += ChargesTooLittle(setting, *world);
      found.too_often += TakesTooOften(setting, *world);
    }
    found.most_differs += one.lost.counts.most() != other.lost.counts.most();
    HoldAgainstModel(setting, one, &found);
  }
  return found;
}

TEST(PlantedRestoreBugs, TheProductMeetsAllCriteria) {
  const Found found = Judge(AsTheProduct);
  EXPECT_EQ(found.others, 0);
  EXPECT_EQ(found.too_little, 0);
  EXPECT_EQ(found.too_often, 0);
  EXPECT_EQ(found.off_the_model, 0);
  EXPECT_GT(found.cut, 100);
  EXPECT_GT(found.most_differs, 100);
}

// The mistake: counts are cut at the most that any user had used, which one user decides.
TEST(PlantedRestoreBugs, ACutAtTheMostThatAnybodyUsedIsFound) {
  const Found found = Judge([](const UserUses& uses, UsersGap gap, const Setting&, uint32_t most) {
    gap.allowance = most;
    return store::AfterGap(uses, gap);
  });
  EXPECT_GT(found.others, 100);
  EXPECT_EQ(found.too_little, 0) << "it is no other mistake";
}

// The mistake: the most decides alone who is in the rest of an open period.
TEST(PlantedRestoreBugs, APartInAnOpenPeriodThatTheMostDecidesIsFound) {
  const Found found =
      Judge([](const UserUses& uses, const UsersGap& gap, const Setting&, uint32_t most) {
        UsersGap raw = gap;
        raw.allowance = most;
        UserUses after = store::AfterGap(uses, gap);
        after.in_period = store::AfterGap(uses, raw).in_period;
        return after;
      });
  EXPECT_GT(found.others, 10);
}

// The mistake: the allowance was larger for some of the lost steps, and the last one is taken.
TEST(PlantedRestoreBugs, ACutAtTheLastAllowanceIsFound) {
  const Found found =
      Judge([](const UserUses& uses, UsersGap gap, const Setting& setting, uint32_t) {
        gap.allowance = setting.last_lost().allowance;
        return store::AfterGap(uses, gap);
      });
  EXPECT_GT(found.too_little, 10);
  EXPECT_EQ(found.others, 0);
}

// The mistake: a user whom the allowance refused comes into the rest of the period.
TEST(PlantedRestoreBugs, APartInAPeriodThatRefusedTheUserIsFound) {
  const Found found =
      Judge([](const UserUses& uses, const UsersGap& gap, const Setting&, uint32_t) {
        UserUses after = store::AfterGap(uses, gap);
        if (gap.periods == UsersGap::Periods::kOpened) after.in_period = gap.period_steps;
        return after;
      });
  EXPECT_GT(found.too_often, 10);
}

}  // namespace
}  // namespace tacit::wiring
