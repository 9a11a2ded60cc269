#include "wiring/restore/restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/text.h"
#include "store/care/remains.h"
#include "store/checkpoint/checkpoint.h"
#include "store/disk/unfinished_restore.h"
#include "store/witness/witness.h"
#include "wiring/plans/source.h"
#include "wiring/restore/gap.h"
#include "wiring/restore/gap_users.h"
#include "wiring/restore/inspection.h"
#include "wiring/restore/inspection_gap.h"

namespace tacit::wiring {
namespace {

using store::Remains;
using store::WitnessRecord;

// A witness or mark, as far as it was read.
struct Memory {
  std::string path;
  std::optional<store::WitnessSight> sight;
};

// Witness and mark, as far as they are there.
Result<std::vector<Memory>> ReadMemories(const store::StoreOptions& options) {
  std::vector<Memory> memories;
  for (const std::string& path : {options.witness, options.mark}) {
    if (path.empty()) continue;
    TACIT_ASSIGN(auto sight, store::WitnessFile::Read(path));
    if (sight && sight->record.seq.value > 0) memories.push_back({path, std::move(sight)});
  }
  return memories;
}

// Returns why `newer` cannot have come after `older`; empty: it can. Steps and charges only grow.
std::string FindLost(const WitnessRecord& newer, const WitnessRecord& older) {
  if (newer.seq == older.seq && newer.head != older.head) return "their ledger heads differ";
  for (const store::WitnessedLearner& learner : older.learners) {
    const auto now =
        std::ranges::find(newer.learners, learner.name, &store::WitnessedLearner::name);
    if (now == newer.learners.end()) continue;  // it has another name
    if (now->steps < learner.steps)
      return fmt::format("learner '{}' has taken {} by the former, and {} by the latter",
                         learner.name, Counted(now->steps, "step"), learner.steps);
    for (const auto& [charged, steps] : learner.prices) {
      const auto at =
          std::ranges::find(now->prices, charged, &store::WitnessedLearner::Priced::charged);
      if (at != now->prices.end() && at->steps < steps)
        return fmt::format(
            "learner '{}' was charged {} at one of its prices by the former, and {} "
            "by the latter",
            learner.name, Counted(at->steps, "step"), steps);
    }
  }
  return "";
}

// The newer one of witness and mark.
Result<std::pair<std::string, WitnessRecord>> NewestMemory(const store::StoreOptions& options) {
  TACIT_ASSIGN(const std::vector<Memory> memories, ReadMemories(options));
  for (const Memory& memory : memories)
    if (memory.sight->in_doubt)
      return Fail(ErrorCode::kRefused,
                  fmt::format("half of {} is damaged, and may have held a newer commit than {}: "
                              "what was learnt then cannot be charged",
                              memory.path, memory.sight->record.seq.value));
  if (memories.empty())
    return Fail(ErrorCode::kRefused,
                fmt::format("nothing remembers how far store {} went: a restore needs its witness "
                            "(store.witness: {}) or its mark (source.mark: {}), to charge what was "
                            "learnt after the copy",
                            options.path, options.witness.empty() ? "none" : options.witness,
                            options.mark.empty() ? "none" : options.mark));
  if (memories.size() == 2 &&
      memories[0].sight->record.lineage != memories[1].sight->record.lineage)
    return Fail(ErrorCode::kRefused,
                fmt::format("{} and {} are of different stores: lineage {} and {}",
                            memories[0].path, memories[1].path, memories[0].sight->record.lineage,
                            memories[1].sight->record.lineage));
  const auto newest = std::ranges::max_element(
      memories, {}, [](const Memory& memory) { return memory.sight->record.seq; });
  for (const auto& [path, sight] : memories)
    if (const std::string lost = FindLost(newest->sight->record, sight->record); !lost.empty())
      return Fail(
          ErrorCode::kRefused,
          fmt::format("{} is of commit {} and {} of commit {}, and one of them was changed: "
                      "{}. Find out who writes there, and restore without that one",
                      newest->path, newest->sight->record.seq.value, path, sight->record.seq.value,
                      lost));
  return std::pair(newest->path, newest->sight->record);
}

// Returns nothing if the witness or mark may have seen this copy before its own commit; else the
// reason why it has not.
std::string FindForeign(const Remains& copy, const WitnessRecord& last) {
  if (last.lineage != copy.lineage)
    return fmt::format("they are of lineage {} and {}", copy.lineage, last.lineage);
  if (last.seq < copy.commit)
    return fmt::format("the former is of commit {}, which is newer than {}, where the latter ends",
                       copy.commit.value, last.seq.value);
  if (last.seq == copy.commit && last.head != copy.head)
    return fmt::format("their commits {} have different ledger heads", copy.commit.value);
  return "";
}

Status CheckMemory(const std::string& path, const WitnessRecord& last, const Remains& copy) {
  std::string why = FindForeign(copy, last);
  if (why.empty() && last.seq > copy.commit && last.learners.empty())
    why = "the latter does not say what a restore must charge";
  if (why.empty()) return {};
  return Fail(ErrorCode::kRefused,
              fmt::format("{} and {} do not belong together: {}", copy.folder, path, why));
}

// Returns nothing if `later` went on from `copy`: its ledger has all of the copy's entries that
// were closed, and its terms have the copy's commit.
std::string FindOtherWay(const Remains& copy, const Remains& later) {
  if (later.commit < copy.commit) return "it is older than the copy that is restored";
  const std::string other = "it went another way than the copy that is restored";
  // Only the last run of each learner grows.
  const size_t open = copy.learners.size();
  for (size_t i = 0; i + open < copy.entries.size(); ++i)
    if (i >= later.entries.size() || later.entries[i].head != copy.entries[i].head) return other;
  if (!later.release && !later.terms.Has({copy.commit, copy.terms.At(copy.commit), copy.head}))
    return other;
  return "";
}

// Finds the remains that reach furthest. Those that the operator named come first, and it is told
// why one of them was of no use.
std::optional<Remains> FindLater(const Assembly& assembly, const RestoreOptions& options,
                                 const Remains& copy, const WitnessRecord& last,
                                 RestoreReport* report) {
  std::vector<std::string> folders = options.remains;
  const auto places = store::ListCheckpoints(assembly.config.store.checkpoints.path, nullptr);
  if (places)
    for (const store::CheckpointPlace& place : *places)
      if (place.manifest.commit > copy.commit) folders.push_back(place.folder);
  std::optional<Remains> best;
  for (size_t i = 0; i < folders.size(); ++i) {
    auto found = store::ReadRemains(folders[i]);
    std::string why = found ? FindForeign(*found, last) : found.error().message;
    if (why.empty()) std::ranges::copy(found->forgotten, std::back_inserter(report->forgotten));
    if (why.empty()) why = FindOtherWay(copy, *found);
    if (why.empty() && found->commit > copy.commit && (!best || found->commit > best->commit)) {
      best = *std::move(found);
    } else if (!why.empty() && i < options.remains.size()) {
      report->passed_over.push_back(fmt::format("{}: {}", folders[i], why));
    }
  }
  return best;
}

// Adds the users that the manifests of the lost store's checkpoints list, at any commit: a
// copy from elsewhere was listed nothing in.
void ListForgotten(const Assembly& assembly, const WitnessRecord& last,
                   std::vector<store::ForgottenUser>* forgotten) {
  const auto places = store::ListCheckpoints(assembly.config.store.checkpoints.path, nullptr);
  if (!places) return;
  for (const store::CheckpointPlace& place : *places)
    if (place.manifest.lineage == last.lineage)
      std::ranges::copy(place.manifest.forgotten, std::back_inserter(*forgotten));
}

// Finds the learner; `names` are those of now.
const store::RemainingLearner* FindLearner(const Remains& remains, const std::string& name,
                                           const privacy::LearnerNames& names) {
  const auto known = std::ranges::find_if(
      remains.learners,
      [&](const store::RemainingLearner& learner) { return names.Now(learner.name) == name; });
  return known != remains.learners.end() ? &*known : nullptr;
}

store::RemainingLearner LearnerOf(const Remains& remains, const std::string& name,
                                  const privacy::LearnerNames& names) {
  const store::RemainingLearner* known = FindLearner(remains, name, names);
  return known != nullptr ? *known
                          : store::RemainingLearner{.name = name, .steps = 0, .position = {}};
}

// An account beside the learners' as a learner of one step a window, which is what the store knows
// of it.
template <class Account>
LearnerPlan AsLearner(const Account& account) {
  LearnerPlan plan;
  plan.id = account.promise.learner;
  plan.index = account.index;
  plan.promise = account.promise;
  plan.charge = account.charge;
  return plan;
}

std::vector<LearnerPlan> PlansOf(const Assembly& assembly) {
  std::vector<LearnerPlan> plans = assembly.learners;
  for (const QualityPlan& quality : assembly.qualities) plans.push_back(AsLearner(quality));
  if (assembly.breaker) plans.push_back(AsLearner(*assembly.breaker));
  return plans;
}

// The steps of each learner after the copy. Every learner that took one must be configured, except
// inspections, whose account is added to the store's learners.
class GapsFinder {
 public:
  GapsFinder(const Assembly& assembly, const Remains& copy, const std::optional<Remains>& later,
             const WitnessRecord& last, store::StoreOptions* store)
      : assembly_(assembly),
        copy_(copy),
        later_(later),
        last_(last),
        names_(later ? later->entries : copy.entries),
        plans_(PlansOf(assembly)),
        store_(*store) {}

  // Names the learners that begin anew in `begun_anew`.
  Result<std::vector<FoundGap>> Find(std::vector<std::string>* begun_anew) {
    std::vector<FoundGap> gaps;
    std::set<std::string_view> names;
    for (const store::WitnessedLearner& to : last_.learners) {
      if (!names.insert(to.name).second)
        return Fail(ErrorCode::kCorruption, fmt::format("two learners are called '{}'", to.name));
      const LearnerTrail trail = TrailOf(to);
      const auto plan = std::ranges::find(plans_, to.name, &LearnerPlan::id);
      std::optional<FoundGap> gap;
      if (plan != plans_.end()) {
        TACIT_ASSIGN(gap, FindOf(*plan, trail));
        if (gap && FindLearner(copy_, to.name, names_) == nullptr) begun_anew->push_back(to.name);
      } else if (to.steps != trail.copy.steps) {
        TACIT_ASSIGN(gap, FindUnconfigured(trail));
      }
      if (gap) gaps.push_back(*std::move(gap));
    }
    // A store loses no learner.
    for (const store::RemainingLearner& learner : copy_.learners)
      if (learner.steps > 0 && !names.contains(names_.Now(learner.name)))
        return Fail(ErrorCode::kRefused,
                    fmt::format("there is no learner '{}', which took {} in the copy",
                                names_.Now(learner.name), Counted(learner.steps, "step")));
    return gaps;
  }

 private:
  LearnerTrail TrailOf(const store::WitnessedLearner& to) const {
    LearnerTrail trail;
    trail.copy = LearnerOf(copy_, to.name, names_);
    trail.entries_of_copy = copy_.entries;
    trail.last = to;
    if (!later_) return trail;
    trail.later = LearnerOf(*later_, to.name, names_);
    trail.entries = later_->entries;
    trail.later_has_users = !later_->release && later_->users_damage.empty();
    return trail;
  }

  Result<std::optional<FoundGap>> FindOf(const LearnerPlan& plan, const LearnerTrail& trail) const {
    TACIT_RETURN_IF_ERROR(CheckIsNew(trail.last));
    // Only of learners whose periods are held there is more to know.
    const auto& configured = assembly_.config.learners;
    const size_t place = plan.index.value;
    return FindGap(plan, place < configured.size() ? configured[place] : config::Learner(), trail,
                   TopicOf(assembly_.config.source));
  }

  // Checks that a learner which the copy does not know is a new one. It may be one of the copy's
  // that got another name, if one of those is missing: a store loses no learner.
  Status CheckIsNew(const store::WitnessedLearner& to) const {
    if (to.steps == 0 || FindLearner(copy_, to.name, names_) != nullptr) return {};
    const auto missing =
        std::ranges::find_if(copy_.learners, [&](const store::RemainingLearner& learner) {
          return learner.steps > 0 &&
                 std::ranges::find(last_.learners, names_.Now(learner.name),
                                   &store::WitnessedLearner::name) == last_.learners.end();
        });
    if (missing == copy_.learners.end()) return {};
    return Fail(ErrorCode::kRefused,
                fmt::format("learner '{}' took {} after the copy, which does not know it, and may "
                            "be '{}' of the copy, which got another name since: name a later "
                            "checkpoint or the damaged store with --remains, whose ledger says so",
                            to.name, Counted(to.steps, "step"), missing->name));
  }

  Result<std::optional<FoundGap>> FindUnconfigured(const LearnerTrail& trail) {
    const store::WitnessedLearner& to = trail.last;
    const auto unit = UnitOfInspections(to.name);
    if (!unit)
      return Fail(ErrorCode::kRefused,
                  fmt::format("learner '{}' took {} after the copy, and is not configured: restore "
                              "with the configuration that the lost store ran with; what may "
                              "change, may be changed afterwards",
                              to.name, Counted(to.steps - trail.copy.steps, "step")));
    TACIT_ASSIGN(InspectionGap found, FindInspectionGap(*unit, trail, copy_.entries));
    found.gap.learner = LearnerIndex(static_cast<uint16_t>(store_.learners.size()));
    store_.learners.push_back(std::move(found.layout));
    FoundGap gap;
    gap.gap = std::move(found.gap);
    return std::optional(std::move(gap));
  }

  const Assembly& assembly_;
  const Remains& copy_;
  const std::optional<Remains>& later_;
  const WitnessRecord& last_;
  const privacy::LearnerNames names_;
  const std::vector<LearnerPlan> plans_;
  store::StoreOptions& store_;
};

bool ChargesEverybody(const std::vector<FoundGap>& gaps) {
  return std::ranges::any_of(
      gaps, [](const FoundGap& gap) { return gap.gap.users == store::LearnerGap::Users::kAll; });
}

void ReadAgain(const Assembly& assembly, const RestoreOptions& options, const Remains& copy,
               std::vector<FoundGap>* gaps, RestoreReport* report) {
  if (!ChargesEverybody(*gaps)) return;
  if (!options.read_again) {
    report->not_read_again = "it was not asked for";
    return;
  }
  const Status counted = CountUsersAgain(assembly, copy.source_identity, copy.user_key, *gaps);
  if (!counted) report->not_read_again = counted.error().message;
}

// REQUIRES the lock of the store's path.
Result<RestoreReport> RestoreLocked(const Assembly& assembly, const RestoreOptions& options) {
  store::StoreOptions store = MakeStoreOptions(assembly);
  TACIT_ASSIGN(const Remains copy, store::ReadRemains(options.from));
  TACIT_ASSIGN(const auto memory, NewestMemory(store));
  const auto& [path, last] = memory;
  TACIT_RETURN_IF_ERROR(CheckMemory(path, last, copy));
  RestoreReport report;
  report.remembered_by = path;
  report.through = last.seq;
  report.forgotten = copy.forgotten;
  ListForgotten(assembly, last, &report.forgotten);
  const auto later = FindLater(assembly, options, copy, last, &report);
  std::vector<FoundGap> gaps;
  if (last.seq > copy.commit) {
    auto found = GapsFinder(assembly, copy, later, last, &store).Find(&report.begun_anew);
    if (!found) return Fail(std::move(found.error()).Context(path));
    gaps = *std::move(found);
    Status reached;
    if (options.read_again) reached = CheckReach(assembly, copy.source_identity, gaps);
    if (!reached) return Fail(std::move(reached.error()).Context(path));
  }
  if (later) {
    report.charged_by = later->folder;
    report.charged_by_commit = later->commit;
    if (!later->release && later->users_damage.empty()) report.users_by = later->folder;
    if (!later->release && !later->users_damage.empty())
      report.passed_over.push_back(
          fmt::format("the users of {}: {}", later->folder, later->users_damage));
  }
  ReadAgain(assembly, options, copy, &gaps, &report);
  for (FoundGap& gap : gaps) report.gaps.push_back(std::move(gap.gap));
  if (later) {
    const privacy::LearnerNames names(later->entries);
    for (const store::RemainingLearner& learner : copy.learners)
      if (names.IsGivenUp(learner.name))
        store.renames[std::string(names.Now(learner.name))] = learner.name;
  }
  TACIT_ASSIGN(report.restored, store::RestoreStore({.from = options.from,
                                                     .counts_of = report.users_by,
                                                     .store = store,
                                                     .through = last.seq,
                                                     .head = last.head,
                                                     .gaps = report.gaps,
                                                     .forgotten = report.forgotten}));
  return report;
}

// Checks whether the store at the path is older than its witness or mark.
Result<bool> IsOlderCopy(const store::StoreOptions& store) {
  TACIT_ASSIGN(const auto memories, ReadMemories(store));
  const auto copy = store::ReadRemains(store.path);
  if (!copy && copy.error().code == ErrorCode::kNotFound) return false;
  if (!copy) return Fail(copy.error());
  if (memories.empty() && !store.witness.empty() && copy->commit.value > 0)
    return Fail(ErrorCode::kRefused,
                fmt::format("neither a witness nor a mark is left to tell how far a newer copy of "
                            "store {} went, so an older one cannot be charged what that has "
                            "learnt. If this is the newest, tacit store accept-witness writes the "
                            "witness anew",
                            store.path));
  return std::ranges::any_of(memories, [&](const Memory& memory) {
    return memory.sight->record.lineage == copy->lineage && memory.sight->record.seq > copy->commit;
  });
}

std::string DescribeGap(const store::LearnerGap& gap) {
  const std::string& name = gap.charges.front().learner;
  uint64_t steps = 0;
  const auto count = [&](const std::vector<privacy::CommitCharge>& charges) {
    for (const privacy::CommitCharge& charge : charges) steps += charge.steps;
  };
  count(gap.charges);
  for (const store::LearnerGap::Earlier& earlier : gap.earlier) count(earlier.charges);
  if (UnitOfInspections(name))
    return fmt::format("  {}: {} charged", name, Counted(steps, "inspection"));
  std::string users;
  if (gap.users == store::LearnerGap::Users::kAll)
    users = fmt::format(", and up to {} to each user, also to new ones",
                        Counted(gap.gap.steps, "step"));
  if (gap.users == store::LearnerGap::Users::kCounted)
    users =
        fmt::format(", to {} whose records were read again", Counted(gap.counted.size(), "user"));
  return fmt::format("  {}: {} charged{}; the records of these steps are not learnt from again",
                     name, Counted(steps, "step"), users);
}

}  // namespace

Result<RestoreReport> RestoreStore(const Assembly& assembly, const RestoreOptions& options) {
  TACIT_ASSIGN(const auto lock, store::RestoreLock::Take(assembly.config.store.path));
  return RestoreLocked(assembly, options);
}

Result<std::optional<RestoreReport>> AcceptOlderCopy(const Assembly& assembly) {
  const store::StoreOptions store = MakeStoreOptions(assembly);
  if (const auto older = IsOlderCopy(store); older && !*older)
    return std::optional<RestoreReport>{};
  TACIT_ASSIGN(const auto lock, store::RestoreLock::Take(store.path));
  // Another start may have restored the store meanwhile.
  TACIT_ASSIGN(const bool older, IsOlderCopy(store));
  if (!older) return std::optional<RestoreReport>{};
  TACIT_ASSIGN(RestoreReport report, RestoreLocked(assembly, {.from = store.path, .remains = {}}));
  return std::optional(std::move(report));
}

std::vector<std::string> DescribeRestore(const Assembly& assembly, const RestoreReport& report) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{}: restored from commit {}, charged up to commit {}, where {} ends",
                              assembly.config.store.path, report.restored.from_commit.value,
                              report.through.value, report.remembered_by));
  if (!report.charged_by.empty())
    lines.push_back(fmt::format("  up to commit {} by the ledger of {}{}",
                                report.charged_by_commit.value, report.charged_by,
                                report.users_by.empty() ? "" : ", and its counts of users"));
  for (const std::string& folder : report.passed_over)
    lines.push_back(fmt::format("  of no use: {}", folder));
  for (const store::LearnerGap& gap : report.gaps) lines.push_back(DescribeGap(gap));
  for (const std::string& name : report.begun_anew)
    lines.push_back(fmt::format("  {}: begins anew, because the copy does not know it", name));
  std::set<Hash128> forgotten;
  for (const store::ForgottenUser& user : report.forgotten) forgotten.insert(user.user);
  if (!forgotten.empty())
    lines.push_back(fmt::format("  {} who asked to be forgotten: their histories are not restored",
                                Counted(forgotten.size(), "user")));
  if (!report.not_read_again.empty())
    lines.push_back(
        fmt::format("  every user is charged, because the records were not read again: {}",
                    report.not_read_again));
  lines.push_back(fmt::format("epsilon {:.4f} at delta {:g}; lineage {}", report.restored.epsilon,
                              report.restored.delta, report.restored.lineage));
  return lines;
}

}  // namespace tacit::wiring
