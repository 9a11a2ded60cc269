#include "config/dump.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "config/config.h"
#include "config/sections.h"

namespace tacit::config {

std::string QuotedYaml(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string PatternOf(std::string_view file) {
  std::string pattern;
  for (char c : file) {
    if (std::string_view("*?[\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

void Dumper::Write(std::string_view key, std::string_view value, Use use) {
  if (use == Use::kUnused || use == Use::kRefused) return;
  if (compact_) {
    yaml_ += fmt::format("{}{}: {}", first_ ? "" : ", ", key, value);
  } else {
    // The first key of a list item follows its dash.
    const bool behind_dash = first_ && yaml_.ends_with("- ");
    yaml_ += fmt::format("{:{}}{}: {}\n", "", behind_dash ? 0 : indent_, key, value);
  }
  first_ = false;
}

void Dumper::Text(std::string_view key, std::string* value, Use use) {
  Write(key, IsSecret(key) ? "\"(redacted)\"" : QuotedYaml(*value), use);
}

void Dumper::OneOf(std::string_view key, std::string* value, std::span<const std::string_view>,
                   Use use) {
  Write(key, *value, use);
}

void Dumper::Number(std::string_view key, std::optional<double>* value, const Range&, Use use) {
  if (!value->has_value()) return;
  Write(key, std::isinf(**value) ? ".inf" : fmt::format("{}", **value), use);
}

void Dumper::Integer(std::string_view key, uint64_t* value, uint64_t, uint64_t, Use use) {
  Write(key, fmt::format("{}", *value), use);
}

void Dumper::Flag(std::string_view key, bool* value, Use use) {
  Write(key, *value ? "true" : "false", use);
}

void Dumper::Bytes(std::string_view key, uint64_t* value, uint64_t, uint64_t) {
  static constexpr std::string_view kNames[] = {"", "KiB", "MiB", "GiB"};
  uint64_t number = *value;
  size_t unit = 0;
  for (; unit < 3 && number != 0 && number % 1024 == 0; ++unit) number /= 1024;
  Write(key, fmt::format("{}{}", number, kNames[unit]), Use::kOptional);
}

void Dumper::Integers(std::string_view key, std::vector<uint32_t>* values, uint32_t, uint32_t,
                      Use use) {
  Write(key, fmt::format("[{}]", fmt::join(*values, ", ")), use);
}

void Dumper::Texts(std::string_view key, std::vector<std::string>* values, Use use) {
  if (values->empty()) return;  // an empty list cannot be written
  std::string list;
  for (const std::string& value : *values)
    list += fmt::format("\n{:{}}- {}", "", indent_ + 2, QuotedYaml(value));
  Write(key, list, use);
}

void Dumper::Files(std::string_view key, std::vector<std::string>* values, Use use) {
  std::vector<std::string> patterns;
  for (const std::string& value : *values) patterns.push_back(PatternOf(value));
  Texts(key, &patterns, use);
}

void Dumper::Hidden(std::string_view key, Secret* value, Use use) {
  if (value->kind == Secret::Kind::kText) {
    Text(key, &value->text, use);
    return;
  }
  const bool file = value->kind == Secret::Kind::kFile;
  Write(key, fmt::format("{{{}: {}}}", file ? "file" : "credential", QuotedYaml(value->text)), use);
}

void Dumper::Verbatim(std::string_view key, std::vector<Property>* properties, Use use) {
  if (use == Use::kUnused || use == Use::kRefused || properties->empty()) return;
  Section(key, [properties](Fields& below) {
    for (Property& property : *properties) below.Hidden(property.name, &property.value);
  });
}

void Dumper::OwnNames(std::string_view key, Words* words, Use use) {
  if (use == Use::kUnused || use == Use::kRefused || words->empty()) return;
  std::string below;
  Dumper dumper(&below, indent_ + 2, /*compact=*/false);
  for (const auto& [name, text] : *words) dumper.Write(QuotedYaml(name), QuotedYaml(text), use);
  yaml_ += fmt::format("{:{}}{}:\n{}", "", indent_, key, below);
}

void Dumper::Section(std::string_view key, const std::function<void(Fields&)>& describe) {
  std::string below;
  Dumper dumper(&below, indent_ + 2, /*compact=*/false);
  describe(dumper);
  if (!below.empty()) yaml_ += fmt::format("{:{}}{}:\n{}", "", indent_, key, below);
}

void Dumper::List(std::string_view key, const std::function<void(size_t)>&, size_t size,
                  const std::function<void(size_t, Fields&)>& describe, bool compact) {
  yaml_ += fmt::format("{:{}}{}:\n", "", indent_, key);
  for (size_t i = 0; i < size; ++i) {
    yaml_ += fmt::format("{:{}}- {}", "", indent_ + 2, compact ? "{" : "");
    Dumper item(&yaml_, indent_ + 4, compact);
    describe(i, item);
    if (compact) yaml_ += "}\n";
  }
}

std::string Dump(const Config& config) {
  std::string yaml;
  Dumper dumper(&yaml, 0, /*compact=*/false);
  Config copy = config;  // descriptions take a mutable reference, to read into it
  DescribeConfig(dumper, copy);
  return yaml;
}

}  // namespace tacit::config
