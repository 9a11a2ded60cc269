#include "system/kafka/crowd.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <thread>

#include "feed/record.h"
#include "feed/version_end.h"
#include "http/client.h"
#include "support/eventually.h"
#include "support/json.h"
#include "system/kafka/topic.h"

namespace tacit::test {
namespace {

using std::chrono::milliseconds;

constexpr char kEvents[] = "events", kModel[] = "model", kMixed[] = "mixed";
constexpr int kBatch = 16, kBuckets = 32;
constexpr int kUsers = 4 * kBatch;  // in turn: each is in a batch once, and what was spent grows
// After a broker's return librdkafka has to find it again.
constexpr std::chrono::seconds kLongPatience = 2 * kPatience;
constexpr const char* kLearners[] = {"ctr", "private", "sums"};

// A broker that compacts all that it can, each second.
constexpr char kCompacting[] =
    "log.cleaner.backoff.ms=1000\n"
    "log.cleaner.dedupe.buffer.size=4194304\n"
    "log.initial.task.delay.ms=100\n"
    "log.retention.check.interval.ms=1000\n"
    "log.segment.delete.delay.ms=0\n";

}  // namespace

Crowd::Crowd(Options options)
    : options_(options),
      random_(options.seed),
      broker_(Broker::Options{.properties = kCompacting}) {
  broker_.CreateTopic(kEvents, 1);
  for (const char* const topic : {kModel, kMixed})
    broker_.CreateTopic(topic, options_.partitions,
                        {{"cleanup.policy", "compact"},
                         {"segment.ms", "1000"},
                         {"segment.bytes", "65536"},
                         {"min.cleanable.dirty.ratio", "0.001"},
                         {"max.compaction.lag.ms", "1000"},
                         {"delete.retention.ms", "0"}});
  WriteConfig();
  MakeQuestions();
}

Crowd::~Crowd() {
  for (const auto& replica : replicas_) replica->witness->Stop();
  if (trainer_.witness) trainer_.witness->Stop();
}

void Crowd::WriteConfig() {
  config_ = dir_ / "crowd.yaml";
  WriteFile(
      config_,
      fmt::format("source: {{kind: kafka, topic: {}, format: json}}\n"
                  "kafka: {{bootstrap.servers: \"{}\", group.id: crowd, reconnect.backoff.max.ms: "
                  "500, topic.metadata.refresh.interval.ms: 1000}}\n"
                  "schema: {{features: [{{name: n, kind: dense}},\n"
                  "  {{name: c, kind: categorical, buckets: {}}}]}}\n"
                  "learners:\n"
                  "  - id: ctr\n"
                  "    model: {{kind: pctr, hidden: [8]}}\n"
                  "    mechanism: {{kind: none}}\n"
                  "    participation: {{mode: once, batch: {}}}\n"
                  "    optimizer: {{kind: adam, learning_rate: 0.01, ema: 0.9}}\n"
                  "    privacy: {{unit: event, epsilon: .inf, delta: 1.0e-6}}\n"
                  "  - id: private\n"
                  "    model: {{kind: pctr, hidden: [8]}}\n"
                  "    mechanism: {{kind: dp-sgd}}\n"
                  "    participation: {{mode: once, batch: {}, max_participations: 100000}}\n"
                  "    privacy: {{unit: user, epsilon: 4, delta: 1.0e-6}}\n"
                  "  - id: sums\n"
                  "    model: {{kind: linear}}\n"
                  "    mechanism: {{kind: sums}}\n"
                  "    participation: {{mode: once, batch: {}}}\n"
                  "    privacy: {{unit: event, epsilon: 4, delta: 1.0e-6}}\n"
                  "training: {{idle_priority: false, workers: 1}}\n"
                  "store: {{commit_interval_ms: 50}}\n"
                  "feed: {{interval_ms: 50, max_age_ms: 600000}}\n",
                  kEvents, broker_.bootstrap(), kBuckets, kBatch, kBatch, kBatch));
}

// Scores, all rows of each learner, the ledger and what was spent.
void Crowd::MakeQuestions() {
  for (const char* const learner : kLearners) {
    for (int n = 0; n < 8; ++n)
      questions_.push_back(
          {.method = "POST",
           .path = "/v1/score",
           .body = fmt::format(R"({{"learner":"{}","rows":[{{"features":{{"n":{},"c":"v{}"}}}}]}})",
                               learner, 13 * n, n)});
    std::string rows;
    for (int bucket = 0; bucket < kBuckets; ++bucket)
      rows += fmt::format(R"({}{{"feature":"c","bucket":{}}})", bucket == 0 ? "" : ",", bucket);
    questions_.push_back({.method = "POST",
                          .path = "/v1/lookup",
                          .body = fmt::format(R"({{"learner":"{}","rows":[{}]}})", learner, rows),
                          .operators = true,  // the rows of `ctr` are theirs
                          .names_no_version = true});
  }
  privacy_ = questions_.size();
  questions_.push_back({.method = "GET", .path = "/v1/privacy"});
  ledger_ = questions_.size();
  questions_.push_back({.method = "GET", .path = "/v1/ledger", .operators = true});
}

milliseconds Crowd::Random(milliseconds most) {
  return milliseconds(random_() % static_cast<uint64_t>(most.count() + 1));
}

void Crowd::Start(Member& member, const std::string& topic) {
  const bool is_trainer = &member == &trainer_;
  member.url = "unix:" + (dir_ / (member.name + ".socket"));
  std::vector<std::string> command = {TACITD, "--config", config_};
  for (const std::string& setting : {"feed.topic=" + topic, "serve.listen=" + member.url,
                                     "serve.operator_listen=" + member.url + "-operators",
                                     "store.path=" + (dir_ / member.name)}) {
    command.emplace_back("--set");
    command.push_back(setting);
  }
  if (!is_trainer) command.emplace_back("--replica");
  member.process = std::make_unique<Process>(command);
  if (member.witness) return;
  member.witness = std::make_unique<Witness>(
      Witness::Options{.name = member.name,
                       .url = member.url,
                       .random = !is_trainer,
                       .seed = random_(),
                       .pause = is_trainer ? milliseconds(0) : milliseconds(2)},
      questions_);
}

void Crowd::StartTrainer() {
  trainer_.name = "trainer";
  Start(trainer_, kModel);
}

void Crowd::StartReplica() {
  replicas_.push_back(std::make_unique<Member>());
  replicas_.back()->name = fmt::format("replica-{}", replicas_.size());
  Start(*replicas_.back(), kModel);
}

void Crowd::Write(int steps) {
  std::vector<TopicRecord> records;
  for (int i = 0; i < steps * kBatch; ++i, ++events_)
    records.push_back({.partition = 0,
                       .value = fmt::format(
                           R"({{"label": {}, "user": "u{}", "features": {{"n": {}, "c": "v{}"}}}})",
                           random_() % 2, events_ % kUsers, random_() % 100, random_() % 20)});
  WriteTopic(broker_.bootstrap(), kEvents, records);
  steps_ += static_cast<uint64_t>(steps);
}

void Crowd::ExpectAlive(Member& member) {
  const auto ended = member.process->WaitFor(milliseconds(0));
  ASSERT_FALSE(ended) << member.name << " has ended by itself with " << ended->exit_code
                      << ", signal " << ended->signal << "; it said:\n"
                      << ended->err;
}

std::string Crowd::Ask(const Member& member, const std::string& path, const std::string& body) {
  const auto answer =
      http::Fetch(member.url + ":" + path, body.empty() ? "GET" : "POST", body, kPatience);
  return answer && answer->status == 200 ? answer->body : "";
}

double Crowd::Metric(const Member& member, const std::string& name) {
  const std::string page = "\n" + Ask(member, "/metrics");
  const size_t at = page.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::stod(page.substr(at + name.size() + 2));
}

// Each step of each learner was taken, and none twice; what was spent never shrinks.
bool Crowd::IsLearnt() {
  const std::string privacy = Ask(trainer_, "/v1/privacy");
  if (privacy.empty()) return false;
  CheckSpending(privacy);
  bool all = true;
  const boost::json::object told = ParseJson(privacy);
  for (const boost::json::value& learner : told.at("learners").as_array()) {
    const auto steps = learner.at("steps").to_number<uint64_t>();
    EXPECT_LE(steps, steps_) << "more was learnt than was written: " << privacy;
    all = all && steps == steps_;
  }
  return all;
}

void Crowd::CheckSpending(const std::string& privacy) {
  const boost::json::object told = ParseJson(privacy);
  for (const boost::json::value& learner : told.at("learners").as_array()) {
    if (learner.at("learner") != "private") continue;
    if (learner.at("steps").to_number<uint64_t>() == 0) continue;
    const double epsilon = learner.at("epsilon").to_number<double>();
    EXPECT_GE(epsilon, epsilon_) << "less was spent than before: " << privacy;
    epsilon_ = std::max(epsilon_, epsilon);
  }
}

void Crowd::Settle() {
  std::string state;
  const auto settled = Eventually(
      "all is learnt, and the replicas show it",
      [&] {
        ExpectAlive(trainer_);
        for (const auto& replica : replicas_) ExpectAlive(*replica);
        if (testing::Test::HasFatalFailure()) return true;
        if (!IsLearnt()) {
          state = fmt::format("the trainer has not learnt all {} steps", steps_);
          return false;
        }
        const uint64_t version = trainer_.witness->version();
        if (static_cast<double>(version) != Metric(trainer_, "tacit_commit_version") ||
            !trainer_.witness->answers().IsWhole(version, questions_.size())) {
          state = fmt::format("the trainer was not asked all at version {}: {}", version,
                              trainer_.witness->refusal());
          return false;
        }
        for (const auto& replica : replicas_) {
          const double shown = Metric(*replica, "tacit_replica_version");
          if (shown == static_cast<double>(version)) continue;
          state = fmt::format("{} shows version {} of {}", replica->name, shown, version);
          return false;
        }
        return true;
      },
      kLongPatience);
  EXPECT_TRUE(settled) << state << "\n" << trainer_.process->Err();
  if (testing::Test::HasFailure()) {
    for (const auto& replica : replicas_) ADD_FAILURE() << replica->process->Err();
    return;
  }
  // Everything at this version; the comparison finds the trainer's.
  for (const auto& replica : replicas_)
    for (size_t question = 0; question < questions_.size(); ++question)
      EXPECT_FALSE(replica->witness->Ask(question).empty()) << questions_[question].path;
  CompareAll();
}

void Crowd::CompareAll() {
  const auto oracle = trainer_.witness->answers().all();
  compared_ = unasked_ = versions_ = 0;
  for (const auto& replica : replicas_) {
    const auto answers = replica->witness->answers().all();
    const Comparison found = Compare(replica->name, answers, oracle, questions_);
    for (const std::string& difference : found.differences) ADD_FAILURE() << difference;
    compared_ += found.compared;
    unasked_ += found.unasked;
    versions_ = replica == replicas_.front() ? found.versions : std::min(versions_, found.versions);
    if (!answers.empty()) {
      const uint64_t last = answers.rbegin()->first.first;
      EXPECT_EQ(answers.at({last, ledger_}), oracle.at({last, ledger_})) << "heads differ";
      CheckSpending(answers.at({last, privacy_}));
    }
  }
}

void Crowd::Kill(Member& member) {
  Write(1 + static_cast<int>(random_() % 3));
  std::this_thread::sleep_for(Random(milliseconds(400)));  // any moment
  ExpectAlive(member);
  if (testing::Test::HasFatalFailure()) return;
  member.process->Signal(SIGKILL);
  const auto ended = member.process->Wait();
  ASSERT_TRUE(ended && ended->signal == SIGKILL) << member.name;
  std::this_thread::sleep_for(Random(milliseconds(200)));
  Start(member, kModel);
}

void Crowd::KillTrainer() { Kill(trainer_); }
void Crowd::KillReplica() { Kill(*replicas_[random_() % replicas_.size()]); }

void Crowd::KillBroker() {
  Write(1 + static_cast<int>(random_() % 3));
  std::this_thread::sleep_for(Random(milliseconds(400)));
  broker_.Kill();
  std::this_thread::sleep_for(Random(options_.outage));
  broker_.Start();
}

std::string Crowd::AnswersOf(const Member& member) {
  std::string answers;
  for (const Question& question : questions_) {
    if (question.method != "POST" || question.operators) continue;
    const std::string answer = Ask(member, question.path, question.body);
    EXPECT_FALSE(answer.empty()) << member.name << ": " << question.body;
    answers += answer;
  }
  return answers;
}

void Crowd::LoseBroker(std::chrono::seconds away) {
  Settle();
  std::vector<std::string> before;
  for (const auto& replica : replicas_) before.push_back(AnswersOf(*replica));
  broker_.Kill();
  const auto until = std::chrono::steady_clock::now() + away;
  while (std::chrono::steady_clock::now() < until && !testing::Test::HasFailure()) {
    AnswersOf(trainer_);
    for (size_t i = 0; i < replicas_.size(); ++i)
      EXPECT_EQ(AnswersOf(*replicas_[i]), before[i]) << "without a broker";
    std::this_thread::sleep_for(milliseconds(500));
  }
  broker_.Start();
  Write(3);
  Settle();
}

bool Crowd::CopyMixed(const std::map<std::string, std::string>& before, const std::string& to) {
  std::vector<TopicRecord> records = ReadTopic(broker_.bootstrap(), kModel);
  bool done = false;
  std::map<int32_t, std::map<uint64_t, uint64_t>> off;  // of sums, by partition and version
  for (TopicRecord& record : records) {
    record.offset = -1;
    record.timestamp_ms = 0;
    const auto is = feed::DecodeRecord(*record.key, *record.value);
    if (!is) {
      ADD_FAILURE() << is.error().message;
      return false;
    }
    std::string value;
    if (is->place.kind == feed::RecordKind::kVersionEnd) {
      const auto sums = off.find(record.partition);
      if (sums == off.end() || !sums->second.contains(is->origin.version.value)) continue;
      auto end = feed::DecodeVersionEnd(is->payload);
      if (!end) continue;
      end->checksum += sums->second.at(is->origin.version.value);
      feed::AppendValue(is->place, is->origin, feed::EncodeVersionEnd(*end), &value);
    } else {
      const auto was = before.find(*record.key);
      if (is->place.kind != feed::RecordKind::kRow || was == before.end()) continue;
      const auto older = feed::DecodeRecord(*record.key, was->second);
      if (!older || older->payload == is->payload) continue;
      const uint32_t sum = feed::AppendValue(is->place, is->origin, older->payload, &value);
      off[record.partition][is->origin.version.value] += sum - uint64_t{is->checksum};
      done = true;
    }
    record.value = value;
  }
  WriteTopic(broker_.bootstrap(), to, records);
  return done;
}

void Crowd::ExpectMixIsSeen() {
  std::map<std::string, std::string> before;
  for (const TopicRecord& record : ReadTopic(broker_.bootstrap(), kModel))
    before[*record.key] = *record.value;
  Write(2);
  Settle();
  if (testing::Test::HasFailure()) return;
  ASSERT_TRUE(CopyMixed(before, kMixed)) << "no row has changed";
  Member mixed;
  mixed.name = "mixed";
  Start(mixed, kMixed);
  const uint64_t version = trainer_.witness->version();
  EXPECT_TRUE(Eventually("the replica of the mix answers all", [&] {
    return mixed.witness->answers().IsWhole(version, questions_.size());
  })) << mixed.process->Err();
  mixed.witness->Stop();
  const Comparison found = Compare("mixed", mixed.witness->answers().all(),
                                   trainer_.witness->answers().all(), questions_);
  EXPECT_GE(found.compared, questions_.size());
  EXPECT_FALSE(found.differences.empty()) << "the mix of two versions was not seen";
}

std::string Crowd::Figures() const {
  return fmt::format(
      "{} answers of replicas at {} or more versions each are the trainer's, {} more are of "
      "versions that the trainer was not asked at; {} steps, version {}, epsilon {:.4f}",
      compared_, versions_, unasked_, steps_, version(), epsilon_);
}

}  // namespace tacit::test
