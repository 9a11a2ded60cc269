// A slice of the soak (tests/campaign/soak): a daemon that learns private steps from the generator
// as fast as it can, and one that learns from a topic which is written to all the time; both are
// asked for scores and figures meanwhile. What they hold is sampled, and must be flat over the
// slice's second half. In the end the topic's events were learnt once each.
//   soak_campaign FOLDER SECONDS [EVENTS_PER_SECOND]
// FOLDER/samples.tsv has all samples, FOLDER/slices a line a slice, "ok" or "WRONG" first.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <string_view>
#include <thread>

#include "http/client.h"
#include "system/kafka/broker.h"
#include "system/kafka/load.h"
#include "system/kafka/oracle_run.h"
#include "system/soak/flatness.h"
#include "system/soak/process_figures.h"

namespace tacit::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Steady = std::chrono::steady_clock;

constexpr seconds kBetweenSamples(5);
constexpr int32_t kPartitions = 3;
// The most that each figure may grow over half a slice and still be flat. Files come and go with
// the store's compactions, 40 at a time on a busy machine, each with a descriptor and its index in
// memory; lag is in offsets.
const std::map<std::string, Bound> kBounds = {{"memory MB", {.share = 0.05, .amount = 4}},
                                              {"descriptors", {.share = 0, .amount = 15}},
                                              {"threads", {.share = 0, .amount = 1}},
                                              {"files", {.share = 0, .amount = 20}},
                                              {"lag", {.share = 0, .amount = 10'000}}};

std::string folder;
double events_per_second = 500;  // of the topic
seconds slice(0);

// A daemon that is asked and sampled until it is asked to go.
class Soaked {
 public:
  // `as` comes before the daemon's own command.
  Soaked(std::string name, std::vector<std::string> as, const std::string& config,
         std::string store, const std::string& score, std::vector<std::string> settings)
      : name_(std::move(name)), store_(std::move(store)), score_(score) {
    url_ = "unix:" + (dir_ / "socket");
    settings.push_back("serve.listen=" + url_);
    settings.push_back("serve.operator_listen=" + url_ + "-operators");
    std::vector<std::string> command = std::move(as);
    command.insert(command.end(), {TACITD, "--config", config});
    for (std::string& setting : settings) {
      command.push_back("--set");
      command.push_back(std::move(setting));
    }
    daemon_ = std::make_unique<Process>(std::move(command));
  }

  void AwaitReady() {
    bool gone = false;
    ASSERT_TRUE(Eventually(
        name_ + " is ready",
        [&] {
          gone = daemon_->WaitFor(milliseconds(0)).has_value();
          return gone || IsReady();
        },
        2 * kPatience))
        << daemon_->Err();
    ASSERT_FALSE(gone) << name_ << " has ended: " << daemon_->Err();
  }

  // Asks for scores and for what operators see, then looks at what it holds.
  void Sample(double at) {
    for (int i = 0; i < 50; ++i) {
      const auto answer = http::Fetch(url_ + ":/v1/score", "POST", score_, milliseconds(10'000));
      if (!answer || answer->status != 200)
        ADD_FAILURE() << name_ << ": " << (answer ? answer->body : answer.error().message);
    }
    const auto metrics = http::Fetch(url_ + "-operators:/metrics", "GET", "", milliseconds(10'000));
    ASSERT_TRUE(metrics) << name_ << ": " << metrics.error().message;
    const auto held = FiguresOf(daemon_->pid());
    ASSERT_TRUE(held) << name_ << " is gone: " << daemon_->Err();
    const FolderFigures disk = FiguresOf(store_);
    Note(at, {{"memory MB", held->resident_mb},
              {"descriptors", held->descriptors},
              {"threads", held->threads},
              {"files", disk.files},
              {"disk MB", disk.megabytes},
              {"steps", Sum(metrics->body, "tacit_steps_committed_total")},
              {"lag", Sum(metrics->body, "tacit_source_lag_records", "position=\"store\"")}});
  }

  void Stop() {
    daemon_->Signal(SIGTERM);
    const auto ended = daemon_->WaitFor(2 * kPatience);
    ASSERT_TRUE(ended) << name_ << " does not end";
    EXPECT_EQ(ended->exit_code, 0) << name_ << ": " << ended->err;
  }

  // Fails where something is not flat, or there was no work.
  void Judge() const {
    for (const auto& [figure, samples] : figures_) {
      const auto bound = kBounds.find(figure);
      if (bound == kBounds.end()) continue;
      EXPECT_EQ(WhyNotFlat(name_ + ", " + figure, samples, bound->second), "");
    }
    const auto& steps = figures_.at("steps");
    EXPECT_GT(steps.back().value, steps[steps.size() / 2].value) << name_ << " learns nothing";
  }
  std::string Text() const {
    std::string text = name_ + ":";
    for (const auto& [figure, samples] : figures_) {
      const Trend trend = TrendOf(samples);
      text += fmt::format(" {} {:.1f} ({:+.1f})", figure, trend.mean, trend.growth);
    }
    return text;
  }

 private:
  bool IsReady() const {
    const auto answer = http::Fetch(url_ + ":/readyz", "GET", "", milliseconds(2000));
    return answer && answer->status == 200;
  }

  void Note(double at, const std::vector<std::pair<std::string, double>>& values) {
    std::ofstream out(folder + "/samples.tsv", std::ios::app);
    for (const auto& [figure, value] : values) {
      figures_[figure].push_back({at, value});
      out << fmt::format("{}\t{:.1f}\t{}\t{:.3f}\n", name_, at, figure, value);
    }
  }

  // Adds up the lines of a metric that have this among their labels.
  static double Sum(const std::string& metrics, const std::string& name,
                    const std::string& label = "") {
    std::istringstream in(metrics);
    double sum = 0;
    for (std::string line; std::getline(in, line);)
      if (line.starts_with(name) && line.find(label) != std::string::npos)
        sum += std::stod(line.substr(line.rfind(' ') + 1));
    return sum;
  }

  const std::string name_, store_, score_;
  TempDir dir_;
  std::string url_;
  std::unique_ptr<Process> daemon_;
  std::map<std::string, std::vector<test::Sample>> figures_;
};

// A topic under load, and what is to be learnt of it.
class Topic {
 public:
  explicit Topic(uint64_t seed) : oracle_(seed) {
    broker_.CreateTopic("soak", kPartitions);
    config_ =
        WriteOracleConfig(dir_, "store",
                          fmt::format("source: {{kind: kafka, topic: soak, format: criteo_tsv}}\n"
                                      "kafka: {{bootstrap.servers: \"{}\", group.id: soak}}\n",
                                      broker_.bootstrap()),
                          false);
    load_ = std::make_unique<LoadWriter>(LoadWriter::Options{.bootstrap = broker_.bootstrap(),
                                                             .topic = "soak",
                                                             .partitions = kPartitions,
                                                             .events_per_second = events_per_second,
                                                             .seed = seed + 1},
                                         oracle_);
  }

  const std::string& config() const { return config_; }
  std::string store() const { return dir_ / "store"; }

  void Stop() { load_->Stop(); }
  // Learns what is left, and counts.
  void Finish() {
    const Ended ended = test::Run({TACITD, "--config", config_, "--until-end"});
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    std::vector<int> expected(oracle_.size());
    for (size_t event = 0; event < expected.size(); ++event)
      expected[event] = load_->IsAcked(event) && !oracle_.IsBad(event);
    const auto applied = oracle_.Applied(config_);
    ASSERT_TRUE(applied) << applied.error().message;
    for (const std::string& difference : oracle_.Differences(*applied, expected))
      ADD_FAILURE() << difference;
    EXPECT_EQ(load_->given_up() + load_->refused(), 0u);
  }
  size_t events() const { return oracle_.size(); }

 private:
  Broker broker_;
  TempDir dir_;
  Oracle oracle_;
  std::string config_;
  std::unique_ptr<LoadWriter> load_;
};

// A row of config/demo.yaml.
std::string DemoScore() {
  std::string row = R"({"learner":"ctr","rows":[{"dense":[)";
  for (int i = 0; i < 13; ++i) row += i == 0 ? "1" : ",1";
  row += R"(],"categorical":[)";
  for (int i = 0; i < 26; ++i) row += i == 0 ? R"("a")" : R"(,"a")";
  return row + "]}]}";
}

// A text in which no table has more than a number of buckets.
std::string WithSmallTables(const std::string& yaml, uint64_t buckets) {
  constexpr std::string_view kKey = "buckets: ";
  std::string small;
  size_t at = 0;
  for (size_t key; (key = yaml.find(kKey, at)) != std::string::npos;) {
    key += kKey.size();
    small += yaml.substr(at, key - at);
    at = yaml.find_first_not_of("0123456789", key);
    small += std::to_string(std::min<uint64_t>(std::stoull(yaml.substr(key)), buckets));
  }
  return small + yaml.substr(at);
}

// config/demo.yaml with learners whose memory is full early: small tables, periods of a few
// seconds, and a threshold at which noise alone writes a thousand rows a step. All rows have been
// seen, and what is cached has stopped growing, well within the first half of a slice.
std::string WriteGeneratorConfig(const TempDir& dir) {
  constexpr char kLearners[] =
      "learners:\n"
      "  - id: sums\n"
      "    model: {kind: linear}\n"
      "    mechanism: {kind: sums}\n"
      "    participation: {mode: once, batch: 20000}\n"
      "    privacy: {unit: event, epsilon: 8, delta: 1e-7}\n"
      "  - id: ctr\n"
      "    model: {kind: pctr, hidden: [64, 32]}\n"
      "    mechanism: {kind: adafest, threshold: 6, sigma_ratio: 3, gradient_clip: 12}\n"
      "    participation: {mode: once, batch: 2048}\n"
      "    privacy: {unit: event, epsilon: 8, delta: 1e-7}\n"
      "    optimizer: {kind: adam, learning_rate: 0.004, row_learning_rate: 0.02}\n\n";
  const std::string demo = ReadFile(std::string(TACIT_SOURCE_DIR) + "/config/demo.yaml");
  const size_t learners = demo.find("\nlearners:") + 1, store = demo.find("\nstore:") + 1;
  EXPECT_TRUE(learners > 0 && store > learners) << "config/demo.yaml has other sections";
  const std::string path = dir / "generator.yaml";
  WriteFile(path, WithSmallTables(demo.substr(0, learners), 4096) + kLearners + demo.substr(store));
  return path;
}

TEST(Soak, Slice) {
  TACIT_NEED_BROKER(kDefaultVersion);
  const uint64_t seed = std::random_device{}();
  fmt::print("seed {}\n", seed);
  Topic topic(seed);
  if (HasFailure()) return;
  TempDir dir;
  Soaked kafka("kafka", {}, topic.config(), topic.store(),
               R"({"learner":"exact","rows":[{"dense":[1],"categorical":["x"]}]})",
               {"memory.total_bytes=280MiB"});  // the least, so that caches are full early
  // It takes what processor there is, and little that the topic's daemon wants.
  Soaked generator(
      "generator", {"/usr/bin/nice", "-n", "5"}, WriteGeneratorConfig(dir), dir / "store",
      DemoScore(),
      {"memory.total_bytes=360MiB", "source.kind=generator", "source.generator.days=100000",
       "source.generator.seed=" + std::to_string(seed % 1000), "store.path=" + (dir / "store"),
       "store.witness=" + (dir / "witness"), "training.idle_priority=false",
       "store.commit_interval_ms=200"});
  kafka.AwaitReady();
  generator.AwaitReady();
  if (HasFatalFailure()) return;
  const auto begun = Steady::now();
  for (int i = 0; Steady::now() - begun < slice && !HasFatalFailure(); ++i) {
    std::this_thread::sleep_until(begun + i * kBetweenSamples);
    const double at = std::chrono::duration<double>(Steady::now() - begun).count();
    kafka.Sample(at);
    generator.Sample(at);
  }
  if (HasFatalFailure()) return;
  kafka.Judge();
  generator.Judge();
  generator.Stop();
  topic.Stop();
  kafka.Stop();
  topic.Finish();
  const std::string line = fmt::format(
      "{} {} s, seed {}, {} events of the topic; means of the second half, and how much "
      "their line grows over it: {}; {}",
      HasFailure() ? "WRONG" : "ok", slice.count(), seed, topic.events(), kafka.Text(),
      generator.Text());
  fmt::print("{}\n", line);
  std::ofstream(folder + "/slices", std::ios::app) << line << std::endl;
}

}  // namespace
}  // namespace tacit::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 3 && argc != 4) {
    std::cerr << "usage: soak_campaign FOLDER SECONDS [EVENTS_PER_SECOND]\n";
    return 2;
  }
  tacit::test::folder = argv[1];
  tacit::test::slice = std::chrono::seconds(std::stoi(argv[2]));
  if (argc == 4) tacit::test::events_per_second = std::stod(argv[3]);
  std::filesystem::create_directories(tacit::test::folder);
  return RUN_ALL_TESTS();
}
