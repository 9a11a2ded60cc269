#include "inspect/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/words.h"
#include "console/text_table.h"
#include "inspect/source_yaml.h"
#include "inspect/topic_report.h"

namespace tacit::inspect {
namespace {

namespace json = boost::json;

// A name as a terminal may show it.
std::string Shown(std::string_view name) {
  const std::string quoted = config::QuotedYaml(name);
  return quoted.substr(1, quoted.size() - 2);
}

std::string Percent(double share) { return fmt::format("{:.1f}", 100 * share); }

std::string TypeOf(const Column& column) {
  std::string type;
  const auto add = [&](uint64_t count, std::string_view name) {
    if (count > 0) type += fmt::format("{}{}", type.empty() ? "" : "/", name);
  };
  // Texts of digits among others in quotes are texts too.
  const bool texts = column.words > 0 && column.quoted == column.numbers();
  add(texts ? 0 : column.integers, "integer");
  add(texts ? 0 : column.fractions, "number");
  const uint64_t times = column.times + column.datetimes;
  add(column.words - times, "text");
  add(times, "time");
  add(column.flags, "flag");
  add(column.lists, "list");
  add(column.nested, "objects");
  return type.empty() ? "nothing" : type;
}

std::string PartOf(const Roles& roles, size_t column) {
  if (roles.label && roles.label->column == column) return "label";
  if (roles.time && roles.time->column == column) return "time";
  if (roles.user == column) return "user";
  if (roles.item == column) return "item";
  if (roles.event_id == column) return "event id";
  for (const FeatureRole& feature : roles.features) {
    static constexpr std::string_view kKinds[] = {"dense", "categorical", "multi_hot"};
    if (feature.column == column) return std::string(kKinds[static_cast<size_t>(feature.kind)]);
  }
  return "left out";
}

std::string ShapeText(const Sample& sample, const Roles& roles) {
  switch (sample.shape.format) {
    case Format::kCriteoTsv:
      return fmt::format("criteo_tsv: a label, {} whole numbers, {} categories between tabs",
                         sample.shape.dense, sample.shape.categorical);
    case Format::kJson:
      return fmt::format("{}, of {}", sample.format_name(),
                         roles.plain_json ? "the plain form" : "its own shape");
    case Format::kCsv:
      return fmt::format(
          "csv: {} between {}, {} a header{}", Counted(sample.shape.columns.size(), "value"),
          sample.shape.separator == '\t' ? std::string("tabs")
                                         : fmt::format("'{}'", sample.shape.separator),
          sample.shape.header ? "with" : "without",
          sample.shape.first.empty() ? ""
                                     : ", GUESSED: the first line is " + Shown(sample.shape.first));
  }
  return "";
}

const Complaints& ComplaintsOf(const Sample& sample, const std::optional<Trial>& trial) {
  return trial ? trial->complaints : sample.complaints;
}

// A column, and why it plays its part.
std::string PlaceText(const Sample& sample, size_t column, const Grounds& grounds) {
  return fmt::format("'{}'{}{}", Shown(sample.columns[column].place),
                     grounds.guessed          ? ", "
                     : grounds.reason.empty() ? ""
                                              : ": ",
                     GroundsText(grounds));
}

std::string LabelText(const Sample& sample, const Roles& roles, const std::optional<Trial>& trial) {
  if (roles.are_meetings())
    return fmt::format("none{}: each record says that a user has met an item",
                       roles.label_denied ? "" : ", GUESSED");
  if (!roles.label) return "none is found";
  const LabelRole& label = *roles.label;
  std::string rule;
  for (const auto& [value, number] : label.values)
    if (!label.values_open)
      rule += fmt::format(", {} for '{}'", number, Shown(value.substr(0, 24)));
  std::string rates;
  if (trial && trial->good > 0 && !label.values_open) {
    const auto rate = [](uint64_t positives, uint64_t all) {
      return all == 0 ? 0 : static_cast<double>(positives) / static_cast<double>(all);
    };
    rates = fmt::format("; {} are 1: {} of the first half, {} of the second",
                        PercentText(trial->label_rate()),
                        PercentText(rate(trial->first_positives, trial->first)),
                        PercentText(rate(trial->second_positives, trial->second)));
  }
  return fmt::format("{}; {}{}{}", PlaceText(sample, label.column, label.grounds), label.reason,
                     rule, rates);
}

// The column of users or of items; `name` is that of the option which names it.
std::string IdText(const Sample& sample, const std::optional<size_t>& column,
                   const Grounds& grounds, std::string_view name) {
  if (column) return PlaceText(sample, *column, grounds);
  if (sample.shape.format == Format::kCriteoTsv) return "none: Criteo's lines name none";
  return fmt::format("none is found{}; --{} FIELD names it", RivalsText(grounds), name);
}

std::string FieldTable(const Sample& sample, const Roles& roles) {
  console::TextLines lines = {
      {"field", "type", "missing %", "values", "top %", "top 10 %", "new in 2nd half %", "part"}};
  for (size_t c = 0; c < sample.columns.size(); ++c) {
    const Profile& profile = roles.profiles[c];
    lines.push_back({Shown(sample.columns[c].place), TypeOf(sample.columns[c]),
                     sample.noised.empty() || profile.missing > 0 ? Percent(profile.missing) : "-",
                     WithThousands(profile.distinct), Percent(profile.top), Percent(profile.top_10),
                     std::isnan(profile.fresh) ? "-" : Percent(profile.fresh), PartOf(roles, c)});
  }
  return console::LayOut(lines, {0, 1, 7});
}

}  // namespace

std::string NamesText(const Sample& sample, const Roles& roles) {
  std::string lines;
  for (const FeatureRole& feature : roles.features) {
    const Column& column = sample.columns[feature.column];
    if (feature.kind != config::Feature::Kind::kCategorical || column.words != column.present())
      continue;
    for (const auto& [code, text] : column.texts)
      if (text.size() < kTextBytesMost && text.find_first_of("\r\n") == std::string::npos)
        lines += fmt::format("{}\t{}\n", feature.name, text);
  }
  return lines;
}

std::string ReportText(const Sample& sample, const Roles& roles,
                       const std::optional<Trial>& trial) {
  const bool noised = !sample.noised.empty();
  std::string text = fmt::format(
      "{}\n\n", noised ? "tacit inspect --private tells noised counts alone. " + sample.noised
                       : std::string(kRawWarning));
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<11}{}\n", name, value);
  };
  const std::string whence = sample.records->Whence();
  const bool evenly =
      sample.topic() != nullptr && sample.topic()->spread == stream::KafkaSpread::kEvenly;
  if (sample.topic() != nullptr)
    for (const auto& [name, value] : TopicLines(sample, roles)) line(name, Shown(value));
  line("format", ShapeText(sample, roles));
  line("records",
       noised ? fmt::format("some {} looked at, some {} in {}", WithThousands(sample.lines),
                            WithThousands(static_cast<uint64_t>(sample.lines_in_all)), whence)
       : sample.whole
           ? fmt::format("{}, all of {}", WithThousands(sample.lines), whence)
           : fmt::format("{}{} of some {} in {}", evenly ? "" : "the first ",
                         WithThousands(sample.lines),
                         WithThousands(static_cast<uint64_t>(sample.lines_in_all)), whence));
  const Complaints& complaints = ComplaintsOf(sample, trial);
  const uint64_t bad = trial    ? trial->bad()
                       : noised ? sample.lines - sample.rows
                                : complaints.total();
  line("readable",
       fmt::format("{} of them{}", WithThousands(sample.lines - std::min(sample.lines, bad)),
                   trial ? ", by the codec of this proposal" : ""));
  for (const Complaint& complaint : complaints.List())
    text += fmt::format("  {} not, first {}:{}: {}\n", WithThousands(complaint.count),
                        complaint.file, complaint.line, complaint.reason);
  line("label", LabelText(sample, roles, trial));
  const std::string unit = !roles.user ? ": without a user the unit can be event alone"
                           : roles.user_grounds.guessed
                               ? fmt::format("; with unit user each of its {} is one person",
                                             Counted(roles.profiles[*roles.user].distinct, "value"))
                               : "";
  line("user", IdText(sample, roles.user, roles.user_grounds, "user") + unit);
  line("item", IdText(sample, roles.item, roles.item_grounds, "item"));
  const auto days = DaysOf(sample, roles, trial);
  if (roles.time && (!days || days->days == 0))
    line("time", PlaceText(sample, roles.time->column, roles.time->grounds));
  if (days && days->days > 0) {
    line("time",
         fmt::format("{}; from {} to {}{}{}",
                     PlaceText(sample, roles.time->column, roles.time->grounds), days->from,
                     days->to,
                     days->others == 0
                         ? ""
                         : fmt::format(", without {} of another age", WithThousands(days->others)),
                     roles.time->unit == event::TimeUnit::kDatetime
                         ? ", if its times, which name no zone, are in UTC: "
                           "timestamp_zone says so"
                     : sample.columns[roles.time->column].numbers() > 0
                         ? fmt::format(", if its numbers are in {}", NameOfUnit(roles.time->unit))
                         : ""));
    line("a day", fmt::format("{:.1f} events{}, over {} with records", days->events,
                              roles.user ? fmt::format(" of {:.1f} users", days->users) : "",
                              Counted(days->days, "day")));
  }
  line("repeats", fmt::format("{}, byte for byte", WithThousands(sample.repeats)));
  if (roles.label && (noised || roles.too_few_to_find_leaks))
    line("leaks",
         fmt::format("not looked for{}: leave out fields that are known only with the label",
                     noised ? "" : ", for the second half has too few labels of one kind"));
  text += '\n' + FieldTable(sample, roles) + '\n';
  for (const auto& [column, reason] : roles.left_out)
    text += fmt::format("left out: '{}': {}\n", Shown(sample.columns[column].place), reason);
  for (const std::string& warning : WarningsAbout(sample, roles, trial))
    text += fmt::format("WARNING: {}\n", warning);
  return text;
}

json::object ReportJson(const Sample& sample, const Roles& roles,
                        const std::optional<Trial>& trial) {
  json::array complaints, fields, left_out, warnings;
  for (const Complaint& complaint : ComplaintsOf(sample, trial).List())
    complaints.push_back(json::object{{"count", complaint.count},
                                      {"file", complaint.file},
                                      {"line", complaint.line},
                                      {"reason", complaint.reason}});
  for (size_t c = 0; c < sample.columns.size(); ++c) {
    const Profile& profile = roles.profiles[c];
    fields.push_back(json::object{{"field", sample.columns[c].place},
                                  {"type", TypeOf(sample.columns[c])},
                                  {"part", PartOf(roles, c)},
                                  {"missing", profile.missing},
                                  {"values", profile.distinct},
                                  {"top", profile.top},
                                  {"top_10", profile.top_10},
                                  {"new_in_second_half", nullptr}});
    if (!std::isnan(profile.fresh)) fields.back().as_object()["new_in_second_half"] = profile.fresh;
  }
  for (const auto& [column, reason] : roles.left_out)
    left_out.push_back(json::object{{"field", sample.columns[column].place}, {"reason", reason}});
  for (const std::string& warning : WarningsAbout(sample, roles, trial))
    warnings.push_back(json::value(warning));
  const bool noised = !sample.noised.empty();
  json::object report{
      {noised ? "noised" : "raw", noised ? sample.noised : std::string(kRawWarning)},
      {"format", sample.format_name()},
      {"plain", roles.plain_json},
      {"records", sample.lines},
      {"records_in_all", std::round(sample.lines_in_all)},
      {"unreadable", std::move(complaints)},
      {"unreadable_records", trial    ? trial->bad()
                             : noised ? sample.lines - sample.rows
                                      : sample.complaints.total()},
      {"repeats", sample.repeats},
      {"fields", std::move(fields)},
      {"left_out", std::move(left_out)},
      {"leaks_looked_for", roles.label && !noised && !roles.too_few_to_find_leaks},
      {"warnings", std::move(warnings)}};
  if (sample.topic() != nullptr) report["topic"] = TopicJson(sample, roles);
  for (const char* name : {"label", "user", "item", "time"}) report[name] = nullptr;
  for (const NamedPart& part : NamedParts(roles))
    report[part.name] = json::object{{"field", sample.columns[part.column].place},
                                     {"guessed", part.grounds->guessed},
                                     {"reason", part.grounds->reason},
                                     {"rivals", json::value_from(part.grounds->rivals)}};
  if (roles.label) {
    json::object& label = report["label"].as_object();
    if (roles.label->at_least) {
      label["at_least"] = *roles.label->at_least;
      label["at_least_guessed"] = true;
    }
    if (trial && trial->first > 0 && trial->second > 0 && !roles.label->values_open) {
      label["rate"] = trial->label_rate();
      label["rate_of_halves"] = {
          static_cast<double>(trial->first_positives) / static_cast<double>(trial->first),
          static_cast<double>(trial->second_positives) / static_cast<double>(trial->second)};
    }
  }
  if (const auto days = DaysOf(sample, roles, trial))
    report["days"] = json::object{{"days", days->days},
                                  {"events", days->events},
                                  {"users", days->users},
                                  {"from", days->from},
                                  {"to", days->to},
                                  {"ordered", days->ordered},
                                  {"of_another_age", days->others}};
  return report;
}

}  // namespace tacit::inspect
