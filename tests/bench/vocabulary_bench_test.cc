// `tacit bench vocabulary` says what its readers need: fields, and that AdaFEST is measured where
// it keeps most of what is there and writes little else. No figure of time is held to anything.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>

#include "support/process.h"

namespace tacit {
namespace {

namespace json = boost::json;

double Number(const json::object& row, const char* key) {
  EXPECT_TRUE(row.contains(key)) << key;
  return row.contains(key) && row.at(key).is_number() ? row.at(key).to_number<double>() : -1;
}

TEST(VocabularyBenchTest, SaysWhatWasMeasuredAndWhere) {
  const test::Ended ended =
      test::Run({TACIT, "bench", "vocabulary", "--quick", "--json"}, {}, std::chrono::seconds(280));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const json::value output = json::parse(ended.out);
  int in_memory = 0, in_store = 0;
  for (const json::value& value : output.at("rows").as_array()) {
    const json::object& row = value.as_object();
    SCOPED_TRACE(std::string(row.at("name").as_string()));
    const double vocabulary = Number(row, "vocabulary");
    EXPECT_GE(vocabulary, 1e5);
    EXPECT_GT(Number(row, "adafest_s"), 0);
    EXPECT_GT(Number(row, "steps"), 0);
    EXPECT_EQ(Number(row, "dimension"), 64);
    EXPECT_EQ(Number(row, "batch"), 1024);
    EXPECT_GT(Number(row, "zipf_exponent"), 1);
    for (const char* key : {"threshold", "sigma_selection", "sigma_gradient", "clip_selection"})
      EXPECT_GT(Number(row, key), 0) << key;
    if (row.at("rows") == "store") {
      ++in_store;
      for (const char* key : {"steps_per_second", "commit_ms", "bytes_per_commit"})
        EXPECT_GT(Number(row, key), 0) << key;
      continue;
    }
    ++in_memory;
    EXPECT_GE(Number(row, "kept_mass"), 0.5);
    EXPECT_LE(Number(row, "kept_mass"), 1);
    EXPECT_GT(Number(row, "touched_rows"), Number(row, "kept_rows"));
    EXPECT_GE(Number(row, "extra_share"), 0);
    EXPECT_LE(Number(row, "extra_share"), 0.01);
    if (vocabulary > 1e7) {
      EXPECT_TRUE(row.at("dense_s").is_null() && row.at("factor").is_null());
      continue;
    }
    EXPECT_GT(Number(row, "dense_s"), 0);
    EXPECT_GT(Number(row, "dense_share"), 0);
    const double factor = Number(row, "dense_s") / Number(row, "adafest_s");
    EXPECT_NEAR(Number(row, "factor"), factor, 1e-6 * factor);
  }
  EXPECT_GE(in_memory, 3);
  EXPECT_EQ(in_store, 2);
}

}  // namespace
}  // namespace tacit
