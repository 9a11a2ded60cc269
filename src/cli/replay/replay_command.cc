#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>

#include "base/files/log.h"
#include "base/text.h"
#include "cli/parts/command.h"
#include "cli/replay/replay.h"
#include "config/config.h"
#include "console/exit_code.h"
#include "console/number_check.h"
#include "console/stop_signals.h"
#include "console/terminal_line.h"

namespace tacit::cli {
namespace {

struct ReplayCommandOptions {
  std::string config;
  std::vector<std::string> overrides, files;
  std::string key;
  double rate = 0, speed = 0;
  std::optional<uint32_t> schema_id;
  bool again = false, json = false;
};

// "1000/s" and "1000" are the same.
Result<double> ParseRate(std::string text) {
  if (text.ends_with("/s")) text.resize(text.size() - 2);
  char* end = nullptr;
  const double rate = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(rate > 0))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--rate {}: must be lines a second, 5000/s say", text));
  return rate;
}

// The prefix with which Confluent's producers mark a value's schema: a zero byte, then the schema's
// number, most significant byte first.
std::string FrameOf(uint32_t schema_id) {
  std::string frame(1, '\0');
  for (const int shift : {24, 16, 8, 0}) frame += static_cast<char>(schema_id >> shift);
  return frame;
}

Result<ReplayOptions> MakeOptions(const ReplayCommandOptions& options,
                                  const config::Config& config) {
  const config::Source& source = config.source;
  if (source.kind != config::Source::Kind::kKafka)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: source.kind must be kafka: its topic is where lines go", options.config));
  if (!source.format_traits().is_line)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: source.format is {}, whose messages are no lines of a file",
                            options.config, source.format_traits().name));
  const bool framed = source.framing == config::Source::Framing::kConfluent;
  if (framed != options.schema_id.has_value())
    return Fail(ErrorCode::kInvalidArgument,
                framed ? "source.framing is confluent: name the lines' schema with --schema-id"
                       : "--schema-id is for source.framing confluent");
  ReplayOptions replay{.topic = source.topic,
                       .key = options.key,
                       .rate = options.rate,
                       .speed = options.speed,
                       .again = options.again,
                       .frame = framed ? FrameOf(*options.schema_id) : "",
                       .max_record_bytes = source.max_record_bytes};
  if (replay.key.empty())
    replay.key = source.format == config::Source::Format::kJson ? "user" : "none";
  TACIT_ASSIGN(replay.properties.values, config::ReadKafkaProperties(config.kafka));
  replay.properties.hidden = config::KeptElsewhere(config.kafka);
  return replay;
}

// Draws the progress line and listens for signals.
class Watcher {
 public:
  Watcher() : line_(clock_), begun_(clock_.Now()) {}

  const Clock& clock() const { return clock_; }
  bool Watch(const ReplayView& view) {
    if (line_.due() || (!view.trouble.empty() && view.trouble != trouble_)) Draw(view);
    trouble_ = view.trouble;
    return !signals_.WaitFor(std::chrono::milliseconds(0));
  }
  void End(const ReplaySummary& summary) {
    if (!line_.is_terminal()) return;
    Draw({.share = summary.complete ? 1 : share_,
          .sent = summary.sent,
          .already_there = summary.already_there,
          .trouble = ""});
    line_.End();
  }

 private:
  void Draw(const ReplayView& view) {
    share_ = view.share;
    const double rate =
        static_cast<double>(view.sent) / std::max(1e-9, Seconds(clock_.Now() - begun_));
    std::string text = fmt::format("{:3.0f} % ", 100 * view.share);
    if (line_.is_terminal()) text += fmt::format("|{}| ", console::ProgressBar(view.share));
    text += fmt::format("{} sent  {}/s", WithThousands(view.sent),
                        WithThousands(static_cast<uint64_t>(rate)));
    if (view.already_there > 0)
      text += fmt::format("  {} were there", WithThousands(view.already_there));
    if (!view.trouble.empty()) text += fmt::format("  waiting: {}", view.trouble);
    line_.Draw(text);
  }

  console::StopSignals signals_;  // before librdkafka has threads
  const SystemClock clock_;
  console::TerminalLine line_;
  const Clock::TimePoint begun_;
  double share_ = 0;
  std::string trouble_;
};

void Print(const ReplaySummary& summary, const std::string& topic, bool json) {
  const double rate = static_cast<double>(summary.sent) / std::max(1e-9, summary.seconds);
  if (json) {
    fmt::print("{}\n",
               boost::json::serialize(boost::json::object{{"topic", topic},
                                                          {"partitions", summary.partitions},
                                                          {"lines", summary.lines},
                                                          {"sent", summary.sent},
                                                          {"already_there", summary.already_there},
                                                          {"not_sent", summary.not_sent},
                                                          {"bytes", summary.bytes},
                                                          {"seconds", summary.seconds},
                                                          {"records_per_second", rate},
                                                          {"complete", summary.complete}}));
    return;
  }
  fmt::print("{} of {} lines sent to topic {} ({} partitions) in {:.1f} s, {}/s\n",
             WithThousands(summary.sent), WithThousands(summary.lines), topic, summary.partitions,
             summary.seconds, WithThousands(static_cast<uint64_t>(rate)));
  if (summary.already_there > 0)
    fmt::print("{} were there from a replay before this one; --again sends them once more\n",
               WithThousands(summary.already_there));
  if (summary.not_sent > 0) fmt::print("{} could not be sent\n", WithThousands(summary.not_sent));
  if (!summary.complete) fmt::print("stopped; the same command resumes from there\n");
}

Result<int> RunReplay(const ReplayCommandOptions& options) {
  TACIT_ASSIGN(const config::Config config, config::Load(options.config, options.overrides));
  // The daemon's routine log records would break up the progress line.
  InitLogging(config.log.format == "json" ? LogFormat::kJson : LogFormat::kText,
              config.log.level == "info" ? "warning" : config.log.level);
  TACIT_ASSIGN(const ReplayOptions replay, MakeOptions(options, config));
  TACIT_ASSIGN(const std::vector<ReplayFile> files, LookAtFiles(options.files));
  const bool timed = replay.speed > 0;
  TACIT_ASSIGN(const auto fields, MakeLineFields(config, replay.key, timed));
  Watcher watcher;
  TACIT_ASSIGN(const ReplaySummary summary,
               Replay(replay, files, *fields, watcher.clock(),
                      [&](const ReplayView& view) { return watcher.Watch(view); }));
  watcher.End(summary);
  Print(summary, replay.topic, options.json);
  return int{summary.complete && summary.not_sent == 0 ? console::kExitDone : console::kExitFailed};
}

}  // namespace

void AddReplay(CLI::App& cli, Action* chosen) {
  auto options = std::make_shared<ReplayCommandOptions>();
  auto rate = std::make_shared<std::string>();
  auto* command =
      cli.add_subcommand("replay", "Send the lines of logs to a Kafka topic, each once");
  command->add_option("--config", options->config, "The daemon's configuration, source.kind kafka")
      ->required();
  command->add_option("--set", options->overrides, "KEY=VALUE over the file")
      ->allow_extra_args(false);
  command
      ->add_option(
          "logs", options->files,
          "Criteo TSV or JSON lines, plain, gzip or zstd, in order; - alone: standard input")
      ->required();
  auto* rate_option = command->add_option("--rate", *rate, "Lines a second, 5000/s say");
  command
      ->add_option("--speed", options->speed,
                   "N times real time: by timestamp_ms of JSON lines, a day a file otherwise")
      ->check(console::AboveZero(), "POSITIVE")
      ->excludes(rate_option);
  command->add_option("--key", options->key,
                      "What records are keyed by: a field of JSON lines, a feature of TSV lines, "
                      "none. Default: user for JSON, none for TSV");
  command->add_option("--schema-id", options->schema_id,
                      "Put Confluent's frame with this schema before each value");
  command->add_flag("--again", options->again,
                    "From the first line, even of what the topic has already");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "A replay that was stopped or killed resumes where it was: each record says in its header\n"
      "tacit-replay which line it is, and the last ones of each partition are read at the start.\n"
      "Examples:\n"
      "  tacit replay --config config/kafka.yaml logs/day-*.tsv.gz\n"
      "  tacit replay --config config/kafka.yaml --rate 5000/s --key user clicks.jsonl.zst\n"
      "  tacit replay --config config/kafka.yaml --speed 3600 logs/day-*.tsv.gz   # an hour a "
      "second");
  command->callback([options, rate, chosen] {
    *chosen = [options, rate]() -> Result<int> {
      if (!rate->empty()) {
        TACIT_ASSIGN(options->rate, ParseRate(*rate));
      }
      return RunReplay(*options);
    };
  });
}

}  // namespace tacit::cli
