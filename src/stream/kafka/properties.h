#pragma once

#include <cstdint>
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

// The bytes that a source fetches ahead for all partitions together, with librdkafka's own data on
// small messages, for plans of memory. `kbytes` is the setting queued.max.messages.kbytes; empty:
// it is not set.
uint64_t KafkaFetchBytes(std::string_view kbytes);

}  // namespace tacit::stream
