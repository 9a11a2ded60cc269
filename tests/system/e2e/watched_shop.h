#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "http/client.h"
#include "support/eventually.h"
#include "support/metrics_page.h"
#include "support/small_run.h"

// A daemon with learners of every sort of figure, whose operator's listener a Prometheus scrapes.
namespace tacit::watch {

// The folder of prometheus and promtool. "", with a failure where TACIT_REQUIRE asks for it, if
// they are not there.
inline std::string PrometheusFolder(std::string* missing) {
  const test::Ended ready =
      test::Run({std::string(TACIT_SOURCE_DIR) + "/tools/prometheus", "ready"});
  if (ready.exit_code == 0) return ready.out.substr(0, ready.out.find('\n'));
  *missing = "needs Prometheus: " + ready.out + ready.err;
  const char* required = std::getenv("TACIT_REQUIRE");
  EXPECT_TRUE(required == nullptr ||
              std::string_view(required).find("prometheus") == std::string::npos)
      << "TACIT_REQUIRE has prometheus: " << *missing;
  return "";
}

inline constexpr int kWatchedUsers = 40, kWatchedItems = 12;

// Users who go round a circle of items; one of two records is a click.
inline void WriteWatchedLog(const test::TempDir& dir) {
  std::string catalogue;
  for (int i = 0; i < kWatchedItems; ++i) catalogue += fmt::format("item-{}\n", i);
  test::WriteFile(dir / "items.dat", catalogue);
  for (int day = 0; day < 2; ++day) {
    std::string text;
    for (int i = 0; i < 1200; ++i) {
      const int user = i % kWatchedUsers, item = (user + i / kWatchedUsers / 2) % kWatchedItems;
      text += fmt::format(
          R"({{"label":{},"user":"u{}","item":"item-{}","features":{{"x":{},"c":"{}"}}}}{})",
          (i / kWatchedUsers) % 2, user, item, item, item % 7, '\n');
    }
    test::WriteFile(dir / fmt::format("day-{}.jsonl", day), text);
  }
}

class WatchedShop {
 public:
  explicit WatchedShop(const test::TempDir& dir, const std::string& more = "") : dir_(dir) {
    WriteWatchedLog(dir);
    const std::string privacy = "    privacy: {unit: user, epsilon: 4, delta: 1.0e-6}\n";
    std::string yaml = fmt::format(
        "source: {{kind: log, files: {}, format: json}}\n"
        "catalogue: {{file: {}}}\n"
        "schema: {{features: [{{name: x, kind: dense}}, {{name: c, kind: categorical, buckets: "
        "16}}]}}\n"
        "store: {{path: {}, commit_interval_ms: 10}}\n"
        "serve: {{listen: \"127.0.0.1:0\", operator_listen: \"127.0.0.1:0\"}}\n"
        "training: {{idle_priority: false}}\n"
        "memory: {{total_bytes: 500MiB}}\n"
        "log: {{format: json}}\n"
        "budget: {{epsilon: 20, delta: 1.0e-6}}\n"
        "learners:\n"
        "  - id: counts\n    model: {{kind: transitions}}\n    mechanism: {{kind: counts}}\n"
        "    participation: {{mode: once, batch: 400, max_participations: 2}}\n"
        "    history: {{items: 20}}\n{privacy}"
        "  - id: clicks\n    model: {{kind: pctr, hidden: [8]}}\n    mechanism: {{kind: dp-sgd}}\n"
        "    participation: {{mode: once, batch: 100, max_participations: 40}}\n{privacy}"
        "  - id: shown\n    model: {{kind: pctr, hidden: [8]}}\n    mechanism: {{kind: dp-sgd}}\n"
        "    participation: {{mode: once, batch: 100}}\n"
        "    privacy: {{unit: event, epsilon: 4, delta: 1.0e-6}}\n"
        "    quality: {{steps: 8, epsilon: 2, delta: 1.0e-6}}\n",
        dir / "day-*.jsonl", dir / "items.dat", dir / "store", fmt::arg("privacy", privacy));
    test::WriteFile(dir / "shop.yaml", yaml + more);
    process_ = std::make_unique<test::Process>(
        std::vector<std::string>{TACITD, "--config", dir / "shop.yaml"});
  }

  test::Process& process() { return *process_; }
  // Waits until both listeners are open and all of the log is learnt from.
  testing::AssertionResult WaitUntilLearnt() {
    return test::Eventually(
               "the log is learnt from",
               [&] {
                 ReadAddresses();
                 return addresses_.size() == 2 &&
                        Page(1).find("tacit_steps_committed_total{learner=\"clicks\"} 24") !=
                            std::string::npos &&
                        Page(1).find("tacit_private_quality_windows{learner=\"shown\"} 3") !=
                            std::string::npos &&
                        Page(1).find("tacit_steps_committed_total{learner=\"counts\"} 6") !=
                            std::string::npos;
               })
           << process_->Err();
  }
  // HOST:PORT of the public's listener, then the operator's.
  const std::string& address(size_t i) const { return addresses_[i]; }
  std::string Ask(size_t listener, const std::string& path, const std::string& body = "") {
    const auto answer = http::Fetch("http://" + addresses_[listener] + path,
                                    body.empty() ? "GET" : "POST", body, test::kPatience);
    return answer ? answer->body : answer.error().message;
  }
  std::string Page(size_t listener) { return Ask(listener, "/metrics"); }

 private:
  void ReadAddresses() {
    addresses_.clear();
    const std::string said = process_->Err(), word = R"("address":")";
    for (size_t at = said.find(word); at != std::string::npos; at = said.find(word, at + 1))
      addresses_.push_back(
          said.substr(at + word.size(), said.find('"', at + word.size()) - at - word.size()));
  }

  const test::TempDir& dir_;
  std::unique_ptr<test::Process> process_;
  std::vector<std::string> addresses_;
};

}  // namespace tacit::watch
