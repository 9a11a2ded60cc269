#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bench/suite.h"
#include "console/number_check.h"

namespace tacit::cli {

// The action of a command line. The chosen subcommand sets it; main runs it.
using Action = std::function<Result<int>()>;

// The failure for a command line that asks for something that does not exist.
inline tl::unexpected<Error> BadUsage(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

// The check of an option that takes numbers from `least` to `most`, which --help names. CLI11's own
// lets a NaN pass.
inline CLI::Validator NumberFrom(double least, double most) {
  return CLI::Validator(console::Between(least, most),
                        fmt::format("FLOAT in [{:g} - {:g}]", least, most));
}

// The same of an option that takes whole numbers.
inline CLI::Validator WholeNumberFrom(uint64_t least, uint64_t most) {
  return CLI::Validator(console::WholeBetween(least, most),
                        fmt::format("in [{} - {}]", least, most));
}

// Each adds its subcommand: options, examples, and the action to run when it is chosen.
void AddGenerate(CLI::App& cli, Action* chosen);
void AddReplay(CLI::App& cli, Action* chosen);
void AddInspect(CLI::App& cli, Action* chosen);
void AddQuery(CLI::App& cli, Action* chosen);
void AddLedger(CLI::App& cli, Action* chosen);
void AddWeights(CLI::App& cli, Action* chosen);
void AddCheckpoint(CLI::App& cli, Action* chosen);
void AddFeed(CLI::App& cli, Action* chosen);
void AddUser(CLI::App& cli, Action* chosen);
void AddToken(CLI::App& cli, Action* chosen);
void AddVersions(CLI::App& cli, Action* chosen);
void AddWorkers(CLI::App& cli, Action* chosen);
void AddStore(CLI::App& cli, Action* chosen);
void AddPrivacy(CLI::App& cli, Action* chosen);
void AddEvaluate(CLI::App& cli, Action* chosen);
void AddAudit(CLI::App& cli, Action* chosen);
// `more` stand beside those of bench::AllBenches.
void AddBench(CLI::App& cli, std::vector<bench::Bench> more, Action* chosen);

}  // namespace tacit::cli
