#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacit::config {

// Lists every key that has a value, as a dotted path with "#" for a list index:
// "learners.#.privacy.unit". "*" is any name in a section whose keys are not ours: "kafka.*".
std::vector<std::string> KeyPatterns();

// "learners.#.model.seed" -> "TACIT_LEARNERS_#_MODEL_SEED".
std::string EnvironmentName(std::string_view pattern);

// A variable that sets a key.
struct Setting {
  std::string variable;
  std::string path;  // dotted
  std::string value;
};

// Reads the settings of the variables ("NAME=VALUE") that start with TACIT_. In place of a "*",
// capitals stand for small letters and `_` for a dot, since librdkafka's names have no `_`:
// TACIT_KAFKA_SASL_PASSWORD is kafka.sasl.password. The items of a list may stand with commas
// between them. Skips the variables of the tools and the tests (TACIT_REQUIRE, TACIT_CACHE_*,
// TACIT_TEST_*), and all that kubelet sets for a Service (TACIT_SERVICE_HOST, TACIT_PORT, ...).
// Refuses any other that names no key: a misspelt TACIT_..._EPSILON must not be ignored.
Result<std::vector<Setting>> ReadEnvironment(const std::vector<std::string>& variables);

// The environment of this process.
std::vector<std::string> ProcessEnvironment();

}  // namespace tacit::config
