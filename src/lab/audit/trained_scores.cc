#include "lab/audit/trained_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "audit/membership.h"
#include "audit/one_run.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "console/terminal_line.h"
#include "lab/audit/score_audit.h"
#include "lab/audit/trained_model.h"
#include "lab/run_store.h"
#include "privacy/gaussian.h"
#include "wiring/plans/noise_plan.h"

namespace tacit::lab {
namespace {

namespace json = boost::json;
using audit::Score;

constexpr double kWithoutPrivacy = std::numeric_limits<double>::infinity();
constexpr uint64_t kLeastUnits = 100;  // of each part
constexpr uint64_t kSaltOfTrained = 1;

// The scores of the models trained that are in the state file.
class KeptScores {
 public:
  explicit KeptScores(const TrainedAuditOptions& options) : path_(options.state) {
    key_ = ToHex(Sha256()
                     .Update("tacit audit of trained models 1 ")
                     .Update(options.key)
                     .Update(fmt::format(" {} {} {} {}", static_cast<int>(options.kind),
                                         options.canaries, options.records_most, options.seed))
                     .Finish());
  }
  Status Read() {
    if (path_.empty()) return {};
    return ReadRunLines(path_, [&](const std::string& line) -> Status {
      try {
        const json::value kept = json::parse(line);
        if (kept.at("key").as_string() != key_)
          return Fail(ErrorCode::kRefused,
                      "these scores are of another configuration or another audit: name another "
                      "--state, or delete this one");
        std::vector<Score>& scores = known_[std::string(kept.at("id").as_string())];
        for (const json::value& score : kept.at("scores").as_array())
          scores.push_back({score.at(0).to_number<uint64_t>(), score.at(1).to_number<double>(),
                            score.at(2).as_bool()});
        return {};
      } catch (const std::exception& e) {
        return Fail(ErrorCode::kCorruption, std::string("no scores of an audit: ") + e.what());
      }
    });
  }
  const std::vector<Score>* Find(const std::string& id) const {
    const auto found = known_.find(id);
    return found == known_.end() ? nullptr : &found->second;
  }
  Status Add(const std::string& id, const std::vector<Score>& scores) {
    known_[id] = scores;
    if (path_.empty()) return {};
    json::array lines;
    for (const Score& score : scores)
      lines.push_back(json::array{score.id, score.value, score.member});
    return AppendRunLine(path_, json::serialize(json::object{
                                    {"id", id}, {"key", key_}, {"scores", std::move(lines)}}));
  }

 private:
  const std::string path_;
  std::string key_;
  std::map<std::string, std::vector<Score>> known_;
};

// A configuration of one learner alone.
struct Alone {
  wiring::Assembly assembly;
  const wiring::LearnerPlan& plan() const { return assembly.learners.front(); }
};

class Trained {
 public:
  explicit Trained(const TrainedAuditOptions& options) : options_(options), kept_(options) {}

  Result<AuditReport> Run() {
    AuditReport report;
    report.alpha = options_.alpha;
    TACIT_ASSIGN(const config::Config config, options_.load({}));
    std::vector<std::string> ids = options_.learners;
    if (ids.empty())
      for (const config::Learner& learner : config.learners) ids.push_back(learner.id);
    std::erase_if(ids, [&](const std::string& id) {
      const std::string why = WhyNot(config, id);
      if (why.empty() || !options_.learners.empty()) return false;
      report.refused.push_back({id, why});
      return true;
    });
    for (const std::string& id : ids)
      if (const std::string why = WhyNot(config, id); !why.empty())
        return Fail(ErrorCode::kRefused, why);
    TACIT_RETURN_IF_ERROR(kept_.Read());
    std::vector<double> epsilons = options_.epsilons;
    if (epsilons.empty()) epsilons.push_back(kConfigured);
    // Every bound that is printed has its part of the error, those not yet made included.
    const double alpha =
        options_.alpha / static_cast<double>(std::max<size_t>(1, ids.size() * epsilons.size()));
    for (const std::string& id : ids) {
      units_.clear();
      TACIT_ASSIGN(const std::optional<std::vector<Score>> reference,
                   ScoresOf(config, id, kWithoutPrivacy, /*reference=*/true));
      for (const double epsilon : epsilons) {
        if (!reference) break;
        TACIT_ASSIGN(const std::optional<std::vector<Score>> scores,
                     ScoresOf(config, id, epsilon, /*reference=*/false));
        if (!scores) break;
        TACIT_ASSIGN(AuditedLearner audited,
                     Judge(config, id, epsilon, *scores, *reference, alpha));
        report.audited.push_back(std::move(audited));
      }
      report.stopped = stopped_;
      if (stopped_) break;
    }
    return report;
  }

 private:
  static constexpr double kConfigured = -1;

  static std::string WhyNot(const config::Config& config, const std::string& id) {
    const auto learner = std::ranges::find(config.learners, id, &config::Learner::id);
    if (learner == config.learners.end()) return fmt::format("there is no learner '{}'", id);
    const auto refuse = [&](const std::string& why) {
      return fmt::format("learner '{}' cannot be audited from its losses: {}", id, why);
    };
    if (config.source.traits().has_files) return "";
    return refuse(
        "a source without an end is not read from its beginning; write some of it to "
        "files, and audit those");
  }

  static const config::Learner& LearnerOf(const config::Config& config, const std::string& id) {
    return *std::ranges::find(config.learners, id, &config::Learner::id);
  }
  static std::string Prefix(const config::Config& config, const std::string& id) {
    return fmt::format("learners.{}.", &LearnerOf(config, id) - config.learners.data());
  }

  Result<Alone> Load(const config::Config& config, const std::string& id, double epsilon) const {
    std::vector<std::string> overrides;
    const std::string prefix = Prefix(config, id);
    if (std::isinf(epsilon)) {
      overrides.push_back(prefix + "mechanism={kind: none}");
      overrides.push_back(prefix + "privacy.epsilon=.inf");
      const config::Optimizer& optimizer = LearnerOf(config, id).optimizer;
      if (!optimizer.traits().without_noise.empty())
        overrides.push_back(fmt::format("{}optimizer={{kind: adam, learning_rate: {}, ema: {}}}",
                                        prefix, optimizer.learning_rate, optimizer.ema));
    } else if (epsilon != kConfigured) {
      overrides.push_back(fmt::format("{}privacy.epsilon={}", prefix, epsilon));
    }
    TACIT_ASSIGN(config::Config loaded, options_.load(overrides));
    std::erase_if(loaded.learners, [&](const config::Learner& other) { return other.id != id; });
    loaded.budget = {};
    loaded.training.workers = options_.workers;
    loaded.training.idle_priority = false;
    TACIT_ASSIGN(wiring::Assembly assembly, wiring::Assemble(std::move(loaded)));
    return Alone{std::move(assembly)};
  }

  static std::string NameOf(const std::string& id, double epsilon) {
    if (epsilon == kConfigured) return id;
    return std::isinf(epsilon) ? id + " at none" : fmt::format("{} at {:g}", id, epsilon);
  }

  // Minus each record's loss; nothing where the audit was stopped before.
  Result<std::optional<std::vector<Score>>> ScoresOf(const config::Config& config,
                                                     const std::string& id, double epsilon,
                                                     bool reference) {
    const std::string name = NameOf(id, epsilon) + (reference ? ", the reference" : "");
    if (const std::vector<Score>* known = kept_.Find(name)) return std::optional(*known);
    if (stopped_ || (options_.stop && options_.stop())) {
      stopped_ = true;
      return std::optional<std::vector<Score>>();
    }
    TACIT_ASSIGN(const Alone alone, Load(config, id, epsilon));
    const bool of_users = LearnerOf(config, id).privacy.of_users();
    if (units_.empty()) {
      TACIT_ASSIGN(units_, ScorableUnits(alone.assembly, of_users, options_.records_most));
    }
    const AuditParts parts(options_.kind, options_.seed, options_.canaries, units_);
    const SystemClock clock;
    console::TerminalLine line(clock);
    TrainedModelOptions run{
        .of_users = of_users, .reference = reference, .records_most = options_.records_most};
    run.stop = options_.stop;
    run.progress = [&](double share) {
      if (options_.show_progress && line.due())
        line.Draw(fmt::format("{} {}", name, console::ProgressBar(share)));
    };
    TACIT_ASSIGN(const std::vector<Score> scores, TrainAndScore(alone.assembly, parts, run));
    if (options_.show_progress) line.End();
    if (scores.empty()) {
      stopped_ = true;
      return std::optional<std::vector<Score>>();
    }
    TACIT_RETURN_IF_ERROR(kept_.Add(name, scores));
    return std::optional(scores);
  }

  // The cost of one unit's releases, by the configuration.
  static std::vector<privacy::CountedEvent> EventsOf(const Alone& alone) {
    const wiring::LearnerPlan& plan = alone.plan();
    if (!plan.charge.Bounded()) return {};
    const config::Learner& learner = alone.assembly.config.learners.front();
    const uint64_t passes = alone.assembly.config.source.passes;
    const bool once = plan.promise.participation == privacy::ParticipationMode::kOnce;
    const bool users = learner.privacy.of_users();
    const uint64_t periods = once    ? passes
                             : users ? wiring::PeriodsOfUser(learner.participation)
                                     : passes;
    const uint64_t steps = !once   ? periods * learner.participation.PeriodSteps()
                           : users ? learner.participation.max_participations
                                   : passes;
    auto events = plan.charge.Events(steps);
    if (plan.opening_charge)
      for (const privacy::CountedEvent& event :
           plan.opening_charge->Events(wiring::Openings(learner.mechanism, periods)))
        events.push_back(event);
    return events;
  }

  std::string RunText(const Alone& alone) const {
    const bool users = alone.assembly.config.learners.front().privacy.of_users();
    if (options_.kind == TrainedAudit::kMembership)
      return users ? "membership of its users" : "membership of its records";
    if (alone.plan().recommends) return "users with drawn items in one run";
    return users ? "users with wrong labels in one run"
                 : "canaries with the wrong label in one run";
  }

  Result<AuditedLearner> Judge(const config::Config& config, const std::string& id, double epsilon,
                               const std::vector<Score>& plain, const std::vector<Score>& reference,
                               double alpha) const {
    TACIT_ASSIGN(const Alone alone, Load(config, id, epsilon));
    const double delta = alone.plan().promise.delta;
    const std::vector<privacy::CountedEvent> events = EventsOf(alone);
    TACIT_ASSIGN(const audit::Allowed allowed, audit::AllowedBy(events, delta));
    const std::string unit(privacy::Name(alone.plan().promise.unit));
    TACIT_ASSIGN(const std::vector<Score> scores, audit::Less(plain, reference));
    const auto members = static_cast<uint64_t>(std::ranges::count_if(scores, &Score::member));
    const uint64_t others = scores.size() - members;
    if (std::min(members, others) < kLeastUnits)
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("the source leaves {} {}s that are learnt from and {} that are not: {} "
                      "of each are the least",
                      members, unit, others, kLeastUnits));
    const uint64_t guesses = options_.guesses > 0 ? options_.guesses : scores.size() / 10;
    constexpr double kBounds = 4;  // the guesses' three, and the intervals
    const privacy::LedgerTotal charged{.learner = id, .epsilon = allowed.epsilon, .delta = delta};
    TACIT_ASSIGN(const ScoreAudit found,
                 AuditScores(scores, guesses, charged, alpha * (kBounds - 1) / kBounds,
                             events.empty() || allowed.gaussian));
    AuditedLearner audited{
        .id = NameOf(id, epsilon),
        .kind = options_.kind == TrainedAudit::kOneRun ? "one-run" : "membership",
        .run = RunText(alone),
        .runs = 1,
        .judged = {},
        .losses = {}};
    audit::JudgedRuns& j = audited.judged;
    j.delta = delta;
    j.charged_mu = allowed.mu;
    j.charged_epsilon = allowed.epsilon;
    j.area = found.area;
    j.accuracy = found.accuracy;
    j.found_1_in_100 = found.found_1_in_100;
    j.found_1_in_1000 = found.found_1_in_1000;
    j.allowed_area = allowed.area;
    j.allowed_accuracy = allowed.accuracy;
    j.allowed_1_in_100 = allowed.found_1_in_100;
    j.allowed_1_in_1000 = allowed.found_1_in_1000;
    AuditedLearner::Losses losses{
        .members = members,
        .others = others,
        .plain_area = audit::AreaUnderCurve(plain),
        .area = audit::AreaInterval(scores, alpha / kBounds / 2),
        .found = audit::FoundAtBySplit(scores, 0.001, kSaltOfTrained, alpha / kBounds / 2)};
    if (found.one_run) {
      losses.guesses = found.one_run->guesses;
      losses.steinke_epsilon = found.one_run->epsilon;
      losses.xiang_mu = found.one_run->xiang_mu;
      j.proved_epsilon = found.one_run->epsilon;
      if (found.gaussian)
        j.proved_epsilon = std::max(j.proved_epsilon, found.one_run->epsilon_curve);
      if (j.proved_epsilon > 0)
        j.proved_mu = privacy::GaussianMu(Epsilon(j.proved_epsilon), Delta(delta));
    }
    j.exceeds = found.exceeds();
    if (found.one_run && !found.gaussian) {
      // The charge's own curve has the part of the error that a Gaussian one would have had.
      TACIT_ASSIGN(const bool refuted,
                   audit::RefutedInOneRun(events, found.one_run->guesses, alpha / kBounds));
      j.exceeds = j.exceeds || refuted;
    }
    audited.losses = losses;
    return audited;
  }

  const TrainedAuditOptions& options_;
  KeptScores kept_;
  std::vector<uint64_t> units_;  // of the learner at hand; empty if not known yet
  bool stopped_ = false;
};

}  // namespace

Result<AuditReport> RunTrainedAudits(const TrainedAuditOptions& options) {
  return Trained(options).Run();
}

}  // namespace tacit::lab
