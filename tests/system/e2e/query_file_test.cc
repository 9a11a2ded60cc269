// tacit query score and recommend over whole files, asking a server whose commits are in memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "http/server.h"
#include "service.h"
#include "support/small_run.h"
#include "unit/serve/fake_snapshot.h"
#include "unit/serve/recommend_fakes.h"

namespace tacit {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using test::Ended;
using testing::HasSubstr;

std::string ContentsOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

class QueryFileTest : public testing::Test {
 protected:
  QueryFileTest() {
    serve::Services services;
    serve::ScoringModel scoring = serve::SmallModel();
    scoring.lines =
        event::MakeJsonCodec(*scoring.transform, {.label = event::LabelUse::kPassedOver});
    const auto snapshot = std::make_shared<serve::FakeSnapshot>(
        6, scoring, serve::DenseSizeOf(serve::SmallNetwork()));
    services.latest = [snapshot] { return snapshot; };
    services.models = {scoring};
    services.metrics = &registry_;
    auto server = http::Server::Start({.listeners = {{url_, http::Role::kPublic}}},
                                      serve::MakeApi(services), registry_);
    EXPECT_TRUE(server.has_value()) << server.error().message;
    server_ = std::move(*server);
  }
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name, std::ios::binary) << text;
    return dir_ / name;
  }
  Ended Score(const std::string& input, std::vector<std::string> more = {}) {
    std::vector<std::string> command{TACIT, "query",     "score",     "--url",
                                     url_,  "--learner", "ctr",       "--input",
                                     input, "--output",  dir_ / "out"};
    command.insert(command.end(), more.begin(), more.end());
    return test::Run(command);
  }
  // A record whose score differs from most others'.
  static std::string Record(int i) {
    return fmt::format(R"({{"label":0,"features":{{"I1":{},"C1":"v{}"}}}})", i % 97, i % 31);
  }
  // The server's own answer to one record.
  double ScoreOf(const std::string& record) {
    const auto answer =
        http::Fetch(url_ + ":/v1/score/lines?learner=ctr", "POST", record + "\n", test::kPatience);
    return json::parse(answer->body).at("scores").at(0).to_number<double>();
  }
  bool LeftNothing() const {
    for (const auto& entry : fs::directory_iterator(dir_.path()))
      if (entry.path().filename().string().starts_with("out")) return false;
    return true;
  }

  test::TempDir dir_;
  const std::string url_ = "unix:" + (dir_ / "socket");
  metrics::Registry registry_;
  std::unique_ptr<http::Server> server_;
};

// More lines than the blocks under way have, bad ones among them, one at each end of a block too.
TEST_F(QueryFileTest, EachLineIsAnsweredInItsOrderAndBadOnesAreNamed) {
  std::string text;
  constexpr int kLines = 9000;
  const std::set<int> bad = {1, 1024, 1025, 1026, 5000, kLines};
  for (int i = 1; i <= kLines; ++i) text += (bad.contains(i) ? "{\"label\":" : Record(i)) + "\n";
  const std::string input = Write("in.jsonl", text);
  const Ended ended = Score(input, {"--jobs", "3"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("8,994 lines answered, 6 bad"));
  for (const int line : bad) EXPECT_THAT(ended.err, HasSubstr(fmt::format("line {}: ", line)));
  EXPECT_THAT(ended.err, testing::Not(HasSubstr("\r")));  // no bar where there is no terminal
  const std::string whole = ContentsOf(dir_ / "out");
  const std::vector<std::string> lines = LinesOf(whole);
  ASSERT_EQ(lines.size(), static_cast<size_t>(kLines));
  for (int i = 1; i <= kLines; ++i) {
    const json::value answer = json::parse(lines[static_cast<size_t>(i - 1)]);
    ASSERT_EQ(answer.at("line"), i);
    ASSERT_EQ(answer.as_object().contains("error"), bad.contains(i)) << lines[i - 1];
    if (i % 501 == 2) {
      EXPECT_NEAR(answer.at("probability").to_number<double>(), ScoreOf(Record(i)), 1e-7);
    }
  }
  // One job at a time, and gzip: the same bytes.
  const gzFile packed = gzopen((dir_ / "in.gz").c_str(), "wb");
  gzwrite(packed, text.data(), static_cast<unsigned>(text.size()));
  gzclose(packed);
  ASSERT_EQ(Score(dir_ / "in.gz", {"--jobs", "1"}).exit_code, 0);
  EXPECT_EQ(ContentsOf(dir_ / "out"), whole);
}

TEST_F(QueryFileTest, CsvHasAHeaderAndTheReasonOfBadLines) {
  const std::string input = Write(
      "in.jsonl", "header\n" + Record(1) + "\n" + std::string(70'000, 'x') + "\n" + Record(3));
  const Ended ended = Score(input, {"--format", "csv", "--skip-header"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const std::vector<std::string> lines = LinesOf(ContentsOf(dir_ / "out"));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "line,probability,version,error");
  EXPECT_TRUE(lines[1].starts_with("2,0.") && lines[1].ends_with(",6,")) << lines[1];
  EXPECT_EQ(lines[2], "3,,,longer than 65536 bytes");
  EXPECT_TRUE(lines[3].starts_with("4,0.")) << lines[3];
}

TEST_F(QueryFileTest, AFailedRunLeavesNoOutput) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += Record(i) + "\n";
  const std::string input = Write("in.jsonl", text);
  EXPECT_EQ(Score(dir_ / "none").exit_code, 2);
  const Ended unknown = test::Run({TACIT, "query", "score", "--url", url_, "--learner", "nobody",
                                   "--input", input, "--output", dir_ / "out"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("lines 1 to 1024: answered 404"));
  EXPECT_TRUE(LeftNothing());
  // A gzip file that was cut off.
  const gzFile packed = gzopen((dir_ / "cut.gz").c_str(), "wb");
  for (int i = 0; i < 50'000; ++i) {
    const std::string line = Record(i * 7919) + "\n";
    gzwrite(packed, line.data(), static_cast<unsigned>(line.size()));
  }
  gzclose(packed);
  fs::resize_file(dir_ / "cut.gz", fs::file_size(dir_ / "cut.gz") / 2);
  EXPECT_EQ(Score(dir_ / "cut.gz").exit_code, 1);
  EXPECT_TRUE(LeftNothing());
  // An older output stays where a run fails.
  Write("out", "before");
  EXPECT_EQ(Score(dir_ / "cut.gz").exit_code, 1);
  EXPECT_EQ(ContentsOf(dir_ / "out"), "before");
  EXPECT_EQ(Score(input, {"--row", "x"}).exit_code, 2);
}

// A run that a signal ends has written nothing under the output's name, and cleans up.
TEST_F(QueryFileTest, AnInterruptedRunLeavesNoOutput) {
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += Record(i) + "\n";
  const std::string input = Write("in.jsonl", text);
  test::Process process({TACIT, "query", "score", "--url", url_, "--learner", "ctr", "--input",
                         input, "--output", dir_ / "out", "--jobs", "1"});
  ASSERT_TRUE(test::Eventually("it has begun", [&] { return !LeftNothing(); }));
  EXPECT_FALSE(fs::exists(dir_ / "out"));
  process.Signal(SIGINT);
  const auto ended = process.Wait();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 1);
  EXPECT_THAT(process.Err(), HasSubstr("stopped by a signal"));
  EXPECT_TRUE(LeftNothing());
}

// A checkpoint's answers are those of the daemon that made it, in both of its forms.
TEST(QueryFileCheckpointTest, ADirectoryAnswersAsItsDaemonDoes) {
  test::TempDir dir;
  test::WriteSmallLog(dir, 1, 2000, 3);
  test::Service daemon(dir, test::SmallRun());
  ASSERT_TRUE(daemon.WaitForSteps(7));
  ASSERT_TRUE(daemon.WaitFor("/readyz"));
  const auto score = [&](std::vector<std::string> where, const std::string& output) {
    std::vector<std::string> command{TACIT,     "query",           "score",    "--learner", "ctr",
                                     "--input", dir / "day-0.tsv", "--output", output};
    command.insert(command.end(), where.begin(), where.end());
    return test::Run(command);
  };
  const Ended asked = score({"--url", daemon.url()}, dir / "of-daemon");
  ASSERT_EQ(asked.exit_code, 0) << asked.err;
  ASSERT_TRUE(daemon.Stop());
  const Ended read =
      score({"--checkpoint", dir / "store", "--config", dir / "store.yaml"}, dir / "of-store");
  ASSERT_EQ(read.exit_code, 0) << read.err;
  EXPECT_EQ(LinesOf(ContentsOf(dir / "of-store")).size(), 2000u);
  EXPECT_EQ(ContentsOf(dir / "of-store"), ContentsOf(dir / "of-daemon"));
  // A whole file would take the name of a device: root's /dev/null or /dev/stdout.
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  const Ended device =
      score({"--checkpoint", dir / "store", "--config", dir / "store.yaml"}, dir / "pipe");
  EXPECT_EQ(device.exit_code, 2);
  EXPECT_THAT(device.err, testing::HasSubstr("pipe: is not a regular file"));
  EXPECT_TRUE(fs::is_fifo(dir / "pipe"));
}

TEST(QueryFileRecommendTest, RequestsOfAFileAreAnsweredEach) {
  test::TempDir dir;
  const std::string url = "unix:" + (dir / "socket");
  metrics::Registry registry;
  const serve::RecommendModel model = serve::SomeRecommender(30);
  const auto snapshot = std::make_shared<serve::RecommendSnapshot>(6, model.promise);
  snapshot->released = std::make_shared<const std::string>("state");
  serve::Services services;
  services.latest = [snapshot] { return snapshot; };
  services.recommenders = {model};
  services.metrics = &registry;
  const auto server = http::Server::Start({.listeners = {{url, http::Role::kPublic}}},
                                          serve::MakeApi(services), registry);
  ASSERT_TRUE(server.has_value());
  std::ofstream(dir / "in")
      << "{\"sequence\":[\"a1\"],\"k\":2}\n{\"sequence\":3}\n{\"user\":\"u\"}\n"
         "{\"sequence\":[],\"k\":1}\n";
  const auto run = [&](const std::string& format) {
    return test::Run({TACIT, "query", "recommend", "--url", url, "--learner", "next", "--input",
                      dir / "in", "--output", dir / "out", "--format", format});
  };
  const Ended ended = run("jsonl");
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const std::vector<std::string> lines = LinesOf(ContentsOf(dir / "out"));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(json::parse(lines[0]).at("items").as_array().size(), 2u);
  EXPECT_THAT(lines[1], HasSubstr("\"error\":\"\\\"sequence\\\" must be an array\""));
  EXPECT_THAT(lines[2], HasSubstr("\"error\":"));  // by user, and not allowed
  EXPECT_EQ(json::parse(lines[3]).at("items").as_array().size(), 1u);
  ASSERT_EQ(run("csv").exit_code, 0);
  const std::vector<std::string> rows = LinesOf(ContentsOf(dir / "out"));
  EXPECT_EQ(rows[0], "line,place,item,score,version,error");
  EXPECT_EQ(rows.size(), 6u);
  EXPECT_TRUE(rows[3].starts_with("2,,,,,")) << rows[3];
}

}  // namespace
}  // namespace tacit
