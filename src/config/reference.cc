#include "config/reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <set>

#include "base/text.h"
#include "config/environment.h"
#include "config/lister.h"

namespace tacit::config {
namespace {

using Type = Row::Type;

constexpr std::string_view kMarkdownHead =
    R"(<!-- tacitd --describe config --markdown > docs/reference/config.md -->
# Keys of the configuration

A configuration is one YAML file: [how it is read](../operating/configure.md#the-file), and how the command line
and the environment override it. [config/reference.yaml](../../config/reference.yaml) has the same keys as a file.
Keys that belong to another kind than the one chosen are checked, but not used; within `schema.features` they are
refused. A running tacitd takes over keys marked (SIGHUP) at a [reload](../operating/configure.md#reload); all
others stay until it is started anew.

)";

constexpr std::string_view kYamlHead =
    R"(# tacitd --describe config --yaml > config/reference.yaml
#
# Every key there is, with its default. This file is a configuration that could run: keys that it does
# not use stand behind a '#' without a blank. Required keys have no default, and an example here.
# docs/reference/config.md has the same as tables, docs/operating/configure.md says how the command line
# and the environment override a key, and where a password may be kept.
)";

// The values that have no default, so that the file is a valid configuration.
Config Example() {
  Config config;
  config.source.files = {"/var/log/clicks/day-*.tsv.gz"};
  config.features = {
      {.name = "clicks_before"},
      {.name = "advertiser", .kind = Feature::Kind::kCategorical, .buckets = 100'000},
      {.name = "topics", .kind = Feature::Kind::kMultiHot, .buckets = 5000, .dim = 16}};
  Learner& learner = config.learners.emplace_back();
  learner.id = "ctr";
  learner.mechanism.threshold = 20;
  learner.privacy.unit = privacy::Unit::kEvent;
  learner.privacy.epsilon = 8;
  learner.privacy.delta = 1e-7;
  config.store.path = "/var/lib/tacit/store";
  config.store.witness = "/var/lib/tacit-witness/store.witness";
  return config;
}

// One item of each list, with the defaults. Its feature is one that has a table.
std::vector<Row> Defaults() {
  Config config;
  config.features.resize(1);
  config.features[0].kind = Feature::Kind::kCategorical;
  config.learners.resize(1);
  return RowsOf(config);
}

// The pattern ends with ".*".
bool AnyName(const Row& row) { return row.type == Type::kSettings; }

bool HasNoDefault(const Row& row) {
  return row.use == Use::kRequired || row.use == Use::kRequiredElsewhere;
}

std::string_view UnitOf(const Row& row) {
  if (row.type == Type::kBytes) return "bytes";
  if (row.type != Type::kInteger) return "";
  const std::string_view name = row.name();
  const std::string_view last = name.substr(name.rfind('_') + 1);
  for (const std::string_view unit : {"ms", "bytes", "hours", "days"})
    if (last == unit) return unit;
  return "";
}

// "1,000,000", and "2^36" for a power of two that nobody would know.
std::string Number(const std::string& digits) {
  const bool whole = std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  if (!whole || digits.size() < 5) return digits;
  const uint64_t number = std::stoull(digits);
  if (number >= 1 << 20 && std::has_single_bit(number))
    return fmt::format("2^{}", std::countr_zero(number));
  return WithThousands(number);
}

std::string Bounds(const Row& row) {
  const std::string least = Number(row.least), most = Number(row.most);
  const std::string_view unit = row.type == Type::kBytes ? "" : UnitOf(row);
  std::string text;
  if (!least.empty() && !most.empty() && !row.above_least && !row.below_most)
    text = fmt::format("{} to {}", least, most);
  else if (!least.empty() || !most.empty())
    text = fmt::format("{}{}{}{}",
                       least.empty()     ? ""
                       : row.above_least ? "above "
                                         : "at least ",
                       least, least.empty() || most.empty() ? "" : ", ",
                       most.empty() ? "" : (row.below_most ? "below " : "at most ") + most);
  if (!unit.empty()) text += fmt::format(" {}", unit);
  if (row.infinite) text += ", or `.inf`";
  return text;
}

// The values that a key can have.
std::string ValuesOf(const Row& row) {
  switch (row.type) {
    case Type::kChoice:
      return fmt::format("`{}`", fmt::join(row.choices, "`, `"));
    case Type::kFlag:
      return "`true`, `false`";
    case Type::kNumber:
    case Type::kInteger:
    case Type::kBytes: {
      const std::string bounds = Bounds(row);
      return bounds.empty() ? "a number" : bounds;
    }
    case Type::kIntegers:
      return "list of " + Bounds(row);
    case Type::kTexts:
      return "list of texts";
    case Type::kSecret:
      return "text, or its place";
    case Type::kWords:
      return "texts by name";
    case Type::kSettings:
      return "settings by name";
    default:
      return "text";
  }
}

constexpr std::string_view kTypeNames[] = {
    "section", "list of sections", "item", "settings", "texts by name", "text",  "choice",
    "number",  "integer",          "flag", "bytes",    "integers",      "texts", "secret"};

// "learners.#.id" -> "learners[].id".
std::string Written(std::string_view pattern) {
  std::string text(pattern);
  for (size_t at; (at = text.find(".#")) != std::string::npos;) text.replace(at, 2, "[]");
  return text;
}

void ReplaceAll(std::string* text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text->find(from, at)) != std::string::npos; at += to.size())
    text->replace(at, from.size(), to);
}

// Words with names of files as links, for a page in docs/reference.
std::string Linked(std::string_view says) {
  std::string text;
  for (size_t begin = 0; begin < says.size();) {
    const size_t end = std::min(says.find_first_of(" \n", begin), says.size() - 1) + 1;
    std::string_view word = says.substr(begin, end - begin);
    begin = end;
    const size_t size = word.find_last_not_of(" \n.,:;)") + 1;
    const std::string_view file = word.substr(0, size);
    const bool page = file.starts_with("docs/");
    if (page || file.starts_with("src/") || file.starts_with("schemas/"))
      text += fmt::format("[{}]({}{}){}", file, page ? "../" : "../../", file.substr(page ? 5 : 0),
                          word.substr(size));
    else
      text += word;
  }
  return text;
}

// Words of a cell of a table.
std::string Cell(std::string text) {
  ReplaceAll(&text, "|", "\\|");
  ReplaceAll(&text, "\n", "<br>");
  return text;
}

// The name that a heading's link has.
std::string Anchor(std::string_view heading) {
  std::string anchor;
  for (const char c : heading)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') anchor += c;
  return anchor;
}

std::string MarkdownRow(const Row& row) {
  std::string name = Written(row.pattern);
  constexpr std::string_view kLearners = "learners[].";
  if (name.starts_with(kLearners)) name.erase(0, kLearners.size());
  const std::string value = HasNoDefault(row)   ? "required"
                            : row.value.empty() ? "none"
                                                : fmt::format("`{}`", row.value);
  return fmt::format("| `{}` | {} | {} | {}{} |\n", Cell(name), Cell(value), Cell(ValuesOf(row)),
                     Cell(Linked(row.says)), row.reload == AtReload::kTaken ? " (SIGHUP)" : "");
}

// A heading with the keys below it, but not the keys of its sections.
struct Table {
  std::string heading;
  std::string_view says = {};
  std::string rows = {};
};

std::vector<Table> Tables() {
  std::vector<Table> tables;
  const auto table = [&tables](std::string_view pattern) -> Table& {
    const std::string heading = Written(pattern);
    const auto found = std::ranges::find(tables, heading, &Table::heading);
    return found != tables.end() ? *found : tables.emplace_back(Table{.heading = heading});
  };
  for (const Row& row : Defaults()) {
    const std::string_view pattern = row.pattern;
    if (row.type == Type::kItem) continue;
    if (row.type == Type::kList) {
      table(fmt::format("{}.#", pattern)).says = row.says;
    } else if (row.type == Type::kSection) {
      table(pattern).says = row.says;
    } else {
      const std::string_view key = pattern.substr(0, pattern.size() - (AnyName(row) ? 2 : 0));
      table(key.substr(0, key.rfind('.'))).rows += MarkdownRow(row);
    }
  }
  return tables;
}

// A line for each section, with links to it and to the sections in it.
std::string Index(const std::vector<Table>& tables) {
  std::string text;
  for (const Table& table : tables) {
    const size_t dot = table.heading.find('.');
    const std::string_view name = std::string_view(table.heading).substr(dot + 1);
    text += fmt::format("{}[{}](#{})", dot == std::string::npos ? "\n- " : ", ", name,
                        Anchor(table.heading));
  }
  return text.substr(1) + "\n";
}

// Appends words as comments, wrapped.
void Comment(std::string_view says, size_t indent, std::string* yaml) {
  constexpr size_t kColumns = 100;
  std::string plain(says);
  for (const std::string_view mark : {"`", "**"}) ReplaceAll(&plain, mark, "");
  std::string line;
  const auto end_line = [&] {
    if (!line.empty()) *yaml += fmt::format("{:{}}#{}\n", "", indent, line);
    line.clear();
  };
  for (size_t begin = 0; begin < plain.size();) {
    const size_t end = std::min(plain.find_first_of(" \n", begin), plain.size());
    if (indent + 2 + line.size() + end - begin > kColumns) end_line();
    line += ' ' + plain.substr(begin, end - begin);
    if (end < plain.size() && plain[end] == '\n') end_line();
    begin = end + 1;
  }
  end_line();
}

// The comment above a key: its words, its values where the words do not have them, and its marks.
std::string CommentOf(const Row& row) {
  std::string text;
  if (row.is_key() && row.use == Use::kRequired) text = "Required. ";
  if (row.is_key() && row.use == Use::kRequiredElsewhere) text = "Required where it is used. ";
  text += row.says;
  const bool chosen = std::ranges::any_of(row.choices, [&](std::string_view choice) {
    return row.says.find(fmt::format("`{}`:", choice)) == std::string_view::npos;
  });
  if (chosen || !row.least.empty() || !row.most.empty())
    text += fmt::format(" ({})", ValuesOf(row));
  if (row.reload == AtReload::kTaken) text += " (SIGHUP)";
  return text;
}

// Keys of a section that are used, the section being the row at `i`.
bool HasUsedKeys(const std::vector<Row>& rows, size_t i) {
  const std::string prefix = rows[i].path + '.';
  for (++i; i < rows.size() && rows[i].path.starts_with(prefix); ++i)
    if (rows[i].is_key() && IsUsed(rows[i].use) && !rows[i].value.empty()) return true;
  return false;
}

std::string Json(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? "\\n" : std::string(1, c);
  }
  return quoted + '"';
}

std::string JsonRow(const Row& row) {
  std::string text = fmt::format(R"({{"key": {}, "type": {})", Json(Written(row.pattern)),
                                 Json(kTypeNames[static_cast<size_t>(row.type)]));
  if (row.type >= Type::kSettings && row.type != Type::kWords)
    text += fmt::format(R"(, "environment": {})", Json(EnvironmentName(row.pattern)));
  if (row.is_key()) {
    text += HasNoDefault(row) ? R"(, "required": true)" : R"(, "required": false)";
    if (!HasNoDefault(row) && !row.value.empty())
      text += fmt::format(R"(, "default": {})", Json(row.value));
    text += row.reload == AtReload::kTaken ? R"(, "reload": true)" : R"(, "reload": false)";
  }
  if (!UnitOf(row).empty()) text += fmt::format(R"(, "unit": {})", Json(UnitOf(row)));
  for (const auto& [name, bound] : {std::pair("min", row.least), std::pair("max", row.most)})
    if (!bound.empty())
      text += fmt::format(R"(, "{}": {})", name, row.type == Type::kBytes ? Json(bound) : bound);
  if (row.above_least) text += R"(, "above_min": true)";
  if (row.below_most) text += R"(, "below_max": true)";
  if (row.infinite) text += R"(, "infinite": true)";
  if (!row.choices.empty())
    text += fmt::format(R"(, "choices": ["{}"])", fmt::join(row.choices, R"(", ")"));
  return text + fmt::format(R"(, "says": {}}})", Json(row.says));
}

}  // namespace

std::string MarkdownReference() {
  const std::vector<Table> tables = Tables();
  std::string text = std::string(kMarkdownHead) + Index(tables);
  for (const Table& table : tables) {
    const auto depth = static_cast<size_t>(std::ranges::count(table.heading, '.'));
    text += fmt::format("\n{} {}\n", std::string(2 + depth, '#'), table.heading);
    if (!table.says.empty()) text += fmt::format("\n{}\n", Linked(table.says));
    if (!table.rows.empty())
      text += "\n| key | default | values | effect |\n|---|---|---|---|\n" + table.rows;
  }
  return text;
}

std::string YamlReference() {
  const std::vector<Row> rows = RowsOf(Example());
  std::string yaml(kYamlHead);
  std::set<std::string_view> told;
  bool behind_dash = false;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    if (row.type == Type::kItem) behind_dash = true;
    if (row.type == Type::kItem || row.use == Use::kRefused) continue;
    const std::string_view key =
        std::string_view(row.pattern).substr(0, row.pattern.size() - (AnyName(row) ? 2 : 0));
    const size_t indent = 2 * static_cast<size_t>(std::ranges::count(key, '.'));
    if (indent == 0) yaml += '\n';
    if (told.insert(key).second) Comment(CommentOf(row), indent - (behind_dash ? 2 : 0), &yaml);
    const bool used = row.is_key() ? IsUsed(row.use) && !row.value.empty() : HasUsedKeys(rows, i);
    const std::string value = row.use == Use::kRequiredElsewhere ? "" : row.value;
    yaml += fmt::format("{:{}}{}{}:{}{}\n", "", indent - (behind_dash ? 2 : 0),
                        behind_dash ? "- "
                        : used      ? ""
                                    : "#",
                        key.substr(key.rfind('.') + 1), value.empty() ? "" : " ", value);
    behind_dash = false;
  }
  return yaml;
}

std::string JsonReference() {
  std::string text = "[\n";
  for (const Row& row : Defaults())
    if (row.type != Type::kItem)
      text += fmt::format("{}{}", text == "[\n" ? "" : ",\n", JsonRow(row));
  return text + "\n]\n";
}

}  // namespace tacit::config
