#include "config/dump.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "config/config.h"
#include "config/lister.h"
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
  if (!IsUsed(use)) return;
  if (compact_) {
    yaml_ += fmt::format("{}{}: {}", first_ ? "" : ", ", key, value);
  } else {
    // The first key of a list item follows its dash.
    const bool behind_dash = first_ && yaml_.ends_with("- ");
    yaml_ += fmt::format("{:{}}{}: {}\n", "", behind_dash ? 0 : indent_, key, value);
  }
  first_ = false;
}

void Dumper::Text(const Key& key, std::string* value, Use use) {
  Write(key.name, IsSecret(key.name) ? "\"(redacted)\"" : QuotedYaml(*value), use);
}

void Dumper::OneOf(const Key& key, std::string* value, std::span<const std::string_view>, Use use) {
  Write(key.name, *value, use);
}

void Dumper::Number(const Key& key, std::optional<double>* value, const Range&, Use use) {
  if (!value->has_value()) return;
  Write(key.name, std::isinf(**value) ? ".inf" : fmt::format("{}", **value), use);
}

void Dumper::Integer(const Key& key, uint64_t* value, uint64_t, uint64_t, Use use) {
  Write(key.name, fmt::format("{}", *value), use);
}

void Dumper::Flag(const Key& key, bool* value, Use use) {
  Write(key.name, *value ? "true" : "false", use);
}

void Dumper::Bytes(const Key& key, uint64_t* value, uint64_t, uint64_t) {
  Write(key.name, BytesText(*value), Use::kOptional);
}

void Dumper::Integers(const Key& key, std::vector<uint32_t>* values, uint32_t, uint32_t, Use use) {
  Write(key.name, fmt::format("[{}]", fmt::join(*values, ", ")), use);
}

void Dumper::Texts(const Key& key, std::vector<std::string>* values, Use use) {
  if (values->empty()) return;  // an empty list cannot be written
  std::string list;
  for (const std::string& value : *values)
    list += fmt::format("\n{:{}}- {}", "", indent_ + 2, QuotedYaml(value));
  Write(key.name, list, use);
}

void Dumper::Files(const Key& key, std::vector<std::string>* values, Use use) {
  std::vector<std::string> patterns;
  for (const std::string& value : *values) patterns.push_back(PatternOf(value));
  Texts(key, &patterns, use);
}

void Dumper::Hidden(const Key& key, Secret* value, Use use) {
  if (value->kind == Secret::Kind::kText) {
    Text(key, &value->text, use);
    return;
  }
  const bool file = value->kind == Secret::Kind::kFile;
  Write(key.name, fmt::format("{{{}: {}}}", file ? "file" : "credential", QuotedYaml(value->text)),
        use);
}

void Dumper::Verbatim(const Key& key, std::vector<Property>* properties, Use use) {
  if (!IsUsed(use) || properties->empty()) return;
  Section(key, [properties](Fields& below) {
    for (Property& property : *properties) below.Hidden({property.name, ""}, &property.value);
  });
}

void Dumper::OwnNames(const Key& key, Words* words, Use use, std::string_view) {
  if (!IsUsed(use) || words->empty()) return;
  std::string below;
  Dumper dumper(&below, indent_ + 2, /*compact=*/false);
  for (const auto& [name, text] : *words) dumper.Write(QuotedYaml(name), QuotedYaml(text), use);
  yaml_ += fmt::format("{:{}}{}:\n{}", "", indent_, key.name, below);
}

void Dumper::Section(const Key& key, const std::function<void(Fields&)>& describe) {
  std::string below;
  Dumper dumper(&below, indent_ + 2, /*compact=*/false);
  describe(dumper);
  if (!below.empty()) yaml_ += fmt::format("{:{}}{}:\n{}", "", indent_, key.name, below);
}

void Dumper::List(const Key& key, const std::function<void(size_t)>&, size_t size,
                  const std::function<void(size_t, Fields&)>& describe, bool compact) {
  yaml_ += fmt::format("{:{}}{}:\n", "", indent_, key.name);
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
