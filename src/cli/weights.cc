#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <memory>

#include "base/text.h"
#include "cli/parts/ask_checkpoint.h"
#include "cli/parts/ask_daemon.h"
#include "cli/parts/command.h"
#include "console/exit_code.h"
#include "console/number_check.h"
#include "console/text_table.h"
#include "event/feature_transform.h"
#include "serve/answers/learner_kinds.h"
#include "serve/routes/weights_route.h"
#include "wiring/assembly.h"
#include "wiring/plans/codec.h"
#include "wiring/plans/vocabulary_file.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

struct WeightsOptions {
  std::string url, checkpoint, config, witness, learner, column, names;
  uint64_t top = 20;
  bool json = false;
};

// Names of values by column and number. Several values may share a number: a bucket holds all that
// hash to it.
using ValueNames = std::map<std::pair<std::string, uint64_t>, std::string>;

Result<ValueNames> ReadNames(const WeightsOptions& options) {
  ValueNames names;
  if (options.names.empty()) return names;
  TACIT_ASSIGN(const config::Config config,
               config::Load(options.config, {}, config::LogFiles::kUnread));
  const event::FeatureTransform transform(wiring::MakeSchema(config.features));
  auto values = wiring::ReadNamedValues(options.names, transform);
  if (!values) return Fail(std::move(values.error()).Context("--names"));
  for (const wiring::NamedValue& value : *values) {
    std::string& name = names[{transform.row_space().tables()[value.table].name, value.bucket}];
    name += name.empty() ? value.value : ", " + value.value;
  }
  return names;
}

std::string QueryOf(const WeightsOptions& options) {
  std::string column;
  for (const char c : options.column) column += fmt::format("%{:02x}", static_cast<uint8_t>(c));
  return fmt::format("learner={}&column={}&top={}", options.learner, column, options.top);
}

Result<json::object> Ask(const WeightsOptions& options) {
  if (options.url.empty())
    return AskCheckpoint(
        {options.checkpoint, options.config, options.witness},
        [&](const wiring::Assembly& assembly,
            const std::shared_ptr<const store::Snapshot>& snapshot) -> Result<http::Reply> {
          http::Reply reply;
          serve::AnswerWeights(wiring::MakeScoringModels(assembly),
                               serve::AskedForItems(wiring::MakeRecommendModels(assembly)),
                               *snapshot, QueryOf(options), &reply);
          return reply;
        });
  TACIT_ASSIGN(const http::Response response,
               AskDaemon(options.url, "/v1/weights?" + QueryOf(options), "GET", ""));
  return ReadAnswer(options.url, response.status, response.body);
}

std::string ValueText(const json::object& weight, const ValueNames& names) {
  if (const json::value* of = weight.if_contains("of"))
    return fmt::format("{} * {}", ValueText(of->at(0).as_object(), names),
                       ValueText(of->at(1).as_object(), names));
  if (weight.contains("missing")) return "missing";
  if (const json::value* least = weight.if_contains("at_least"))
    return least->is_null() ? "lowest" : fmt::format(">= {:.4g}", least->to_number<double>());
  const auto value = weight.at("value").to_number<uint64_t>();
  const auto name = names.find({std::string(weight.at("column").as_string()), value});
  return name == names.end() ? fmt::format("#{}", value) : name->second;
}

void Print(const json::object& answer, const ValueNames& names) {
  console::TextLines lines = {{"column", "value", "weight", "+-", "events", "period"}};
  for (const json::value& each : answer.at("weights").as_array()) {
    const json::object& weight = each.as_object();
    lines.push_back({std::string(weight.at("column").as_string()), ValueText(weight, names),
                     fmt::format("{:+.3f}", weight.at("weight").to_number<double>()),
                     fmt::format("{:.3f}", weight.at("deviation").to_number<double>()),
                     fmt::format("{:.0f}", weight.at("events").to_number<double>()),
                     fmt::format("{}", weight.at("period").to_number<uint64_t>())});
  }
  fmt::print("{}", console::LayOut(lines, {0, 1}));
  fmt::print("log-odds of {}: bias {:+.3f} after {} periods; events are noised counts\n",
             Printable(std::string_view(answer.at("predicts").as_string())),
             answer.at("bias").to_number<double>(), answer.at("periods").to_number<uint64_t>());
  if (names.empty() &&
      std::ranges::any_of(lines, [](const auto& line) { return line[1].starts_with('#'); }))
    fmt::print(
        "a value without a name is a number: --names FILE has names, and tacit inspect "
        "--names writes that list\n");
  PrintModel(answer);
}

Result<int> Weights(const WeightsOptions& options) {
  if (options.url.empty() && options.config.empty())
    return BadUsage("--checkpoint needs --config: the schema says what the columns are");
  if (!options.names.empty() && options.config.empty())
    return BadUsage("--names needs --config: the schema says where a value's weight is");
  TACIT_ASSIGN(const ValueNames names, ReadNames(options));
  TACIT_ASSIGN(const json::object answer, Ask(options));
  if (options.json) {
    fmt::print("{}\n", json::serialize(answer));
    return int{console::kExitDone};
  }
  try {
    Print(answer, names);
  } catch (const std::exception&) {  // JSON of another shape
    return Fail(ErrorCode::kIo, fmt::format("{} does not answer as tacitd does", options.url));
  }
  return int{console::kExitDone};
}

}  // namespace

void AddWeights(CLI::App& cli, Action* chosen) {
  auto options = std::make_shared<WeightsOptions>();
  auto* command = cli.add_subcommand("weights", "The weights of a linear model, largest first");
  auto* where = command->add_option_group("where");
  where->add_option("--url", options->url,
                    "A running daemon's listener for operators: http://HOST:PORT or unix:/PATH");
  where->add_option("--checkpoint", options->checkpoint, "A store or checkpoint directory");
  where->require_option(1);
  command->add_option("--config", options->config, "Configuration, for --checkpoint and --names");
  command->add_option("--witness", options->witness, "Witness file, for --checkpoint");
  command->add_option("--learner", options->learner, "Which learner")->required();
  command->add_option("--column", options->column, "Only this column");
  command->add_option("--top", options->top, "How many")
      ->default_val(20)
      ->check(console::WholeFrom(1), "POSITIVE");
  command->add_option("--names", options->names,
                      "A file of lines feature<TAB>value, as tacit inspect --names writes it: a "
                      "weight of such a value is shown by the value in place of its number; needs "
                      "--config");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "All that is shown has been released with noise and is paid for, so that it may be shown to "
      "anyone.\nA value's number is its hash bucket; a column of numbers shows where a bin "
      "begins, a crossed column both values.\n"
      "Examples:\n  tacit weights --url http://127.0.0.1:8981 --learner sums --column C3 --top 10\n"
      "  tacit inspect shop.csv --names shop.names\n"
      "  tacit weights --url http://127.0.0.1:8981 --learner clicks --config shop.yaml --names "
      "shop.names");
  command->callback([options, chosen] { *chosen = [options] { return Weights(*options); }; });
}

}  // namespace tacit::cli
