#include "config/reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace tacit::config {
namespace {

struct Suffix {
  std::string_view name;
  uint64_t bytes;
};
constexpr Suffix kSuffixes[] = {{"KiB", 1ull << 10}, {"MiB", 1ull << 20}, {"GiB", 1ull << 30}};

// "above 0 and below 1", "at least 0", ...
std::string Describe(const Range& range) {
  std::string text;
  if (range.min != std::numeric_limits<double>::lowest()) {
    text = fmt::format("{} {}", range.above_min ? "above" : "at least", range.min);
  }
  if (range.max != std::numeric_limits<double>::max()) {
    if (!text.empty()) text += " and ";
    text += fmt::format("{} {}", range.below_max ? "below" : "at most", range.max);
  }
  return text;
}

bool Holds(const Range& range, double number) {
  if (std::isinf(number)) return range.infinite && number > 0;
  return number >= range.min && number <= range.max && !(range.above_min && number == range.min) &&
         !(range.below_max && number == range.max);
}

// Parses a decimal number or .inf; returns nullopt for anything else, NaN included.
std::optional<double> ParseNumber(std::string_view text) {
  if (text == ".inf" || text == ".Inf" || text == "inf") {
    return std::numeric_limits<double>::infinity();
  }
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(number)) return std::nullopt;
  return number;
}

// Accepts names like librdkafka's and schema ids. Refuses "null", which would not be read back as a
// text.
bool GoodName(std::string_view name) {
  constexpr std::string_view kFirst = "abcdefghijklmnopqrstuvwxyz0123456789";
  return !name.empty() && name != "null" && kFirst.find(name[0]) != name.npos &&
         std::ranges::all_of(name, [&](char c) {
           return kFirst.find(c) != kFirst.npos || c == '.' || c == '-' || c == '_';
         });
}

}  // namespace

void Reader::Fail(const Place& place, std::string_view message) {
  if (going()) outcome_.wrong = place.Fail(message);
}

std::optional<Place> Reader::Written(std::string_view key, Use use) {
  asked_.push_back(key);
  if (!going()) return std::nullopt;
  Place place = place_.Key(key);
  if (place.tree() == nullptr) {
    if (use == Use::kRequired && outcome_.missing) {
      outcome_.missing = place.Fail("required, and has no default");
    }
    return std::nullopt;
  }
  if (use == Use::kRefused) {
    Fail(place, "has no meaning for this kind");
    return std::nullopt;
  }
  return place;
}

const Tree* Reader::Scalar(const std::optional<Place>& place, std::string_view what) {
  if (!place) return nullptr;
  const Tree& tree = *place->tree();
  if (tree.kind == Tree::Kind::kScalar) return &tree;
  Fail(*place, tree.kind == Tree::Kind::kNull
                   ? fmt::format("has no value; expected {}", what)
                   : fmt::format("expected {}, found a {}", what,
                                 tree.kind == Tree::Kind::kList ? "list" : "section"));
  return nullptr;
}

void Reader::Text(const Key& key, std::string* value, Use use) {
  const std::optional<Place> place = Written(key.name, use);
  const Tree* scalar = Scalar(place, "a text (\"\" for an empty one)");
  if (scalar == nullptr) return;
  if (scalar->text.find('\0') != std::string::npos) {
    Fail(*place, "holds a zero byte");
    return;
  }
  Assign(value, scalar->text, use);
}

void Reader::OneOf(const Key& key, std::string* value, std::span<const std::string_view> choices,
                   Use use) {
  const std::optional<Place> place = Written(key.name, use);
  const Tree* scalar = Scalar(place, fmt::format("one of {}", fmt::join(choices, ", ")));
  if (scalar == nullptr) return;
  if (std::ranges::find(choices, scalar->text) == choices.end()) {
    Fail(*place,
         fmt::format("must be {}{}, is '{}'{}", choices.size() > 1 ? "one of " : "",
                     fmt::join(choices, ", "), scalar->text, DidYouMean(scalar->text, choices)));
    return;
  }
  Assign(value, scalar->text, use);
}

void Reader::Number(const Key& key, std::optional<double>* value, const Range& range, Use use) {
  const std::optional<Place> place = Written(key.name, use);
  const Tree* scalar = Scalar(place, "a number");
  if (scalar == nullptr) return;
  const std::optional<double> number = scalar->quoted ? std::nullopt : ParseNumber(scalar->text);
  if (!number) {
    Fail(*place, fmt::format("must be a number, is '{}'", scalar->text));
  } else if (std::isinf(*number) && !range.infinite) {
    Fail(*place, fmt::format("must be finite, is '{}'", scalar->text));
  } else if (!Holds(range, *number)) {
    Fail(*place, fmt::format("must be {}, is {}", Describe(range), scalar->text));
  } else {
    Assign(value, number, use);
  }
}

uint64_t Reader::ReadInteger(const Place& place, std::string_view text, bool quoted, uint64_t min,
                             uint64_t max) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (quoted || error == std::errc::invalid_argument || end != text.data() + text.size()) {
    Fail(place, fmt::format("must be a whole number of at least {}, is '{}'", min, text));
    return min;
  }
  if (error != std::errc() || number < min || number > max) {
    Fail(place, fmt::format("must be between {} and {}, is {}", min, max, text));
    return min;
  }
  return number;
}

void Reader::Integer(const Key& key, uint64_t* value, uint64_t min, uint64_t max, Use use) {
  const std::optional<Place> place = Written(key.name, use);
  const Tree* scalar = Scalar(place, "a whole number");
  if (scalar == nullptr) return;
  Assign(value, ReadInteger(*place, scalar->text, scalar->quoted, min, max), use);
}

void Reader::Flag(const Key& key, bool* value, Use use) {
  const std::optional<Place> place = Written(key.name, use);
  const Tree* scalar = Scalar(place, "true or false");
  if (scalar == nullptr) return;
  if (scalar->quoted || (scalar->text != "true" && scalar->text != "false")) {
    Fail(*place, fmt::format("must be true or false, is '{}'", scalar->text));
    return;
  }
  Assign(value, scalar->text == "true", use);
}

void Reader::Bytes(const Key& key, uint64_t* value, uint64_t min, uint64_t max) {
  const std::optional<Place> place = Written(key.name, Use::kOptional);
  const Tree* scalar = Scalar(place, "a number of bytes, such as 2GiB");
  if (scalar == nullptr) return;
  std::string_view digits = scalar->text;
  uint64_t unit = 1;
  for (const Suffix& suffix : kSuffixes) {
    if (!digits.ends_with(suffix.name)) continue;
    digits.remove_suffix(suffix.name.size());
    unit = suffix.bytes;
    break;
  }
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (scalar->quoted || error == std::errc::invalid_argument ||
      end != digits.data() + digits.size()) {
    Fail(*place,
         fmt::format("must be a number of bytes, such as 512MiB or 2GiB, is '{}'", scalar->text));
  } else if (error != std::errc() || number > max / unit || number * unit < min) {
    Fail(*place, fmt::format("must be between {} and {} bytes, is {}", min, max, scalar->text));
  } else {
    *value = number * unit;
  }
}

void Reader::Integers(const Key& key, std::vector<uint32_t>* values, uint32_t min, uint32_t max,
                      Use use) {
  const std::optional<Place> place = Written(key.name, use);
  if (!place) return;
  if (place->tree()->kind != Tree::Kind::kList || place->tree()->children.empty()) {
    Fail(*place, "must be a list of whole numbers, such as [128, 64]");
    return;
  }
  std::vector<uint32_t> numbers;
  for (size_t i = 0; going() && i < place->tree()->children.size(); ++i) {
    const Place item = place->Item(i);
    const Tree* scalar = Scalar(item, "a whole number");
    if (scalar == nullptr) return;
    numbers.push_back(
        static_cast<uint32_t>(ReadInteger(item, scalar->text, scalar->quoted, min, max)));
  }
  Assign(values, std::move(numbers), use);
}

void Reader::Texts(const Key& key, std::vector<std::string>* values, Use use) {
  ReadTexts(key, values, use, /*empty_items=*/false);
}

void Reader::Columns(const Key& key, std::vector<std::string>* values, Use use) {
  ReadTexts(key, values, use, /*empty_items=*/true);
}

void Reader::ReadTexts(const Key& key, std::vector<std::string>* values, Use use,
                       bool empty_items) {
  const std::optional<Place> place = Written(key.name, use);
  if (!place) return;
  std::vector<std::string> texts;
  const bool single = place->tree()->kind == Tree::Kind::kScalar;
  const size_t size = single ? 1 : place->tree()->children.size();
  if (size == 0 || place->tree()->kind == Tree::Kind::kMap) {
    Fail(*place, "must be a list of texts, not empty");
    return;
  }
  for (size_t i = 0; going() && i < size; ++i) {
    const Place item = single ? *place : place->Item(i);
    const Tree* scalar = Scalar(item, "a text");
    if (scalar == nullptr) return;
    const bool empty = scalar->text.empty() && (single || !empty_items);
    if (empty || scalar->text.find('\0') != std::string::npos) {
      Fail(item, "is empty or holds a zero byte");
      return;
    }
    texts.push_back(scalar->text);
  }
  Assign(values, std::move(texts), use);
}

// Never quotes the value in messages: it may be a secret in the wrong shape.
std::optional<Secret> Reader::ReadHidden(const Place& place) {
  Secret secret;
  secret.place = place.Name();
  const Tree* scalar = place.tree();
  if (scalar->kind == Tree::Kind::kMap && scalar->children.size() == 1) {
    const std::string& kept = scalar->children[0].key;
    if (kept == "file") secret.kind = Secret::Kind::kFile;
    if (kept == "credential") secret.kind = Secret::Kind::kCredential;
    if (secret.kind != Secret::Kind::kText) scalar = &scalar->children[0];
  }
  const bool kept = secret.kind != Secret::Kind::kText;
  if (scalar->kind != Tree::Kind::kScalar || (kept && scalar->text.empty())) {
    Fail(place, "expected a text (\"\" for an empty one), {file: PATH} or {credential: NAME}");
    return std::nullopt;
  }
  if (scalar->text.find('\0') != std::string::npos) {
    Fail(place, "holds a zero byte");
    return std::nullopt;
  }
  secret.text = scalar->text;
  return secret;
}

void Reader::Hidden(const Key& key, Secret* value, Use use) {
  const std::optional<Place> place = Written(key.name, use);
  if (!place) return;
  if (std::optional<Secret> secret = ReadHidden(*place)) Assign(value, std::move(*secret), use);
}

void Reader::Verbatim(const Key& key, std::vector<Property>* properties, Use use) {
  const std::optional<Place> place = Written(key.name, use);
  if (!place || place->tree()->kind == Tree::Kind::kNull) return;
  if (place->tree()->kind != Tree::Kind::kMap) {
    Fail(*place, "must be a section of keys");
    return;
  }
  std::vector<Property> read;
  for (const Tree& child : place->tree()->children) {
    const Place below = place->Key(child.key);
    if (!GoodName(child.key)) {
      Fail(below, "is no name: those are of a-z, 0-9, '.', '-' and '_'");
      return;
    }
    std::optional<Secret> value = ReadHidden(below);
    if (!value) return;
    read.push_back({child.key, std::move(*value)});
  }
  Assign(properties, std::move(read), use);
}

void Reader::OwnNames(const Key& key, Words* words, Use use, std::string_view what) {
  const std::optional<Place> place = Written(key.name, use);
  if (!place || place->tree()->kind == Tree::Kind::kNull) return;
  if (place->tree()->kind != Tree::Kind::kMap) {
    Fail(*place, "must be a section of keys");
    return;
  }
  Words read;
  for (const Tree& child : place->tree()->children) {
    const Tree* scalar = Scalar(place->Key(child.key), what);
    if (scalar == nullptr) return;
    read.emplace_back(child.key, scalar->text);
  }
  Assign(words, std::move(read), use);
}

void Reader::Section(const Key& key, const std::function<void(Fields&)>& describe) {
  asked_.push_back(key.name);
  const Place place = place_.Key(key.name);
  if (place.tree() != nullptr && place.tree()->kind != Tree::Kind::kMap &&
      place.tree()->kind != Tree::Kind::kNull) {
    Fail(place, "must be a section of keys");
  }
  if (!going()) return;
  Reader below(place, &outcome_);
  describe(below);
  below.Finish();
}

void Reader::List(const Key& key, const std::function<void(size_t)>& resize, size_t,
                  const std::function<void(size_t, Fields&)>& describe, bool) {
  const std::optional<Place> place = Written(key.name, Use::kRequired);
  if (!place) return;
  const Tree& tree = *place->tree();
  if (tree.kind != Tree::Kind::kList || tree.children.empty()) {
    Fail(*place, "must be a list of at least one item");
    return;
  }
  resize(tree.children.size());
  for (size_t i = 0; going() && i < tree.children.size(); ++i) {
    if (tree.children[i].kind != Tree::Kind::kMap) {
      Fail(place->Item(i), "must be a section of keys");
      return;
    }
    Reader item(place->Item(i), &outcome_);
    describe(i, item);
    item.Finish();
  }
}

void Reader::Finish() {
  if (!going()) return;
  if (place_.tree() != nullptr && place_.tree()->kind == Tree::Kind::kMap) {
    for (const Tree& child : place_.tree()->children) {
      if (std::ranges::find(asked_, child.key) != asked_.end()) continue;
      Fail(place_.Key(child.key), "unknown key" + DidYouMean(child.key, asked_));
      return;
    }
  }
}

}  // namespace tacit::config
