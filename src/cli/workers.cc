#include "wiring/plans/workers.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/parts/command.h"
#include "config/config.h"
#include "console/exit_code.h"
#include "console/output_file.h"
#include "console/text_table.h"
#include "stream/kafka/topic_reader.h"
#include "wiring/plans/feed.h"
#include "workers/overview.h"
#include "workers/seal.h"

namespace tacit::cli {
namespace {

using workers::Overview;

struct ShowOptions {
  std::string config;
  std::vector<std::string> overrides;
  uint32_t wait_s = 10;
};

// A plan is the last record of its topic, behind older ones and marks of transactions.
constexpr uint64_t kPlansBack = 16;
constexpr uint64_t kAll = std::numeric_limits<uint32_t>::max();

std::string Ago(int64_t time_ms) {
  const int64_t now = std::chrono::duration_cast<std::chrono::milliseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  return fmt::format("{:.1f}", static_cast<double>(now - time_ms) / 1e3);
}

std::string Short(const Digest& digest) { return ToHex(std::span(digest).first(6)); }

void PrintPlan(const Overview& overview) {
  const auto& plan = overview.plan();
  if (!plan) {
    fmt::print("no plan: the trainer has written none, or its first period is not committed yet\n");
    return;
  }
  fmt::print("plan of commit {}, head {}, build {}, {} s old\n", plan->version, Short(plan->head),
             Short(plan->build), Ago(plan->time_ms));
  console::TextLines lines = {{"slice of", "partitions", "offsets", "delivered"}};
  for (const Overview::Progress& one : overview.slices())
    lines.push_back({one.slice.worker.empty() ? "the trainer" : one.slice.worker,
                     std::to_string(one.slice.ranges.size()), WithThousands(one.offsets),
                     WithThousands(one.delivered)});
  if (lines.size() == 1)
    fmt::print("no slice is open: its period is covered, or the trainer asks who is there\n");
  else
    fmt::print("{}", console::LayOut(lines, {0}));
}

void PrintWorkers(const Overview& overview) {
  if (overview.workers().empty()) {
    fmt::print("no worker was heard\n");
    return;
  }
  console::TextLines lines = {
      {"worker", "heard s ago", "commit", "threads", "events/s", "slice done", "says"}};
  for (const auto& [name, heard] : overview.workers()) {
    const workers::Hello& hello = heard.hello;
    std::string says = hello.trouble;
    if (overview.plan() && hello.origin.build != overview.plan()->build)
      says = fmt::format("it is of build {}{}{}", Short(hello.origin.build),
                         says.empty() ? "" : "; ", says);
    lines.push_back(
        {name, Ago(heard.at_ms), std::to_string(hello.version), std::to_string(hello.threads),
         hello.events_per_second == 0 ? "?" : WithThousands(hello.events_per_second),
         hello.offsets == 0
             ? "-"
             : fmt::format("{} of {}", WithThousands(hello.done), WithThousands(hello.offsets)),
         Printable(says)});
  }
  fmt::print("{}", console::LayOut(lines, {0, 6}));
}

Result<int> ShowWorkers(const ShowOptions& options) {
  TACIT_ASSIGN(const config::Config config,
               config::Load(options.config, options.overrides, config::LogFiles::kUnread));
  if (config.workers.topic.empty())
    return BadUsage(
        fmt::format("{}: workers.topic is empty: the trainer sums alone", options.config));
  TACIT_ASSIGN(const workers::SharedKey key, wiring::ReadWorkersKey(config.workers));
  TACIT_ASSIGN(const stream::KafkaProperties properties, wiring::FeedProperties(config));
  Overview overview(key);
  // Not every account may read both topics.
  Status first;
  const auto read = [&](const std::string& topic, uint64_t back, const auto& see) {
    const Status done =
        stream::ReadKafkaTail(properties, topic, back, std::chrono::seconds(options.wait_s),
                              [&](const stream::KafkaTopicRecord& record) -> Status {
                                see(record);
                                return {};
                              });
    if (done) return;
    fmt::print("{} cannot be read: {}\n", topic, Printable(done.error().message));
    if (first) first = done;
  };
  read(config.workers.plan_topic(), kPlansBack, [&](const stream::KafkaTopicRecord& record) {
    overview.SeePlan(record.value.value_or(""));
  });
  read(config.workers.sums_topic(), kAll, [&](const stream::KafkaTopicRecord& record) {
    overview.SeeSums(record.key.value_or(""), record.value.value_or(""), record.timestamp_ms);
  });
  PrintPlan(overview);
  PrintWorkers(overview);
  if (overview.others() > 0)
    fmt::print("{} of other periods\n", Counted(overview.others(), "chunk"));
  for (const auto& [why, records] : overview.unread())
    fmt::print("{} cannot be read: {}\n", Counted(records, "record"), Printable(why));
  if (!first) return console::FailOfBrokers(first.error());
  return int{console::kExitDone};
}

void AddShow(CLI::App* command, Action* chosen) {
  const auto options = std::make_shared<ShowOptions>();
  auto* show = command->add_subcommand("show", "Shows the plan, who sums what, and who is there");
  show->add_option("--config", options->config,
                   "Has workers.topic and its key, and the brokers in kafka")
      ->required();
  show->add_option("--set", options->overrides, "KEY=VALUE over the configuration")
      ->allow_extra_args(false);
  show->add_option("--wait", options->wait_s, "Seconds to wait for brokers that are silent")
      ->check(CLI::Range(1, 3600));
  show->footer(
      "Reads NAME.plan and NAME.sums, with the key of workers.key_file, and says what it cannot\n"
      "read. It shows names, numbers of offsets and times, and no sum.\n"
      "Example:\n  tacit workers show --config /etc/tacit/tacit.yaml");
  show->callback([options, chosen] { *chosen = [options] { return ShowWorkers(*options); }; });
}

}  // namespace

void AddWorkers(CLI::App& cli, Action* chosen) {
  auto* command = cli.add_subcommand("workers", "Workers that sum for a trainer");
  command->require_subcommand(1);
  AddShow(command, chosen);
  const auto path = std::make_shared<std::string>();
  auto* key = command->add_subcommand("key", "Makes the key that a trainer and workers share");
  key->add_option("file", *path, "A new file for the key, with mode 0600")->required();
  key->footer(
      "workers.key_file names it, in the trainer's configuration and in each worker's. A file\n"
      "that is there stays as it is.\n"
      "Example:\n  tacit workers key workers.key");
  key->callback([path, chosen] {
    *chosen = [path]() -> Result<int> {
      TACIT_RETURN_IF_ERROR(console::WriteNewSecret(*path, workers::NewKeyText()));
      return int{console::kExitDone};
    };
  });
}

}  // namespace tacit::cli
