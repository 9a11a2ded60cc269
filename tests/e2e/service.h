#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "serve/client.h"
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

  Result<serve::Response> Ask(const std::string& method, const std::string& path,
                              const std::string& body = "") {
    return serve::Fetch(url_ + ":" + path, method, body, std::chrono::milliseconds(5000));
  }
  boost::json::object Privacy() {
    const auto answer = Ask("GET", "/v1/privacy");
    return answer ? boost::json::parse(answer->body).as_object() : boost::json::object{};
  }
  // Waits until `path` answers 200.
  bool WaitFor(const std::string& path) {
    for (int i = 0; i < 2000; ++i) {
      const auto answer = Ask("GET", path);
      if (answer && answer->status == 200) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  // Waits until so many steps are committed.
  bool WaitForSteps(uint64_t steps) {
    for (int i = 0; i < 4000; ++i) {
      const boost::json::object privacy = Privacy();
      if (privacy.contains("learners") && !privacy.at("learners").as_array().empty() &&
          privacy.at("learners").at(0).at("steps").to_number<uint64_t>() >= steps)
        return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

 private:
  std::string url_;
  std::unique_ptr<Process> process_;
};

}  // namespace tacit::test
