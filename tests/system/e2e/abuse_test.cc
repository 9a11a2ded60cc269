// Strangers who abuse a daemon in every way at hand while it learns: each gets the status that is
// due, the daemon keeps within its memory, and operators are answered all the while. A share of it
// by default; `tools/test --campaign abuse` sets the numbers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "service.h"
#include "unit/http/raw_connection.h"

namespace tacit {
namespace {

using http::RawConnection;
using test::Eventually;
using test::kPatience;
using test::SmallRun;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::string Post(const std::string& fields, const std::string& body) {
  return "POST /v1/score HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n" + body;
}

// A request that is wrong, and the status that is due.
struct Wrong {
  const char* what;
  std::string bytes;
  int status;
};

std::vector<Wrong> WrongRequests() {
  const auto sized = [](const std::string& body) {
    return Post(fmt::format("Content-Length: {}\r\n", body.size()), body);
  };
  const std::string deep(200'000, '[');
  std::string objects;
  for (int i = 0; i < 20'000; ++i) objects += R"({"rows":)";
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  return {
      {"two lengths", Post("Content-Length: 2\r\nContent-Length: 3\r\n", "{}"), 400},
      {"one length twice", Post("Content-Length: 2\r\nContent-Length: 2\r\n", "{}"), 400},
      {"a list of lengths", Post("Content-Length: 2, 2\r\n", "{}"), 400},
      {"a length below 0", Post("Content-Length: -2\r\n", "{}"), 400},
      {"a length that is none", Post("Content-Length: 0x2\r\n", "{}"), 400},
      {"a length and chunks", Post("Content-Length: 2\r\n" + chunked, "0\r\n\r\n"), 400},
      {"chunks and a length", Post(chunked + "Content-Length: 2\r\n", "0\r\n\r\n"), 400},
      {"a chunk without a size", Post(chunked, "zz\r\n{}\r\n0\r\n\r\n"), 400},
      {"a GB, announced", Post("Content-Length: 1073741824\r\n", "{\"rows\":["), 413},
      {"deep lists", sized(R"({"rows":)" + deep), 400},
      {"deep objects", sized(objects), 400},
      {"bytes that are no UTF-8", sized("{\"learner\":\"\xff\xfe\xc0\xaf\"}"), 400},
      {"half a character", sized("{\"learner\":\"\xe2\x82\"}"), 400},
      {"half a pair of surrogates", sized(R"({"learner":"\ud800"})"), 400},
      {"a zero byte", sized(std::string("{\"rows\":[\0]}", 12)), 400},
      {"a stranger's name", "GET /v1/privacy HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421},
      {"an address with a stranger's name",
       "GET /v1/privacy HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n", 421},
      {"two names", "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400},
      {"a header without an end",
       "GET / HTTP/1.1\r\nHost: localhost\r\nA: " + std::string(40'000, 'a'), 431},
      {"no HTTP at all",
       std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + "\r\n\r\n", 400},
  };
}

class AbuseTest : public testing::Test {
 protected:
  AbuseTest() {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }

  void Start(uint64_t connections) {
    SmallRun run;
    run.endless = true;
    run.listen = "127.0.0.1:0";
    const std::string config = run.WriteConfig(dir_);
    std::vector<std::string> command = {TACITD,
                                        "--config",
                                        config,
                                        "--set",
                                        "log.level=info",
                                        "--set",
                                        "serve.operator_listen=" + operators_,
                                        "--set",
                                        fmt::format("serve.max_connections={}", connections)};
    std::vector<std::string> check = command;
    check.insert(check.end(), {"--check-config", "--set", "memory.total_bytes=64MiB"});
    const std::string refusal = test::Run(check).err, before = "the least that would do is ";
    ASSERT_THAT(refusal, HasSubstr(before));
    total_mib_ = std::stoull(refusal.substr(refusal.find(before) + before.size()));
    command.insert(command.end(), {"--set", fmt::format("memory.total_bytes={}MiB", total_mib_)});
    daemon_ = std::make_unique<test::Process>(command);
    const std::string serving = "serving on 127.0.0.1:";
    ASSERT_TRUE(Eventually("it serves", [&] {
      const std::string said = daemon_->Err();
      const size_t at = said.find(serving);
      if (at == said.npos || said.find('\n', at) == said.npos) return false;
      address_ = said.substr(at + 11, said.find('\n', at) - at - 11);
      return true;
    })) << daemon_->Err();
    ASSERT_TRUE(Eventually("it has committed", [&] { return Steps() > 0; })) << daemon_->Err();
    watching_ = true;
    watch_ = std::thread([this] { WatchOperators(); });
  }

  uint64_t Steps() {
    const auto answer = http::Fetch(operators_ + ":/v1/privacy", "GET", "", kPatience);
    if (!answer || answer->status != 200) return 0;
    return test::ParseJson(answer->body).at("learners").at(0).at("steps").to_number<uint64_t>();
  }

  // Asks the operator's listener all the while.
  void WatchOperators() {
    do {
      const auto begin = Clock::now();
      const auto answer = http::Fetch(operators_ + ":/readyz", "GET", "", kPatience);
      const std::chrono::duration<double, std::milli> took = Clock::now() - begin;
      if (!answer || answer->status != 200) ++unanswered_;
      ++asked_;
      slowest_ms_ = std::max(slowest_ms_, took.count());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    } while (watching_);
  }

  double PeakMiB() const {
    std::ifstream status(fmt::format("/proc/{}/status", daemon_->pid()));
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
    return 0;
  }

  // Ends the daemon, and holds it to what it must not have suffered.
  void Finish(const std::string& what) {
    watching_ = false;
    watch_.join();
    EXPECT_EQ(unanswered_, 0) << "of the operators' " << asked_;
    EXPECT_GT(asked_, 0);
    const uint64_t before = Steps();
    EXPECT_TRUE(Eventually("it goes on learning", [&] { return Steps() > before; }));
    const double peak = PeakMiB();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_LE(peak, static_cast<double>(total_mib_));
#endif
    fmt::print(
        "{}: {:.0f} of {} MiB at most; {} of {} operators' requests answered, the slowest "
        "in {:.1f} ms\n",
        what, peak, total_mib_, asked_ - unanswered_, asked_, slowest_ms_);
    daemon_->Signal(SIGTERM);
    const auto ended = daemon_->Wait();
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->exit_code, 0) << ended->err;
  }

  // The status of one answer; 0: there was none.
  int StatusOf(const std::string& bytes) {
    RawConnection connection(address_);
    (void)connection.Send(bytes);  // it may be refused before all is sent
    const auto response = connection.Receive();
    return response ? response->status : 0;
  }

  const test::TempDir dir_;
  const std::string operators_ = "unix:" + (dir_ / "operators");
  std::string address_;
  uint64_t total_mib_ = 0;
  std::unique_ptr<test::Process> daemon_;
  std::atomic<bool> watching_ = false;
  std::thread watch_;
  int asked_ = 0, unanswered_ = 0;  // the watch's, until it has ended
  double slowest_ms_ = 0;
};

TEST_F(AbuseTest, EachWrongRequestGetsTheStatusThatIsDue) {
  Start(256);
  if (HasFatalFailure()) return;
  const uint64_t rounds = FromEnvironment("TACIT_TEST_ABUSE_ROUNDS", 3);
  const std::vector<Wrong> wrong = WrongRequests();
  std::vector<std::thread> strangers;
  std::mutex mutex;
  std::map<std::string, int> other;
  for (int t = 0; t < 4; ++t)
    strangers.emplace_back([&] {
      for (uint64_t round = 0; round < rounds; ++round)
        for (const Wrong& request : wrong) {
          const int status = StatusOf(request.bytes);
          if (status == request.status) continue;
          const std::lock_guard lock(mutex);
          ++other[fmt::format("{}: {} instead of {}", request.what, status, request.status)];
        }
    });
  for (std::thread& stranger : strangers) stranger.join();
  EXPECT_THAT(other, testing::IsEmpty());
  Finish(fmt::format("{} wrong requests of {} kinds", 4 * rounds * wrong.size(), wrong.size()));
}

TEST_F(AbuseTest, BodiesWithoutAnEndAreCutOff) {
  Start(256);
  if (HasFatalFailure()) return;
  const uint64_t bodies = FromEnvironment("TACIT_TEST_ABUSE_BODIES", 4);
  const std::string piece = fmt::format("{:x}\r\n", 1 << 20) + std::string(1 << 20, ' ') + "\r\n";
  std::atomic<uint64_t> refused = 0, sent = 0;
  std::vector<std::thread> strangers;
  for (int t = 0; t < 4; ++t)
    strangers.emplace_back([&, t] {
      for (uint64_t i = static_cast<uint64_t>(t); i < bodies; i += 4) {
        RawConnection connection(address_);
        bool open = connection.Send(Post("Transfer-Encoding: chunked\r\n", ""));
        for (int mib = 0; mib < 1024 && open && !connection.HasNews(); ++mib) {
          open = connection.Send(piece);
          ++sent;
        }
        const auto response = connection.Receive();
        // 503: others of these hold the room. A client that sends on may lose the answer with the
        // connection.
        if (!response || response->status == 413 || response->status == 503) ++refused;
      }
    });
  for (std::thread& stranger : strangers) stranger.join();
  EXPECT_EQ(refused, bodies);
  EXPECT_LT(sent, bodies * 64) << "each was read on beyond its limit";
  Finish(fmt::format("{} bodies of a GB, {} MiB of them sent", bodies, sent.load()));
}

TEST_F(AbuseTest, GarbageBehindARequestEndsTheConnectionAlone) {
  Start(256);
  if (HasFatalFailure()) return;
  const uint64_t rounds = FromEnvironment("TACIT_TEST_ABUSE_ROUNDS", 3);
  std::mt19937 random(7);
  std::map<int, int> second;
  for (uint64_t round = 0; round < 20 * rounds; ++round) {
    std::string garbage(1 + random() % 3000, '\0');
    for (char& c : garbage) c = static_cast<char>(random());
    garbage[0] = '\x01';  // no method begins so
    RawConnection connection(address_);
    (void)connection.Send(http::MakeRequest("GET", "/healthz") + garbage + "\r\n\r\n");
    const auto first = connection.Receive();
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->status, 200);
    const auto next = connection.Receive();
    ++second[next ? next->status : 0];
    EXPECT_TRUE(connection.Closes());
  }
  for (const auto& [status, count] : second) EXPECT_TRUE(status == 400 || status == 431) << status;
  Finish(fmt::format("{} pipelines of garbage", 20 * rounds));
}

// Connections that send nothing, the beginning of a header, of a body, or of a body byte by byte.
TEST_F(AbuseTest, IdleAndSlowConnectionsKeepNobodyOut) {
  const uint64_t idle = FromEnvironment("TACIT_TEST_ABUSE_IDLE", 300);
  const uint64_t seconds = FromEnvironment("TACIT_TEST_ABUSE_SECONDS", 1);
  Start(idle + 200);
  if (HasFatalFailure()) return;
  static const std::vector<std::string> kBegun = {
      "", "GET /readyz HTTP/1.1\r\nHost: localhost\r\nX",
      Post("Content-Length: 8388608\r\n", R"({"rows":[)"),
      Post("Transfer-Encoding: chunked\r\n", "5\r\n{\"row")};
  std::vector<std::unique_ptr<RawConnection>> connections;
  for (uint64_t i = 0; i < idle; ++i) {
    connections.push_back(std::make_unique<RawConnection>(address_));
    ASSERT_TRUE(connections.back()->connected()) << i;
    (void)connections.back()->Send(kBegun[i % kBegun.size()]);
  }
  // Others are answered meanwhile, as long as this lasts; some of the slow go on byte by byte.
  uint64_t others = 0, failed = 0;
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  do {
    for (uint64_t i = 1; i < std::min<uint64_t>(idle, 64); i += 4) (void)connections[i]->Send("x");
    ++others;
    if (StatusOf(http::MakeRequest("GET", "/v1/privacy")) != 200) ++failed;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (Clock::now() < end);
  EXPECT_EQ(failed, 0u) << "of " << others;
  uint64_t cut = 0;
  for (const auto& connection : connections) cut += connection->HasNews() ? 1 : 0;
  Finish(fmt::format("{} idle and slow connections for {} s, {} cut by then; {} others answered",
                     idle, seconds, cut, others - failed));
}

}  // namespace
}  // namespace tacit
