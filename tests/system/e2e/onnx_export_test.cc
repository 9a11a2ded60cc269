// Click models in the hands of a stock reader: onnxruntime, fed by a script that knows nothing but
// what is written beside the model, gives the probabilities of the daemon.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <filesystem>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "http/client.h"
#include "support/eventually.h"
#include "support/json.h"
#include "support/process.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::Ended;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kOnnxEvents = 2000, kAsked = 300;

// An event with features of every kind, some of them missing.
json::object Features(uint64_t seed) {
  std::mt19937_64 random(seed);
  json::object features;
  if (random() % 4 != 0) features["seen"] = static_cast<int64_t>(random() % 3000) - 400;
  if (random() % 4 != 0) features["price"] = static_cast<double>(random() % 1000) / 256 - 1;
  if (random() % 5 != 0) features["colour"] = fmt::format("c{}", random() % 12);
  if (random() % 5 != 0)
    features["site"] =
        fmt::format("a-name-that-is-longer-than-a-block-of-thirty-two-{}", random() % 40);
  json::array tags;
  for (uint64_t n = random() % 6; n > 0; --n)
    tags.push_back(json::string(fmt::format("t{}", random() % 9)));
  if (!tags.empty()) features["tags"] = std::move(tags);
  return features;
}

class OnnxExportTest : public ::testing::Test {
 protected:
  // `price` is what the number of that name is called.
  void Learn(const std::string& price = "price") {
    std::string text;
    std::mt19937_64 random(5);
    for (int i = 0; i < kOnnxEvents; ++i) {
      const json::object features = Features(random());
      const json::value* colour = features.if_contains("colour");
      const bool likely = colour != nullptr && colour->as_string().size() == 2;
      text += json::serialize(json::object{{"label", random() % 10 < (likely ? 6u : 2u) ? 1 : 0},
                                           {"timestamp_ms", 1000 + i},
                                           {"features", features}}) +
              "\n";
    }
    test::WriteFile(dir_ / "day.jsonl", text);
    const std::string of =
        "    participation: {mode: once, batch: 200}\n"
        "    privacy: {unit: event, epsilon: 8, delta: 1.0e-6}\n";
    test::WriteFile(
        dir_ / "clicks.yaml",
        fmt::format(
            "source: {{kind: log, files: {0}/day.jsonl, format: json}}\n"
            "schema: {{features: [{{name: seen, kind: dense}},\n"
            "  {{name: {2}, kind: dense, transform: identity}},\n"
            "  {{name: colour, kind: categorical, buckets: 64, dim: 4}},\n"
            "  {{name: tags, kind: multi_hot, buckets: 32, dim: 3, max_values: 3}},\n"
            "  {{name: site, kind: categorical, buckets: 20, dim: 5}}]}}\n"
            "store: {{path: {0}/store, commit_interval_ms: 10,"
            " checkpoints: {{path: {0}/checkpoints}}}}\n"
            "serve: {{listen: \"unix:{0}/socket\", operator_listen: \"unix:{0}/operators\"}}\n"
            "training: {{idle_priority: false}}\nmemory: {{total_bytes: 600MiB}}\n"
            "learners:\n"
            "  - id: net\n    model: {{kind: pctr, hidden: [16, 8]}}\n"
            "    mechanism: {{kind: dp-sgd}}\n"
            "    optimizer: {{kind: adam, learning_rate: 0.02, ema: 0.5}}\n{1}"
            "  - id: clipped\n    model: {{kind: pctr, hidden: [16]}}\n"
            "    mechanism: {{kind: forward, representation_clip: 1.5}}\n{1}"
            "  - id: rounded\n    model: {{kind: pctr, hidden: [16], compute: bf16}}\n"
            "    mechanism: {{kind: dp-sgd}}\n{1}"
            "  - id: sums\n    model: {{kind: linear, crosses: [colour*seen]}}\n"
            "    mechanism: {{kind: sums}}\n{1}",
            dir_.path(), of, price));
    daemon_ = std::make_unique<test::Process>(
        std::vector<std::string>{TACITD, "--config", dir_ / "clicks.yaml"});
    ASSERT_TRUE(test::Eventually("all records are learnt from", [&] {
      const auto answer =
          http::Fetch("unix:" + (dir_ / "socket") + ":/v1/privacy", "GET", "", test::kPatience);
      if (!answer || answer->status != 200) return false;
      const json::object privacy = test::ParseJson(answer->body);
      for (const json::value& each : privacy.at("learners").as_array())
        if (each.at("steps").to_number<int>() < kOnnxEvents / 200) return false;
      return true;
    })) << daemon_->Err();
  }
  std::string Release() {
    const Ended made = test::Run({TACIT, "checkpoint", "create", "--url",
                                  "unix:" + (dir_ / "operators"), "--kind", "release"});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    for (const auto& entry : std::filesystem::directory_iterator(dir_ / "checkpoints"))
      if (entry.path().filename().string().starts_with("release")) return entry.path();
    ADD_FAILURE() << "no release";
    return "";
  }
  Ended Export(const std::string& folder, std::vector<std::string> more) {
    std::vector<std::string> command = {TACIT,  "checkpoint", "export",
                                        folder, "--config",   dir_ / "clicks.yaml"};
    command.insert(command.end(), more.begin(), more.end());
    return test::Run(command);
  }
  std::vector<double> Served(const std::string& learner) {
    json::array rows;
    for (int i = 0; i < kAsked; ++i)
      rows.push_back(json::object{{"features", Features(asked_ + static_cast<uint64_t>(i))}});
    const auto answer = http::Fetch(
        "unix:" + (dir_ / "socket") + ":/v1/score", "POST",
        json::serialize(json::object{{"learner", learner}, {"rows", rows}}), test::kPatience);
    std::vector<double> scores;
    if (!answer || answer->status != 200) {
      ADD_FAILURE() << learner << ": " << (answer ? answer->body : "no answer");
      return scores;
    }
    const json::object body = test::ParseJson(answer->body);
    for (const json::value& score : body.at("scores").as_array())
      scores.push_back(score.to_number<double>());
    return scores;
  }
  // The probabilities by onnxruntime, or what it said.
  Ended Read(const std::string& runtime, const std::string& folder) {
    json::array events;
    for (int i = 0; i < kAsked; ++i) events.push_back(Features(asked_ + static_cast<uint64_t>(i)));
    test::WriteFile(dir_ / "events.json", json::serialize(events));
    return test::Run(
        {"/usr/bin/python3", TACIT_ONNX_SCORES, runtime, folder, dir_ / "events.json"});
  }
  // The largest difference between what onnxruntime says and what the daemon does.
  double Difference(const std::string& runtime, const std::string& learner) {
    const Ended read = Read(runtime, dir_ / "onnx/" + learner);
    EXPECT_EQ(read.exit_code, 0) << read.err;
    if (read.exit_code != 0) return 1;
    const std::vector<double> served = Served(learner);
    const json::array scores = json::parse(read.out).as_array();
    EXPECT_EQ(scores.size(), served.size());
    double most = 0, lowest = 1, highest = 0;
    for (size_t i = 0; i < std::min(scores.size(), served.size()); ++i) {
      most = std::max(most, std::abs(scores[i].to_number<double>() - served[i]));
      lowest = std::min(lowest, served[i]);
      highest = std::max(highest, served[i]);
    }
    EXPECT_GT(highest - lowest, 1e-3) << learner << ": events that score alike show nothing";
    return most;
  }

  const test::TempDir dir_;
  const uint64_t asked_ = 77000;
  std::unique_ptr<test::Process> daemon_;
};

TEST_F(OnnxExportTest, OnnxruntimeScoresAsTheDaemonDoes) {
  std::string missing;
  const std::string runtime = test::PypiFolder("onnx", &missing);
  if (runtime.empty()) GTEST_SKIP() << missing;
  Learn();
  const std::string folder = Release();
  const Ended written = Export(folder, {"--format", "onnx", "--output", dir_ / "onnx"});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  EXPECT_THAT(written.out, HasSubstr("4 ONNX models of commit"));
  EXPECT_THAT(written.err, HasSubstr("learner 'rounded' computes in bf16"));
  for (const std::string learner : {"net", "clipped", "sums"})
    EXPECT_LT(Difference(runtime, learner), 1e-6) << learner;
  EXPECT_LT(Difference(runtime, "rounded"), 0.01);

  // A number of a table that is another one is seen.
  std::string numbers = test::ReadFile(dir_ / "onnx/net/model.onnx.data");
  for (size_t at = 0; at + 4 <= 64 * 4 * 4; at += 4)
    numbers[at + 2] = static_cast<char>(numbers[at + 2] ^ 0x40);
  test::WriteFile(dir_ / "onnx/net/model.onnx.data", numbers);
  EXPECT_GT(Difference(runtime, "net"), 1e-6) << "the comparison is blind";
  // So is a hash by another seed.
  std::string about = test::ReadFile(dir_ / "onnx/sums/model.json");
  json::value changed = json::parse(about);
  EXPECT_EQ(changed.at("computed_in").as_string(), "f32");
  changed.at("inputs").as_array()[0].as_object()["seed"] = "1";
  test::WriteFile(dir_ / "onnx/sums/model.json", json::serialize(changed));
  EXPECT_THAT(Read(runtime, dir_ / "onnx/sums").err, HasSubstr("say the same"));
}

TEST_F(OnnxExportTest, RowsAreWrittenByValue) {
  Learn();
  const std::string folder = Release();
  test::WriteFile(dir_ / "values.txt",
                  "# public\ncolour\tc3\ncolour\tc11\nsite\tone, \"two\"\ncolour\tc3\ncolour\t\n");
  for (const char* format : {"csv", "npy", "safetensors"}) {
    const Ended written = Export(folder, {"--format", format, "--output", dir_ / "out/" + format,
                                          "--vocabulary", dir_ / "values.txt", "--learner", "net"});
    ASSERT_EQ(written.exit_code, 0) << written.err;
    EXPECT_THAT(written.out, HasSubstr("11 tensors of commit"));
  }
  for (const char* format : {"npy", "safetensors"})
    EXPECT_EQ(test::ReadFile(dir_ / "out/" + format + "/net/colour.by_value.rows.json"),
              "[\"c3\",\"c11\",\"\"]\n");
  // A line by value is the line of its bucket, by the daemon's own numbers for a value.
  const auto lines = [&](const std::string& name) {
    std::vector<std::string> found;
    std::istringstream text(test::ReadFile(dir_ / "out/csv/net/" + name + ".csv"));
    for (std::string line; std::getline(text, line);) found.push_back(line);
    EXPECT_THAT(found.at(0), HasSubstr(",0,1"));
    found.erase(found.begin());
    return found;
  };
  const auto of_value = lines("colour.by_value"), of_row = lines("colour");
  ASSERT_EQ(of_value.size(), 3u) << "a value that comes twice is there once";
  ASSERT_EQ(of_row.size(), 64u);
  const auto numbers = [](const std::string& line) { return line.substr(line.find(',')); };
  EXPECT_EQ(numbers(of_value[2]), numbers(of_row[0])) << "the missing value";
  EXPECT_TRUE(of_value[0].starts_with("c3,"));
  EXPECT_NE(numbers(of_value[0]), numbers(of_value[1]));
  EXPECT_TRUE(std::ranges::any_of(of_row, [&](const std::string& line) {
    return numbers(line) == numbers(of_value[0]) && !line.starts_with("0,");
  }));
  EXPECT_TRUE(lines("site.by_value")[0].starts_with("\"one, \"\"two\"\"\","));

  test::WriteFile(dir_ / "values.txt", "colour\tc1\ncolor\tc2\n");
  const Ended refused = Export(
      folder, {"--format", "csv", "--output", dir_ / "none", "--vocabulary", dir_ / "values.txt"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("values.txt:2"), HasSubstr("color")));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "none"));
  EXPECT_THAT(Export(folder, {"--format", "onnx", "--output", dir_ / "none", "--vocabulary",
                              dir_ / "values.txt"})
                  .err,
              HasSubstr("--vocabulary: an ONNX model has its rows by number"));
  EXPECT_THAT(
      Export(folder, {"--format", "csv", "--output", dir_ / "none", "--learner", "nett"}).err,
      HasSubstr("--learner nett: the configuration has no such learner"));
}

// A linear model's number has rows, and one that is called as the bias is called hides it.
TEST_F(OnnxExportTest, AFeatureThatIsCalledAsAPartIsRefused) {
  Learn("bias");
  const std::string folder = Release();
  const Ended refused = Export(folder, {"--format", "csv", "--output", dir_ / "out"});
  EXPECT_EQ(refused.exit_code, 3) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("sums/bias would be two tensors"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "out"));
  const Ended net =
      Export(folder, {"--format", "csv", "--output", dir_ / "out", "--learner", "net"});
  EXPECT_EQ(net.exit_code, 0) << net.err;
}

}  // namespace
}  // namespace tacit
