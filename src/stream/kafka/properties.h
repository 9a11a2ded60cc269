#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacit::stream {

// librdkafka's settings by its own names, with secrets fetched. The values are not checked here.
struct KafkaProperties {
  std::vector<std::pair<std::string, std::string>> values;
  // Names whose values must not be shown, besides those that IsSecretName knows.
  std::vector<std::string> hidden = {};

  // Returns the last value under this name, or null.
  const std::string* Find(std::string_view name) const {
    const std::string* found = nullptr;
    for (const auto& [key, value] : values)
      if (key == name) found = &value;
    return found;
  }
};

}  // namespace tacit::stream
