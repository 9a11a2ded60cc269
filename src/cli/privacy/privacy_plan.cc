#include "cli/privacy/privacy_plan.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/text.h"
#include "console/exit_code.h"
#include "console/json_number.h"
#include "privacy/tradeoff.h"
#include "wiring/privacy_forecast.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

struct PrivacyPlanOptions {
  std::string config;
  std::vector<std::string> overrides;
  std::optional<uint64_t> events_per_day;
  bool json = false;
};

// Unknown and unbounded numbers are null.
template <class T>
json::value Known(const std::optional<T>& number) {
  return number ? json::value(*number) : json::value(nullptr);
}

json::object Json(const wiring::EpsilonAhead& ahead) {
  return {{"step", console::FiniteOrNull(ahead.step)},
          {"period", console::FiniteOrNull(ahead.period)},
          {"day", console::FiniteOrNull(ahead.day)},
          {"days_30", console::FiniteOrNull(ahead.days_30)},
          {"year", console::FiniteOrNull(ahead.year)},
          {"all_passes", console::FiniteOrNull(ahead.all_passes)},
          {"allowed", console::FiniteOrNull(ahead.allowed)}};
}

json::object Json(const wiring::TellsAtMost& tells) {
  const bool bounded = tells.advantage < 1;
  const auto known = [&](double number) { return bounded ? json::value(number) : nullptr; };
  return {{"accuracy", known(privacy::AccuracyAtMost(tells.advantage))},
          {"bayes_risk", known(1 - privacy::AccuracyAtMost(tells.advantage))},
          {"found_at_1_false_in_100", known(tells.found_1_in_100)},
          {"found_at_1_false_in_1000", known(tells.found_1_in_1000)},
          {"words", privacy::PlainWords(tells.advantage)}};
}

json::object Json(const privacy::Charge& charge) {
  json::object object{{"mechanism", privacy::Name(charge.mechanism)},
                      {"noise_multiplier", console::FiniteOrNull(charge.noise_multiplier)},
                      {"sampling_rate", charge.sampling_rate}};
  if (charge.block_steps > 0) object["block_steps"] = charge.block_steps;
  const auto add = [&](const char* key, double value) {
    if (value > 0) object[key] = value;
  };
  add("sigma_selection", charge.sigma_selection);
  add("sigma_gradient", charge.sigma_gradient);
  add("sigma_clip", charge.sigma_clip);
  add("zcdp_rho", charge.zcdp_rho);
  return object;
}

json::object Json(const wiring::OtherMode& other) {
  json::object object{{"mode", other.mode},
                      {"noise_multiplier", Known(other.noise_multiplier)},
                      {"note", other.words}};
  if (!other.noise_multiplier) return object;
  object["steps"] = other.steps;
  object["sampling_rate"] = other.draw.rate;
  if (other.draw.block_steps > 0) object["block_steps"] = other.draw.block_steps;
  if (other.period > 0) object["period"] = other.period;
  return object;
}

json::object Json(const wiring::LearnerForecast& learner) {
  json::array others;
  for (const wiring::OtherMode& other : learner.others) others.push_back(Json(other));
  return {{"learner", learner.id},
          {"unit", privacy::Name(learner.unit)},
          {"promise", json::object{{"epsilon", console::FiniteOrNull(learner.epsilon)},
                                   {"delta", learner.delta}}},
          {"participation", learner.mode},
          {"participation_text", learner.participation},
          {"step", Json(learner.charge)},
          {"opening", learner.opening ? json::value(Json(*learner.opening)) : json::value(nullptr)},
          {"epsilon", Json(learner.ahead)},
          {"at_most", Json(learner.tells)},
          {"epsilon_period_estimate", Known(learner.estimate)},
          {"steps_per_day", Known(learner.steps_per_day)},
          {"untouched_rows_per_step", learner.untouched_rows},
          {"touched_rows_per_step", nullptr},
          {"rows_text", learner.rows},
          {"noise_text", learner.noise},
          {"not_covered",
           learner.not_covered.empty() ? json::value(nullptr) : json::value(learner.not_covered)},
          {"others", std::move(others)}};
}

json::object Json(const wiring::PrivacyForecast& forecast,
                  const std::vector<wiring::RefusedLearner>& refused) {
  json::array learners, warnings, refusals;
  for (const wiring::RefusedLearner& learner : refused)
    refusals.push_back(json::object{{"learner", learner.id}, {"reason", learner.error.message}});
  for (const wiring::LearnerForecast& learner : forecast.learners)
    learners.push_back(Json(learner));
  for (const std::string& warning : forecast.warnings) warnings.push_back(json::value(warning));
  json::value budget = nullptr;
  if (forecast.budget)
    budget = {{"epsilon", forecast.budget->epsilon}, {"delta", forecast.budget->delta}};
  json::value breaker = nullptr;
  if (const auto& plan = forecast.breaker)
    breaker = json::object{
        {"share", plan->share},
        {"window", plan->window > 0 ? json::value(plan->window) : json::value(nullptr)},
        {"noise_multiplier", plan->charge.noise_multiplier},
        {"promise",
         json::object{{"epsilon", plan->promise.epsilon}, {"delta", plan->promise.delta}}}};
  return {{"learners", std::move(learners)},
          {"halt_above", std::move(breaker)},
          {"total", json::object{{"unit", privacy::Name(forecast.unit)},
                                 {"delta", forecast.delta},
                                 {"epsilon", Json(forecast.total)},
                                 {"at_most", Json(forecast.tells)},
                                 {"budget", std::move(budget)}}},
          {"refused", std::move(refusals)},
          {"events_per_day", Known(forecast.events_per_day)},
          {"warnings", std::move(warnings)}};
}

std::string Text(double epsilon) {
  if (std::isnan(epsilon)) return "not known";
  return std::isfinite(epsilon) ? fmt::format("{:.4f}", epsilon) : "unbounded";
}

void Row(const char* name, const std::string& text) { fmt::print("  {:<18} {}\n", name, text); }

void PrintAhead(const wiring::EpsilonAhead& ahead, const char* first) {
  fmt::print("  {:<18} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "epsilon after", first,
             "a day", "30 days", "a year", "all passes", "allowed");
  fmt::print("  {:<18} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "", Text(ahead.period),
             Text(ahead.day), Text(ahead.days_30), Text(ahead.year), Text(ahead.all_passes),
             Text(ahead.allowed));
}

// A number up to 100 in two digits, and never as a power of ten.
std::string TwoDigits(double of_100) {
  return of_100 < 99.5 ? fmt::format("{:.2g}", of_100) : "100";
}

void PrintTells(const wiring::TellsAtMost& tells) {
  Row("in plain words", privacy::PlainWords(tells.advantage));
  if (tells.advantage < 1)
    Row("",
        fmt::format("and finds {} of 100 with a false alarm in 100, {} with one in 1,000",
                    TwoDigits(100 * tells.found_1_in_100), TwoDigits(100 * tells.found_1_in_1000)));
}

void PrintOther(const wiring::OtherMode& other, double noise) {
  if (!other.noise_multiplier) return Row(("as " + other.mode).c_str(), other.words);
  std::string how = fmt::format("noise multiplier {:.4f} ({:.2f} times)", *other.noise_multiplier,
                                *other.noise_multiplier / noise);
  if (other.draw.block_steps > 0)
    how += fmt::format(", {} steps, in one of each {}", other.steps, other.draw.block_steps);
  else if (other.draw.rate < 1)
    how += fmt::format(", {} steps at rate {:.4g}", other.steps, other.draw.rate);
  Row(("as " + other.mode).c_str(), how + ": " + other.words);
}

void Print(const wiring::LearnerForecast& learner) {
  fmt::print("learner {}: epsilon {} at delta {} promised to each {}\n", learner.id,
             std::isfinite(learner.epsilon) ? fmt::format("{}", learner.epsilon) : "unbounded",
             learner.delta, privacy::Name(learner.unit));
  Row("takes part", learner.participation);
  if (!learner.not_covered.empty()) Row("NOT COVERED", std::string(learner.not_covered));
  Row("a step", wiring::ChargeText(learner.charge));
  if (learner.opening) Row("a period first", wiring::ChargeText(*learner.opening));
  Row("steps a day", learner.steps_per_day ? WithThousands(*learner.steps_per_day)
                                           : fmt::format("not known ({})", learner.steps_unknown));
  Row("noise", learner.noise);
  Row("rows a step", learner.rows);
  PrintAhead(learner.ahead, learner.mode == "once" ? "a step" : "a period");
  if (learner.allowance > 0)
    Row("an allowance",
        fmt::format("{} for all of its {}; one of them alone is {}", Text(learner.ahead.allowed),
                    Counted(learner.allowance, "step"), Text(learner.ahead.step)));
  PrintTells(learner.tells);
  if (learner.estimate)
    Row("", fmt::format("(central limit for a period: {:.4f}, an ESTIMATE, no bound)",
                        *learner.estimate));
  for (const wiring::OtherMode& other : learner.others)
    PrintOther(other, learner.charge.noise_multiplier);
  fmt::print("\n");
}

// Prints all learners in the order of the configuration, refused ones in their places.
void PrintLearners(const wiring::PrivacyForecast& forecast,
                   const std::vector<wiring::RefusedLearner>& refused) {
  auto next = forecast.learners.begin();
  auto refusal = refused.begin();
  for (size_t i = 0; i < forecast.learners.size() + refused.size(); ++i) {
    if (refusal != refused.end() && refusal->position == i) {
      fmt::print("learner {}: REFUSED: {}\n\n", refusal->id, refusal->error.message);
      ++refusal;
    } else {
      Print(*next++);
    }
  }
}

void Print(const wiring::PrivacyForecast& forecast,
           const std::vector<wiring::RefusedLearner>& refused) {
  PrintLearners(forecast, refused);
  if (forecast.learners.empty()) return;
  const bool users = forecast.unit == privacy::Unit::kUser;
  for (const wiring::QualityPlan& plan : forecast.qualities)
    fmt::print("quality {}; each event is in one count of one window a pass\n\n",
               wiring::QualityText(plan));
  if (forecast.breaker)
    fmt::print("source.halt_above {}; each event is counted in one window, once\n\n",
               wiring::BreakerText(*forecast.breaker));
  fmt::print("all learners together, on one {}, at delta {}{}\n", privacy::Name(forecast.unit),
             forecast.delta,
             forecast.budget ? fmt::format("; budget {}", forecast.budget->epsilon) : "");
  PrintAhead(forecast.total, "first");
  PrintTells(forecast.tells);
  fmt::print(
      "\nallowed: at the end of what the noise is calibrated for: all passes, or "
      "max_participations.\n"
      "correlated noise needs less, but no accountant here certifies how much, so that no learner "
      "takes\n"
      "part so.\n"
      "{}Bounds are certified.\n",
      users
          ? "A user may be in every step of a day, up to his allowance. A year is any 365 days of "
            "the "
            "stream that begin\nwith a multiple of 365: what is learnt in them tells no more than "
            "that, "
            "and the years add up to what is allowed.\nparticipation.per_period, with "
            "period_files: 365, makes a year's claim smaller than a lifetime's. "
          : "An event is in the steps of its own period (or its one step) only: a day, and thirty, "
            "cost\nit what its period does. Passes over the same log do add up. ");
  for (const std::string& warning : forecast.warnings) fmt::print("WARNING: {}\n", warning);
}

Result<int> Plan(const PrivacyPlanOptions& options) {
  TACIT_ASSIGN(config::Config config,
               config::Load(options.config, options.overrides, config::LogFiles::kUnread));
  std::vector<wiring::RefusedLearner> refused;
  const privacy::Laws laws = privacy::MakeLaws();
  TACIT_ASSIGN(const wiring::Assembly assembly,
               wiring::Assemble(std::move(config), &refused, wiring::AllLearnerKinds(), laws));
  TACIT_ASSIGN(const wiring::PrivacyForecast forecast,
               wiring::ForecastPrivacy(assembly, options.events_per_day, laws));
  if (options.json) {
    fmt::print("{}\n", json::serialize(Json(forecast, refused)));
  } else {
    Print(forecast, refused);
  }
  if (refused.empty()) return int{console::kExitDone};
  std::fflush(stdout);
  return Fail(std::move(refused.front().error));
}

}  // namespace

void AddPrivacyPlan(CLI::App* privacy, Action* chosen) {
  auto options = std::make_shared<PrivacyPlanOptions>();
  auto* plan = privacy->add_subcommand("plan", "What a configuration will cost, before any data");
  plan->add_option("--config", options->config, "Configuration file (YAML)")->required();
  plan->add_option("--set", options->overrides, "Override a key: store.path=/x (repeatable)")
      ->allow_extra_args(false);
  plan->add_option("--events-per-day", options->events_per_day,
                   "Events in a day (a file), where the source does not say")
      ->check(WholeNumberFrom(1, 1'000'000'000'000'000));
  plan->add_flag("--json", options->json, "Print JSON");
  plan->footer(
      "Examples:\n  tacit privacy plan --config config/demo.yaml --events-per-day 150000\n  tacit "
      "privacy plan --config config/demo.yaml --set learners.0.privacy.epsilon=3 --json");
  plan->callback([options, chosen] { *chosen = [options] { return Plan(*options); }; });
}

}  // namespace tacit::cli
