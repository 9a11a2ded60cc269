// `tacit bench carriers` says which numbers get noise, `tacit bench clipping` what each way holds.
// No figure of time is held to anything.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <string_view>

#include "support/json.h"
#include "support/process.h"

namespace tacit {
namespace {

namespace json = boost::json;

// Two blocks of 6 width^2 weights in four matrices, and what stays whole beside them.
void ExpectSequenceNumbers(const json::object& row) {
  const auto number = [&](const char* key) { return row.at(key).to_number<int64_t>(); };
  const int64_t width = number("width"), rank = number("rank");
  const int64_t square = rank * 2 < width ? rank * 2 * width : width * width;
  const int64_t wide = rank * 4 < 3 * width ? rank * 4 * width : 3 * width * width;
  const int64_t length = width == 64 ? 200 : 50;
  const int64_t rest = (number("catalogue") + length) * width + 2 * (6 * width + 4 * width);
  EXPECT_EQ(number("numbers_without"), rest + 2 * 6 * width * width);
  EXPECT_EQ(number("numbers"), rest + 2 * (wide + 3 * square));
  EXPECT_EQ(number("worker_bytes"), 12 * number("numbers"));
  EXPECT_EQ(number("bytes_beside"), 4 * (number("numbers_without") + 15 * width * width));
  const double times =
      row.at("seconds").to_number<double>() / row.at("seconds_without").to_number<double>();
  EXPECT_NEAR(row.at("value").to_number<double>(), times, 1e-9 * times);
}

TEST(StepBenchTest, CarriersSayWhatGetsNoise) {
  const test::Ended ended =
      test::Run({TACIT, "bench", "carriers", "--quick", "--json"}, {}, std::chrono::seconds(280));
  const json::object output = test::Json(ended);
  size_t rows = 0, of_sequences = 0;
  for (const json::value& value : output.at("rows").as_array()) {
    const json::object& row = value.as_object();
    SCOPED_TRACE(std::string(row.at("name").as_string()));
    EXPECT_EQ(row.at("limit"), 1.3);
    const std::string_view name = row.at("name").as_string();
    if (name.starts_with("carriers-sequence-")) {
      ++of_sequences;
      ExpectSequenceNumbers(row);
      continue;
    }
    ++rows;
    // Layers of 376 inputs (embeddings and numbers) and 4 of width 598, with biases.
    EXPECT_EQ(row.at("width"), 598);
    const auto rank = row.at("rank").to_number<int64_t>();
    const auto all = row.at("numbers_without").to_number<int64_t>();
    const auto inputs = (all - 599 - 3 * 599 * 598) / 598 - 1;
    EXPECT_EQ(all, (inputs + 1) * 598 + 3 * 599 * 598 + 599);
    const auto carried = rank * (inputs + 598) + 598 + 3 * (rank * 2 * 598 + 598);
    EXPECT_EQ(row.at("numbers"), carried + (rank * 599 < 598 ? rank * 599 + 1 : 599));
    const double times =
        row.at("seconds").to_number<double>() / row.at("seconds_without").to_number<double>();
    EXPECT_NEAR(row.at("value").to_number<double>(), times, 1e-9 * times);
  }
  EXPECT_EQ(rows, 6u);
  EXPECT_EQ(of_sequences, 12u);
}

// All ways give the same sum, or the benchmark fails.
TEST(StepBenchTest, ClippingSaysWhatEachWayHolds) {
  const test::Ended ended =
      test::Run({TACIT, "bench", "clipping", "--quick", "--json"}, {}, std::chrono::seconds(280));
  const json::object output = test::Json(ended);
  size_t rows = 0;
  for (const json::value& value : output.at("rows").as_array()) {
    const json::object& row = value.as_object();
    SCOPED_TRACE(std::string(row.at("name").as_string()));
    ++rows;
    const auto number = [&](const char* key) { return row.at(key).to_number<double>(); };
    EXPECT_EQ(number("units") * number("length"), 4096);
    EXPECT_GT(number("seconds"), 0);
    const double model = 4 * number("width") * number("width"), all = 4 * 4096 * number("width");
    const double grams = 8 * number("length") * std::max(number("length"), 16.0);
    const std::string_view way = row.at("way").as_string();
    const double bytes = way == "formed-all"           ? number("units") * model
                         : way == "formed-each"        ? model
                         : way == "ghost-two-passes"   ? 2 * all + grams
                         : way == "ghost-book-keeping" ? all + grams
                                                       : all;
    EXPECT_EQ(number("bytes"), bytes);
  }
  EXPECT_EQ(rows, 20u);
}

}  // namespace
}  // namespace tacit
