// Callers ask without a pause while an operator changes what a server of checkpoints answers from,
// by every route and signal that does it. Each answer has its right status and the bits of a
// version that was served meanwhile. The oracle is another server for each version, which serves
// nothing else. A share of it by default; `tools/test --campaign swaps` sets the numbers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "service.h"
#include "unit/http/raw_connection.h"

namespace tacit {
namespace {

namespace fs = std::filesystem;
using http::RawConnection;
using http::RawResponse;
using test::Ended;
using test::Eventually;
using test::kPatience;
using Clock = std::chrono::steady_clock;

constexpr int kItems = 20, kUsers = 60, kClients = 4;
constexpr int kSwapsOfRound = 5, kArrivalsOfRound = 2;

uint64_t NumberFromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Question {
  std::string kind, method, path, body = {};
  std::string fields = {};  // further lines of the header
  bool of_counts = false;   // of the learner that is unloaded now and then
  bool has_bits = true;     // the answer depends on the version alone
};

std::string BytesOfTensor(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts) {
    const auto size = static_cast<uint32_t>(text.size());
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += text;
  }
  return bytes;
}

std::vector<Question> DrawQuestions() {
  std::mt19937 random(5);
  std::vector<Question> questions;
  for (int i = 0; i < 6; ++i) {
    std::string rows, lookups, values, sequence;
    std::vector<std::string> texts;
    for (uint32_t row = 0; row < 8; ++row) {
      const char* const comma = row == 0 ? "" : ",";
      const auto x = random() % kItems, c = random() % 7;
      rows += fmt::format(R"({}{{"features":{{"x":{},"c":"{}"}}}})", comma, x, c);
      lookups += fmt::format(R"({}{{"feature":"c","bucket":{}}})", comma, random() % 16);
      values += fmt::format(R"({}"{}")", comma, c);
      texts.push_back(std::to_string(c));
      if (row < 5) sequence += fmt::format(R"({}"item-{}")", comma, random() % kItems);
    }
    questions.push_back(
        {"score", "POST", "/v1/score", R"({"learner":"ctr","rows":[)" + rows + "]}"});
    questions.push_back(
        {"lookup", "POST", "/v1/lookup", R"({"learner":"ctr","rows":[)" + lookups + "]}"});
    questions.push_back({.kind = "recommend",
                         .method = "POST",
                         .path = "/v1/recommend",
                         .body = R"({"learner":"counts","k":7,"sequence":[)" + sequence + "]}",
                         .of_counts = true});
    questions.push_back(
        {"infer", "POST", "/v2/models/ctr/infer",
         fmt::format(R"({{"inputs":[{{"name":"c","shape":[8],"datatype":"BYTES","data":[{}]}}]}})",
                     values)});
    questions.push_back(
        {.kind = "infer-items",
         .method = "POST",
         .path = "/v2/models/counts/infer",
         .body = fmt::format(
             R"({{"inputs":[{{"name":"sequence","shape":[5],"datatype":"BYTES","data":[{}]}}]}})",
             sequence),
         .of_counts = true});
    const std::string tensor = BytesOfTensor(texts);
    const std::string head = fmt::format(
        R"({{"inputs":[{{"name":"c","shape":[8],"datatype":"BYTES","parameters":{{"binary_data_size":{}}}}}],"parameters":{{"binary_data_output":true}}}})",
        tensor.size());
    questions.push_back(
        {.kind = "infer-binary",
         .method = "POST",
         .path = "/v2/models/ctr/infer",
         .body = head + tensor,
         .fields = fmt::format("Inference-Header-Content-Length: {}\r\n", head.size())});
    for (const char* path : {"/healthz", "/readyz", "/v2/health/live", "/v2/models/ctr/ready"})
      questions.push_back({.kind = "health", .method = "GET", .path = path, .has_bits = false});
  }
  return questions;
}

// A body without what names the version, so that models alone are compared.
std::string ModelAlone(std::string body) {
  for (const char* name : {"\"version\":", "\"snapshot\":", "\"model_version\":", "\"epsilon\":"}) {
    const size_t at = body.find(name);
    if (at != std::string::npos) body.erase(at, body.find_first_of(",}", at) - at);
  }
  return body;
}

// The answers that are right between two moments.
struct Epoch {
  std::set<uint64_t> versions;
  bool counts_there = true, counts_gone = false;
};

// The versions that may answer, over time. Thread-safe.
class History {
 public:
  size_t Now() const {
    const std::lock_guard lock(mutex_);
    return epochs_.size() - 1;
  }
  void Begin(Epoch epoch) {
    const std::lock_guard lock(mutex_);
    epochs_.push_back(std::move(epoch));
  }
  Epoch Between(size_t from, size_t to) const {
    const std::lock_guard lock(mutex_);
    Epoch all = epochs_[from];
    for (size_t i = from + 1; i <= to; ++i) {
      all.versions.insert(epochs_[i].versions.begin(), epochs_[i].versions.end());
      all.counts_there = all.counts_there || epochs_[i].counts_there;
      all.counts_gone = all.counts_gone || epochs_[i].counts_gone;
    }
    return all;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Epoch> epochs_;
};

// The right answers, by version and question.
using Oracle = std::map<uint64_t, std::vector<std::string>>;

// Says what is wrong with an answer; "": nothing. `answered` gets the version that has answered, if
// its bits tell one alone.
std::string Judge(const Question& question, size_t index, const RawResponse& answer,
                  const Epoch& may, const Oracle& oracle, uint64_t* answered) {
  if (question.of_counts && answer.status == 503 && may.counts_gone)
    return answer.head.find("Retry-After") == std::string::npos ? "a 503 without Retry-After" : "";
  if (answer.status != 200) return fmt::format("status {}: {}", answer.status, answer.body);
  if (question.of_counts && !may.counts_there) return "a model that is unloaded has answered";
  if (!question.has_bits) return "";
  for (const uint64_t version : may.versions) {
    if (oracle.at(version)[index] != answer.body) continue;
    *answered = version;
    return "";
  }
  for (const auto& [version, bodies] : oracle)
    if (bodies[index] == answer.body)
      return fmt::format("version {} has answered, {} may", version, fmt::join(may.versions, ", "));
  return "bits of no version: " + answer.body;
}

std::string RequestBytes(const Question& question, const std::string& fields) {
  return fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n{}{}\r\n{}",
                     question.method, question.path, question.body.size(), question.fields, fields,
                     question.body);
}

// One that asks without a pause, on a thread of its own.
class Client {
 public:
  struct Took {
    float us = 0;
    bool swapping = false;
  };

  // The even ones keep their connection, the odd ones make one for each request. The last one has
  // a key, so that a canary answers either all of its requests or none.
  Client(int number, std::string address, const std::vector<Question>& questions,
         const Oracle& oracle, const History& history)
      : number_(number),
        address_(std::move(address)),
        questions_(questions),
        oracle_(oracle),
        history_(history),
        thread_([this] { Ask(); }) {}
  ~Client() { Stop(); }
  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  uint64_t answers() const { return answers_; }
  // These once it has stopped.
  const std::map<std::string, std::vector<Took>>& took() const { return took_; }
  const std::vector<std::string>& failures() const { return failures_; }
  uint64_t gone() const { return gone_; }
  // The versions that have answered, by the epoch that an answer lies in wholly.
  const std::map<size_t, std::set<uint64_t>>& versions() const { return versions_; }

  static bool HasKey(int number) { return number == kClients - 1; }

 private:
  void Ask() {
    std::unique_ptr<RawConnection> connection;
    for (size_t turn = static_cast<size_t>(number_) * 17; !stop_; ++turn) {
      const size_t index = turn % questions_.size();
      const Question& question = questions_[index];
      if (number_ % 2 != 0 || connection == nullptr)
        connection = std::make_unique<RawConnection>(address_);
      const size_t from = history_.Now();
      const auto begin = Clock::now();
      connection->Send(RequestBytes(question, HasKey(number_) ? "X-Canary-Key: anna\r\n" : ""));
      const auto answer = connection->Receive();
      const std::chrono::duration<float, std::micro> took = Clock::now() - begin;
      const size_t to = history_.Now();
      const Epoch may = history_.Between(from, to);
      uint64_t version = 0;
      const std::string wrong =
          answer ? Judge(question, index, *answer, may, oracle_, &version) : "no answer";
      if (!answer) connection = nullptr;
      if (!wrong.empty() && failures_.size() < 20)
        failures_.push_back(fmt::format("client {}, {}: {}", number_, question.path, wrong));
      if (answer && answer->status == 503) ++gone_;
      if (version != 0 && from == to) versions_[from].insert(version);
      took_[question.kind].push_back({took.count(), may.versions.size() > 1});
      ++answers_;
    }
  }

  const int number_;
  const std::string address_;
  const std::vector<Question>& questions_;
  const Oracle& oracle_;
  const History& history_;
  std::map<std::string, std::vector<Took>> took_;
  std::vector<std::string> failures_;
  std::map<size_t, std::set<uint64_t>> versions_;
  std::atomic<uint64_t> answers_ = 0;
  uint64_t gone_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

class SwapsTest : public testing::Test {
 protected:
  SwapsTest() {
    std::string catalogue;
    for (int i = 0; i < kItems; ++i) catalogue += fmt::format("item-{}\n", i);
    test::WriteFile(dir_ / "items.dat", catalogue);
    test::WriteFile(
        dir_ / "shop.yaml",
        fmt::format(
            "source: {{kind: log, files: {0}/day-*.jsonl, format: json}}\n"
            "catalogue: {{file: {0}/items.dat}}\n"
            "schema: {{features: [{{name: x, kind: dense}}, {{name: c, kind: categorical, "
            "buckets: 16}}]}}\n"
            "store: {{path: {0}/store, commit_interval_ms: 10}}\n"
            "serve: {{operator_listen: \"unix:{0}/trainer\"}}\n"
            "training: {{idle_priority: false}}\n"
            "memory: {{total_bytes: {1}MiB}}\n"
            "learners:\n"
            "  - id: counts\n    model: {{kind: transitions}}\n    mechanism: {{kind: counts}}\n"
            "    participation: {{mode: once, batch: 480, max_participations: 40}}\n"
            "    history: {{items: 50}}\n"
            "    privacy: {{unit: user, epsilon: 40, delta: 1.0e-6}}\n"
            "  - id: ctr\n    model: {{kind: pctr, hidden: [8]}}\n    mechanism: {{kind: dp-sgd}}\n"
            "    participation: {{mode: once, batch: 160, max_participations: 120}}\n"
            "    privacy: {{unit: user, epsilon: 40, delta: 1.0e-6}}\n",
            dir_.path(), kMemoryMiB));
    fs::create_directories(served_);
  }

  void WriteDay(int day) {
    std::mt19937 random(static_cast<uint32_t>(day));
    std::string text;
    for (int click = 0; click < 8; ++click)
      for (int user = 0; user < kUsers; ++user)
        text += fmt::format(
            R"({{"label":{},"user":"u{}","item":"item-{}","timestamp_ms":{},"features":{{"x":{},"c":"{}"}}}})"
            "\n",
            random() % 3 == 0 ? 0 : 1, user, (3 * user + click * (day + 1)) % kItems,
            1000 + day * 1000 + click, random() % kItems, random() % 7);
    test::WriteFile(dir_ / fmt::format("day-{}.jsonl", day), text);
  }

  // Learns a day more, and makes a release of it.
  void MakeVersion(int day) {
    WriteDay(day);
    test::Process trainer({TACITD, "--config", dir_ / "shop.yaml"});
    const std::string at = "unix:" + (dir_ / "trainer");
    // Every step of both learners is committed by then.
    ASSERT_TRUE(Eventually("the day is learnt", [&] {
      const auto answer = http::Fetch(at + ":/v1/dashboard?figures=public", "GET", "", kPatience);
      return answer && answer->status == 200 &&
             test::ParseJson(answer->body).at("state").at("activity") ==
                 "at the end of the log; serving";
    })) << trainer.Err();
    const Ended made = test::Run({TACIT, "checkpoint", "create", "--url", at, "--kind", "release"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    trainer.Signal(SIGTERM);
    const auto ended = trainer.Wait();
    ASSERT_TRUE(ended && ended->exit_code == 0);
    for (const auto& entry : fs::directory_iterator(dir_ / "store.checkpoints")) {
      const std::string name = entry.path().filename();
      if (!name.starts_with("release-")) continue;
      const uint64_t version = std::stoull(name.substr(8));
      if (versions_.empty() || version > versions_.back().first)
        versions_.emplace_back(version, entry.path());
    }
    ASSERT_EQ(versions_.size(), static_cast<size_t>(day) + 1);
  }

  // A server of checkpoints on a free port; its operators' listener is NAME in the folder.
  std::unique_ptr<test::Process> Serve(const std::string& name, const std::string& checkpoints,
                                       std::string* address) {
    auto server = std::make_unique<test::Process>(std::vector<std::string>{
        TACITD, "--config", dir_ / "shop.yaml", "--serve-only", "--checkpoint", checkpoints,
        "--set", "serve.listen=127.0.0.1:0", "--set", "serve.operator_listen=unix:" + (dir_ / name),
        "--set", "serve.threads=2"});
    const std::string serving = "serving on 127.0.0.1:";
    EXPECT_TRUE(Eventually("it serves", [&] {
      const std::string said = server->Err();
      const size_t at = said.find(serving);
      if (at == said.npos || said.find('\n', at) == said.npos) return false;
      const size_t port = at + serving.size();
      *address =
          "127.0.0.1:" + said.substr(port, said.find_first_not_of("0123456789", port) - port);
      return true;
    })) << server->Err();
    return server;
  }

  // Asks a server that has no other version.
  void AskOracle(uint64_t version, const std::string& folder) {
    std::string address;
    const auto server = Serve("oracle", folder, &address);
    RawConnection connection(address);
    for (const Question& question : questions_) {
      ASSERT_TRUE(connection.Send(RequestBytes(question, "")));
      const auto answer = connection.Receive();
      ASSERT_TRUE(answer && answer->status == 200) << question.path << (answer ? answer->body : "");
      oracle_[version].push_back(answer->body);
    }
    server->Signal(SIGTERM);
    ASSERT_TRUE(server->Wait());
  }

  // Brings the next checkpoint to where the server looks, as a copy that appears at once.
  void Arrive() {
    ASSERT_LT(arrived_, versions_.size());
    const auto& [version, folder] = versions_[arrived_++];
    fs::copy(folder, served_ + ".new", fs::copy_options::recursive);
    fs::rename(served_ + ".new", fs::path(served_) / fs::path(folder).filename());
  }

  uint64_t Arrived(size_t back = 0) const { return versions_[arrived_ - 1 - back].first; }

  Result<http::Response> Operator(const std::string& method, const std::string& path,
                                  const std::string& body = "") {
    return http::Fetch("unix:" + (dir_ / "operators") + ":" + path, method, body, kPatience);
  }
  void MustOrder(const std::string& path, const std::string& body = "") {
    const auto answer = Operator("POST", path, body);
    ASSERT_TRUE(answer && answer->status == 200)
        << path << " " << body << ": " << (answer ? answer->body : answer.error().message);
  }
  void MustCommand(std::vector<std::string> words) {
    words.insert(words.begin(), {TACIT, "versions"});
    words.insert(words.end(), {"--url", "unix:" + (dir_ / "operators")});
    const Ended ended = test::Run(words);
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
  }
  uint64_t Serving() {
    const auto answer = Operator("GET", "/v1/versions");
    return answer && answer->status == 200
               ? test::ParseJson(answer->body).at("serving").to_number<uint64_t>()
               : 0;
  }

  // Says what may answer while `order` changes it, and after.
  template <class Order>
  void Swap(Epoch after, const Order& order) {
    Epoch meanwhile = now_;
    meanwhile.versions.insert(after.versions.begin(), after.versions.end());
    meanwhile.counts_there = now_.counts_there || after.counts_there;
    meanwhile.counts_gone = now_.counts_gone || after.counts_gone;
    history_.Begin(meanwhile);
    order();
    history_.Begin(after);
    now_ = after;
  }
  // Lets the callers ask for a swap's share of the time, and until each of them has been answered.
  void LetThemAsk(const std::vector<std::unique_ptr<Client>>& clients) {
    const auto begin = Clock::now();
    std::vector<uint64_t> before;
    for (const auto& client : clients) before.push_back(client->answers());
    EXPECT_TRUE(Eventually("each is answered", [&] {
      for (size_t i = 0; i < clients.size(); ++i)
        if (clients[i]->answers() < before[i] + questions_.size()) return false;
      return true;
    }));
    std::this_thread::sleep_until(begin + pause_);
  }

  // Five swaps: a signal, a rollback, a canary, its promotion, and a model that is unloaded and
  // loaded from a newer checkpoint.
  void Round(const std::vector<std::unique_ptr<Client>>& clients) {
    const auto rest = [&] { LetThemAsk(clients); };
    Arrive();
    const uint64_t newer = Arrived(), older = Arrived(1);
    Swap({{newer}}, [&] {
      server_->Signal(SIGHUP);
      ASSERT_TRUE(Eventually("SIGHUP moves it", [&] { return Serving() == newer; }));
    });
    rest();
    Swap({{older}}, [&] { MustCommand({"serve", std::to_string(older)}); });
    rest();
    Swap({{older, newer}}, [&] {
      MustOrder("/v1/versions", fmt::format(R"({{"canary":{{"version":{},"share":0.5}}}})", newer));
    });
    canaries_.push_back(history_.Now());
    rest();
    Swap({{newer}}, [&] {
      MustOrder("/v1/versions", fmt::format(R"({{"serve":{}}})", newer));
      MustCommand({"serve", "newest"});
    });
    rest();
    Swap({.versions = {newer}, .counts_there = false, .counts_gone = true},
         [&] { MustOrder("/v2/repository/models/counts/unload"); });
    rest();
    Arrive();
    Swap({{Arrived()}}, [&] {
      MustOrder("/v2/repository/models/counts/load");
      ASSERT_EQ(Serving(), Arrived());
    });
    rest();
  }

  // Prints what each kind of question took; swaps apart.
  static void TellTimes(const std::vector<std::unique_ptr<Client>>& clients) {
    std::map<std::string, std::vector<float>> took;
    for (const auto& client : clients)
      for (const auto& [kind, times] : client->took())
        for (const Client::Took& time : times) {
          took[kind].push_back(time.us);
          if (time.swapping) took["(any, two versions may answer)"].push_back(time.us);
        }
    fmt::print("{:<32} {:>10} {:>9} {:>9} {:>9}\n", "question", "answers", "p50 us", "p99 us",
               "max us");
    for (auto& [kind, times] : took) {
      std::ranges::sort(times);
      fmt::print("{:<32} {:>10} {:>9.0f} {:>9.0f} {:>9.0f}\n", kind, times.size(),
                 times[times.size() / 2], times[times.size() * 99 / 100], times.back());
    }
  }

  uint64_t ResidentMiB() const {
    std::istringstream status(test::ReadFile(fmt::format("/proc/{}/status", server_->pid())));
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) / 1024;
    return 0;
  }

  static constexpr uint64_t kMemoryMiB = 500;
  const test::TempDir dir_;
  const std::string served_ = dir_ / "served";
  const std::vector<Question> questions_ = DrawQuestions();
  std::vector<std::pair<uint64_t, std::string>> versions_;  // ascending, with their folders
  size_t arrived_ = 0;                                      // of these, in the served folder
  Oracle oracle_;
  History history_;
  Epoch now_;
  std::vector<size_t> canaries_;  // epochs
  std::unique_ptr<test::Process> server_;
  std::chrono::milliseconds pause_{0};
};

TEST_F(SwapsTest, EachAnswerIsOfAVersionThatMayAnswer) {
  const uint64_t swaps = NumberFromEnvironment("TACIT_TEST_SWAPS", kSwapsOfRound);
  const uint64_t seconds = NumberFromEnvironment("TACIT_TEST_SWAPS_SECONDS", 3);
  const int rounds = static_cast<int>((swaps + kSwapsOfRound - 1) / kSwapsOfRound);
  pause_ = std::chrono::milliseconds(seconds * 1000 / static_cast<uint64_t>(rounds * 6));
  for (int day = 0; day < 2 + kArrivalsOfRound * rounds; ++day) {
    MakeVersion(day);
    if (HasFatalFailure()) return;
    AskOracle(versions_.back().first, versions_.back().second);
    if (HasFatalFailure()) return;
  }
  // An answer of another version would be seen.
  for (size_t i = 0; i < questions_.size(); ++i) {
    if (!questions_[i].has_bits) continue;
    std::set<std::string> models;
    for (const auto& [version, bodies] : oracle_) models.insert(ModelAlone(bodies[i]));
    EXPECT_GT(models.size(), versions_.size() / 2) << questions_[i].path;
  }
  Arrive();
  Arrive();
  std::string address;
  server_ = Serve("operators", served_, &address);
  ASSERT_EQ(Serving(), Arrived());
  now_ = {{Arrived()}};
  history_.Begin(now_);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kClients; ++i)
    clients.push_back(std::make_unique<Client>(i, address, questions_, oracle_, history_));
  const auto begin = Clock::now();
  for (int round = 0; round < rounds && !HasFailure(); ++round) Round(clients);
  const std::chrono::duration<double> took = Clock::now() - begin;
  uint64_t answers = 0, gone = 0;
  for (const auto& client : clients) {
    client->Stop();
    answers += client->answers();
    gone += client->gone();
    EXPECT_THAT(client->failures(), testing::IsEmpty());
  }
  EXPECT_GT(gone, 0u);  // while it was unloaded
  for (const size_t epoch : canaries_) {
    const auto& of_key = clients.back()->versions();
    EXPECT_EQ(of_key.at(epoch).size(), 1u);  // a key stays with its side
    EXPECT_EQ(clients.front()->versions().at(epoch).size(), 2u);
  }
  const uint64_t memory = ResidentMiB();
  EXPECT_LT(memory, kMemoryMiB);
  fmt::print(
      "{} swaps in {:.0f} s: {} answers, {} of them 503 of a model that was unloaded, {} "
      "MiB at most\n",
      rounds * kSwapsOfRound, took.count(), answers, gone, memory);
  TellTimes(clients);
  server_->Signal(SIGTERM);
  const auto ended = server_->Wait();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 0) << ended->err;
}

TEST(SwapsJudgement, WrongAnswersAreSeen) {
  const Question question{"score", "POST", "/v1/score", "{}"};
  const Oracle oracle = {{1, {"one"}}, {2, {"two"}}};
  const auto judge = [&](int status, const std::string& body, const Epoch& may) {
    uint64_t answered = 0;
    return Judge(question, 0, {.status = status, .head = "", .body = body}, may, oracle, &answered);
  };
  EXPECT_EQ(judge(200, "one", {{1}}), "");
  EXPECT_EQ(judge(200, "one", {{1, 2}}), "");
  EXPECT_EQ(judge(200, "one", {{2}}), "version 1 has answered, 2 may");
  EXPECT_EQ(judge(200, "onw", {{1, 2}}), "bits of no version: onw");
  EXPECT_EQ(judge(503, "", {{1}}), "status 503: ");
  // An unloaded model says so, and nothing else.
  Question items = question;
  items.of_counts = true;
  uint64_t answered = 0;
  const Epoch gone{.versions = {1}, .counts_there = false, .counts_gone = true};
  EXPECT_EQ(Judge(items, 0, {503, "Retry-After: 1", ""}, gone, oracle, &answered), "");
  EXPECT_EQ(Judge(items, 0, {503, "", ""}, gone, oracle, &answered), "a 503 without Retry-After");
  EXPECT_EQ(Judge(items, 0, {200, "", "one"}, gone, oracle, &answered),
            "a model that is unloaded has answered");
}

}  // namespace
}  // namespace tacit
