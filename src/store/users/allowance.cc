// The values of `allowance`, sealed. The notation is base/bytes.h's, the keys are user_values.h's.
//     uses    := used:u32 in_period:u32 period:u64     steps ever, of them in `period`, that period
// A restored store has `uses` in `meta` too, under `floor/` and the learner: those of users without
// a count.
#include "store/users/allowance.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "store/disk/seal.h"
#include "store/users/user_values.h"

namespace tacit::store {
namespace {

Status Decode(std::string_view payload, const Rocks& rocks, UserUses* uses) {
  ByteReader reader(payload);
  uses->used = reader.Get<uint32_t>();
  uses->in_period = reader.Get<uint32_t>();
  uses->period = reader.Get<uint64_t>();
  if (reader.at_end()) return {};
  return Fail(ErrorCode::kCorruption,
              fmt::format("a user's allowance in store {} is damaged", rocks.path()));
}

std::string Encode(const UserUses& uses) {
  ByteWriter value;
  value.Put(uses.used).Put(uses.in_period).Put(uses.period);
  return std::move(value).Take();
}

Result<UserUses> ReadFloor(const Rocks& rocks, uint16_t learner) {
  UserUses floor;
  TACIT_ASSIGN(const auto bytes, rocks.Get(Family::kMeta, LearnerKey(meta::kFloorPrefix, learner)));
  if (bytes) TACIT_RETURN_IF_ERROR(Decode(*bytes, rocks, &floor));
  return floor;
}

// The users of a learner, one after another.
class CountedUsers {
 public:
  CountedUsers(const Rocks& rocks, uint16_t learner)
      : rocks_(rocks),
        prefix_(LearnerKey("", learner)),
        it_(rocks.db().NewIterator({}, rocks.family(Family::kAllowance))) {
    it_->Seek(AsSlice(prefix_));
    SkipStep();
  }
  bool at_end() const { return !it_->Valid() || !it_->key().starts_with(AsSlice(prefix_)); }
  void Next() {
    it_->Next();
    SkipStep();
  }
  std::string_view key() const { return it_->key().ToStringView(); }
  Result<UserUses> uses() const {
    TACIT_ASSIGN(
        const std::string_view payload,
        Unseal(it_->value().ToStringView(), "a user's allowance in store " + rocks_.path()));
    UserUses uses;
    TACIT_RETURN_IF_ERROR(Decode(payload, rocks_, &uses));
    return uses;
  }
  Status status() const {
    return ToStatus(it_->status(), "reading allowances of store " + rocks_.path());
  }

 private:
  // The learner's own key holds the step that its counts are as of.
  void SkipStep() {
    if (!at_end() && it_->key().size() == prefix_.size()) it_->Next();
  }

  const Rocks& rocks_;
  const std::string prefix_;
  const std::unique_ptr<rocksdb::Iterator> it_;
};

}  // namespace

void PutAllowances(const Rocks& rocks, uint16_t learner, const AllowanceCommit& commit,
                   rocksdb::WriteBatch* batch) {
  PutUserStep(rocks, Family::kAllowance, learner, commit.step, batch);
  for (const UserUses& uses : commit.uses) {
    PutUserValue(rocks, Family::kAllowance, learner, uses.user, Encode(uses), batch);
  }
}

Result<uint64_t> ReadAllowances(const Rocks& rocks, uint16_t learner, std::span<UserUses> users) {
  std::vector<Hash128> names;
  for (const UserUses& user : users) names.push_back(user.user);
  TACIT_ASSIGN(const UserValues read, ReadUserValues(rocks, Family::kAllowance, learner, names));
  TACIT_ASSIGN(const UserUses floor, ReadFloor(rocks, learner));
  for (size_t i = 0; i < users.size(); ++i) {
    users[i] = floor;
    users[i].user = names[i];
    if (read.values[i]) TACIT_RETURN_IF_ERROR(Decode(*read.values[i], rocks, &users[i]));
  }
  return read.step;
}

Result<CountedUses> CheckCounts(const Rocks& rocks, uint16_t learner,
                                const std::function<bool()>& keep) {
  constexpr uint64_t kUsersBetween = 4096;
  TACIT_RETURN_IF_ERROR(ReadFloor(rocks, learner));
  CountedUses counted;
  CountedUsers users(rocks, learner);
  for (; !users.at_end(); users.Next()) {
    TACIT_ASSIGN(const UserUses uses, users.uses());
    counted.users += 1;
    ++counted.by_used[uses.used];
    if (keep && counted.users % kUsersBetween == 0 && !keep())
      return Fail(ErrorCode::kUnavailable, "counting users was given up");
  }
  TACIT_RETURN_IF_ERROR(users.status());
  return counted;
}

UserUses AfterGap(UserUses uses, const UsersGap& gap) {
  using Periods = UsersGap::Periods;
  const auto plus_gap = [&](uint32_t count) {
    return static_cast<uint32_t>(
        std::min<uint64_t>(uint64_t{count} + gap.steps, std::numeric_limits<uint32_t>::max()));
  };
  const uint32_t in_period = uses.period == gap.period ? uses.in_period : 0;
  const bool all_counted = plus_gap(uses.used) <= gap.allowance;
  uses.used = std::max(uses.used, std::min(plus_gap(uses.used), gap.allowance));
  uses.period = gap.period;
  switch (gap.periods) {
    case Periods::kRunning:
      uses.in_period = std::min(plus_gap(in_period), uses.used);
      break;
    case Periods::kBetween:
      uses.in_period = 0;
      break;
    case Periods::kOpened:
      uses.in_period = all_counted ? std::min(gap.period_steps, gap.steps) : 0;
      break;
    case Periods::kOpen:
      uses.in_period = in_period;
      break;
  }
  return uses;
}

namespace {

// Writes many counts, a few thousand at once.
class CountWriter {
 public:
  CountWriter(const Rocks& rocks, uint16_t learner) : rocks_(rocks), learner_(learner) {}
  Status Put(std::string_view key, const UserUses& uses) {
    constexpr int kBatch = 4096;
    batch_.Put(rocks_.family(Family::kAllowance), AsSlice(key), Seal(Encode(uses)));
    if (batch_.Count() < kBatch) return {};
    TACIT_RETURN_IF_ERROR(rocks_.WriteSynced(batch_));
    batch_.Clear();
    return {};
  }
  void PutFloor(const UserUses& floor) {
    batch_.Put(rocks_.family(Family::kMeta), LearnerKey(meta::kFloorPrefix, learner_),
               Seal(Encode(floor)));
  }
  Status Finish(uint64_t step) {
    PutUserStep(rocks_, Family::kAllowance, learner_, step, &batch_);
    return rocks_.WriteSynced(batch_);
  }

 private:
  const Rocks& rocks_;
  const uint16_t learner_;
  rocksdb::WriteBatch batch_;
};

}  // namespace

Status AddGap(const Rocks& rocks, uint16_t learner, const UsersGap& gap, uint64_t step) {
  CountWriter writer(rocks, learner);
  CountedUsers users(rocks, learner);
  for (; !users.at_end(); users.Next()) {
    TACIT_ASSIGN(const UserUses uses, users.uses());
    TACIT_RETURN_IF_ERROR(writer.Put(users.key(), AfterGap(uses, gap)));
  }
  TACIT_RETURN_IF_ERROR(users.status());
  TACIT_ASSIGN(const UserUses floor, ReadFloor(rocks, learner));
  writer.PutFloor(AfterGap(floor, gap));
  return writer.Finish(step);
}

Status AddGapOf(const Rocks& rocks, uint16_t learner, const UsersGap& gap,
                std::span<const UserSteps> users, uint64_t step) {
  constexpr size_t kAtOnce = 4096;
  CountWriter writer(rocks, learner);
  std::vector<UserUses> uses;
  for (size_t begin = 0; begin < users.size(); begin += kAtOnce) {
    const auto some = users.subspan(begin, std::min(kAtOnce, users.size() - begin));
    uses.clear();
    for (const UserSteps& user : some) uses.push_back({.user = user.user});
    TACIT_ASSIGN(const uint64_t as_of, ReadAllowances(rocks, learner, uses));
    (void)as_of;
    for (size_t i = 0; i < some.size(); ++i) {
      UsersGap own = gap;
      own.steps = std::min(gap.steps, some[i].steps);
      TACIT_RETURN_IF_ERROR(writer.Put(UserKey(learner, uses[i].user), AfterGap(uses[i], own)));
    }
  }
  return writer.Finish(step);
}

Status TakeOverCounts(const Rocks& rocks, uint16_t learner, const Rocks& from,
                      uint16_t from_learner) {
  CountWriter writer(rocks, learner);
  CountedUsers users(from, from_learner);
  const std::string key = LearnerKey("", learner);
  const std::string step_key = LearnerKey("", from_learner);
  for (; !users.at_end(); users.Next()) {
    TACIT_ASSIGN(const UserUses uses, users.uses());
    TACIT_RETURN_IF_ERROR(writer.Put(key + std::string(users.key().substr(step_key.size())), uses));
  }
  TACIT_RETURN_IF_ERROR(users.status());
  TACIT_ASSIGN(const UserUses floor, ReadFloor(from, from_learner));
  if (floor.used > 0) writer.PutFloor(floor);
  TACIT_ASSIGN(const UserValues read, ReadUserValues(from, Family::kAllowance, from_learner, {}));
  return writer.Finish(read.step);
}

}  // namespace tacit::store
