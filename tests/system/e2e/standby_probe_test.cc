// A standby that probes can ask: alive, and not ready until it has taken over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service.h"

namespace tacit {
namespace {

using test::Service;
using test::SmallRun;
using testing::HasSubstr;

TEST(StandbyProbeTest, IsAliveAndNotReadyUntilItHasTakenOver) {
  const test::TempDir dir;
  SmallRun run;
  run.endless = true;
  Service first(dir, run);
  ASSERT_TRUE(first.WaitForSteps(1));
  const std::string probes = "unix:" + (dir / "probes"), second = "unix:" + (dir / "second");
  test::Process standby({TACITD, "--config", dir / "store.yaml", "--standby", "--set",
                         "serve.listen=" + second, "--set", "serve.standby_listen=" + probes,
                         "--set", "log.level=info"});
  const auto ask = [](const std::string& url) {
    const auto answer = http::Fetch(url, "GET", "", test::kPatience);
    return answer ? answer->status : 0;
  };
  ASSERT_TRUE(test::Eventually("it answers", [&] { return ask(probes + ":/healthz") == 200; }))
      << standby.Err();
  EXPECT_EQ(ask(probes + ":/readyz"), 503u);
  EXPECT_EQ(ask(probes + ":/v1/privacy"), 503u);
  EXPECT_EQ(ask(probes + ":/metrics"), 503u);
  EXPECT_EQ(ask(second + ":/healthz"), 0u) << "it serves nothing while it waits";
  first.process().Signal(SIGKILL);
  ASSERT_TRUE(test::Eventually("it takes over", [&] { return ask(second + ":/readyz") == 200; }))
      << standby.Err();
  EXPECT_EQ(ask(probes + ":/healthz"), 0u) << "the daemon's own listeners answer now";
  standby.Signal(SIGTERM);
  EXPECT_EQ(standby.Wait()->exit_code, 0);
}

TEST(StandbyProbeTest, AnAddressThatIsTakenIsAFailureAndNoRefusedStore) {
  const test::TempDir dir;
  SmallRun run;
  run.endless = true;
  Service first(dir, run);
  ASSERT_TRUE(first.WaitForSteps(1));
  const auto ended = test::Run({TACITD, "--config", dir / "store.yaml", "--standby", "--set",
                                "serve.listen=unix:" + (dir / "second"), "--set",
                                "serve.standby_listen=" + first.url()});
  EXPECT_EQ(ended.exit_code, 1) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("already in use"));
}

}  // namespace
}  // namespace tacit
