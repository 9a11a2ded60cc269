#pragma once

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <functional>
#include <memory>
#include <sstream>
#include <string>

namespace tacit::cuda::testing {

// Returns what is logged meanwhile.
inline std::string LoggedBy(const std::function<void()>& run) {
  std::ostringstream text;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text)));
  run();
  spdlog::set_default_logger(before);
  return text.str();
}

}  // namespace tacit::cuda::testing
