#pragma once

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/process.h"

// The metrics that a page of Prometheus' text form has, and those that docs/reference/metrics.md
// promises.
namespace tacit::test {

struct MetricShape {
  std::string type, help;
  std::set<std::string> labels;  // but for a histogram's le
  friend bool operator==(const MetricShape&, const MetricShape&) = default;
};
using MetricShapes = std::map<std::string, MetricShape>;

inline std::set<std::string> LabelNames(const std::string& inside) {
  static const std::regex kName(R"((\w+)="(?:[^"\\]|\\.)*")");
  std::set<std::string> names;
  for (std::sregex_iterator it(inside.begin(), inside.end(), kName), end; it != end; ++it)
    if ((*it)[1] != "le") names.insert((*it)[1]);
  return names;
}

inline MetricShapes ShapesOf(const std::string& page) {
  MetricShapes shapes;
  std::istringstream lines(page);
  std::string hash, word, name;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    if (line.starts_with("# HELP ")) {
      words >> hash >> word >> name;
      std::getline(words >> std::ws, shapes[name].help);
    } else if (line.starts_with("# TYPE ")) {
      words >> hash >> word >> name >> shapes[name].type;
    } else {
      // A family's samples stand behind its type.
      const size_t open = line.find('{');
      if (open == std::string::npos) continue;
      const auto names = LabelNames(line.substr(open));
      shapes[name].labels.insert(names.begin(), names.end());
    }
  }
  return shapes;
}

struct PromisedMetric {
  MetricShape shape;
  bool is_public = false;
  // The daemons that alone have it: those of "Kafka", "feed", "Checkpoints" or "Replicas", or
  // that score on a "GPU"; empty: all.
  std::string of = {};
};

// The rows | `name{label,label}` | type | everybody or operators | help | of the page.
inline std::map<std::string, PromisedMetric> PromisedMetrics(const std::string& text) {
  static const std::regex kRow(
      R"(\| `(\w+)(?:\{([\w,]+)\})?` \| (\w+) \| (everybody|operators) \| )"
      R"((?:(Kafka|Checkpoints|Replicas|GPU) alone\. |With a (feed)\. )?(.*) \|)");
  std::map<std::string, PromisedMetric> promised;
  std::istringstream lines(text);
  std::smatch row;
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_match(line, row, kRow)) continue;
    PromisedMetric& metric = promised[row[1]];
    metric.shape = {.type = row[3], .help = row[7], .labels = {}};
    std::istringstream labels(row[2]);
    for (std::string label; std::getline(labels, label, ',');) metric.shape.labels.insert(label);
    metric.is_public = row[4] == "everybody";
    metric.of = row[5].matched ? row[5].str() : row[6].str();
  }
  return promised;
}
inline std::map<std::string, PromisedMetric> DocumentedMetrics() {
  return PromisedMetrics(ReadFile(std::string(TACIT_SOURCE_DIR) + "/docs/reference/metrics.md"));
}

// Differences between the table and pages, in words: what a page has must be in the table as it is
// there, and what the table has, in a page. `complete`: the pages have all but those of some
// daemons.
inline std::vector<std::string> Differences(const std::map<std::string, PromisedMetric>& promised,
                                            const MetricShapes& of_operators,
                                            const MetricShapes& of_everybody, bool complete) {
  std::vector<std::string> found;
  for (const auto& [name, shape] : of_operators) {
    const auto row = promised.find(name);
    if (row == promised.end()) {
      found.push_back(name + " is not in the table");
      continue;
    }
    if (row->second.shape.type != shape.type)
      found.push_back(name + " is a " + shape.type + ", in the table a " + row->second.shape.type);
    if (row->second.shape.help != shape.help)
      found.push_back(name + " has the help '" + shape.help + "', in the table '" +
                      row->second.shape.help + "'");
    if (row->second.shape.labels != shape.labels) found.push_back(name + " has other labels");
    if (row->second.is_public != of_everybody.contains(name))
      found.push_back(name + " is shown to others than the table says");
  }
  for (const auto& [name, row] : promised)
    if (complete && row.of.empty() && !of_operators.contains(name))
      found.push_back(name + " is in the table, and not exported");
  return found;
}

}  // namespace tacit::test
