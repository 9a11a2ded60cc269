#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacit::stream {

// librdkafka's settings by its own names, secrets fetched. What they are is not checked here.
struct KafkaProperties {
  std::vector<std::pair<std::string, std::string>> values;
  // Names whose values must not be shown, beside those that are secrets by their names.
  std::vector<std::string> hidden = {};

  // The last value under this name, or null.
  const std::string* Find(std::string_view name) const {
    const std::string* found = nullptr;
    for (const auto& [key, value] : values)
      if (key == name) found = &value;
    return found;
  }
};

}  // namespace tacit::stream
