#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "cli/parts/command.h"
#include "cli/privacy/privacy_events.h"
#include "cli/privacy/privacy_plan.h"
#include "cli/privacy/privacy_report.h"
#include "console/exit_code.h"
#include "console/json_number.h"
#include "mechanism/sigma_split.h"
#include "privacy/calibrate.h"
#include "privacy/gaussian.h"
#include "privacy/gdp.h"
#include "privacy/pld.h"
#include "privacy/rdp.h"

namespace tacit::cli {
namespace {

using privacy::Adjacency;
using privacy::CountedEvent;

struct Query {
  std::string accountant = "pld";
  std::string adjacency = "add-remove";
  std::string events;
  std::vector<double> orders;
  std::optional<double> noise_multiplier;
  double epsilon = 0, delta = 0, sampling_rate = 1;
  std::optional<double> sigma_ratio;
  uint64_t steps = 1;
  bool known_coins = false;
  bool json = false;
};

// An accountant's answer: `lower` where it is certified from both sides, `order` from RDP.
struct Said {
  double epsilon = 0;
  std::optional<double> lower, order;
  bool is_estimate = false;
  // Paper 001's figure for steps whose coins are known: it takes them for secret.
  std::optional<double> claimed = {};
};

Adjacency AdjacencyOf(const Query& query) {
  return query.adjacency == "replace-one" ? Adjacency::kReplaceOne : Adjacency::kAddRemove;
}

// The exact accountant bills every participation in full, so its epsilon of a sampled step is not
// what the step costs. Accountants other than PLD support one adjacency only.
Status Check(const Query& query) {
  if (query.accountant == "gaussian" && query.sampling_rate != 1)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--accountant gaussian covers no sampling: --sampling-rate must be 1, "
                            "with --steps the number of participations of one unit (got {})",
                            query.sampling_rate));
  if (!(query.delta > 0 && query.delta < 1))
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("--delta must lie between 0 and 1, both excluded (got {})", query.delta));
  if (query.steps == 0) return Fail(ErrorCode::kInvalidArgument, "--steps must be at least 1");
  if (query.accountant != "pld" && query.adjacency != "add-remove")
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--accountant {} is for --adjacency add-remove", query.accountant));
  if (query.known_coins && (query.accountant == "gaussian" || query.accountant == "gdp"))
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("--known-coins is for --accountant pld and rdp (got {})", query.accountant));
  if (query.accountant != "rdp" && !query.orders.empty())
    return Fail(ErrorCode::kInvalidArgument, "--orders is for --accountant rdp");
  return {};
}

// The events to account for: the file's, or the one given on the command line.
Result<std::vector<CountedEvent>> EventsOf(const Query& query) {
  if (!query.events.empty()) return ReadEvents(query.events);
  if (!query.noise_multiplier)
    return Fail(ErrorCode::kInvalidArgument, "give --noise-multiplier or --events");
  if (!(*query.noise_multiplier > 0))
    return Fail(ErrorCode::kInvalidArgument,
                "--noise-multiplier must be above 0: without noise no finite epsilon holds");
  const auto make = query.known_coins ? privacy::Event::KnownCoin : privacy::Event::PoissonGaussian;
  const CountedEvent one{make(*query.noise_multiplier, query.sampling_rate), query.steps};
  TACIT_RETURN_IF_ERROR(one.event.Validate());
  return std::vector<CountedEvent>{one};
}

Result<Said> AskPld(const Query& query, const std::vector<CountedEvent>& events) {
  privacy::PldAccountant accountant(AdjacencyOf(query));
  for (const auto& [event, count] : events) TACIT_RETURN_IF_ERROR(accountant.Add(event, count));
  TACIT_ASSIGN(const privacy::CertifiedInterval found, accountant.Epsilon(Delta(query.delta)));
  return Said{found.upper, found.lower, {}, false};
}

Result<Said> AskRdp(const Query& query, const std::vector<CountedEvent>& events) {
  privacy::RdpAccountant accountant;
  if (!query.orders.empty()) {
    TACIT_ASSIGN(accountant, privacy::RdpAccountant::WithOrders(query.orders));
  }
  for (const auto& [event, count] : events) TACIT_RETURN_IF_ERROR(accountant.Add(event, count));
  const auto answer = accountant.Epsilon(Delta(query.delta));
  if (!std::isfinite(answer.epsilon))
    return Fail(ErrorCode::kInvalidArgument, "none of the orders gives a bound");
  return Said{answer.epsilon, {}, answer.order, false};
}

Result<Said> AskGaussian(const Query& query, const std::vector<CountedEvent>& events) {
  double mu_squared = 0;
  for (const auto& [event, count] : events) {
    if (event.noise_multiplier == 0 || event.sampling_rate != 1 || event.steps != 1)
      return Fail(ErrorCode::kInvalidArgument,
                  "--accountant gaussian takes Gaussians without sampling only");
    mu_squared += static_cast<double>(count) / event.noise_multiplier / event.noise_multiplier;
  }
  const double epsilon = privacy::GaussianEpsilon(std::sqrt(mu_squared), Delta(query.delta)).value;
  return Said{epsilon, epsilon, {}, false};
}

Result<Said> AskGdp(const Query& query, const std::vector<CountedEvent>& events) {
  if (events.size() != 1 || events[0].event.noise_multiplier == 0 || events[0].event.steps != 1)
    return Fail(ErrorCode::kInvalidArgument, "--accountant gdp takes one kind of Gaussian only");
  const auto& [event, count] = events[0];
  const double epsilon = privacy::GdpCltEpsilonEstimate(event.noise_multiplier, event.sampling_rate,
                                                        count, Delta(query.delta));
  return Said{epsilon, {}, {}, true};
}

Result<Said> Ask(const Query& query) {
  TACIT_RETURN_IF_ERROR(Check(query));
  TACIT_ASSIGN(const std::vector<CountedEvent> events, EventsOf(query));
  if (query.accountant == "pld") return AskPld(query, events);
  if (query.accountant == "rdp") return AskRdp(query, events);
  if (query.accountant == "gdp") return AskGdp(query, events);
  return AskGaussian(query, events);
}

Result<int> PrintEpsilon(const Query& query) {
  TACIT_ASSIGN(Said said, Ask(query));
  if (query.known_coins && query.noise_multiplier)
    said.claimed = privacy::GdpCltEpsilonEstimate(*query.noise_multiplier, query.sampling_rate,
                                                  query.steps, Delta(query.delta));
  if (query.json) {
    boost::json::object object{{"accountant", query.accountant},
                               {"epsilon", console::FiniteOrNull(said.epsilon)},
                               {"delta", query.delta}};
    if (said.lower) object["epsilon_lower"] = console::FiniteOrNull(*said.lower);
    if (said.order) object["order"] = *said.order;
    if (said.is_estimate) object["estimate"] = true;
    if (said.claimed) object["epsilon_clt_estimate"] = console::FiniteOrNull(*said.claimed);
    fmt::print("{}\n", boost::json::serialize(object));
    return int{console::kExitDone};
  }
  fmt::print("epsilon {:.6g} at delta {} ({}", said.epsilon, query.delta, query.accountant);
  if (said.lower) fmt::print("; no less than {:.6g}", *said.lower);
  if (said.order) fmt::print("; order {:.4g}", *said.order);
  fmt::print("{})\n", said.is_estimate ? "; an ESTIMATE, not a bound" : "");
  if (said.claimed)
    fmt::print(
        "Coins that are known amplify nothing. With secret ones the limit theorem's figure, an "
        "ESTIMATE and no bound, would be {:.6g}.\n",
        *said.claimed);
  return int{console::kExitDone};
}

Result<double> Calibrate(const Query& query) {
  TACIT_RETURN_IF_ERROR(Check(query));
  if (!(query.epsilon > 0) || !std::isfinite(query.epsilon))
    return Fail(ErrorCode::kInvalidArgument, "--epsilon must be above 0 and finite");
  privacy::CalibrationTarget target{query.epsilon, query.delta, query.sampling_rate, query.steps};
  if (!query.events.empty()) {
    TACIT_ASSIGN(target.beside, ReadEvents(query.events));
  }
  if (query.accountant == "pld") return privacy::CalibratePld(target, AdjacencyOf(query));
  if (query.accountant == "rdp") return privacy::CalibrateRdp(target, query.orders);
  return privacy::CalibrateOnce(target);
}

Result<int> PrintNoise(const Query& query) {
  if (query.sigma_ratio && !(*query.sigma_ratio > 0 && std::isfinite(*query.sigma_ratio)))
    return Fail(ErrorCode::kInvalidArgument, "--sigma-ratio must be above 0 and finite");
  TACIT_ASSIGN(const double noise, Calibrate(query));
  std::optional<mechanism::SigmaSplit> split;
  if (query.sigma_ratio) split = mechanism::SplitSigma(noise, *query.sigma_ratio);
  if (query.json) {
    boost::json::object object{{"noise_multiplier", noise}};
    if (split) object["sigma_selection"] = split->selection;
    if (split) object["sigma_gradient"] = split->gradient;
    fmt::print("{}\n", boost::json::serialize(object));
    return int{console::kExitDone};
  }
  fmt::print("noise multiplier {:.8g} keeps {} step(s) at epsilon {} with delta {} ({})\n", noise,
             query.steps, query.epsilon, query.delta, query.accountant);
  if (split)
    fmt::print("of AdaFEST's two queries of a step: selection {:.8g}, gradient {:.8g}\n",
               split->selection, split->gradient);
  return int{console::kExitDone};
}

void AddCommon(CLI::App* command, const std::shared_ptr<Query>& query,
               const std::vector<std::string>& accountants, const std::string& help) {
  command->add_option("--accountant", query->accountant, help)
      ->check(CLI::IsMember(accountants))
      ->capture_default_str();
  command->add_option("--sampling-rate", query->sampling_rate, "Share of units in a step")
      ->default_val(1);
  command->add_option("--steps", query->steps, "Steps one unit takes part in")
      ->default_val(1)
      ->check(WholeNumberFrom(1, 1'000'000'000'000'000));
  command->add_option("--delta", query->delta, "Probability that the bound may fail")->required();
  command->add_option("--orders", query->orders, "Orders of rdp, separated by commas")
      ->delimiter(',');
  command->add_option("--adjacency", query->adjacency, "Which data sets are neighbours (pld)")
      ->check(CLI::IsMember({"add-remove", "replace-one"}))
      ->capture_default_str();
  command->add_flag("--json", query->json, "Print JSON");
}

}  // namespace

void AddPrivacy(CLI::App& cli, Action* chosen) {
  auto* command = cli.add_subcommand("privacy", "What noise costs and what a promise needs");
  command->require_subcommand(1);

  auto asked = std::make_shared<Query>();
  auto* epsilon = command->add_subcommand("epsilon", "Epsilon of a noise multiplier, or of events");
  AddCommon(epsilon, asked, {"gaussian", "rdp", "pld", "gdp"},
            "pld: certified from both sides; rdp; gaussian: exact, for `once`; gdp: an estimate");
  auto* noise = epsilon->add_option("--noise-multiplier", asked->noise_multiplier,
                                    "Noise / sensitivity of each step");
  auto* coins = epsilon->add_flag("--known-coins", asked->known_coins,
                                  "Observers know which steps a unit was sampled in");
  auto* events = epsilon->add_option("--events", asked->events, "File of events, a JSON a line");
  events->excludes(noise)
      ->excludes(coins)
      ->excludes(epsilon->get_option("--steps"))
      ->excludes(epsilon->get_option("--sampling-rate"));
  epsilon->footer(
      "Examples:\n  tacit privacy epsilon --accountant pld --noise-multiplier 1 --sampling-rate "
      "0.01 --steps 1000 --delta 1e-6 --json\n  tacit privacy epsilon --events events.jsonl "
      "--delta 1e-6");
  epsilon->callback([asked, chosen] { *chosen = [asked] { return PrintEpsilon(*asked); }; });

  auto wanted = std::make_shared<Query>();
  auto* calibrate = command->add_subcommand("calibrate", "Least noise that keeps a promise");
  AddCommon(calibrate, wanted, {"gaussian", "rdp", "pld"},
            "pld, rdp, or gaussian (exact, for `once`); an estimate promises nothing");
  calibrate->add_option("--epsilon", wanted->epsilon, "The promise")->required();
  calibrate->add_option("--beside", wanted->events,
                        "File of events that the promise pays for too, a JSON a line");
  calibrate->add_option("--sigma-ratio", wanted->sigma_ratio,
                        "Also divide it between AdaFEST's queries: selection / gradient");
  calibrate->footer(
      "Examples:\n  tacit privacy calibrate --accountant pld --epsilon 8 --sampling-rate 0.01 "
      "--steps 1000 --delta 1e-6\n  tacit privacy calibrate --accountant gaussian --epsilon 8 "
      "--delta 1e-7 --sigma-ratio 3 --json\n  tacit privacy calibrate --epsilon 8 --sampling-rate "
      "0.01 --steps 1000 --delta 1e-6 --beside histogram.jsonl");
  calibrate->callback([wanted, chosen] { *chosen = [wanted] { return PrintNoise(*wanted); }; });

  AddPrivacyPlan(command, chosen);
  AddPrivacyReport(command, chosen);
}

}  // namespace tacit::cli
