// The formula for more workers is held against sums by hand, and programs read what `tacit bench
// workers` prints. No figure of time is held to anything.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>
#include <string>

#include "bench/workers_model.h"
#include "support/process.h"

namespace tacit {
namespace {

namespace json = boost::json;

// Rows grow with the square root of events.
bench::WorkersRates RoundRates() {
  return {.events_s = 400'000,
          .event_bytes = 200,
          .small = {.events = 10'000, .rows = 20'000},
          .large = {.events = 1'000'000, .rows = 200'000},
          .rows_most = 500'000,
          .row_bytes = 5,
          .add_row_s = 1e-8,
          .release_s = 0.1,
          .rest_s = 0.096};
}

TEST(WorkersModelTest, IsWhatOneReckonsByHand) {
  // A worker sums 4,000,000 events in a period: 400,000 rows.
  const bench::WorkersOutlook outlook = LookAhead(RoundRates(), {.workers = 24, .period_s = 10});
  EXPECT_NEAR(outlook.message_rows, 400'000, 1e-3);
  EXPECT_NEAR(outlook.period_bytes, 48e6, 1);
  EXPECT_NEAR(outlook.adding_s, 0.096, 1e-9);
  EXPECT_NEAR(outlook.gap_s, 0.004 + 0.1 + 0.096, 1e-9);
  EXPECT_NEAR(outlook.events_s, 24 * 4e6 / 10.2, 1e-3);
  EXPECT_NEAR(outlook.event_bytes_s, 200 * 24 * 4e6 / 10.2, 1);
  EXPECT_TRUE(outlook.adds_in_time);
}

TEST(WorkersModelTest, OneTrainerAddsUp) {
  bench::WorkersRates rates = RoundRates();
  // A message has no more rows than the model.
  EXPECT_NEAR(LookAhead(rates, {.workers = 1, .period_s = 100}).message_rows, 500'000, 1e-3);
  // 100 messages of 400,000 rows take 40 s.
  rates.add_row_s = 1e-6;
  const bench::WorkersOutlook outlook = LookAhead(rates, {.workers = 100, .period_s = 10});
  EXPECT_NEAR(outlook.adding_s, 40, 1e-6);
  EXPECT_FALSE(outlook.adds_in_time);
  EXPECT_NEAR(outlook.events_s, 100 * 4e6 / (40 + 0.4 + 0.196), 1e-3);
}

TEST(WorkersBenchTest, SaysWhatWasMeasuredAndWhatFollows) {
  const test::Ended ended =
      test::Run({TACIT, "bench", "workers", "--quick", "--json"}, {}, std::chrono::seconds(280));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  std::map<std::string, json::object> rows;
  const json::value output = json::parse(ended.out);
  for (const json::value& row : output.at("rows").as_array())
    rows[std::string(row.at("name").as_string())] = row.as_object();
  for (const char* name : {"workers-sum", "workers-sum-two", "workers-message", "workers-add",
                           "workers-open", "workers-release", "workers-ahead-1", "workers-ahead-8",
                           "workers-ahead-24", "workers-ahead-100"}) {
    ASSERT_TRUE(rows.contains(name)) << name;
    EXPECT_GT(rows[name].at("value").to_number<double>(), 0) << name;
  }
  EXPECT_GT(rows["workers-message"].at("rows").to_number<double>(), 1000);
  EXPECT_GT(rows["workers-ahead-100"].at("gap_s").to_number<double>(), 0.1);
}

}  // namespace
}  // namespace tacit
