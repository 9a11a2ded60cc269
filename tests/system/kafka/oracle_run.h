#pragma once

#include <fmt/format.h>

#include <boost/json.hpp>
#include <map>
#include <string>

#include "support/process.h"
#include "system/kafka/oracle.h"

namespace tacit::test {

// Writes NAME.yaml of a daemon that learns what the oracle can check; `source` is the top-level
// YAML of where events come from. Returns its path.
inline std::string WriteOracleConfig(const TempDir& dir, const std::string& name,
                                     const std::string& source, bool periods,
                                     const std::string& listen = "", bool users = false) {
  const std::string path = dir / (name + ".yaml");
  WriteFile(path, source +
                      fmt::format("store: {{path: \"{}\", commit_interval_ms: 20}}\n"
                                  "serve: {{listen: \"{}\"}}\n"
                                  "log: {{level: info}}\n"
                                  "training: {{idle_priority: false, workers: 1}}\n",
                                  dir / name, listen) +
                      Oracle::Yaml(periods, users));
  return path;
}

// Every line of a file of dead letters: partition and offset, and the reason.
using DeadLetters = std::map<std::pair<int32_t, uint64_t>, std::string>;
inline DeadLetters ReadDeadLetters(const std::string& path) {
  DeadLetters letters;
  const std::string lines = ReadFile(path);
  for (size_t begin = 0; begin < lines.size();) {
    const size_t end = std::min(lines.find('\n', begin), lines.size());
    const auto letter = boost::json::parse(lines.substr(begin, end - begin)).as_object();
    letters.emplace(std::pair(letter.at("partition").to_number<int32_t>(),
                              letter.at("offset").to_number<uint64_t>()),
                    letter.at("reason").as_string());
    begin = end + 1;
  }
  return letters;
}

}  // namespace tacit::test
