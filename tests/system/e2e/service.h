#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/client.h"
#include "support/eventually.h"
#include "support/json.h"
#include "support/small_run.h"

namespace tacit::test {

// A daemon that listens on a socket in the test's folder.
class Service {
 public:
  Service(const TempDir& dir, SmallRun run, std::vector<std::string> more = {})
      : url_("unix:" + (dir / "socket")) {
    run.listen = url_;
    std::vector<std::string> command{TACITD, "--config", run.WriteConfig(dir)};
    command.insert(command.end(), more.begin(), more.end());
    process_ = std::make_unique<Process>(command);
  }

  const std::string& url() const { return url_; }
  Process& process() { return *process_; }

  Result<http::Response> Ask(const std::string& method, const std::string& path,
                             const std::string& body = "") {
    return http::Fetch(url_ + ":" + path, method, body, kPatience);
  }
  boost::json::object Privacy() {
    const auto answer = Ask("GET", "/v1/privacy");
    return answer ? ParseJson(answer->body) : boost::json::object{};
  }
  // Waits until `path` answers 200.
  testing::AssertionResult WaitFor(const std::string& path) {
    return Until(path + " answers 200", [&] {
      const auto answer = Ask("GET", path);
      return answer && answer->status == 200;
    });
  }
  // Waits until this many steps are committed.
  testing::AssertionResult WaitForSteps(uint64_t steps) {
    return Until(std::to_string(steps) + " steps are committed", [&] {
      const auto answer = Ask("GET", "/v1/privacy");
      if (!answer || answer->status != 200) return false;
      const boost::json::object privacy = ParseJson(answer->body);
      const boost::json::array& learners = privacy.at("learners").as_array();
      return !learners.empty() && learners[0].at("steps").to_number<uint64_t>() >= steps;
    });
  }
  // Waits until the daemon has said so.
  testing::AssertionResult WaitForWord(const std::string& text) {
    return Until("it says \"" + text + "\"",
                 [&] { return process_->Err().find(text) != std::string::npos; });
  }
  // Waits for a state of the daemon; gives up when it has ended, and tells what it said.
  template <class Condition>
  testing::AssertionResult Until(const std::string& state, const Condition& holds) {
    bool gone = false;
    const auto result = Eventually(state, [&] {
      gone = process_->WaitFor(std::chrono::milliseconds(0)).has_value();
      return holds() || gone;
    });
    if (result && !gone) return result;
    if (gone && holds()) return testing::AssertionSuccess();
    return testing::AssertionFailure()
           << (gone ? "it ended before " + state : result.message()) << "; it said:\n"
           << process_->Err();
  }
  // Asks the daemon to stop, and waits for its end.
  std::optional<Ended> Stop() {
    process_->Signal(SIGTERM);
    return process_->Wait();
  }

 private:
  std::string url_;
  std::unique_ptr<Process> process_;
};

}  // namespace tacit::test
