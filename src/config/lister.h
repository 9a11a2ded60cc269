#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/fields.h"

namespace tacit::config {

// A key, or a section, as the description of a configuration has it.
struct Row {
  enum class Type : uint8_t {
    kSection,
    kList,      // of sections
    kItem,      // one of them
    kSettings,  // a section whose keys are not ours; they follow it
    kWords,     // a section of texts by names that are the user's own
    kText,
    kChoice,
    kNumber,
    kInteger,
    kFlag,
    kBytes,
    kIntegers,
    kTexts,
    kSecret,
  };
  Type type;
  std::string path;     // "learners.0.privacy.epsilon"
  std::string pattern;  // the same for all items: "learners.#.privacy.epsilon", "kafka.*"
  std::string_view says = {};
  AtReload reload = AtReload::kStays;
  Use use = Use::kOptional;
  std::string value = {};                        // as YAML; empty if it has none
  std::string least = {}, most = {};             // its bounds; empty if it has none
  bool above_least = false, below_most = false;  // the bound itself is excluded
  bool infinite = false;                         // .inf is allowed too
  std::vector<std::string_view> choices = {};

  bool is_key() const { return type > Type::kSettings; }
  // The last name of the pattern.
  std::string_view name() const;
};

// Lists a configuration in the order of its description. Rows have secrets as they are.
std::vector<Row> RowsOf(const Config& config);

// "64MiB".
std::string BytesText(uint64_t bytes);

}  // namespace tacit::config
