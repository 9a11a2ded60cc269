// A delta above one over the users whom a daemon counts is warned of; a small one is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recommend_shop.h"
#include "service.h"

namespace tacit::shop {
namespace {

using testing::HasSubstr;
using testing::Not;

class WeakDeltaTest : public RecommendTest {
 protected:
  // Returns the words of a daemon at its second start, when it finds users to count.
  std::string SaidWith(const std::string& delta) {
    const std::string path = dir_ / ("delta-" + delta + ".yaml");
    test::WriteFile(
        path,
        fmt::format("source: {{kind: log, files: {}, format: json}}\n"
                    "catalogue: {{file: {}}}\n"
                    "schema: {{features: [{{name: x, kind: dense}}]}}\n"
                    "store: {{path: {}, commit_interval_ms: 10}}\n"
                    "serve: {{listen: \"{}\", operator_listen: \"{}-operators\"}}\n"
                    "training: {{idle_priority: false}}\n"
                    "learners:\n"
                    "  - id: counts\n    model: {{kind: transitions}}\n"
                    "    mechanism: {{kind: counts}}\n"
                    "    participation: {{mode: once, batch: 100000, max_participations: 3}}\n"
                    "    history: {{items: 50}}\n"
                    "    privacy: {{unit: user, epsilon: 4, delta: {}}}\n",
                    dir_ / "day-*.jsonl", dir_ / "items.dat", dir_ / ("store-" + delta), url_, url_,
                    delta));
    EXPECT_EQ(test::Run({TACITD, "--config", path, "--until-end"}).exit_code, 0);
    test::Process daemon({TACITD, "--config", path});
    EXPECT_TRUE(Eventually("users are counted", [&] {
      const auto metrics = http::Fetch(url_ + "-operators:/metrics", "GET", "", kPatience);
      if (!metrics) return false;
      const size_t at =
          metrics->body.find("tacit_users_by_allowance_left{learner=\"counts\",left=\"");
      return at != std::string::npos && metrics->body.find("} 60\n", at) != std::string::npos;
    })) << daemon.Err();
    daemon.Signal(SIGTERM);
    return daemon.Wait()->err;
  }
};

TEST_F(WeakDeltaTest, IsWarnedOfByTheUsersThatAreCounted) {
  EXPECT_THAT(SaidWith("0.05"), HasSubstr("learner 'counts': privacy.delta: with 0.05 the promise "
                                          "still holds where 3 of 60 units are revealed whole"));
  EXPECT_THAT(SaidWith("0.0001"), Not(HasSubstr("revealed whole")));
}

}  // namespace
}  // namespace tacit::shop
