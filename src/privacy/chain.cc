#include "privacy/chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "base/first_format.h"
#include "privacy/infinity.h"
#include "privacy/query_table.h"
#include "privacy/spending.h"
#include "privacy/user_costs.h"

namespace tacit::privacy {
namespace {

// Allows for another machine's rounding of logarithms and sums; far below any real difference.
constexpr double kTolerance = 1e-9;

auto Wrong(const LedgerEntry& entry, uint64_t place, std::string_view why) {
  return Fail(ErrorCode::kCorruption,
              fmt::format("ledger entry {} (learner '{}'): {}", place, entry.learner, why));
}

// Equal up to rounding; infinities equal themselves.
bool Near(double a, double b) { return a == b || std::abs(a - b) <= kTolerance * std::abs(b); }

// The joint noise multiplier of all queries of a step, from its parts; 0 if none is recorded.
double CombinedNoise(const Charge& charge) {
  double inverse_squares = 0;
  for (double sigma : {charge.sigma_selection, charge.sigma_gradient, charge.sigma_clip})
    if (sigma > 0) inverse_squares += 1 / sigma / sigma;
  return inverse_squares > 0 ? 1 / std::sqrt(inverse_squares) : 0;
}

Status CheckCharge(const LedgerEntry& entry, uint64_t i) {
  const Charge& charge = entry.charge;
  for (double number : {charge.sigma_selection, charge.sigma_gradient, charge.sigma_clip,
                        charge.clip_selection, charge.clip_gradient, charge.zcdp_rho})
    if (!(number >= 0) || std::isinf(number))
      return Wrong(entry, i, "the charge has invalid numbers");
  if (!charge.Bounded() && charge.noise_multiplier != 0)
    return Wrong(entry, i, "the charge has invalid numbers");
  if ((charge.mechanism == MechanismKind::kNonPrivate) != (charge.noise_multiplier == 0))
    return Wrong(entry, i, "mechanism and noise multiplier contradict each other");
  const double combined = CombinedNoise(charge);
  if (combined > 0 && !Near(charge.noise_multiplier, combined))
    return Wrong(entry, i,
                 fmt::format("noise multiplier {} where its parts give {}", charge.noise_multiplier,
                             combined));
  return {};
}

// Steps come in blocks where, and only where, a unit is in one step of each: they are charged
// whole, and so that the rate and the block say the same. What is of a period is not part of them.
Status CheckBlocks(const LedgerEntry& entry, uint64_t i) {
  const Charge& charge = entry.charge;
  const bool allocates = entry.participation == ParticipationMode::kAllocate;
  if (charge.block_steps == 0) {
    if (!allocates || !charge.Bounded() || IsOfPeriod(charge)) return {};
    return Wrong(entry, i, "steps without a block, but its participation allocates");
  }
  if (!allocates || IsOfPeriod(charge))
    return Wrong(entry, i, "steps in blocks, but its participation does not allocate");
  if (charge.sampling_rate != Draw::Allocate(charge.block_steps).rate)
    return Wrong(entry, i, "the sampling rate is not one step of a block");
  if (entry.steps % charge.block_steps != 0) return Wrong(entry, i, "blocks are charged in part");
  return {};
}

Status CheckFields(const LedgerEntry& entry, uint64_t i) {
  if (entry.learner.empty()) return Wrong(entry, i, "no learner");
  if (entry.charge.mechanism > kLastMechanism) return Wrong(entry, i, "no known mechanism");
  if (!entry.is_growth && !entry.before.empty())
    return Wrong(entry, i, "another name in an entry that is no growth");
  if (entry.is_growth && entry.steps > 0) return Wrong(entry, i, "a growth with steps");
  if (!entry.is_growth && entry.steps == 0 && entry.charge.block_steps == 0)
    return Wrong(entry, i, "no steps");
  if (entry.first_commit > entry.last_commit) return Wrong(entry, i, "commits run backwards");
  if (entry.first_time_ms < 0 || entry.first_time_ms > entry.last_time_ms)
    return Wrong(entry, i, "time runs backwards");
  const double rate = entry.charge.sampling_rate;
  if (!(rate > 0 && rate <= 1)) return Wrong(entry, i, "the sampling rate is not in (0, 1]");
  if (rate < 1 && entry.participation == ParticipationMode::kOnce)
    return Wrong(entry, i, "the sampling rate is below 1, but its participation does not sample");
  TACIT_RETURN_IF_ERROR(CheckBlocks(entry, i));
  if (!(entry.delta > 0 && entry.delta < 1)) return Wrong(entry, i, "delta is not in (0, 1)");
  // Without a record its copy would be learnt from, and the charge is of one of them.
  if (entry.unit == Unit::kEvent && entry.bounds.dedupe_window > 0 && entry.charge.Bounded())
    return Wrong(entry, i, "copies are dropped by event id, which unit event does not allow");
  if (const auto query = RefusedOf(QueriesOf(entry.charge), entry.participation, entry.unit))
    return Wrong(entry, i,
                 fmt::format("{} is charged, which participation {} with unit {} does not have",
                             Name(*query), Name(entry.participation), Name(entry.unit)));
  return CheckCharge(entry, i);
}

// Spending::Covers, up to rounding of sums.
bool NearlyCovers(Spending whole, const Spending& part) {
  if (std::abs(whole.mu_squared - part.mu_squared) <= kTolerance * part.mu_squared)
    whole.mu_squared = part.mu_squared;
  if (std::abs(whole.rho - part.rho) <= kTolerance * part.rho) whole.rho = part.rho;
  return whole.Covers(part);
}

// One learner's charges up to some entry.
struct Running {
  const LedgerEntry* last = nullptr;
  std::string_view name;  // by which it goes
  Spending charged;       // to a unit that was in every step of the learner
  UserCosts users;        // by the users' allowances, if there are any
  EpsilonMeter meter, step_meter;

  // Checks the cost. The worst unit was in at least one of the run's steps, or was the worst
  // before; it was in each step ever taken at most once.
  Status CheckCost(const LedgerEntry& entry, uint64_t i) {
    charged.Add(Spending::Of(entry.charge, entry.steps));
    if (entry.unit == Unit::kUser) TACIT_RETURN_IF_ERROR(CheckUsers(entry, i));
    // A user may be in any step, so costs never fall. One event may overtake another, except if all
    // are Gaussian: then the worst has spent at least as much as every other.
    const Spending step = Spending::Of(entry.charge, 1);
    const bool ordered = entry.unit == Unit::kUser || last == nullptr ||
                         (step.gaussian() && entry.worst.gaussian() && last->worst.gaussian());
    const Spending least = ordered && last != nullptr ? last->worst : Spending{};
    const Spending own = ordered ? step : Spending{};
    if (!NearlyCovers(entry.worst, least) || !NearlyCovers(entry.worst, own) ||
        (last != nullptr && entry.epsilon < last->epsilon && !Near(entry.epsilon, last->epsilon)))
      return Wrong(entry, i, "the cost goes down");
    if (!NearlyCovers(charged, entry.worst))
      return Wrong(entry, i, "the worst unit has spent more than there was to spend");
    return {};
  }

  // Checks the worst user's cost, which with an allowance follows from the entries alone.
  Status CheckUsers(const LedgerEntry& entry, uint64_t i) {
    users.Bound(entry.bounds);
    users.Add(entry.charge, entry.steps);
    if (users.unbounded()) return {};
    const Spending worst = users.Worst();
    if (NearlyCovers(entry.worst, worst) && NearlyCovers(worst, entry.worst)) return {};
    return Wrong(entry, i, "the worst user's cost is not the one that the allowance gives");
  }

  Status CheckEpsilon(const LedgerEntry& entry, uint64_t i) {
    // Most entries cost the same as the one before; computing epsilon is the slow part.
    if (last != nullptr && last->worst == entry.worst && last->delta == entry.delta &&
        last->epsilon == entry.epsilon)
      return {};
    // A certified bound varies slightly with the accountant's earlier questions.
    constexpr double kSlack = 0.005;
    const CertifiedInterval bounds = meter.Bounds(entry.worst, Delta(entry.delta));
    const double floor = last == nullptr ? 0 : last->epsilon;
    const double most = Worse(floor, bounds.upper);
    const bool right = !entry.worst.gaussian()
                           ? entry.epsilon >= bounds.lower && entry.epsilon <= most * (1 + kSlack)
                           : Near(entry.epsilon, most);
    if (!right)
      return Wrong(entry, i, fmt::format("epsilon {} where it must be {}", entry.epsilon, most));
    // A unit in one of the steps has spent no more than the worst unit.
    const Spending step = Spending::Of(entry.charge, 1);
    if (step_meter.Bounds(step, Delta(entry.delta)).lower > entry.epsilon * (1 + kSlack))
      return Wrong(entry, i, "one step of it costs more than the worst unit has spent");
    return {};
  }

  // A learner goes by one name at a time.
  Status CheckName(const LedgerEntry& entry, uint64_t i, bool had_before) {
    if (entry.before.empty()) {
      if (last == nullptr) name = entry.learner;
      if (entry.learner != name) return Wrong(entry, i, "a name that was given up");
      return {};
    }
    if (last == nullptr || entry.before != name)
      return Wrong(entry, i, fmt::format("no learner was called '{}'", entry.before));
    if (had_before) return Wrong(entry, i, "a learner has or had that name");
    name = entry.learner;
    return {};
  }

  Status CheckPromise(const LedgerEntry& entry, uint64_t i) const {
    const bool paid_before = last != nullptr && last->charge == entry.charge;
    if (entry.steps == 0 && !paid_before) return Wrong(entry, i, "steps that nothing paid for");
    if (last == nullptr) return {};
    if (entry.unit != last->unit || entry.adjacency != last->adjacency ||
        entry.participation != last->participation || entry.delta != last->delta)
      return Wrong(entry, i, "the promise has changed");
    if (!entry.is_growth && entry.model_fingerprint != last->model_fingerprint)
      return Wrong(entry, i, "the model has changed, and no entry says so");
    if (entry.is_growth && (entry.worst != last->worst || entry.epsilon != last->epsilon))
      return Wrong(entry, i, "a growth that changes what was spent");
    if (entry.first_commit < last->last_commit) return Wrong(entry, i, "commits run backwards");
    if (entry.first_time_ms < last->last_time_ms) return Wrong(entry, i, "time runs backwards");
    return {};
  }
};

}  // namespace

Status CheckFormat(std::string_view what, std::string_view bytes, char letter) {
  constexpr char kLastWithoutLetter = 6;
  if (bytes.starts_with(letter) && bytes.substr(1).starts_with(char{kLedgerFormat})) return {};
  if (bytes.starts_with(letter) && bytes.size() > 1)
    return Fail(ErrorCode::kRefused,
                fmt::format("{} is of format {}, this program reads format {}: it was written by "
                            "another version of Tacit, which must be used to read it",
                            what, static_cast<uint8_t>(bytes[1]), kLedgerFormat));
  if (!bytes.empty() && bytes[0] > 0 && bytes[0] <= kLastWithoutLetter)
    return WrittenBeforeFirst(what, "use the program that wrote it");
  return Fail(ErrorCode::kCorruption, fmt::format("{} is not well-formed", what));
}

Status CheckLinks(std::span<const LedgerEntry> entries) {
  Digest head{};
  for (uint64_t i = 0; i < entries.size(); ++i) {
    const LedgerEntry& entry = entries[i];
    if (entry.index != i) return Wrong(entry, i, fmt::format("has index {}", entry.index));
    if (entry.previous_head != head)
      return Wrong(entry, i, "does not follow from the entry before it");
    if (entry.ComputeHead() != entry.head)
      return Wrong(entry, i, "its head is not the hash of its fields");
    head = entry.head;
  }
  return {};
}

Status CheckEntry(const LedgerEntry& entry) { return CheckFields(entry, entry.index); }

Status VerifyChain(std::span<const LedgerEntry> entries, const VerifyOptions& options) {
  TACIT_RETURN_IF_ERROR(CheckLinks(entries));
  const LearnerNames names(entries);
  std::map<std::string_view, uint64_t> last_of;
  for (uint64_t i = 0; i < entries.size(); ++i) last_of[names.Now(entries[i].learner)] = i;
  const uint64_t stride = 1 + entries.size() / std::max<uint64_t>(1, options.epsilons_max);
  std::map<std::string_view, Running> learners;
  std::set<std::string_view> seen;  // names
  uint64_t first_commit = 0;
  int64_t first_time_ms = 0;
  for (uint64_t i = 0; i < entries.size(); ++i) {
    const LedgerEntry& entry = entries[i];
    TACIT_RETURN_IF_ERROR(CheckFields(entry, i));
    if (entry.first_commit < first_commit) return Wrong(entry, i, "commits run backwards");
    if (entry.first_time_ms < first_time_ms) return Wrong(entry, i, "time runs backwards");
    first_commit = entry.first_commit;
    first_time_ms = entry.first_time_ms;
    const std::string_view now = names.Now(entry.learner);
    Running& running = learners[now];
    const bool had_before = !seen.insert(entry.learner).second;
    TACIT_RETURN_IF_ERROR(running.CheckName(entry, i, had_before));
    TACIT_RETURN_IF_ERROR(running.CheckPromise(entry, i));
    TACIT_RETURN_IF_ERROR(running.CheckCost(entry, i));
    if (i % stride == 0 || last_of[now] == i) TACIT_RETURN_IF_ERROR(running.CheckEpsilon(entry, i));
    running.last = &entry;
  }
  return {};
}

}  // namespace tacit::privacy
