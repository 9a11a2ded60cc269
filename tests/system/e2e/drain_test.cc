// serve.drain_ms: answers go on after SIGTERM, and /readyz says no.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service.h"

namespace tacit {
namespace {

using test::Service;
using test::SmallRun;
using testing::HasSubstr;

// Longer than a test may take: it ends by another signal alone.
const std::vector<std::string> kLong = {"--set", "serve.drain_ms=600000"};

// A service whose model every request is answered from.
SmallRun Endless() {
  SmallRun run;
  run.endless = true;
  return run;
}

// Asks a service to stop; holds it against what a draining one answers and does, and ends it.
void ExpectItDrains(Service& service, bool trains) {
  service.process().Signal(SIGTERM);
  ASSERT_TRUE(service.Until("it is not ready", [&] {
    const auto answer = service.Ask("GET", "/readyz");
    return answer && answer->status == 503;
  }));
  const auto why = service.Ask("GET", "/readyz");
  ASSERT_TRUE(why) << why.error().message;
  EXPECT_THAT(why->body, HasSubstr("stopping: send requests elsewhere"));
  for (const char* path : {"/servez", "/healthz", "/v1/privacy"}) {
    const auto answer = service.Ask("GET", path);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->status, 200u) << path;
  }
  const auto metrics = service.Ask("GET", "/metrics");
  ASSERT_TRUE(metrics) << metrics.error().message;
  EXPECT_THAT(metrics->body, HasSubstr("tacit_ready 0\n"));
  if (trains) {
    const boost::json::object before = service.Privacy();
    ASSERT_TRUE(before.contains("learners"));
    const auto steps = before.at("learners").at(0).at("steps").to_number<uint64_t>();
    ASSERT_TRUE(service.WaitForSteps(steps + 2));
  }
  const auto ended = service.Stop();
  ASSERT_TRUE(ended) << "another SIGTERM does not end it";
  EXPECT_EQ(ended->exit_code, 0) << ended->err;
}

TEST(DrainTest, ATrainerAnswersUntilAnotherSignal) {
  const test::TempDir dir;
  Service service(dir, Endless(), kLong);
  ASSERT_TRUE(service.WaitFor("/readyz"));
  ASSERT_NO_FATAL_FAILURE(ExpectItDrains(service, /*trains=*/true));
}

TEST(DrainTest, ACheckpointIsServedUntilAnotherSignal) {
  const test::TempDir dir;
  SmallRun run;
  test::WriteSmallLog(dir, 1, 600, 3);
  ASSERT_EQ(test::Run({TACITD, "--config", run.WriteConfig(dir), "--until-end"}).exit_code, 0);
  std::vector<std::string> more = {"--serve-only", "--checkpoint", dir / "store"};
  more.insert(more.end(), kLong.begin(), kLong.end());
  Service service(dir, run, more);
  ASSERT_TRUE(service.WaitFor("/readyz"));
  ASSERT_NO_FATAL_FAILURE(ExpectItDrains(service, /*trains=*/false));
}

TEST(DrainTest, ItEndsByItselfAfterTheTimeThatAReloadHasSet) {
  const test::TempDir dir;
  Service service(dir, Endless(), {"--set", "log.level=info"});
  ASSERT_TRUE(service.WaitFor("/readyz"));
  std::string yaml = test::ReadFile(dir / "store.yaml");
  const std::string from = "{listen: ";
  ASSERT_NE(yaml.find(from), yaml.npos) << yaml;
  test::WriteFile(dir / "store.yaml",
                  yaml.replace(yaml.find(from), from.size(), "{drain_ms: 1, listen: "));
  service.process().Signal(SIGHUP);
  ASSERT_TRUE(service.WaitForWord("serve.drain_ms is 1 now, and was 0"));
  const auto ended = service.Stop();
  ASSERT_TRUE(ended) << "it does not end";
  EXPECT_EQ(ended->exit_code, 0) << ended->err;
  EXPECT_THAT(ended->err, HasSubstr("answers go on for 1 ms"));
}

TEST(DrainTest, WithoutATimeItStopsAtOnce) {
  const test::TempDir dir;
  Service service(dir, Endless(), {"--set", "log.level=info"});
  ASSERT_TRUE(service.WaitFor("/readyz"));
  const auto ended = service.Stop();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 0) << ended->err;
  EXPECT_THAT(ended->err, testing::Not(HasSubstr("answers go on")));
}

}  // namespace
}  // namespace tacit
