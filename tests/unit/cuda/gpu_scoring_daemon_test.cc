// The daemon whose large requests are scored on a GPU, which is emulated: while it learns there,
// from a checkpoint, and when the device fails or has no room.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <random>
#include <regex>

#include "cuda/device/errors.h"
#include "http/client.h"
#include "support/eventually.h"
#include "support/metrics_page.h"
#include "support/process.h"

namespace tacit::cuda::testing {
namespace {

using ::testing::HasSubstr;

constexpr size_t kServedRecords = 128;

class GpuScoringDaemon : public ::testing::Test {
 protected:
  GpuScoringDaemon() {
    std::mt19937_64 random(7);
    std::string text;
    for (size_t i = 0; i < kServedRecords; ++i)
      text += fmt::format(R"({{"label":{},"timestamp_ms":{},"features":{{"x":{},"c":"{}"}}}})"
                          "\n",
                          random() % 2, 1000 * (i + 1), random() % 100, random() % 12);
    test::WriteFile(dir_ / "clicks.jsonl", text);
  }

  std::string Write(const std::string& gpu) const {
    const std::string path = dir_ / "served.yaml";
    test::WriteFile(
        path, fmt::format("source: {{kind: log, files: [{}], format: json}}\n"
                          "schema: {{features: [{{name: x, kind: dense}}, {{name: c, kind: "
                          "categorical, buckets: 20}}]}}\n"
                          "learners:\n"
                          "  - id: ctr\n"
                          "    model: {{kind: pctr, hidden: [8]}}\n"
                          "    mechanism: {{kind: adafest, threshold: 1.0, sigma_ratio: 5}}\n"
                          "    participation: {{mode: once, batch: 16}}\n"
                          "    privacy: {{unit: event, epsilon: 50, delta: 1.0e-6}}\n"
                          "    optimizer: {{kind: adam, learning_rate: 0.01}}\n"
                          "store: {{path: {}, commit_interval_ms: 11}}\n"
                          "serve: {{listen: \"unix:{}\", operator_listen: \"unix:{}\"}}\n"
                          "gpu: {}\n"
                          "training: {{idle_priority: false, workers: 1}}\n"
                          "memory: {{total_bytes: 400MiB}}\n",
                          dir_ / "clicks.jsonl", dir_ / "store", dir_ / "public", dir_ / "operator",
                          gpu));
    return path;
  }
  std::vector<std::string> Serving(const std::string& gpu) const {
    return {TACITD_CRASH, "--config", Write(gpu), "--serve-only", "--checkpoint", dir_ / "store"};
  }
  std::string Ask(const std::string& listener, const std::string& path,
                  const std::string& body = "") const {
    const auto answer = http::Fetch("unix:" + (dir_ / listener) + ":" + path,
                                    body.empty() ? "GET" : "POST", body, test::kPatience);
    if (!answer) return "";
    EXPECT_TRUE(body.empty() || answer->status == 200) << answer->body;
    return answer->body;
  }
  std::string Metrics() const { return Ask("operator", "/metrics"); }

  struct Scores {
    std::vector<double> of_rows;
    int64_t version = 0;
  };
  Scores Score(size_t rows) const {
    std::string body = R"({"learner":"ctr","rows":[)";
    for (size_t i = 0; i < rows; ++i)
      body += fmt::format(R"({}{{"features":{{"x":{},"c":"{}"}}}})", i == 0 ? "" : ",", 3 * i, i);
    Scores scores;
    const auto answer = boost::json::parse(Ask("public", "/v1/score", body + "]}")).as_object();
    for (const auto& score : answer.at("scores").as_array())
      scores.of_rows.push_back(score.to_number<double>());
    scores.version = answer.at("model").at("version").to_number<int64_t>();
    return scores;
  }
  // Holds the documented rows of such daemons against a page, and returns how many there are.
  static size_t ExportedRowsOfReadme(const std::string& page) {
    const auto shown = test::ShapesOf(page);
    size_t rows = 0;
    for (const auto& [name, row] : test::DocumentedMetrics()) {
      if (row.of != metrics::kGpu) continue;
      ++rows;
      EXPECT_FALSE(row.is_public) << name;
      EXPECT_TRUE(shown.contains(name) && shown.at(name) == row.shape) << name;
    }
    return rows;
  }
  static void ExpectNear(const Scores& got, const Scores& wanted) {
    EXPECT_EQ(got.version, wanted.version);
    ASSERT_EQ(got.of_rows.size(), wanted.of_rows.size());
    for (size_t i = 0; i < wanted.of_rows.size(); ++i)
      EXPECT_NEAR(got.of_rows[i], wanted.of_rows[i], 2e-6) << i;
  }
  void ExpectServing(test::Process& daemon) const {
    ASSERT_TRUE(test::Eventually("the server is there", [&] {
      return Ask("public", "/readyz").find("ready") == 0;
    })) << daemon.Err();
  }

  const test::TempDir dir_;
};

constexpr char kFromFour[] = "{use: require, serve_rows: 4, serve_cache_bytes: 4KiB}";

TEST_F(GpuScoringDaemon, LargeRequestsAreScoredThereAndSmallOnesAreNot) {
  Scores live;
  {
    test::Process daemon({TACITD_CRASH, "--config", Write(kFromFour)});
    ExpectServing(daemon);
    // Answers while it learns are of one version or another, and never fail.
    ASSERT_TRUE(test::Eventually("all is learnt", [&] {
      EXPECT_EQ(Score(9).of_rows.size(), 9u);
      return Metrics().find(fmt::format("tacit_steps_committed_total{{learner=\"ctr\"}} {}",
                                        kServedRecords / 16)) != std::string::npos;
    })) << Metrics();
    EXPECT_THAT(daemon.Err(), HasSubstr("learner 'ctr' learns on GPU 0"));
    EXPECT_THAT(daemon.Err(), HasSubstr("learner 'ctr': requests of 4 rows and more are scored on "
                                        "GPU 0"));
    EXPECT_THAT(Metrics(), HasSubstr("tacit_gpu_scoring{learner=\"ctr\"} 1"));
    EXPECT_EQ(ExportedRowsOfReadme(Metrics()), 2u);
    EXPECT_EQ(Ask("public", "/metrics").find("tacit_gpu"), std::string::npos);
    const auto counted = [&] {
      const std::string text = Metrics(), name = "tacit_gpu_scored_rows_total{learner=\"ctr\"} ";
      return std::stod(text.substr(text.find("\n" + name) + 1 + name.size()));
    };
    const double before = counted();
    EXPECT_GT(before, 0);
    EXPECT_EQ(Score(3).of_rows.size(), 3u);
    EXPECT_EQ(counted(), before);
    live = Score(9);
    EXPECT_EQ(counted(), before + 9);
    daemon.Signal(SIGTERM);
    EXPECT_EQ(daemon.Wait()->exit_code, 0) << daemon.Err();
  }
  test::Process processor(Serving("{use: never}"));
  ExpectServing(processor);
  const Scores wanted = Score(9);
  ExpectNear(live, wanted);
  processor.Signal(SIGTERM);
  processor.Wait();
  // A server of checkpoints opens the device for that alone; it fails under a request.
  test::Process failing(Serving(kFromFour),
                        {fmt::format("TACIT_TEST_GPU=fail=60:{}", code::kEccUncorrectable)});
  ExpectServing(failing);
  ASSERT_TRUE(test::Eventually("the device fails", [&] {
    ExpectNear(Score(9), wanted);
    return Metrics().find("tacit_gpu_scoring{learner=\"ctr\"} 0") != std::string::npos;
  })) << Metrics();
  ExpectNear(Score(9), wanted);
  EXPECT_THAT(failing.Err(), HasSubstr("requests of 4 rows and more are scored on GPU 0"));
  EXPECT_THAT(failing.Err(), HasSubstr("learner 'ctr': large requests are scored on the CPU from "
                                       "here on, because GPU 0: "));
}

TEST_F(GpuScoringDaemon, TooLittleMemoryIsRefusedBeforeTheStoreIsMadeOrDoneWithout) {
  const auto learn = [&](const char* use, uint64_t memory) {
    return test::Run(
        {TACITD_CRASH, "--config",
         Write(fmt::format("{{use: {}, rows: whole, serve_rows: 4}}", use)), "--until-end"},
        {fmt::format("TACIT_TEST_GPU=memory={}", memory)});
  };
  std::smatch takes;
  const std::string none = learn("require", 20'000).err;
  ASSERT_TRUE(std::regex_search(none, takes, std::regex("its start takes ([0-9]+) bytes"))) << none;
  const uint64_t of_learner = std::stoull(takes[1]);
  const test::Ended refused = learn("require", of_learner + 1000);
  EXPECT_EQ(refused.exit_code, 1) << refused.err;
  ASSERT_TRUE(std::regex_search(
      refused.err, takes,
      std::regex("learner 'ctr': gpu.use is require, and scoring its large requests takes ([0-9]+) "
                 "bytes of the memory of GPU 0 \\([^)]*\\), and 1000 are free")))
      << refused.err;
  const uint64_t of_scoring = std::stoull(takes[1]);
  EXPECT_THAT(refused.err, HasSubstr("lower gpu.serve_cache_bytes, or set gpu.serve_rows to 0"));
  EXPECT_EQ(learn("require", of_learner + of_scoring - 1).exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "store"));
  const test::Ended without = learn("prefer", of_learner + of_scoring - 1);
  EXPECT_THAT(without.err, HasSubstr("learner 'ctr' learns on GPU 0"));
  EXPECT_THAT(without.err, HasSubstr("learner 'ctr' is scored on the CPU, because scoring its"));
  const test::Ended enough = learn("require", of_learner + of_scoring);
  EXPECT_THAT(enough.err, HasSubstr("learner 'ctr' learns on GPU 0"));
  EXPECT_THAT(enough.err, HasSubstr("requests of 4 rows and more are scored on GPU 0"));
}

}  // namespace
}  // namespace tacit::cuda::testing
