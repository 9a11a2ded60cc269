#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <memory>

#include "app/commands/command.h"
#include "app/exit_code.h"
#include "privacy/gaussian.h"

namespace tacit::app {
namespace {

struct Query {
  std::string accountant;
  double noise_multiplier = 0, epsilon = 0, delta = 0, sampling_rate = 1;
  uint64_t steps = 1;
  bool json = false;
};

// The exact accountant bills every participation in full; what it would say of a sampled step is
// not what the step costs.
Status CheckGaussian(const Query& query) {
  if (query.sampling_rate != 1)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--accountant gaussian knows no sampling: --sampling-rate must be 1, "
                            "with --steps the number of participations of one unit (got {})",
                            query.sampling_rate));
  if (!(query.delta > 0 && query.delta < 1))
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("--delta must lie between 0 and 1, both excluded (got {})", query.delta));
  if (query.steps == 0) return Fail(ErrorCode::kInvalidArgument, "--steps must be at least 1");
  return {};
}

Result<int> PrintEpsilon(const Query& query) {
  TACIT_RETURN_IF_ERROR(CheckGaussian(query));
  if (!(query.noise_multiplier > 0))
    return Fail(ErrorCode::kInvalidArgument,
                "--noise-multiplier must be above 0: without noise no finite epsilon holds");
  const double mu = std::sqrt(static_cast<double>(query.steps)) / query.noise_multiplier;
  const double epsilon = privacy::GaussianEpsilon(mu, Delta(query.delta)).value;
  if (query.json) {
    fmt::print("{}\n", boost::json::serialize(boost::json::object{{"accountant", query.accountant},
                                                                  {"epsilon", epsilon},
                                                                  {"epsilon_lower", epsilon},
                                                                  {"delta", query.delta}}));
  } else {
    fmt::print("epsilon {:.6g} at delta {}: {} participation(s) with noise multiplier {}, exact\n",
               epsilon, query.delta, query.steps, query.noise_multiplier);
  }
  return int{kExitDone};
}

Result<int> PrintNoise(const Query& query) {
  TACIT_RETURN_IF_ERROR(CheckGaussian(query));
  if (!(query.epsilon > 0) || !std::isfinite(query.epsilon))
    return Fail(ErrorCode::kInvalidArgument, "--epsilon must be above 0 and finite");
  const double noise =
      privacy::CalibrateGaussian(Epsilon(query.epsilon), Delta(query.delta), query.steps).value;
  if (query.json) {
    fmt::print("{}\n", boost::json::serialize(boost::json::object{{"noise_multiplier", noise}}));
  } else {
    fmt::print("noise multiplier {:.8g} keeps {} participation(s) at epsilon {} with delta {}\n",
               noise, query.steps, query.epsilon, query.delta);
  }
  return int{kExitDone};
}

void AddCommon(CLI::App* command, const std::shared_ptr<Query>& query) {
  command->add_option("--accountant", query->accountant, "gaussian: exact, for `once`")
      ->required()
      ->check(CLI::IsMember({"gaussian"}));
  command->add_option("--sampling-rate", query->sampling_rate, "Share of units in a step")
      ->default_val(1);
  command->add_option("--steps", query->steps, "Steps one unit takes part in")->default_val(1);
  command->add_option("--delta", query->delta, "Probability that the bound may fail")->required();
  command->add_flag("--json", query->json, "Print JSON");
}

}  // namespace

void AddPrivacy(CLI::App& cli, Action* chosen) {
  auto* command = cli.add_subcommand("privacy", "What noise costs and what a promise needs");
  command->require_subcommand(1);
  auto query = std::make_shared<Query>();

  auto* epsilon = command->add_subcommand("epsilon", "Epsilon of a noise multiplier");
  AddCommon(epsilon, query);
  epsilon->add_option("--noise-multiplier", query->noise_multiplier, "Noise / sensitivity")
      ->required();
  epsilon->footer(
      "Example:\n  tacit privacy epsilon --accountant gaussian --noise-multiplier 0.7 --steps 1 "
      "--delta 1e-6 --json");
  epsilon->callback([query, chosen] { *chosen = [query] { return PrintEpsilon(*query); }; });

  auto* calibrate = command->add_subcommand("calibrate", "Least noise that keeps a promise");
  AddCommon(calibrate, query);
  calibrate->add_option("--epsilon", query->epsilon, "The promise")->required();
  calibrate->footer(
      "Example:\n  tacit privacy calibrate --accountant gaussian --epsilon 8 --steps 1 --delta "
      "1e-6");
  calibrate->callback([query, chosen] { *chosen = [query] { return PrintNoise(*query); }; });
}

}  // namespace tacit::app
