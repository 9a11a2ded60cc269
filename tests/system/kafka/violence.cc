#include "system/kafka/violence.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <boost/json.hpp>
#include <set>
#include <thread>

#include "http/client.h"
#include "support/eventually.h"
#include "system/kafka/oracle_run.h"

namespace tacit::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Steady = std::chrono::steady_clock;
namespace json = boost::json;

constexpr char kTopic[] = "events", kDeadTopic[] = "events-dead";
// Learning goes on only after librdkafka has found its broker again.
constexpr seconds kLongPatience = 2 * kPatience;
constexpr char kForOperators[] = "-operators";  // after the name of the public socket

double MillisecondsSince(Steady::time_point begun) {
  return std::chrono::duration<double, std::milli>(Steady::now() - begun).count();
}

// The total, and of each learner, as `tacit ledger show` and GET /v1/privacy report it.
uint64_t StepsOf(const json::object& privacy) {
  const json::array& learners = privacy.at("learners").as_array();
  return learners.empty() ? 0 : learners.at(0).at("steps").to_number<uint64_t>();
}
double EpsilonOf(const json::object& privacy, uint64_t* steps) {
  for (const json::value& learner : privacy.at("learners").as_array()) {
    if (learner.at("learner") != "private") continue;
    *steps = learner.at("steps").to_number<uint64_t>();
    return learner.at("epsilon").to_number<double>();
  }
  *steps = 0;
  return 0;
}

std::string Summary(std::vector<double> ms) {
  if (ms.empty()) return "none";
  std::sort(ms.begin(), ms.end());
  return fmt::format("{} times, median {:.1f} s, longest {:.1f} s", ms.size(),
                     ms[ms.size() / 2] / 1000, ms.back() / 1000);
}

}  // namespace

std::string Harm::Text() const {
  return fmt::format(
      "{} daemon kills, {} broker kills, {} broker stops, {} takeovers, {} refusals, {} growths, "
      "{} cuts, {} clock steps",
      daemon_kills, broker_kills, broker_stops, takeovers, refusals, growths, cuts, clock_steps);
}

Violence::Violence(Options options)
    : options_(options),
      random_(options.seed),
      broker_(Broker::Options{.properties = fmt::format(
                                  "advertised.listeners=PLAINTEXT://127.0.0.1:{}", proxy_.port())}),
      oracle_(options.seed),
      partitions_(options.partitions) {
  proxy_.LeadTo(broker_.port());
  broker_.CreateTopic(kTopic, partitions_);
  if (options_.dead_letter_topic) broker_.CreateTopic(kDeadTopic, 2);
  config_ = WriteConfig();
  load_ = std::make_unique<LoadWriter>(
      LoadWriter::Options{.bootstrap = fmt::format("127.0.0.1:{}", proxy_.port()),
                          .topic = kTopic,
                          .partitions = partitions_,
                          .events_per_second = options_.events_per_second,
                          .seed = options_.seed + 1,
                          .users = options_.users},
      oracle_);
}

Violence::~Violence() = default;

std::string Violence::WriteConfig() {
  const std::string dead =
      options_.dead_letter_topic
          ? fmt::format("  errors.deadletterqueue.topic.name: {}\n", kDeadTopic)
          : "";
  return WriteOracleConfig(
      dir_, "store",
      fmt::format("source: {{kind: kafka, topic: {}, format: {}}}\n"
                  "kafka:\n"
                  "  bootstrap.servers: 127.0.0.1:{}\n"
                  "  group.id: violence\n"
                  "  topic.metadata.refresh.interval.ms: 1000\n{}",
                  kTopic, options_.users ? "json" : "criteo_tsv", proxy_.port(), dead),
      true, "", options_.users);
}

milliseconds Violence::Random(milliseconds max) {
  return milliseconds(random_() % static_cast<uint64_t>(max.count() + 1));
}

// Each daemon of a series listens on sockets of its own.
std::vector<std::string> Violence::Command(bool standby, std::string* url) {
  *url = "unix:" + (dir_ / fmt::format("socket-{}", daemons_++));
  std::vector<std::string> command{TACITD,
                                   "--config",
                                   config_,
                                   "--set",
                                   "serve.listen=" + *url,
                                   "--set",
                                   "serve.operator_listen=" + *url + kForOperators};
  if (standby) command.push_back("--standby");
  return command;
}

void Violence::StartDaemon(std::vector<std::string> environment) {
  const std::vector<std::string> command = Command(false, &url_);
  daemon_ = std::make_unique<Process>(command, std::move(environment));
}

void Violence::EnsureDaemon() {
  if (!daemon_) StartDaemon();
  ASSERT_TRUE(Eventually("the daemon answers", [&] {
    ExpectAlive("it starts");
    return testing::Test::HasFatalFailure() || Ask(url_);
  })) << daemon_->Err();
}

void Violence::ExpectAlive(const std::string& when) {
  const auto ended = daemon_->WaitFor(milliseconds(0));
  ASSERT_FALSE(ended) << "the daemon ended with " << ended->exit_code << ", signal "
                      << ended->signal << ", while " << when << "; it said:\n"
                      << ended->err;
}

void Violence::Bury(const std::string& how) {
  ExpectAlive(how);
  if (testing::Test::HasFatalFailure()) return;
  daemon_->Signal(SIGKILL);
  const auto ended = daemon_->Wait();
  ASSERT_TRUE(ended && ended->signal == SIGKILL);
  daemon_.reset();
  CheckStore();
}

std::optional<Violence::Told> Violence::Ask(const std::string& url) const {
  const auto answer = http::Fetch(url + ":/v1/privacy", "GET", "", kPatience);
  if (!answer || answer->status != 200) return std::nullopt;
  const json::object privacy = json::parse(answer->body).as_object();
  uint64_t private_steps = 0;
  const double epsilon = EpsilonOf(privacy, &private_steps);
  return Told{.steps = StepsOf(privacy),
              .private_steps = private_steps,
              .epsilon = private_steps > 0 ? epsilon : 0};
}

uint64_t Violence::StepsNow() {
  const auto told = Ask(url_);
  EXPECT_TRUE(told) << "the daemon does not answer; it said:\n" << daemon_->Err();
  return told ? told->steps : 0;
}

double Violence::AwaitMoreSteps(uint64_t steps, const std::string& when) {
  const auto begun = Steady::now();
  EXPECT_TRUE(Eventually(
      when + ", more is learnt",
      [&] {
        ExpectAlive(when);
        if (testing::Test::HasFatalFailure()) return true;
        const auto told = Ask(url_);
        if (told) CheckEpsilon(*told, "the daemon, " + when);
        return told && told->steps > steps;
      },
      kLongPatience))
      << daemon_->Err();
  return MillisecondsSince(begun);
}

void Violence::ExpectServing(const std::string& when) {
  ExpectAlive(when);
  if (testing::Test::HasFatalFailure()) return;
  const auto answer = http::Fetch(url_ + ":/v1/score", "POST",
                                  R"({"learner":"exact","rows":[{"dense":[1],)"
                                  R"("categorical":["x"]}]})",
                                  kPatience);
  ASSERT_TRUE(answer) << when << ": " << answer.error().message;
  EXPECT_EQ(answer->status, 200) << when << ": " << answer->body;
}

void Violence::AwaitReadyz(const std::string& text, const std::string& when) {
  std::string body;
  EXPECT_TRUE(Eventually(
      when + ", /readyz says \"" + text + "\"",
      [&] {
        const auto answer = http::Fetch(url_ + kForOperators + ":/readyz", "GET", "", kPatience);
        if (answer) body = answer->body;
        return answer && answer->status == 200 && answer->body.starts_with(text);
      },
      kLongPatience))
      << "but \"" << body << "\"";
}

// Neither ever goes back, and the charge of that many steps is a closed form: one participation of
// an event costs the same from the first step to the last; a user's costs grow.
void Violence::CheckEpsilon(const Told& told, const std::string& where) {
  if (told.steps < last_.steps)
    ADD_FAILURE() << where << " tells of " << told.steps << " steps, and of " << last_.steps
                  << " before";
  if (told.epsilon < last_.epsilon)
    ADD_FAILURE() << where << " tells of epsilon " << told.epsilon << ", and of " << last_.epsilon
                  << " before";
  if (told.private_steps < last_.private_steps)
    ADD_FAILURE() << where << " tells of " << told.private_steps << " private steps, and of "
                  << last_.private_steps << " before";
  const double due = Oracle::EpsilonAfter(told.private_steps, options_.users);
  EXPECT_GE(told.epsilon, due * (1 - 1e-3)) << where << ": " << told.private_steps << " steps";
  EXPECT_LE(told.epsilon, due * (options_.users ? 1.01 : 1))
      << where << ": charged for more than " << told.private_steps << " steps";
  last_ = told;
}

// Everything that can be read between two lives never goes back.
void Violence::CheckStore() {
  const Ended shown = test::Run({TACIT, "ledger", "show", "--store", dir_ / "store", "--json"});
  if (shown.exit_code != 0) {
    EXPECT_EQ(last_.steps, 0u) << "the store cannot be read: " << shown.err;
    return;
  }
  const json::object privacy = json::parse(shown.out).as_object();
  uint64_t private_steps = 0;
  const double epsilon = EpsilonOf(privacy, &private_steps);
  CheckEpsilon({.steps = StepsOf(privacy),
                .private_steps = private_steps,
                .epsilon = private_steps > 0 ? epsilon : 0},
               "tacit ledger show");
}

void Violence::KillDaemon() {
  if (!daemon_) StartDaemon();
  std::this_thread::sleep_for(Random(milliseconds(2000)));  // any moment
  Bury("waiting to be killed");
}

void Violence::KillBroker() {
  EnsureDaemon();
  AwaitMoreSteps(StepsNow(), "before the broker dies");
  broker_.Kill();
  std::this_thread::sleep_for(Random(options_.outage));
  ExpectServing("without a broker");
  broker_.Start();
  returns_.push_back(AwaitMoreSteps(StepsNow(), "after the broker's return"));
}

void Violence::StopBroker() {
  EnsureDaemon();
  AwaitMoreSteps(StepsNow(), "before the broker is stopped");
  broker_.Suspend();
  std::this_thread::sleep_for(Random(options_.outage));
  ExpectServing("beside a broker that stands still");
  broker_.Continue();
  returns_.push_back(AwaitMoreSteps(StepsNow(), "after the broker goes on"));
}

void Violence::TakeOver() {
  EnsureDaemon();
  std::string url;
  const std::vector<std::string> command = Command(true, &url);
  auto standby = std::make_unique<Process>(command);
  std::this_thread::sleep_for(Random(milliseconds(1500)));  // before or while it stands by
  const auto ended = standby->WaitFor(milliseconds(0));
  ASSERT_FALSE(ended) << "the standby ended with " << ended->exit_code << ": " << ended->err;
  // Some are asked to go, some are killed.
  ExpectAlive("waiting to be relieved");
  daemon_->Signal(random_() % 2 == 0 ? SIGKILL : SIGTERM);
  ASSERT_TRUE(daemon_->Wait());
  daemon_ = std::move(standby);
  url_ = url;
  takeovers_.push_back(AwaitMoreSteps(last_.steps, "after a standby has taken over"));
}

void Violence::Refuse() {
  EnsureDaemon();
  std::string url;
  const Ended second = test::Run(Command(false, &url));
  EXPECT_EQ(second.exit_code, 3) << second.err;
  EXPECT_NE(second.err.find("store"), std::string::npos) << second.err;
  AwaitMoreSteps(StepsNow(), "after a second daemon was refused");
}

void Violence::Grow() {
  EnsureDaemon();
  broker_.GrowTopic(kTopic, ++partitions_);
  load_->Grow(partitions_);
  AwaitMoreSteps(StepsNow(), "after the topic has grown");
}

void Violence::CutNetwork() {
  EnsureDaemon();
  AwaitMoreSteps(StepsNow(), "before the network is cut");
  proxy_.Cut();
  std::this_thread::sleep_for(options_.cut);
  ExpectServing("without a network");
  // Operators hear of the source; or of dead letters, if one came before the cut was noticed.
  AwaitReadyz("ready, degraded: ", "without a network");
  proxy_.Mend();
  returns_.push_back(AwaitMoreSteps(StepsNow(), "after the network is mended"));
  AwaitReadyz("ready\n", "after the network is mended");
}

// As an administrator, or a bad NTP server, steps the clock: time since the start passes evenly.
void Violence::StepClock() {
  if (daemon_) Bury("waiting for another clock");
  const std::string clock = dir_ / "clock";
  WriteFile(clock, "+0");
  StartDaemon({"LD_PRELOAD=/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
               "FAKETIME_TIMESTAMP_FILE=" + clock, "FAKETIME_NO_CACHE=1",
               "FAKETIME_DONT_FAKE_MONOTONIC=1"});
  EnsureDaemon();
  AwaitMoreSteps(StepsNow(), "before the clock is stepped");
  for (const char* offset : {"+1d", "+0", "-1d", "+0"}) {
    WriteFile(clock, offset);
    // Records read before do not count.
    std::this_thread::sleep_for(milliseconds(300));
    AwaitMoreSteps(StepsNow(), std::string("with the clock at ") + offset);
  }
  Bury("waiting for its own clock again");
}

Harm Violence::Run(const Harm& wanted, Steady::time_point deadline) {
  struct Kind {
    int Harm::*count;
    Act act;
  };
  const std::vector<Kind> kinds = {
      {&Harm::daemon_kills, &Violence::KillDaemon}, {&Harm::broker_kills, &Violence::KillBroker},
      {&Harm::broker_stops, &Violence::StopBroker}, {&Harm::takeovers, &Violence::TakeOver},
      {&Harm::refusals, &Violence::Refuse},         {&Harm::growths, &Violence::Grow},
      {&Harm::cuts, &Violence::CutNetwork},         {&Harm::clock_steps, &Violence::StepClock}};
  std::vector<size_t> order;
  for (size_t k = 0; k < kinds.size(); ++k)
    order.insert(order.end(), static_cast<size_t>(wanted.*kinds[k].count), k);
  std::shuffle(order.begin(), order.end(), random_);
  Harm done;
  for (const size_t k : order) {
    if (Steady::now() > deadline) break;
    (this->*kinds[k].act)();
    if (testing::Test::HasFailure()) break;
    ++(done.*kinds[k].count);
  }
  return done;
}

// A step and a period are closed by the record after them.
void Violence::Fill() {
  std::vector<TopicRecord> filler;
  for (int32_t p = 0; p < partitions_; ++p)
    for (uint32_t i = 0; i <= Oracle::kPeriod; ++i)
      filler.push_back(
          {.partition = p, .value = options_.users ? Oracle::JsonFiller() : Oracle::Filler()});
  WriteTopic(broker_.bootstrap(), kTopic, filler);
}

void Violence::AwaitEnd(const std::vector<int>& once) {
  // The oracle tells better than this what is missing in the end.
  static_cast<void>(Eventually(
      "everything is learnt",
      [&] {
        ExpectAlive("learning to the end of the topic");
        if (testing::Test::HasFatalFailure()) return true;
        bool all = true;
        for (size_t learner : {0, 1}) {
          const auto applied = oracle_.Applied(config_, learner);
          if (!applied) {
            all = false;
            break;
          }
          const int times = learner == 0 ? 1 : static_cast<int>(Oracle::kStepsPerPeriod);
          for (size_t i = 0; i < once.size(); ++i)
            all = all && ((*applied)[i] < 0 || (*applied)[i] >= times * once[i]);
        }
        return all;
      },
      2 * kLongPatience));
}

DeadLetters Violence::ReadLetters() {
  if (!options_.dead_letter_topic) return ReadDeadLetters(dir_ / "store.dead-letters.jsonl");
  DeadLetters letters;
  for (const TopicRecord& letter : ReadTopic(broker_.bootstrap(), kDeadTopic)) {
    const std::pair<int32_t, uint64_t> place(std::stoi(letter.Header("__connect.errors.partition")),
                                             std::stoull(letter.Header("__connect.errors.offset")));
    // A letter may be there again where a daemon could not read its topic at the start.
    if (!letters.emplace(place, letter.Header("__connect.errors.exception.message")).second)
      ++dead_again_;
  }
  return letters;
}

bool Violence::IsBad(const TopicRecord& record) const {
  if (!record.value) return true;
  const auto event = oracle_.EventIn(*record.value);
  return event && oracle_.IsBad(*event);
}

void Violence::CheckDeadLetters(const std::vector<TopicRecord>& records) {
  const DeadLetters letters = ReadLetters();
  std::set<std::pair<int32_t, uint64_t>> bad;
  for (const TopicRecord& record : records)
    if (IsBad(record)) bad.emplace(record.partition, static_cast<uint64_t>(record.offset));
  dead_ = bad.size();
  EXPECT_LE(dead_again_, dead_) << "every start writes the letters again";
  for (const auto& [partition, offset] : bad)
    EXPECT_TRUE(letters.contains({partition, offset}))
        << "no dead letter of partition " << partition << ", offset " << offset;
  for (const auto& [place, reason] : letters)
    EXPECT_TRUE(bad.contains(place)) << "a dead letter of a good record: partition " << place.first
                                     << ", offset " << place.second << ": " << reason;
}

std::vector<int> Violence::CheckTopic(const std::vector<TopicRecord>& records) {
  std::vector<int> there(oracle_.size());
  uint64_t nulls = 0;
  for (const TopicRecord& record : records) {
    if (!record.value) ++nulls;
    const auto event = record.value ? oracle_.EventIn(*record.value) : std::nullopt;
    if (event) ++there[*event];
  }
  size_t missing = 0, twice = 0;
  for (size_t event = 0; event < there.size(); ++event) {
    missing += load_->IsAcked(event) && there[event] == 0;
    twice += there[event] > 1;
  }
  EXPECT_EQ(missing, 0u) << "events are acked and not in the topic";
  EXPECT_EQ(twice, 0u) << "the topic itself has events twice";
  EXPECT_GE(nulls, load_->nulls_acked()) << "null values are acked and not in the topic";
  for (size_t event = 0; event < there.size(); ++event)
    if (oracle_.IsBad(event)) there[event] = 0;
  return there;
}

void Violence::Finish() {
  load_->Stop();
  Fill();
  EnsureDaemon();
  ASSERT_FALSE(testing::Test::HasFatalFailure());
  const std::vector<TopicRecord> records = ReadTopic(broker_.bootstrap(), kTopic);
  const std::vector<int> once = CheckTopic(records);
  std::vector<int> periods;
  for (int times : once) periods.push_back(times * static_cast<int>(Oracle::kStepsPerPeriod));
  applied_ = static_cast<size_t>(std::count(once.begin(), once.end(), 1));
  AwaitEnd(once);
  ASSERT_FALSE(testing::Test::HasFatalFailure());
  daemon_->Signal(SIGTERM);
  const auto ended = daemon_->Wait();
  ASSERT_TRUE(ended) << "the daemon does not stop when asked: " << daemon_->Err();
  ASSERT_EQ(ended->exit_code, 0) << "the daemon does not stop as asked: " << ended->err;
  for (size_t learner : {0, 1}) {
    const auto applied = oracle_.Applied(config_, learner);
    ASSERT_TRUE(applied) << applied.error().message;
    const auto wrong = oracle_.Differences(*applied, learner == 0 ? once : periods);
    for (const std::string& difference : wrong)
      ADD_FAILURE() << (learner == 0 ? "exact: " : "period: ") << difference;
  }
  CheckDeadLetters(records);
  CheckStore();
  const Ended verified =
      test::Run({TACIT, "ledger", "verify", "--store", dir_ / "store", "--full"});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
}

std::string Violence::Figures() const {
  return fmt::format(
      "{} events applied once, {} dead letters{}; never in the topic: {} that the producer's "
      "client "
      "would not take and {} that it gave up; {} partitions, {} steps, epsilon {:.4f} of unit {}; "
      "learning again after a return: {}; after a takeover: {}",
      applied_, dead_,
      options_.dead_letter_topic ? fmt::format(" in a topic, {} of them again", dead_again_) : "",
      load_->refused(), load_->given_up(), partitions_, last_.steps, last_.epsilon,
      options_.users ? "user" : "event", Summary(returns_), Summary(takeovers_));
}

}  // namespace tacit::test
