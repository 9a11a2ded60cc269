// Input and output that fail once, under something that starts the daemon again, as systemd does.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json.hpp>
#include <cerrno>

#include "support/json.h"
#include "support/small_run.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::Ended;
using test::SmallRun;
using test::TempDir;
using testing::HasSubstr;

constexpr uint64_t kSteps = 100;  // of 20,000 records, 200 a step

struct Outcome {
  uint64_t steps = 0;
  double epsilon = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

class FaultTest : public testing::Test {
 protected:
  FaultTest() {
    test::WriteSmallLog(dir_, 1, 20000, 3);
    run_.batch = 200;
    run_.commit_interval_ms = 1;
  }

  Outcome OutcomeOf(const std::string& store) {
    const json::object ledger =
        test::Json(test::Run({TACIT, "ledger", "show", "--store", dir_ / store, "--json"}));
    const json::array& learners = ledger.at("learners").as_array();
    if (learners.empty()) return {};
    return {learners[0].at("steps").to_number<uint64_t>(),
            learners[0].at("epsilon").to_number<double>()};
  }

  // Trains as a service does: without an end of its own.
  Ended Serve(const std::string& config, const std::string& fault) {
    return test::Run({TACITD_FAULTS, "--config", config, "--set", "store.on_failure=exit"},
                     {"TACIT_TEST_FAULT=" + fault});
  }

  TempDir dir_;
  SmallRun run_;
};

TEST_F(FaultTest, WhatStartsItAgainBringsItToTheExactEnd) {
  run_.store = "whole";
  ASSERT_EQ(test::Run({TACITD_FAULTS, "--config", run_.WriteConfig(dir_), "--until-end"}).exit_code,
            0);
  const Outcome whole = OutcomeOf("whole");
  ASSERT_EQ(whole.steps, kSteps);

  run_.store = "store";
  const std::string config = run_.WriteConfig(dir_);
  // One EIO at the log's sync; a disk that is full for a second at its write; one EIO of the
  // witness.
  const std::vector<std::string> faults = {fmt::format("fdatasync:.log:3:{}:1", EIO),
                                           fmt::format("write:.log:3:{}:100", ENOSPC),
                                           fmt::format("fdatasync:store.witness:3:{}:1", EIO)};
  for (const std::string& fault : faults) {
    const Ended ended = Serve(config, fault);
    EXPECT_EQ(ended.exit_code, 1) << fault << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("store.on_failure: exit")) << fault;
    EXPECT_LE(OutcomeOf("store").steps, kSteps);
  }
  const Ended rest = test::Run({TACITD_FAULTS, "--config", config, "--until-end"});
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(OutcomeOf("store"), whole);
}

}  // namespace
}  // namespace tacit
