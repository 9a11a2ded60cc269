#include "inspect/source_yaml.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/words.h"
#include "config/config.h"
#include "inspect/rules.h"
#include "inspect/topic_report.h"

namespace tacit::inspect {
namespace {

using config::QuotedYaml;
using FeatureKind = config::Feature::Kind;

std::string LabelYaml(const Sample& sample, const Roles& roles) {
  if (!roles.label)
    return CommentLines(4, "The records have no label: each says that a user has met an item.") +
           "    label: \"\"\n";
  const LabelRole& label = *roles.label;
  std::string yaml = CommentLines(4, fmt::format("The label{}{}. Its rule: {}.",
                                                 label.grounds.reason.empty() ? "" : ", ",
                                                 GroundsText(label.grounds), label.reason)) +
                     fmt::format("    label: {}\n", QuotedYaml(sample.columns[label.column].place));
  if (label.values_open)
    yaml += CommentLines(4,
                         "To be filled in: no value here is known to be a success. Give 1 to each "
                         "value that is one, 0 to the others.");
  if (!label.values.empty()) {
    yaml += "    label_values:\n";
    for (const auto& [value, number] : label.values)
      yaml +=
          fmt::format("      {}:{}\n", QuotedYaml(value), label.values_open ? "" : ' ' + number);
  }
  if (label.at_least) yaml += fmt::format("    label_at_least: {}\n", *label.at_least);
  return yaml;
}

// The keys that JSON and lines of values have in common, but the features.
std::string PlacesYaml(const Sample& sample, const Roles& roles) {
  const auto place = [&](const std::optional<size_t>& column) {
    return column ? QuotedYaml(sample.columns[*column].place) : std::string("\"\"");
  };
  // Behind the keys of a part: why it is this column.
  const auto why = [&](const std::optional<size_t>& column, const Grounds& grounds) {
    const std::string text = column ? GroundsText(grounds) : "";
    return text.empty() ? "" : "  # " + text;
  };
  std::string yaml = LabelYaml(sample, roles);
  yaml += fmt::format("    user: {}{}\n", place(roles.user), why(roles.user, roles.user_grounds));
  yaml += fmt::format("    item: {}{}\n", place(roles.item), why(roles.item, roles.item_grounds));
  yaml += fmt::format("    event_id: {}\n", place(roles.event_id));
  const TimeRole time = roles.time.value_or(TimeRole());
  const auto timed = roles.time ? std::optional(time.column) : std::nullopt;
  yaml += fmt::format("    timestamp: {}{}\n", place(timed), why(timed, time.grounds));
  if (roles.time) yaml += fmt::format("    timestamp_unit: {}\n", NameOfUnit(roles.time->unit));
  if (roles.time && roles.time->unit == event::TimeUnit::kDatetime)
    yaml += CommentLines(4,
                         "Nothing in the records says in which zone their times are: UTC, or the "
                         "offset of the clock that wrote them, such as \"+02:00\".") +
            "    timestamp_zone: UTC\n";
  if (!roles.missing.empty()) {
    yaml += "    # Texts that stand for no value.\n    missing:\n";
    for (const std::string& text : roles.missing)
      yaml += fmt::format("      - {}\n", QuotedYaml(text));
  }
  return yaml;
}

std::string JsonYaml(const Sample& sample, const Roles& roles) {
  if (roles.plain_json)
    return "  # Records are of the plain form (schemas/interaction.schema.json).\n";
  std::string yaml =
      fmt::format("  {}:\n", sample.format_name()) + PlacesYaml(sample, roles) + "    features:\n";
  for (const FeatureRole& feature : roles.features)
    yaml += fmt::format("      {}: {}\n", QuotedYaml(feature.name),
                        QuotedYaml(sample.columns[feature.column].place));
  return yaml;
}

std::string CsvYaml(const Sample& sample, const Roles& roles) {
  const Shape& shape = sample.shape;
  std::string yaml = fmt::format(
      "  csv:\n    separator: {}\n",
      shape.separator == '\t' ? "\"\\t\"" : QuotedYaml(std::string(1, shape.separator)));
  if (shape.separator == '|') yaml += "    set_separator: \";\"\n";
  if (!shape.header)
    yaml += sample.topic() != nullptr
                ? "    # Records name no columns: the names are of the first, or made up.\n"
                  "    header: false\n"
                : "    # The files have no header: the names are made up.\n    header: false\n";
  yaml += "    columns:\n";
  for (const std::string& column : shape.columns)
    yaml += fmt::format("      - {}\n", QuotedYaml(column));
  yaml += PlacesYaml(sample, roles);
  std::string features;
  for (const FeatureRole& feature : roles.features)
    if (feature.name != sample.columns[feature.column].place)
      features += fmt::format("      {}: {}\n", QuotedYaml(feature.name),
                              QuotedYaml(sample.columns[feature.column].place));
  return yaml + (features.empty() ? "" : "    features:\n" + features);
}

double CountedValues(const Roles& roles, const FeatureRole& feature) {
  return feature.kind == FeatureKind::kMultiHot
             ? static_cast<double>(roles.profiles[feature.column].elements)
             : static_cast<double>(roles.profiles[feature.column].distinct);
}
double ExpectedValues(const Sample& sample, const Roles& roles, const FeatureRole& feature) {
  return ValuesExpected(CountedValues(roles, feature), roles.profiles[feature.column].growth,
                        static_cast<double>(sample.lines), sample.lines_in_all);
}

std::string FeatureYaml(const Sample& sample, const Roles& roles, const FeatureRole& feature) {
  const Profile& profile = roles.profiles[feature.column];
  const std::string name = QuotedYaml(feature.name);
  std::string missing = profile.missing < 0.0005 ? ""
                                                 : fmt::format("; {} of the records lack it",
                                                               PercentText(profile.missing));
  if (feature.kind == FeatureKind::kDense)
    return fmt::format("    - {{name: {}, kind: dense}}  # {}{}\n", name, feature.reason, missing);
  const bool set = feature.kind == FeatureKind::kMultiHot;
  const double distinct = CountedValues(roles, feature);
  const double values = ExpectedValues(sample, roles, feature);
  return fmt::format(
      "    - {{name: {}, kind: {}, buckets: {}}}  # {}: {}{}{}\n", name,
      set ? "multi_hot" : "categorical", RowsOf(sample, roles, feature), feature.reason,
      Counted(static_cast<uint64_t>(distinct), "value"),
      sample.whole ? ""
                   : fmt::format(", some {} in all", WithThousands(static_cast<uint64_t>(values))),
      missing);
}

}  // namespace

std::string_view NameOfUnit(event::TimeUnit unit) {
  static constexpr std::string_view kNames[] = {"ms", "s", "us", "ns", "rfc3339", "datetime"};
  return kNames[static_cast<size_t>(unit)];
}

std::string GroundsText(const Grounds& grounds) {
  return grounds.guessed ? "GUESSED: " + grounds.reason + RivalsText(grounds) : grounds.reason;
}

std::string RivalsText(const Grounds& grounds) {
  constexpr size_t kShownMost = 5;
  const size_t all = grounds.rivals.size(), shown = std::min(kShownMost, all);
  std::string text;
  for (size_t i = 0; i < shown; ++i)
    text += (i == 0         ? "; it might be "
             : i + 1 == all ? " or "
                            : ", ") +
            QuotedYaml(grounds.rivals[i]);
  return text + (all > shown ? fmt::format(" and {} more", all - shown) : "");
}

uint64_t RowsOf(const Sample& sample, const Roles& roles, const FeatureRole& feature) {
  if (feature.kind == FeatureKind::kDense) return 0;
  return TableRows(ExpectedValues(sample, roles, feature));
}

std::string CommentLines(size_t indent, std::string_view text) {
  constexpr size_t kWidth = 100;
  std::string lines, line;
  const auto end = [&] {
    if (!line.empty()) lines += fmt::format("{:{}}#{}\n", "", indent, line);
    line.clear();
  };
  for (size_t begin = 0; begin < text.size();) {
    const size_t space = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, space - begin);
    if (indent + 2 + line.size() + word.size() > kWidth) end();
    line += fmt::format(" {}", word);
    begin = space + 1;
  }
  end();
  return lines;
}

std::string SourceYaml(const Sample& sample, const Roles& roles) {
  std::string yaml;
  if (sample.topic() != nullptr) {
    yaml = TopicSourceYaml(sample);
  } else {
    yaml = fmt::format("source:\n  kind: log\n  format: {}\n  files:\n", sample.format_name());
    for (const std::string& file : sample.files)
      yaml += fmt::format("    - {}\n", QuotedYaml(config::PatternOf(file)));
  }
  if (sample.shape.format == Format::kJson) yaml += JsonYaml(sample, roles);
  if (sample.shape.format == Format::kCsv) yaml += CsvYaml(sample, roles);
  yaml += '\n';
  return sample.topic() != nullptr ? yaml + KafkaYaml(*sample.topic()) : yaml;
}

std::string SchemaYaml(const Sample& sample, const Roles& roles) {
  std::string yaml =
      CommentLines(0,
                   "A table has two rows for every value, and 256 at least: values that meet in a "
                   "row are learnt as one. Numbers are cut into bins of public edges.") +
      "schema:\n  features:\n";
  for (const FeatureRole& feature : roles.features) yaml += FeatureYaml(sample, roles, feature);
  for (const auto& [column, reason] : roles.left_out)
    yaml +=
        fmt::format("    # left out: {}: {}\n", QuotedYaml(sample.columns[column].place), reason);
  return yaml + '\n';
}

}  // namespace tacit::inspect
