#pragma once

#include <array>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/families.h"

// The metrics that a page of Prometheus' text form has, and the metrics that tacitd declares.
namespace tacit::test {

struct MetricShape {
  std::string type, help;
  std::set<std::string> labels;  // except for a histogram's le
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
  std::string of = {};  // the daemons that alone have it, as metrics/families.h names them
};

// The rows of metrics/families.h.
inline std::map<std::string, PromisedMetric> DocumentedMetrics() {
  std::map<std::string, PromisedMetric> promised;
  for (const metrics::Family& family : metrics::kFamilies) {
    PromisedMetric& metric = promised[std::string(family.name)];
    metric.shape.type = std::array{"counter", "gauge", "histogram"}[static_cast<int>(family.kind)];
    metric.shape.help = family.help;
    std::istringstream labels{std::string(family.labels)};
    for (std::string label; std::getline(labels, label, ',');) metric.shape.labels.insert(label);
    metric.is_public = family.audience == metrics::Audience::kPublic;
    metric.of = family.only;
  }
  return promised;
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
