#include "wiring/ledger_forecast.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "cli/ledger/ledger.h"
#include "cli/ledger/ledger_copy.h"
#include "config/config.h"
#include "console/exit_code.h"
#include "privacy/allowance_forecast.h"
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

// The users of a learner: what they have left now, and from when on how many have nothing left.
struct UsersAhead {
  privacy::AllowancesLeft left;
  std::vector<privacy::UsersGone> gone;
};

struct Line {
  std::string name;  // "": all learners together
  privacy::Unit unit = privacy::Unit::kEvent;
  Forecast forecast;
  privacy::Spent stopped_by = privacy::Spent::kNone;
  std::optional<UsersAhead> users = std::nullopt;
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

// "0.53 of 3". Where the budget has run out, with as many digits as tell the two apart.
std::string SpentOf(const Forecast& f) {
  if (!std::isfinite(f.budget)) return fmt::format("{:.4g}", f.epsilon);
  for (int digits = 4;; ++digits) {
    const std::string spent = fmt::format("{:.{}g}", f.epsilon, digits),
                      budget = fmt::format("{:.{}g}", f.budget, digits);
    const bool apart = spent != budget || f.epsilon == f.budget;
    if (apart || f.kind != Forecast::Kind::kExhausted) return spent + " of " + budget;
  }
}

std::string SentenceOf(const Forecast& f, privacy::Unit unit) {
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

std::string Sentence(const Line& line, const std::vector<Line>& lines) {
  if (line.stopped_by == privacy::Spent::kTotal)
    return "stands still: the budget of all together has no room for its next step";
  std::string text = SentenceOf(line.forecast, line.unit);
  if (!line.name.empty() || line.forecast.kind == Forecast::Kind::kExhausted) return text;
  std::vector<std::string> stopped;
  for (const Line& other : lines)
    if (other.stopped_by == privacy::Spent::kTotal) stopped.push_back(other.name);
  if (!stopped.empty())
    text += fmt::format("; it has no room for a step of {}", fmt::join(stopped, ", "));
  return text;
}

json::object UsersJson(const UsersAhead& users) {
  json::array quarters, gone;
  for (const uint64_t quarter : users.left.quarters) quarters.push_back(json::value(quarter));
  for (const privacy::UsersGone& one : users.gone)
    gone.push_back(json::object{{"share", one.share}, {"from", Utc(one.at_ms)}});
  return {{"users", users.left.users},
          {"with_nothing_left", users.left.none},
          {"by_quarter_left", std::move(quarters)},
          {"will_have_nothing_left", std::move(gone)}};
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
  if (!line.name.empty()) {
    const std::string_view by = privacy::Name(line.stopped_by);
    row["stopped_by"] = by.empty() ? json::value(nullptr) : json::value(by);
  }
  if (!line.name.empty())
    row["users"] = line.users ? json::value(UsersJson(*line.users)) : json::value(nullptr);
  return row;
}

// The learners that the daemon's budgets have stopped, and by which.
Result<std::map<std::string, privacy::Spent>> AskWhoStandsStill(const std::string& url) {
  TACIT_ASSIGN(const json::object answer, FetchPrivacy(url));
  std::map<std::string, privacy::Spent> stopped;
  try {
    for (const json::value& learner : answer.at("learners").as_array())
      for (const privacy::Spent by : {privacy::Spent::kOwn, privacy::Spent::kTotal})
        if (learner.at("stopped_by") == json::value(privacy::Name(by)))
          stopped[std::string(learner.at("learner").as_string())] = by;
  } catch (const std::exception&) {  // JSON of another shape
    return Fail(ErrorCode::kIo, fmt::format("{} does not answer as tacitd does", url));
  }
  return stopped;
}

// The budgets to forecast: all equal to --epsilon, those of a configuration, or the promised ones.
Result<wiring::ForecastBudgets> BudgetsOf(const ForecastOptions& options,
                                          const LedgerCopy& ledger) {
  wiring::ForecastBudgets budgets{.learners = ledger.promises.learners,
                                  .total = ledger.promises.total,
                                  .total_delta = ledger.TotalDelta()};
  if (!options.config.empty()) {
    TACIT_ASSIGN(config::Config config,
                 config::Load(options.config, {}, config::LogFiles::kUnread));
    TACIT_ASSIGN(const wiring::Assembly assembly, wiring::Assemble(std::move(config)));
    wiring::TakeBudgetsOf(assembly, &budgets);
  }
  if (!options.place->url.empty() && options.config.empty() && options.epsilon == 0) {
    TACIT_ASSIGN(budgets.stopped, AskWhoStandsStill(options.place->url));
  }
  if (options.epsilon > 0) {
    for (privacy::Promise& promise : budgets.learners) promise.epsilon = options.epsilon;
    const double delta = budgets.total ? budgets.total->delta : ledger.TotalDelta();
    budgets.total = {.epsilon = options.epsilon, .delta = delta};
  }
  return budgets;
}

// Counts the learner's users; nothing where none are counted, or the ledger is a daemon's.
Result<std::optional<UsersAhead>> LookAtUsers(const LedgerCopy& ledger, std::string_view learner,
                                              const Forecast& forecast) {
  const privacy::LearnerNames names(ledger.entries);
  privacy::Bounds bounds;
  for (const privacy::LedgerEntry& entry : ledger.entries)
    if (names.Now(entry.learner) == learner) bounds = entry.bounds;
  if (!ledger.count_users || bounds.allowance == 0) return std::optional<UsersAhead>();
  TACIT_ASSIGN(const UsersByUses by_used, ledger.count_users(learner));
  if (by_used.empty()) return std::optional<UsersAhead>();
  return std::optional<UsersAhead>(
      {privacy::CountLeft(by_used, bounds),
       privacy::ForetellGone(by_used, bounds, forecast.begin_ms, forecast.end_ms)});
}

Result<std::vector<Line>> ForecastLines(const LedgerCopy& ledger,
                                        const wiring::ForecastBudgets& budgets) {
  std::vector<Line> lines;
  for (const wiring::BudgetForecast& one : wiring::ForetellBudgets(ledger.entries, budgets)) {
    lines.push_back({one.learner, one.unit, one.forecast, one.stopped_by});
    if (!one.learner.empty() && one.unit == privacy::Unit::kUser) {
      TACIT_ASSIGN(lines.back().users, LookAtUsers(ledger, one.learner, one.forecast));
    }
  }
  return lines;
}

// Prints raw counts of users, which are the operator's.
void PrintUsers(const Line& line) {
  const privacy::AllowancesLeft& left = line.users->left;
  fmt::print(
      "{}: of {}, {} cannot be learnt from again; {}, {}, {} and {} have up to a quarter, a "
      "half, three quarters and all of the allowance left (raw counts)\n",
      line.name, Counted(left.users, "user"), WithThousands(left.none),
      WithThousands(left.quarters[0]), WithThousands(left.quarters[1]),
      WithThousands(left.quarters[2]), WithThousands(left.quarters[3]));
  for (const privacy::UsersGone& gone : line.users->gone)
    fmt::print(
        "{}: {:.0f} % of them cannot be from {} on, {} after the last commit, if each goes on "
        "as so far\n",
        line.name, 100 * gone.share, Utc(gone.at_ms), Span(line.forecast.end_ms, gone.at_ms));
}

Result<int> RunForecast(const ForecastOptions& options) {
  TACIT_ASSIGN(const LedgerCopy ledger, CopyLedger(*options.place));
  TACIT_ASSIGN(const wiring::ForecastBudgets budgets, BudgetsOf(options, ledger));
  TACIT_ASSIGN(const std::vector<Line> lines, ForecastLines(ledger, budgets));
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
  for (const Line& line : lines) {
    fmt::print("{}: epsilon {} at delta {:g}: {}\n", line.name.empty() ? "all together" : line.name,
               SpentOf(line.forecast), line.forecast.delta, Sentence(line, lines));
    if (line.users) PrintUsers(line);
  }
  return int{console::kExitDone};
}

}  // namespace

void AddLedgerForecast(CLI::App* ledger, Action* chosen) {
  auto* command =
      ledger->add_subcommand("forecast", "The day each budget runs out, and users' allowances");
  auto options = std::make_shared<ForecastOptions>();
  AddLedgerPlace(command, options->place, kOperatorListener);
  auto* config = command->add_option("--config", options->config,
                                     "Budgets of this configuration, and how often it lets a "
                                     "record be used (default: budgets as promised)");
  command
      ->add_option("--epsilon", options->epsilon,
                   "One budget for each learner and for all together")
      ->check(NumberFrom(1e-6, 1e6))
      ->excludes(config);
  command->footer(
      "What is yet to be spent is composed with what was, at the pace of the history so far. Where "
      "the unit is a user, it\nsays how many have how much of their allowance left: raw, for "
      "operators "
      "alone, from a store or a full checkpoint.\n"
      "Examples:\n  tacit ledger forecast --store demo-data/store --config config/demo.yaml\n"
      "  tacit ledger forecast --checkpoint DIR --epsilon 4 --json");
  command->callback([options, chosen] { *chosen = [options] { return RunForecast(*options); }; });
}

}  // namespace tacit::cli
