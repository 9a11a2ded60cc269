#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <memory>

#include "base/text.h"
#include "bench/suite.h"
#include "cli/parts/command.h"
#include "console/exit_code.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

struct BenchOptions {
  std::vector<std::string> names;
  std::string brokers, topic;
  bool json = false, quick = false;
};

json::object RowJson(const bench::BenchRow& row) {
  json::object object{
      {"name", row.name},
      {"value", row.value},
      {"unit", row.unit},
      {"limit", row.limit ? json::value(*row.limit) : json::value(nullptr)},
      {"share", row.limit ? json::value(row.value / *row.limit) : json::value(nullptr)}};
  for (const auto& [key, value] : row.more) object[key] = value;
  return object;
}

void Print(const bench::BenchRow& row) {
  fmt::print("{:<32} {:>14.4g} {:<24}", row.name, row.value, row.unit);
  if (row.limit) fmt::print(" {:>5.1f} % of {:.4g}", 100 * row.value / *row.limit, *row.limit);
  fmt::print("{}{}\n", row.note.empty() ? "" : " ", row.note);
  std::fflush(stdout);
}

// Says whether a benchmark is asked for by this name: its own, or that of its group, "gpu" for
// "gpu-noise".
bool IsNamedBy(std::string_view bench, std::string_view name) {
  return bench == name || (bench.starts_with(name) && bench.substr(name.size()).starts_with('-'));
}

Status CheckNames(const std::vector<std::string>& names, const std::vector<bench::Bench>& benches) {
  std::vector<std::string_view> known;
  for (const bench::Bench& bench : benches) known.push_back(bench.name);
  for (const std::string& name : names)
    if (std::ranges::none_of(known, [&](std::string_view is) { return IsNamedBy(is, name); }))
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("no benchmark '{}'{}", name, DidYouMean(name, known)));
  return {};
}

Result<int> Run(const std::vector<bench::Bench>& benches, const BenchOptions& options) {
  TACIT_RETURN_IF_ERROR(CheckNames(options.names, benches));
  json::array rows;
  for (const bench::Bench& bench : benches) {
    const auto& names = options.names;
    const bool named = std::ranges::any_of(
        names, [&](const std::string& name) { return IsNamedBy(bench.name, name); });
    if (!named && (!names.empty() || bench.when_named)) continue;
    TACIT_ASSIGN(
        const std::vector<bench::BenchRow> measured,
        bench.run({.quick = options.quick, .brokers = options.brokers, .topic = options.topic}));
    for (const bench::BenchRow& row : measured) {
      rows.push_back(RowJson(row));
      if (!options.json) Print(row);
    }
  }
  if (options.json) fmt::print("{}\n", json::serialize(json::object{{"rows", std::move(rows)}}));
  return int{console::kExitDone};
}

}  // namespace

void AddBench(CLI::App& cli, std::vector<bench::Bench> more, Action* chosen) {
  std::vector<bench::Bench> benches = bench::AllBenches();
  std::ranges::move(more, std::back_inserter(benches));
  auto* command = cli.add_subcommand(
      "bench", "How fast this machine runs it, as a share of the machine's own limits");
  auto options = std::make_shared<BenchOptions>();
  std::string footer = "Benchmarks:\n";
  for (const bench::Bench& bench : benches)
    footer += fmt::format("  {:<14} {}\n", bench.name, bench.what);
  command->add_option("name", options->names,
                      "Which ones, or a group of them, as gpu; all when none is named");
  command->add_flag("--quick", options->quick,
                    "Fewer steps where a benchmark takes minutes: to see that it works");
  command->add_option("--brokers", options->brokers,
                      "Of the topic for kafka or feed: HOST:PORT,...");
  command->add_option(
      "--topic", options->topic,
      "For kafka: a topic of Criteo lines, read only; for feed: an empty topic of 4 partitions");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(footer +
                  "Examples:\n  tacit bench step --json\n"
                  "  tacit bench kafka --brokers 127.0.0.1:9092 --topic clicks");
  command->callback([benches, options, chosen] {
    *chosen = [benches, options] { return Run(benches, *options); };
  });
}

}  // namespace tacit::cli
