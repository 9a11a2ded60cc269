// A release's tensors in the hands of other programs: all forms hold the same numbers, and a
// network that is written down here, from the page that describes them, scores with them as the
// daemon does.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "event/feature_transform.h"
#include "service.h"
#include "support/criteo_schema.h"

namespace tacit {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using test::Ended;
using test::Service;
using test::SmallRun;
using test::TempDir;
using testing::HasSubstr;

struct Tensor {
  std::vector<size_t> shape;
  std::vector<float> numbers;
};
using Tensors = std::map<std::string, Tensor>;

// Reads a file of the safetensors format as it is published.
Tensors ReadSafetensors(const std::string& path) {
  const std::string raw = test::ReadFile(path);
  uint64_t length = 0;
  std::memcpy(&length, raw.data(), sizeof length);
  const json::object header = json::parse(raw.substr(8, length)).as_object();
  Tensors tensors;
  for (const auto& [name, described] : header) {
    if (name == "__metadata__") continue;
    Tensor tensor;
    size_t size = 1;
    for (const json::value& side : described.at("shape").as_array()) {
      tensor.shape.push_back(side.to_number<size_t>());
      size *= tensor.shape.back();
    }
    tensor.numbers.resize(size);
    const auto begin = described.at("data_offsets").at(0).to_number<size_t>();
    std::memcpy(tensor.numbers.data(), raw.data() + 8 + length + begin, 4 * size);
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

// An event of Criteo's features: some are missing.
struct Event {
  std::array<std::optional<int>, 13> numbers;
  std::array<std::string, 26> values;

  explicit Event(int seed) {
    for (int i = 0; i < 13; ++i)
      if ((i + seed) % 3 != 0) numbers[static_cast<size_t>(i)] = i * seed - 5;
    for (int i = 0; i < 26; ++i)
      if ((i + seed) % 4 != 0)
        values[static_cast<size_t>(i)] = fmt::format("{:x}", 7919 * i + seed);
  }
  std::string Json() const {
    json::object features;
    for (size_t i = 0; i < numbers.size(); ++i)
      if (numbers[i]) features[fmt::format("I{}", i + 1)] = *numbers[i];
    for (size_t i = 0; i < values.size(); ++i)
      if (!values[i].empty()) features[fmt::format("C{}", i + 1)] = values[i];
    return json::serialize(json::object{{"features", features}});
  }
};

// The probability by the exported tensors, in double: the values' rows side by side, then the
// numbers; layers with ReLU between them; a logistic function.
double Score(const Event& event, const Tensors& tensors, const event::FeatureTransform& transform) {
  std::vector<double> row;
  for (size_t i = 0; i < event.values.size(); ++i) {
    const Tensor& table = tensors.at(fmt::format("ctr/C{}", i + 1));
    const size_t dim = table.shape[1];
    const uint64_t bucket =
        transform.Row(i, event.values[i]) - transform.row_space().tables()[i].first;
    row.insert(row.end(), table.numbers.begin() + static_cast<ptrdiff_t>(bucket * dim),
               table.numbers.begin() + static_cast<ptrdiff_t>((bucket + 1) * dim));
  }
  for (size_t i = 0; i < event.numbers.size(); ++i)
    row.push_back(transform.Dense(
        i, event.numbers[i] ? std::optional<double>(*event.numbers[i]) : std::nullopt));
  for (int layer = 0;; ++layer) {
    const auto weights = tensors.find(fmt::format("ctr/layers.{}.weight", layer));
    if (weights == tensors.end()) return 1 / (1 + std::exp(-row.at(0)));
    const Tensor& biases = tensors.at(fmt::format("ctr/layers.{}.bias", layer));
    const size_t out = weights->second.shape[1];
    EXPECT_EQ(weights->second.shape[0], row.size());
    std::vector<double> next(biases.numbers.begin(), biases.numbers.end());
    for (size_t in = 0; in < row.size(); ++in)
      for (size_t i = 0; i < out; ++i)
        next[i] += (layer == 0 ? row[in] : std::max(0.0, row[in])) *
                   static_cast<double>(weights->second.numbers[in * out + i]);
    row = std::move(next);
  }
}

class CheckpointExportTest : public testing::Test {
 protected:
  // Makes a checkpoint of a daemon that has learnt, and returns its folder.
  std::string Make(const char* kind, Service& daemon) {
    EXPECT_TRUE(daemon.WaitForSteps(8));
    const Ended made =
        test::Run({TACIT, "checkpoint", "create", "--url", operators(), "--kind", kind});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    for (const auto& entry : fs::directory_iterator(dir_ / "store.checkpoints"))
      if (entry.path().filename().string().starts_with(kind)) return entry.path();
    ADD_FAILURE() << "no checkpoint of kind " << kind;
    return "";
  }
  Ended Export(const std::string& folder, const std::string& format, const std::string& output) {
    return test::Run({TACIT, "checkpoint", "export", folder, "--config", dir_ / "store.yaml",
                      "--format", format, "--output", output});
  }
  std::string operators() const { return "unix:" + (dir_ / "operators"); }

  TempDir dir_;
};

TEST_F(CheckpointExportTest, OtherProgramsReadTheModelThatIsServed) {
  test::WriteSmallLog(dir_, 1, 2000, 3);
  Service daemon(dir_, SmallRun(), {"--set", "serve.operator_listen=" + operators()});
  const std::string folder = Make("release", daemon);
  for (const char* format : {"safetensors", "npy", "csv"}) {
    const Ended written = Export(folder, format, dir_ / "out/" + format);
    ASSERT_EQ(written.exit_code, 0) << written.err;
    EXPECT_THAT(written.out, HasSubstr("32 tensors of commit"));
  }
  const Ended same = test::Run({"/usr/bin/python3", TACIT_SAME_TENSORS, dir_ / "out"});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_EQ(same.out, "32\n");

  const Tensors tensors = ReadSafetensors(dir_ / "out/safetensors/model.safetensors");
  const std::vector<uint64_t> buckets(26, 64);
  const event::FeatureTransform transform(event::CriteoSchema(13, buckets));
  std::string rows;
  for (int i = 0; i < 50; ++i) rows += (i > 0 ? "," : "") + Event(i).Json();
  const auto answer = daemon.Ask("POST", "/v1/score", "{\"rows\":[" + rows + "]}");
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->status, 200u) << answer->body;
  const json::array scores = test::ParseJson(answer->body).at("scores").as_array();
  ASSERT_EQ(scores.size(), 50u);
  double least = 1, most = 0;
  for (int i = 0; i < 50; ++i) {
    const double score = scores[static_cast<size_t>(i)].to_number<double>();
    EXPECT_NEAR(Score(Event(i), tensors, transform), score, 1e-6) << i;
    least = std::min(least, score);
    most = std::max(most, score);
  }
  EXPECT_GT(most - least, 1e-3) << "events that all score alike would show nothing";
}

TEST_F(CheckpointExportTest, WhatCannotBeWrittenIsNamed) {
  test::WriteSmallLog(dir_, 1, 2000, 3);
  Service daemon(dir_, SmallRun(), {"--set", "serve.operator_listen=" + operators()});
  const std::string full = Make("full", daemon), release = Make("release", daemon);
  const Ended raw = Export(full, "npy", dir_ / "raw");
  EXPECT_EQ(raw.exit_code, 3);
  EXPECT_THAT(raw.err, HasSubstr(full + " is a full checkpoint"));
  EXPECT_FALSE(fs::exists(dir_ / "raw"));
  const Ended other = Export(release, "parquet", dir_ / "other");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("format 'parquet': it is safetensors, npy, csv or onnx"));
  ASSERT_EQ(Export(release, "npy", dir_ / "once").exit_code, 0);
  const Ended again = Export(release, "npy", dir_ / "once");
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr(dir_ / "once" + " is there already"));
}

}  // namespace
}  // namespace tacit
