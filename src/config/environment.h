#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacit::config {

// Every key that has a value, as a dotted path with "#" for a list index:
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

// In place of a "*" capitals stand for small letters and `_` for a dot, as librdkafka's names have
// none: TACIT_KAFKA_SASL_PASSWORD is kafka.sasl.password. What the variables ("NAME=VALUE")
// starting with TACIT_ set. Those of the tools and the tests (TACIT_REQUIRE, TACIT_CACHE_*,
// TACIT_TEST_*) are passed over. Any other that names no key is refused: a misspelt
// TACIT_..._EPSILON must not be ignored.
Result<std::vector<Setting>> ReadEnvironment(const std::vector<std::string>& variables);

// The environment of this process.
std::vector<std::string> ProcessEnvironment();

}  // namespace tacit::config
