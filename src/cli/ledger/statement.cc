#include "cli/ledger/statement.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "privacy/anchor.h"
#include "privacy/gaussian.h"
#include "privacy/weakness.h"
#include "wiring/plans/code_version.h"
#include "wiring/privacy_forecast.h"

namespace tacit::cli {
namespace {

// Deltas at which epsilon is stated beside the promise's own.
constexpr std::array<double, 4> kDeltas = {1e-5, 1e-6, 1e-8, 1e-10};

// `others`: at other deltas too, where the worst unit is the same. `both`: the units are those of
// one learner, so that the lower bound says something.
std::vector<StatedEpsilon> StatedEpsilonsOf(const privacy::Spending& worst, double delta,
                                            bool others, bool both) {
  std::vector<double> deltas = {delta};
  for (const double other : kDeltas)
    if (others && other != delta) deltas.push_back(other);
  privacy::EpsilonMeter meter;
  std::vector<StatedEpsilon> epsilons;
  for (const double at : deltas) {
    const privacy::CertifiedInterval found = meter.Bounds(worst, Delta(at));
    epsilons.push_back({at, both ? std::optional(found.lower) : std::nullopt, found.upper});
  }
  return epsilons;
}

std::optional<privacy::CertifiedInterval> StatedMuOf(const privacy::Spending& worst,
                                                     const StatedEpsilon& stated) {
  if (!worst.bounded()) return std::nullopt;
  if (worst.gaussian()) {
    const double mu = std::sqrt(worst.mu_squared);
    return privacy::CertifiedInterval{mu, mu};
  }
  if (!stated.lower) return std::nullopt;
  // GaussianMu ends at or below the truth, by a relative 1e-12 or so.
  constexpr double kRoom = 1 + 1e-9;
  const Delta delta(stated.delta);
  return privacy::CertifiedInterval{privacy::GaussianMu(Epsilon(*stated.lower), delta),
                                    privacy::GaussianMu(Epsilon(stated.upper), delta) * kRoom};
}

StatedLearner StatedLearnerOf(const privacy::LedgerTotal& total, const LedgerCopy& ledger,
                              const privacy::LearnerNames& names) {
  StatedLearner learner;
  learner.name = total.learner;
  learner.total = total;
  for (const privacy::Promise& promise : ledger.promises.learners)
    if (promise.learner == total.learner) learner.budget = promise.epsilon;
  bool gaussian = true, one_price = true;
  for (const privacy::LedgerEntry& entry : ledger.entries) {
    if (names.Now(entry.learner) != total.learner) continue;
    gaussian &= entry.worst.gaussian();
    if (learner.charged() && !entry.is_growth)
      one_price &= entry.charge == learner.runs.back().charge;
    learner.runs.push_back(entry);
    learner.worst = entry.worst;
    if (const std::string_view part = privacy::NotCovered(entry.charge.mechanism); !part.empty())
      learner.total.not_covered = part;
  }
  learner.one_line = gaussian || one_price;
  learner.epsilons = StatedEpsilonsOf(learner.worst, total.delta, learner.one_line, /*both=*/true);
  learner.mu = StatedMuOf(learner.worst, learner.epsilons[0]);
  return learner;
}

// Adds up the learners as if one unit were the worst of each.
StatedLearner TogetherOf(const std::vector<StatedLearner>& learners, const LedgerCopy& ledger) {
  StatedLearner together;
  together.total.delta = ledger.TotalDelta();
  together.total.unit = privacy::Unit::kUser;
  for (const StatedLearner& learner : learners) {
    together.worst.Add(learner.worst);
    together.total.steps += learner.total.steps;
    together.one_line &= learner.one_line;
    if (learner.total.unit == privacy::Unit::kEvent) together.total.unit = privacy::Unit::kEvent;
  }
  if (ledger.promises.total) together.budget = ledger.promises.total->epsilon;
  together.total.epsilon = std::numeric_limits<double>::infinity();
  if (learners.empty() || together.total.delta == 0) return together;
  if (together.one_line) {
    together.epsilons = StatedEpsilonsOf(together.worst, together.total.delta, /*others=*/true,
                                         /*both=*/learners.size() == 1);
    together.mu = StatedMuOf(together.worst, together.epsilons[0]);
  }
  // The ledger knows which records the learners share, and may say less.
  if (ledger.total && ledger.total->delta == together.total.delta) {
    if (together.epsilons.empty())
      together.epsilons.push_back({ledger.total->delta, std::nullopt, ledger.total->epsilon});
    together.epsilons[0].upper = std::min(together.epsilons[0].upper, ledger.total->epsilon);
  }
  if (!together.epsilons.empty()) together.total.epsilon = together.epsilons[0].upper;
  return together;
}

// Names promises that protect little, by what was spent and what may be.
std::vector<std::string> WeaknessesOf(const std::vector<StatedLearner>& learners,
                                      const StatedLearner& together) {
  std::vector<std::string> weak;
  const auto check = [&](const std::string& name, const StatedLearner& stated) {
    const double spent = stated.worst.empty() ? 0 : stated.total.epsilon;
    const privacy::Weakness of =
        privacy::WeaknessOf(std::max(spent, stated.budget.value_or(0)), stated.total.delta);
    if (!of.epsilon.empty()) weak.push_back(name + ": epsilon: " + of.epsilon);
    if (!of.delta.empty()) weak.push_back(name + ": delta: " + of.delta);
  };
  for (const StatedLearner& learner : learners) check(learner.name, learner);
  if (learners.size() > 1) check("all together", together);
  return weak;
}

}  // namespace

Result<Statement> MakeStatement(const LedgerCopy& ledger) {
  TACIT_RETURN_IF_ERROR(privacy::VerifyChain(ledger.entries));
  Statement statement;
  statement.program = wiring::CodeVersion();
  statement.head = ledger.HeadName();
  statement.entries = ledger.entries.size();
  const privacy::LearnerNames names(ledger.entries);
  std::vector<privacy::LedgerTotal> totals = ledger.Learners();
  for (const privacy::LedgerTotal& total : totals)
    statement.learners.push_back(StatedLearnerOf(total, ledger, names));
  statement.together = TogetherOf(statement.learners, ledger);
  statement.warnings = WeaknessesOf(statement.learners, statement.together);
  privacy::AddAdvantages(ledger.entries, &totals, &statement.together.total);
  for (size_t i = 0; i < totals.size(); ++i)
    statement.learners[i].total.advantage = totals[i].advantage;
  for (const privacy::LedgerEntry& entry : ledger.entries) {
    if (statement.first_ms == 0) statement.first_ms = entry.first_time_ms;
    statement.last_ms = std::max(statement.last_ms, entry.last_time_ms);
    if (!entry.code_version.empty() &&
        std::ranges::find(statement.code_versions, entry.code_version) ==
            statement.code_versions.end())
      statement.code_versions.push_back(entry.code_version);
  }
  privacy::Anchor anchor = privacy::AnchorOf(ledger.ForAnchors(), ledger.term);
  anchor.time_ms = statement.last_ms;
  statement.anchor = anchor.Line();
  return statement;
}

const std::vector<std::string>& NotPromised() {
  static const std::vector<std::string> kSentences = {
      "Where the unit is an event, a person with many events is protected for each of them, not "
      "for "
      "all together. Where it is a user, a user is an id: a person with two ids is two users.",
      "How many records there are, where they lie in the stream, and when they came counts as "
      "known. So does when a version appears, and how long an answer takes.",
      "Nothing is promised against the operator, who has the input, the process and the store's "
      "files.",
      "Settings that were chosen by looking at the same records are not charged. Nor is it charged "
      "that a store's first start was refused because hardly any record could be read.",
      "A machine that is cloned while it learns draws the same noise as its copy until the next "
      "commit.",
      "Dense gradients are summed in 32-bit floats before they are rounded to the grid; what that "
      "rounding may add to a unit's part is bounded, and outside the proof.",
      "A store and its witness that are put back together are not noticed: what was learnt in "
      "between is learnt again, and the ledger knows of the second time only."};
  return kSentences;
}

std::string RunInWords(const privacy::LedgerEntry& run) {
  if (run.is_growth)
    return run.before.empty() ? "the model grew; nothing was charged"
                              : fmt::format("'{}' is called '{}' from here on; nothing was charged",
                                            run.before, run.learner);
  const privacy::Charge& charge = run.charge;
  std::string words =
      fmt::format("{} of {}", Counted(run.steps, "step"), privacy::Name(charge.mechanism));
  if (run.steps == 0) words = fmt::format("steps of {}, paid for before", Name(charge.mechanism));
  if (!charge.Bounded()) return words + ", without noise that promises anything";
  words += ", " + wiring::ChargeText(charge);
  if (charge.clip_gradient > 0) words += fmt::format(", clip {:.6g}", charge.clip_gradient);
  if (charge.block_steps > 0)
    words += fmt::format(", each unit in one of {} steps", charge.block_steps);
  else if (charge.sampling_rate < 1)
    words += fmt::format(", each unit in a step by a coin of {:.6g}{}", charge.sampling_rate,
                         charge.CoinsAreKnown() ? " that counts as known" : "");
  return words;
}

std::string MinuteOf(int64_t unix_ms) {
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(static_cast<std::time_t>(unix_ms / 1000)));
}

}  // namespace tacit::cli
