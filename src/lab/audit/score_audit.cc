#include "lab/audit/score_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <fstream>

#include "base/text.h"
#include "privacy/gaussian.h"
#include "privacy/tradeoff.h"

namespace tacit::lab {
namespace {

namespace json = boost::json;

// Fixed for good: the halves of a file are the same in every run.
constexpr uint64_t kSaltOfHalves = 1;
// Xiang's bound takes seconds for more.
constexpr uint64_t kMostForXiang = 2000;

struct ScoreLine {
  audit::Score score;
  std::optional<double> reference;
};

Result<ScoreLine> ParseScore(const std::string& line) {
  try {
    const json::object object = json::parse(line).as_object();
    ScoreLine read;
    read.score = {object.at("id").to_number<uint64_t>(), object.at("score").to_number<double>(),
                  object.at("member").as_bool()};
    if (const json::value* reference = object.if_contains("reference"))
      read.reference = reference->to_number<double>();
    return read;
  } catch (const std::exception& e) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("not a score ({}): a line is {{\"id\":7,\"member\":true,\"score\":-0.3}}",
                    e.what()));
  }
}

std::optional<ScoreAudit::OneRun> GuessInOneRun(std::vector<audit::Score> scores, uint64_t guesses,
                                                uint64_t members, double delta, double alpha) {
  const auto n = static_cast<double>(scores.size());
  // Six deviations of as many fair coins.
  if (std::abs(static_cast<double>(members) - n / 2) > 3 * std::sqrt(n)) return std::nullopt;
  std::ranges::sort(scores, [](const audit::Score& a, const audit::Score& b) {
    return a.value != b.value ? a.value < b.value : a.id < b.id;
  });
  const uint64_t out = guesses / 2, in = guesses - out;
  ScoreAudit::OneRun run{.guesses = {scores.size(), guesses, 0}};
  for (uint64_t i = 0; i < out; ++i) run.guesses.right += !scores[i].member;
  for (uint64_t i = 0; i < in; ++i) run.guesses.right += scores[scores.size() - 1 - i].member;
  run.epsilon = audit::SteinkeEpsilon(run.guesses, delta, alpha);
  const double mu = audit::CurveMu(run.guesses, alpha);
  run.epsilon_curve = mu > 0 ? privacy::GaussianEpsilon(mu, Delta(delta)).value : 0;
  if (guesses == scores.size() && guesses <= kMostForXiang)
    run.xiang_mu = audit::XiangMu(run.guesses, alpha);
  return run;
}

}  // namespace

Result<std::vector<audit::Score>> ReadScores(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Fail(ErrorCode::kNotFound, path + ": cannot be read");
  std::vector<audit::Score> scores, reference;
  std::string line;
  for (uint64_t number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto read = ParseScore(line);
    if (read && !std::isfinite(read->score.value - read->reference.value_or(0)))
      read = Fail(ErrorCode::kInvalidArgument, "the score is no finite number");
    if (read && !scores.empty() && read->reference.has_value() == reference.empty())
      read = Fail(ErrorCode::kInvalidArgument, "a reference is on some lines and not on others");
    if (!read) return Fail(std::move(read.error()).Context(fmt::format("{}:{}", path, number)));
    scores.push_back(read->score);
    if (read->reference)
      reference.push_back({read->score.id, *read->reference, read->score.member});
  }
  // Joins by id, and so finds an id that is there twice.
  if (reference.empty()) {
    reference = scores;
    for (audit::Score& score : reference) score.value = 0;
  }
  auto less = audit::Less(scores, reference);
  if (!less) return Fail(std::move(less.error()).Context(path));
  return less;
}

bool ScoreAudit::exceeds() const {
  return one_run && (one_run->epsilon > charged.epsilon ||
                     (gaussian && one_run->epsilon_curve > charged.epsilon));
}

Result<ScoreAudit> AuditScores(const std::vector<audit::Score>& scores, uint64_t guesses,
                               const privacy::LedgerTotal& charged, double alpha, bool gaussian) {
  ScoreAudit found{.charged = charged, .gaussian = gaussian, .split = {}, .one_run = {}};
  found.alpha = alpha;
  found.members = static_cast<uint64_t>(std::ranges::count_if(scores, &audit::Score::member));
  found.others = scores.size() - found.members;
  if (found.members == 0 || found.others == 0)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} members and {} others: scores of both are needed", found.members,
                            found.others));
  if (guesses > scores.size())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--guesses: {} guesses of {} records", guesses, scores.size()));
  if (guesses == 0) guesses = scores.size();
  found.area = audit::AreaUnderCurve(scores);
  found.accuracy = audit::BestAccuracy(scores);
  found.found_1_in_100 = audit::FoundAt(scores, 0.01);
  found.found_1_in_1000 = audit::FoundAt(scores, 0.001);
  constexpr double kBounds = 3;  // the split, and two in one run
  found.split = audit::BoundBySplit(scores, kSaltOfHalves, alpha / kBounds);
  found.one_run = GuessInOneRun(scores, guesses, found.members, charged.delta, alpha / kBounds);
  return found;
}

json::object ToJson(const ScoreAudit& audit) {
  const double advantage = audit.charged.AdvantageAtMost();
  json::value one_run = nullptr;
  if (const auto& run = audit.one_run)
    one_run = json::object{{"canaries", run->guesses.canaries},
                           {"guesses", run->guesses.guesses},
                           {"right", run->guesses.right},
                           {"epsilon", run->epsilon},
                           {"epsilon_curve", run->epsilon_curve},
                           {"xiang_mu", run->xiang_mu ? json::value(*run->xiang_mu) : nullptr}};
  const bool bounded = std::isfinite(audit.charged.epsilon);
  return {
      {"learner", audit.charged.learner},
      {"members", audit.members},
      {"others", audit.others},
      {"charged", json::object{{"epsilon", bounded ? json::value(audit.charged.epsilon) : nullptr},
                               {"delta", audit.charged.delta}}},
      {"auc", audit.area},
      {"accuracy",
       json::object{{"seen", audit.accuracy}, {"allowed", privacy::AccuracyAtMost(advantage)}}},
      {"found_at_1_false_in_100", audit.found_1_in_100},
      {"found_at_1_false_in_1000", audit.found_1_in_1000},
      {"split_mu", audit.split.mu},
      {"one_run", std::move(one_run)},
      {"confidence", 1 - audit.alpha},
      {"exceeds", audit.exceeds()}};
}

std::string ToText(const ScoreAudit& audit) {
  std::string text = fmt::format(
      "learner {}: epsilon {:.4g} at delta {:g} charged; {} members, {} others\n"
      "seen: AUC {:.4f}, accuracy {:.4f} of {:.4f} that the charge allows; {:.4f} found with 1 "
      "false "
      "alarm in 100, {:.4f} with 1 in 1,000\n"
      "proved by halves of the records: mu {:.3f} between members and others\n",
      audit.charged.learner, audit.charged.epsilon, audit.charged.delta,
      WithThousands(audit.members), WithThousands(audit.others), audit.area, audit.accuracy,
      privacy::AccuracyAtMost(audit.charged.AdvantageAtMost()), audit.found_1_in_100,
      audit.found_1_in_1000, audit.split.mu);
  if (const auto& run = audit.one_run) {
    text += fmt::format(
        "proved in one run, if a fair coin of its own decided for each record: epsilon {:.3f} "
        "(Steinke), {:.3f} (Gaussian curve{}); {} of {} guesses right{}\n",
        run->epsilon, run->epsilon_curve,
        audit.gaussian ? "" : ", told alone: the charge is another curve",
        WithThousands(run->guesses.right), WithThousands(run->guesses.guesses),
        audit.exceeds() ? ": EXCEEDS ITS CHARGE" : "");
    if (run->xiang_mu)
      text += fmt::format("told, and no proof (Xiang): mu {:.3f}\n", *run->xiang_mu);
  } else {
    text +=
        "nothing is proved in one run: there are too many members, or too few, for fair coins\n";
  }
  return text + fmt::format("confidence of what is proved, all together: {:.4g} %\n",
                            100 * (1 - audit.alpha));
}

}  // namespace tacit::lab
