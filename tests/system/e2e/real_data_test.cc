// Tests that need real clicks. The data may not be shipped: tests take it from ../shared/data
// beside the checkout.
#include "support/real_data.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "support/process.h"

namespace tacit {
namespace {

namespace json = boost::json;

// Online logistic regression gets AUC 0.772 and log loss 0.442 on these rows.
TEST(RealDataTest, CriteosFirst80000EventsAreLearntOnline) {
  const std::string data = test::RealData("criteo_dac80k_hash20.tsv.gz");
  if (data.empty()) GTEST_SKIP() << "needs ../shared/data/criteo_dac80k_hash20.tsv.gz";
  const test::Ended ended = test::Run(
      {TACIT, "evaluate", "ctr", "--config", std::string(TACIT_SOURCE_DIR) + "/config/criteo.yaml",
       "--data", data, "--from", "60000", "--to", "80000", "--json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const json::array rows = json::parse(ended.out).at("rows").as_array();
  ASSERT_EQ(rows.size(), 3u);
  const json::object& plain = rows[0].as_object();
  EXPECT_EQ(plain.at("events"), 80000);
  EXPECT_EQ(plain.at("dead_letters"), 0);
  EXPECT_GE(plain.at("auc").at("mean").to_number<double>(), 0.765);
  EXPECT_LE(plain.at("log_loss").at("mean").to_number<double>(), 0.45);
  const json::object& with_privacy = rows[1].as_object();
  EXPECT_GE(with_privacy.at("auc").at("mean").to_number<double>(), 0.74);
  const json::object& network = rows[2].as_object();
  EXPECT_GE(network.at("auc").at("mean").to_number<double>(), 0.69);
}

TEST(RealDataTest, LinesAsPublishedAreReadWithoutALoss) {
  const std::string data = test::RealData("criteo_first8000_raw.tsv");
  if (data.empty()) GTEST_SKIP() << "needs ../shared/data/criteo_first8000_raw.tsv";
  const test::Ended ended =
      test::Run({TACIT, "evaluate", "ctr", "--config",
                 std::string(TACIT_SOURCE_DIR) + "/config/criteo.yaml", "--data", data, "--json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const json::array rows = json::parse(ended.out).at("rows").as_array();
  EXPECT_EQ(rows.size(), 3u);
  for (const json::value& row : rows) {
    EXPECT_EQ(row.at("events"), 8000);
    EXPECT_EQ(row.at("dead_letters"), 0);
  }
}

}  // namespace
}  // namespace tacit
