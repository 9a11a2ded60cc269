#include "cli/query/query_recommend.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cli/parts/ask_checkpoint.h"
#include "cli/parts/ask_daemon.h"
#include "cli/query/query_file.h"
#include "console/exit_code.h"
#include "serve/answers/recommend_route.h"
#include "wiring/assembly.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

struct QueryRecommendOptions {
  std::string url, checkpoint, config, witness, learner, user, sequence, among, exclude, genres;
  CLI::Option *user_given = nullptr, *sequence_given = nullptr, *among_given = nullptr;
  uint32_t count = 10;
  std::optional<int> year_from, year_to;
  bool include_seen = false, reasons = false, json = false;
  QueryFileOptions file;
};

// Splits "a,b,c"; returns an empty array for "".
json::array Items(std::string_view list) {
  json::array items;
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    if (!item.empty()) items.push_back(json::value(item));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
  }
  return items;
}

std::string MakeRequest(const QueryRecommendOptions& options) {
  json::object request{{"k", options.count}, {"exclude_seen", !options.include_seen}};
  if (!options.learner.empty()) request["learner"] = options.learner;
  if (options.user_given->count() > 0)
    request["user"] = options.user;
  else
    request["sequence"] = Items(options.sequence);
  if (options.among_given->count() > 0) request["among"] = Items(options.among);
  if (!options.exclude.empty()) request["exclude"] = Items(options.exclude);
  if (!options.genres.empty()) request["genres"] = Items(options.genres);
  if (options.year_from) request["year_from"] = *options.year_from;
  if (options.year_to) request["year_to"] = *options.year_to;
  if (options.reasons) request["reasons"] = true;
  return json::serialize(request);
}

// Recommends with the model of a directory, without a daemon.
Result<json::object> RecommendCheckpoint(const QueryRecommendOptions& options) {
  if (options.config.empty())
    return Fail(ErrorCode::kInvalidArgument,
                "--checkpoint needs --config, which names the catalogue of items");
  if (options.user_given->count() > 0)
    return Fail(ErrorCode::kInvalidArgument,
                "--user needs --url: only the store's daemon knows which history is this user's");
  return AskCheckpoint({options.checkpoint, options.config, options.witness},
                       [&](const wiring::Assembly& assembly,
                           std::shared_ptr<const store::Snapshot> snapshot) -> Result<http::Reply> {
                         return serve::RecommendOnce(wiring::MakeRecommendModels(assembly),
                                                     std::move(snapshot), MakeRequest(options),
                                                     wiring::MakeScoringModels(assembly));
                       });
}

void PrintAnswer(const json::object& answer) {
  size_t place = 0;
  for (const json::value& item : answer.at("items").as_array()) {
    std::string why;
    if (const json::value* const because = item.as_object().if_contains("because"))
      why = fmt::format("  after {} ({:.0f} %)", std::string(because->at("id").as_string()),
                        100 * because->at("share").to_number<double>());
    fmt::print("{:>4}  {:<24} {:.6g}{}\n", ++place, std::string(item.at("id").as_string()),
               item.at("score").to_number<double>(), why);
  }
  if (place > 0) fmt::print("the numbers put the items in order, and say nothing else\n");
  if (const json::value* const unknown = answer.if_contains("unknown_items"))
    fmt::print("not of the catalogue: {}\n", json::serialize(*unknown));
  PrintModel(answer);
  if (!answer.at("covered_by_epsilon").as_bool())
    fmt::print("no epsilon covers what was answered\n");
}

Result<int> Recommend(const QueryRecommendOptions& options) {
  const bool has_whom = options.user_given->count() + options.sequence_given->count() > 0;
  if (has_whom == options.file.is_asked())
    return BadUsage("give one of --user, --sequence, and --input with --output");
  if (options.file.is_asked())
    return RecommendFile(
        {options.url, options.checkpoint, options.config, options.witness, options.learner},
        options.file);
  json::object answer;
  if (!options.url.empty()) {
    TACIT_ASSIGN(answer, AskDaemonForJson(options.url, "/v1/recommend", MakeRequest(options)));
  } else {
    TACIT_ASSIGN(answer, RecommendCheckpoint(options));
  }
  if (options.json) {
    fmt::print("{}\n", json::serialize(answer));
    return int{console::kExitDone};
  }
  try {
    PrintAnswer(answer);
  } catch (const std::exception&) {  // JSON of another shape
    return Fail(ErrorCode::kIo, fmt::format("{} does not answer as tacitd does", options.url));
  }
  return int{console::kExitDone};
}

}  // namespace

void AddQueryRecommend(CLI::App& query, Action* chosen) {
  auto options = std::make_shared<QueryRecommendOptions>();
  auto* command = query.add_subcommand("recommend", "What comes next, for a sequence or a user");
  auto* where = command->add_option_group("where");
  where->add_option("--url", options->url, "A running daemon: http://HOST:PORT or unix:/PATH");
  where->add_option("--checkpoint", options->checkpoint, "A store or checkpoint directory");
  where->require_option(1);
  command->add_option("--config", options->config, "Configuration, for --checkpoint");
  command->add_option("--witness", options->witness, "Witness file, for --checkpoint");
  command->add_option("--learner", options->learner, "Which learner, where several recommend");
  auto* whom = command->add_option_group("whom");
  options->user_given =
      whom->add_option("--user", options->user,
                       "Recommend from this user's raw history, where the learner serves users");
  options->sequence_given = whom->add_option(
      "--sequence", options->sequence,
      "Recommend what follows these items, the latest last: a,b,c; '' is a cold start");
  whom->require_option(0, 1);
  AddQueryFileOptions(command, &options->file);
  command->add_option("--k", options->count, "How many items")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  options->among_given = command->add_option(
      "--among", options->among, "Recommend these items alone, such as what is in stock: a,b,c");
  command->add_option("--exclude", options->exclude, "Do not recommend these items: a,b,c");
  command->add_option("--genres", options->genres,
                      "Items of any of these genres alone, where the catalogue has them: a,b,c");
  command->add_option("--year-from", options->year_from, "Items of this year or later")
      ->check(CLI::Range(0, 9999));
  command->add_option("--year-to", options->year_to, "Items of this year or earlier")
      ->check(CLI::Range(0, 9999));
  command->add_flag("--reasons", options->reasons,
                    "Tell which item led to each, where the learner can");
  command->add_flag("--include-seen", options->include_seen,
                    "Recommend items of the sequence or history too");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Examples:\n  tacit query recommend --url http://127.0.0.1:8980 --learner next --sequence "
      "2571,260,1196\n  tacit query recommend --url unix:/run/tacit/tacit.sock --learner next "
      "--user u17 --k 5 --json\n  tacit query recommend --checkpoint shop/store --config "
      "config/recommend.yaml --learner counts --sequence ''\n  tacit query recommend --url "
      "http://127.0.0.1:8980 --input requests.jsonl --output items.jsonl");
  command->callback([options, chosen] { *chosen = [options] { return Recommend(*options); }; });
}

}  // namespace tacit::cli
