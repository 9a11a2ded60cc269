#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "cli/ledger.h"
#include "cli/ledger_copy.h"
#include "config/config.h"
#include "console/exit_code.h"
#include "privacy/forecast.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;
using privacy::Forecast;

struct ForecastOptions {
  std::shared_ptr<LedgerOptions> place = std::make_shared<LedgerOptions>();
  std::string config;
  double epsilon = 0;  // 0: as promised
};

struct Line {
  std::string name;  // "": all learners together
  privacy::Unit unit = privacy::Unit::kEvent;
  Forecast forecast;
};

std::string_view Name(Forecast::Kind kind) {
  switch (kind) {
    case Forecast::Kind::kNoBudget:
      return "no_budget";
    case Forecast::Kind::kNothingSpent:
      return "nothing_spent";
    case Forecast::Kind::kTooLittleHistory:
      return "too_little_history";
    case Forecast::Kind::kConstant:
      return "constant";
    case Forecast::Kind::kBounded:
      return "bounded";
    case Forecast::Kind::kExhausted:
      return "exhausted";
    case Forecast::Kind::kRunsOut:
      return "runs_out";
    case Forecast::Kind::kBeyondHorizon:
      return "beyond_a_century";
  }
  return "unknown";
}

double Days(int64_t from_ms, int64_t to_ms) {
  return static_cast<double>(to_ms - from_ms) / 86400e3;
}

std::string Utc(int64_t unix_ms) {
  return fmt::format("{:%Y-%m-%dT%H:%MZ}", fmt::gmtime(static_cast<std::time_t>(unix_ms / 1000)));
}

// "3.4 days", "17.0 minutes".
std::string Span(int64_t from_ms, int64_t to_ms) {
  const double seconds = static_cast<double>(to_ms - from_ms) / 1e3;
  if (seconds >= 2 * 86400) return fmt::format("{:.1f} days", seconds / 86400);
  if (seconds >= 2 * 3600) return fmt::format("{:.1f} hours", seconds / 3600);
  if (seconds >= 120) return fmt::format("{:.1f} minutes", seconds / 60);
  return fmt::format("{:.0f} seconds", seconds);
}

std::string Sentence(const Forecast& f, privacy::Unit unit) {
  const bool users = unit == privacy::Unit::kUser;
  switch (f.kind) {
    case Forecast::Kind::kNoBudget:
      return "has no budget that could run out";
    case Forecast::Kind::kNothingSpent:
      return "has spent nothing yet";
    case Forecast::Kind::kTooLittleHistory:
      return "too little history for a forecast: a few steps, or every step on the same records";
    case Forecast::Kind::kConstant:
      return users
                 ? "does not run out as long as no user is learnt from more often than so far"
                 : "does not run out as long as no record is used again, and none has been so far";
    case Forecast::Kind::kBounded:
      return fmt::format(
          "does not run out: used as often as the configuration allows, a {} comes to {:.4g}",
          users ? "user" : "record", f.most);
    case Forecast::Kind::kExhausted:
      return "has run out: there is no room for another step";
    case Forecast::Kind::kRunsOut:
      return fmt::format(
          "runs out on {}, {} after the last commit, if all goes on as in the {} of its history",
          Utc(f.runs_out_ms), Span(f.end_ms, f.runs_out_ms), Span(f.begin_ms, f.end_ms));
    case Forecast::Kind::kBeyondHorizon:
      return "does not run out within a hundred years";
  }
  return "";
}

json::object LineJson(const Line& line) {
  const Forecast& f = line.forecast;
  json::object row;
  if (!line.name.empty()) row["learner"] = line.name;
  const auto number = [](double value) {
    return std::isfinite(value) ? json::value(value) : json::value(nullptr);
  };
  row["forecast"] = Name(f.kind);
  row["epsilon"] = number(f.epsilon);
  row["delta"] = f.delta;
  row["budget"] = number(f.budget);
  row["most"] = f.most > 0 ? number(f.most) : json::value(nullptr);
  row["history_days"] = Days(f.begin_ms, f.end_ms);
  const bool dated = f.kind == Forecast::Kind::kRunsOut;
  row["runs_out"] = dated ? json::value(Utc(f.runs_out_ms)) : json::value(nullptr);
  row["days"] = dated ? json::value(Days(f.end_ms, f.runs_out_ms)) : json::value(nullptr);
  return row;
}

// The budgets to forecast: all equal to --epsilon, those of a configuration, or the promised ones.
struct Budgets {
  std::vector<privacy::Promise> learners;
  std::optional<privacy::TotalBudget> total;
  std::map<std::string, privacy::UseLimits> limits;  // by learner; of a configuration alone
};

privacy::UseLimits LimitsOf(const config::Learner& learner, const config::Source& source) {
  const config::Participation& p = learner.participation;
  if (p.mode == config::Participation::Mode::kOnce)
    return {.steps = p.max_participations, .releases = p.max_participations};
  return {.steps = p.PeriodSteps() * source.passes, .releases = source.passes};
}

Result<Budgets> BudgetsOf(const ForecastOptions& options, const LedgerCopy& ledger) {
  Budgets budgets{ledger.promises.learners, ledger.promises.total, {}};
  if (!options.config.empty()) {
    TACIT_ASSIGN(const config::Config config,
                 config::Load(options.config, {}, config::LogFiles::kUnread));
    for (privacy::Promise& promise : budgets.learners)
      for (const config::Learner& learner : config.learners)
        if (learner.id == promise.learner) promise.epsilon = learner.privacy.epsilon;
    for (const config::Learner& learner : config.learners)
      budgets.limits[learner.id] = LimitsOf(learner, config.source);
    if (config.budget.given())
      budgets.total = {.epsilon = *config.budget.epsilon, .delta = *config.budget.delta};
  }
  if (options.epsilon > 0) {
    for (privacy::Promise& promise : budgets.learners) promise.epsilon = options.epsilon;
    const double delta = budgets.total ? budgets.total->delta : ledger.TotalDelta();
    budgets.total = {.epsilon = options.epsilon, .delta = delta};
  }
  return budgets;
}

std::vector<Line> ForecastLines(const LedgerCopy& ledger, const Budgets& budgets) {
  std::vector<Line> lines;
  std::vector<privacy::Growth> growths;
  std::optional<privacy::Spending> most_of_all = privacy::Spending();
  for (const privacy::Promise& promise : budgets.learners) {
    growths.push_back(privacy::Growth::Of(ledger.entries, promise.learner));
    const auto limits = budgets.limits.find(promise.learner);
    const auto most = limits == budgets.limits.end()
                          ? std::nullopt
                          : privacy::MostEver(ledger.entries, promise.learner, limits->second);
    lines.push_back(
        {promise.learner, promise.unit,
         privacy::Foretell({&growths.back(), 1},
                           {.epsilon = promise.epsilon, .delta = promise.delta}, most)});
    if (most && most_of_all)
      most_of_all->Add(*most);
    else
      most_of_all.reset();
  }
  const double none = std::numeric_limits<double>::infinity();
  const privacy::TotalBudget total =
      budgets.total.value_or(privacy::TotalBudget{none, ledger.TotalDelta()});
  if (!growths.empty()) {
    const bool of_users = std::ranges::all_of(
        budgets.learners,
        [](const privacy::Promise& promise) { return promise.unit == privacy::Unit::kUser; });
    lines.push_back({"", of_users ? privacy::Unit::kUser : privacy::Unit::kEvent,
                     privacy::Foretell(growths, total, most_of_all)});
  }
  return lines;
}

Result<int> RunForecast(const ForecastOptions& options) {
  TACIT_ASSIGN(const LedgerCopy ledger, CopyLedger(*options.place));
  TACIT_ASSIGN(const Budgets budgets, BudgetsOf(options, ledger));
  const std::vector<Line> lines = ForecastLines(ledger, budgets);
  if (options.place->json) {
    json::object out{{"learners", json::array()}, {"total", nullptr}};
    for (const Line& line : lines)
      if (line.name.empty())
        out["total"] = LineJson(line);
      else
        out["learners"].as_array().push_back(LineJson(line));
    fmt::print("{}\n", json::serialize(out));
    return int{console::kExitDone};
  }
  if (lines.empty()) fmt::print("nothing has been charged yet\n");
  for (const Line& line : lines)
    fmt::print(
        "{}: epsilon {:.4g}{} at delta {:g}: {}\n", line.name.empty() ? "all together" : line.name,
        line.forecast.epsilon,
        std::isfinite(line.forecast.budget) ? fmt::format(" of {:.4g}", line.forecast.budget) : "",
        line.forecast.delta, Sentence(line.forecast, line.unit));
  return int{console::kExitDone};
}

}  // namespace

void AddLedgerForecast(CLI::App* ledger, Action* chosen) {
  auto* command = ledger->add_subcommand("forecast", "The day each budget runs out");
  auto options = std::make_shared<ForecastOptions>();
  AddLedgerPlace(command, options->place, kOperatorListener);
  auto* config = command->add_option("--config", options->config,
                                     "Budgets of this configuration, and how often it lets a "
                                     "record be used (default: budgets as promised)");
  command
      ->add_option("--epsilon", options->epsilon,
                   "One budget for each learner and for all together")
      ->check(CLI::Range(1e-6, 1e6))
      ->excludes(config);
  command->footer(
      "What is yet to be spent is composed with what was, at the pace of the history so far.\n"
      "Examples:\n  tacit ledger forecast --store demo-data/store --config config/demo.yaml\n"
      "  tacit ledger forecast --checkpoint DIR --epsilon 4 --json");
  command->callback([options, chosen] { *chosen = [options] { return RunForecast(*options); }; });
}

}  // namespace tacit::cli
