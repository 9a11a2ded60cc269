#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "base/text.h"
#include "cli/parts/ask_checkpoint.h"
#include "cli/parts/ask_daemon.h"
#include "cli/parts/command.h"
#include "cli/query/query_file.h"
#include "cli/query/query_recommend.h"
#include "config/text_file.h"
#include "console/exit_code.h"
#include "console/number_check.h"
#include "event/codec.h"
#include "serve/answers/score_answer.h"
#include "wiring/assembly.h"
#include "wiring/plans/codec.h"
#include "wiring/plans/source.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

struct QueryScoreOptions {
  std::string url, checkpoint, config, witness, learner, request, tsv;
  std::vector<std::string> rows;
  uint64_t first = 0, count = 3;
  bool json = false;
  QueryFileOptions file;
};

// The records to score, as the stream has them, and where they are from.
struct LinesToScore {
  std::vector<std::string> text;
  std::string file = {};    // if empty, they are of --row
  uint64_t first_line = 1;  // of the file

  // "FILE:LINE", or "row N".
  std::string PlaceOf(size_t i) const {
    return file.empty() ? fmt::format("row {} (a record as the stream has it)", i + 1)
                        : fmt::format("{}:{}", file, first_line + i);
  }
};

// The lines to score: those given by --row, or a range of lines of the --tsv log. A line that
// cannot be read ends it, with its place.
Result<LinesToScore> ReadLines(const QueryScoreOptions& options) {
  LinesToScore lines{.text = options.rows};
  if (!options.rows.empty()) return lines;
  lines.file = options.tsv;
  lines.first_line = options.first + 1;
  config::Source log;
  log.files = {options.tsv};
  TACIT_ASSIGN(const auto source, wiring::OpenSource(log));
  Status sought = source->Seek(std::vector<stream::PartitionOffset>{{0, options.first}});
  if (!sought) return BadUsage(fmt::format("{}: {}", options.tsv, sought.error().message));
  event::RawRecords records;
  while (lines.text.size() < options.count) {
    TACIT_ASSIGN(const auto outcome, source->Poll(std::chrono::milliseconds(1000), &records));
    if (outcome == stream::PollOutcome::kEnd) break;
    auto fault = records.faults.begin();
    for (size_t i = 0; i < records.size() && lines.text.size() < options.count; ++i) {
      if (fault != records.faults.end() && fault->index == i)
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("{}: {}", lines.PlaceOf(lines.text.size()), fault->reason));
      lines.text.emplace_back(records[i]);
    }
  }
  if (lines.text.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} has no line {}", options.tsv, options.first + 1));
  return lines;
}

std::string JoinLines(const std::vector<std::string>& lines) {
  std::string body;
  for (const std::string& line : lines) body += line + "\n";
  return body;
}

// The lines as the configuration's source has records: source.format says how they are read.
Result<event::Batch> Decode(const wiring::Assembly& assembly, const LinesToScore& lines) {
  event::RawRecords records;
  records.origin = lines.file;
  records.origin_line = 1;
  for (const std::string& line : lines.text) {
    records.bytes += line;
    records.end.push_back(static_cast<uint32_t>(records.bytes.size()));
  }
  event::Batch batch;
  std::vector<event::DeadLetter> dead;
  assembly.transform->StartBatch(&batch);
  wiring::MakeCodec(assembly.config.source, *assembly.transform, /*items=*/nullptr,
                    event::LabelUse::kPassedOver)
      ->Decode(records, &batch, &dead);
  if (!dead.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: {}", lines.PlaceOf(dead[0].line - 1), dead[0].reason));
  return batch;
}

// Asks a daemon. It names a bad line by its number in the request.
Result<json::object> ScoreByDaemon(const QueryScoreOptions& options, const LinesToScore& lines) {
  TACIT_ASSIGN(const http::Response response,
               AskDaemon(options.url, "/v1/score/lines?learner=" + options.learner, "POST",
                         JoinLines(lines.text)));
  if (response.status == 400)
    if (const auto bad = FindRefusedLine(MessageOf(response));
        bad && bad->number <= lines.text.size())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: {}", lines.PlaceOf(bad->number - 1), bad->reason));
  return ReadAnswer(options.url, response.status, response.body);
}

// Scores with the model of a directory, without a daemon.
Result<json::object> ScoreCheckpoint(const QueryScoreOptions& options, const LinesToScore& lines) {
  return AskCheckpoint(
      {options.checkpoint, options.config, options.witness},
      [&](const wiring::Assembly& assembly,
          const std::shared_ptr<const store::Snapshot>& snapshot) -> Result<http::Reply> {
        TACIT_ASSIGN(const event::Batch batch, Decode(assembly, lines));
        return serve::ScoreOnce(wiring::MakeScoringModels(assembly), *snapshot, options.learner,
                                batch, wiring::MakeRecommendModels(assembly));
      });
}

void PrintAnswer(const json::object& answer, const std::vector<std::string>& lines) {
  const json::array& scores = answer.at("scores").as_array();
  const std::string predicts = Printable(std::string_view(answer.at("predicts").as_string()));
  for (size_t i = 0; i < scores.size(); ++i) {
    const std::string_view line = i < lines.size() ? std::string_view(lines[i]) : "";
    fmt::print("probability of {} {:.4f}   {}\n", predicts, scores[i].to_number<double>(),
               line.substr(0, 70));
  }
  PrintModel(answer);
}

// The body that was given, or with `@FILE` the file's.
Result<std::string> RequestBody(const std::string& given) {
  if (!given.starts_with('@')) return given;
  const std::string path = given.substr(1);
  auto body = config::ReadTextFile(path);
  if (!body) return Fail(ErrorCode::kInvalidArgument, "--request: cannot read " + path);
  if (body->empty()) return Fail(ErrorCode::kInvalidArgument, "--request: " + path + " is empty");
  return body;
}

Result<int> Score(const QueryScoreOptions& options) {
  if (options.file.is_asked()) {
    if (!options.rows.empty() || !options.tsv.empty() || !options.request.empty())
      return BadUsage("--input stands alone: leave out --row, --tsv and --request");
    return ScoreFile(
        {options.url, options.checkpoint, options.config, options.witness, options.learner},
        options.file);
  }
  if (!options.checkpoint.empty() && options.config.empty())
    return Fail(ErrorCode::kInvalidArgument,
                "--checkpoint needs --config: the schema says how a row is read");
  LinesToScore lines;
  TACIT_ASSIGN(const std::string request, RequestBody(options.request));
  if (request.empty()) {
    if (options.rows.empty() && options.tsv.empty())
      return Fail(ErrorCode::kInvalidArgument, "nothing to score: give --row, --tsv or --request");
    TACIT_ASSIGN(lines, ReadLines(options));
  } else if (options.url.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "--request goes with --url");
  }
  json::object answer;
  if (!options.url.empty()) {
    TACIT_ASSIGN(answer, lines.text.empty() ? AskDaemonForJson(options.url, "/v1/score", request)
                                            : ScoreByDaemon(options, lines));
  } else {
    TACIT_ASSIGN(answer, ScoreCheckpoint(options, lines));
  }
  if (options.json) {
    fmt::print("{}\n", json::serialize(answer));
    return int{console::kExitDone};
  }
  try {
    PrintAnswer(answer, lines.text);
  } catch (const std::exception&) {  // JSON of another shape
    return Fail(ErrorCode::kIo, fmt::format("{} does not answer as tacitd does", options.url));
  }
  return int{console::kExitDone};
}

}  // namespace

void AddQuery(CLI::App& cli, Action* chosen) {
  auto* command = cli.add_subcommand("query", "Ask a model");
  command->require_subcommand(1);
  auto options = std::make_shared<QueryScoreOptions>();
  auto* score = command->add_subcommand("score", "Probabilities of the label, for rows");
  auto* where = score->add_option_group("where");
  where->add_option("--url", options->url, "A running daemon: http://HOST:PORT or unix:/PATH");
  where->add_option("--checkpoint", options->checkpoint, "A store or checkpoint directory");
  where->require_option(1);
  score->add_option("--config", options->config, "Configuration, for --checkpoint");
  score->add_option("--witness", options->witness, "Witness file, for --checkpoint");
  score->add_option("--learner", options->learner, "Which learner")->required();
  score->add_option(
      "--row", options->rows,
      "A record as the stream has it, in source.format (repeatable); label passed over");
  score->add_option("--tsv", options->tsv,
                    "Take records from this log of the stream's format, plain or gzip");
  score
      ->add_option("--first", options->first, "First line of --tsv, from 0; 1 passes over a header")
      ->default_val(0)
      ->check(console::WholeFrom(0));
  score->add_option("--count", options->count, "Lines of --tsv")
      ->default_val(3)
      ->check(console::WholeFrom(1), "POSITIVE");
  score->add_option("--request", options->request,
                    "A whole JSON body for POST /v1/score; @FILE: the file's");
  score->add_flag("--json", options->json, "Print JSON");
  AddQueryFileOptions(score, &options->file);
  score->footer(
      "Examples:\n  tacit query score --url http://127.0.0.1:8980 --learner ctr --tsv "
      "demo-data/log/day-23.tsv.gz --count 3\n  tacit query score --checkpoint demo-data/store "
      "--config config/demo.yaml --learner ctr --tsv demo-data/log/day-23.tsv.gz\n  tacit query "
      "score "
      "--url http://127.0.0.1:8980 --learner ctr --input records.jsonl --output scores.jsonl");
  score->callback([options, chosen] { *chosen = [options] { return Score(*options); }; });
  AddQueryRecommend(*command, chosen);
}

}  // namespace tacit::cli
