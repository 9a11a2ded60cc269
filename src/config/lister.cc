#include "config/lister.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "config/sections.h"

namespace tacit::config {
namespace {

using Type = Row::Type;

// A text as YAML, in quotes where it could be read as something else.
std::string YamlText(std::string_view text) {
  const bool plain =
      !text.empty() && text != "null" && !text.ends_with(':') &&
      (std::isalnum(static_cast<unsigned char>(text[0])) != 0 || text[0] == '/') &&
      std::ranges::all_of(text, [](unsigned char c) {
        return std::isalnum(c) ||
               std::string_view("/._:*+-").find(static_cast<char>(c)) != std::string_view::npos;
      });
  return plain ? std::string(text) : QuotedYaml(text);
}

std::string YamlNumber(double number) {
  return std::isinf(number) ? ".inf" : fmt::format("{}", number);
}

class Lister : public Fields {
 public:
  Lister(std::string path, std::string pattern, std::vector<Row>* rows)
      : path_(std::move(path)), pattern_(std::move(pattern)), rows_(*rows) {}

  void Text(const Key& key, std::string* value, Use use) override {
    Add(Type::kText, key, use, YamlText(*value));
  }
  void OneOf(const Key& key, std::string* value, std::span<const std::string_view> choices,
             Use use) override {
    Add(Type::kChoice, key, use, *value).choices.assign(choices.begin(), choices.end());
  }
  void Number(const Key& key, std::optional<double>* value, const Range& range, Use use) override {
    Row& row = Add(Type::kNumber, key, use, *value ? YamlNumber(**value) : "");
    if (range.min != Range().min) row.least = fmt::format("{}", range.min);
    if (range.max != Range().max) row.most = fmt::format("{}", range.max);
    row.above_least = range.above_min;
    row.below_most = range.below_max;
    row.infinite = range.infinite;
  }
  void Integer(const Key& key, uint64_t* value, uint64_t min, uint64_t max, Use use) override {
    Bound(Add(Type::kInteger, key, use, fmt::format("{}", *value)), min, max);
  }
  void Flag(const Key& key, bool* value, Use use) override {
    Add(Type::kFlag, key, use, *value ? "true" : "false");
  }
  void Bytes(const Key& key, uint64_t* value, uint64_t min, uint64_t max) override {
    Row& row = Add(Type::kBytes, key, Use::kOptional, BytesText(*value));
    row.least = BytesText(min);
    if (max < kBytesMost) row.most = BytesText(max);
  }
  void Integers(const Key& key, std::vector<uint32_t>* values, uint32_t min, uint32_t max,
                Use use) override {
    Bound(Add(Type::kIntegers, key, use, fmt::format("[{}]", fmt::join(*values, ", "))), min, max);
  }
  void Texts(const Key& key, std::vector<std::string>* values, Use use) override {
    std::vector<std::string> texts;
    for (const std::string& value : *values) texts.push_back(YamlText(value));
    Add(Type::kTexts, key, use, texts.empty() ? "" : fmt::format("[{}]", fmt::join(texts, ", ")));
  }
  void Hidden(const Key& key, Secret* value, Use use) override {
    const bool file = value->kind == Secret::Kind::kFile;
    Add(Type::kSecret, key, use,
        value->kind == Secret::Kind::kText
            ? YamlText(value->text)
            : fmt::format("{{{}: {}}}", file ? "file" : "credential", YamlText(value->text)));
  }
  void Verbatim(const Key& key, std::vector<Property>* properties, Use use) override {
    const std::string pattern = Add(Type::kSettings, key, use).pattern += ".*";
    Lister below(fmt::format("{}{}.", path_, key.name), pattern, &rows_);
    for (Property& property : *properties)
      below.Hidden({property.name, "", key.reload}, &property.value, use);
  }
  void OwnNames(const Key& key, Words* words, Use use, std::string_view) override {
    std::vector<std::string> texts;
    for (const auto& [name, text] : *words)
      texts.push_back(fmt::format("{}: {}", YamlText(name), YamlText(text)));
    Add(Type::kWords, key, use, texts.empty() ? "" : fmt::format("{{{}}}", fmt::join(texts, ", ")));
  }
  void Section(const Key& key, const std::function<void(Fields&)>& describe) override {
    Add(Type::kSection, key, Use::kOptional);
    Lister below(fmt::format("{}{}.", path_, key.name), fmt::format("{}{}.", pattern_, key.name),
                 &rows_);
    describe(below);
  }

 protected:
  void List(const Key& key, const std::function<void(size_t)>&, size_t size,
            const std::function<void(size_t, Fields&)>& describe, bool) override {
    Add(Type::kList, key, Use::kRequired);
    for (size_t i = 0; i < size; ++i) {
      const std::string path = fmt::format("{}{}.{}", path_, key.name, i);
      const std::string pattern = fmt::format("{}{}.#", pattern_, key.name);
      rows_.push_back({.type = Type::kItem, .path = path, .pattern = pattern});
      Lister item(path + '.', pattern + '.', &rows_);
      describe(i, item);
    }
  }

 private:
  Row& Add(Type type, const Key& key, Use use, std::string value = "") {
    const bool ours = !pattern_.ends_with('*');
    rows_.push_back({.type = type,
                     .path = fmt::format("{}{}", path_, key.name),
                     .pattern = ours ? fmt::format("{}{}", pattern_, key.name) : pattern_,
                     .says = key.says,
                     .reload = key.reload,
                     .use = use,
                     .value = std::move(value)});
    return rows_.back();
  }
  static void Bound(Row& row, uint64_t min, uint64_t max) {
    row.least = fmt::format("{}", min);
    if (max != UINT64_MAX) row.most = fmt::format("{}", max);
  }

  const std::string path_, pattern_;
  std::vector<Row>& rows_;
};

}  // namespace

std::string_view Row::name() const {
  return std::string_view(pattern).substr(pattern.rfind('.') + 1);
}

std::vector<Row> RowsOf(const Config& config) {
  std::vector<Row> rows;
  Lister lister("", "", &rows);
  Config copy = config;  // descriptions take a mutable reference, to read into it
  DescribeConfig(lister, copy);
  return rows;
}

std::string BytesText(uint64_t bytes) {
  static constexpr std::string_view kNames[] = {"", "KiB", "MiB", "GiB"};
  size_t unit = 0;
  for (; unit < 3 && bytes != 0 && bytes % 1024 == 0; ++unit) bytes /= 1024;
  return fmt::format("{}{}", bytes, kNames[unit]);
}

}  // namespace tacit::config
