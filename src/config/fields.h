#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "config/config.h"

// Each section of the configuration declares its keys once (`Describe` in its file), with the words
// that the reference prints. Reading, dumping and listing the keys are three visitors of that one
// description, so they cannot disagree.
namespace tacit::config {

// A running daemon's use of a key whose value has changed in the file.
enum class AtReload : uint8_t {
  kStays,  // it keeps its own until it is started anew
  kTaken,  // it goes on with the new value
};

// A key or a section. `says` describes it to a user: names of keys and values stand between
// backticks, and a new line begins the words on another value.
struct Key {
  std::string_view name;
  std::string_view says;
  AtReload reload = AtReload::kStays;
};

// The use of a key: may it, must it or must it not be written?
enum class Use {
  kOptional,
  kRequired,           // it has no default
  kUnused,             // belongs to another kind: checked when written, not used, not dumped
  kRequiredElsewhere,  // kUnused here, and has no default where it is used
  kRefused,            // has no meaning here: an error when written
};
inline Use RequiredIf(bool needed) { return needed ? Use::kRequired : Use::kRequiredElsewhere; }
inline Use UsedIf(bool used) { return used ? Use::kOptional : Use::kUnused; }
inline bool IsUsed(Use use) { return use == Use::kOptional || use == Use::kRequired; }

// The numbers allowed for a key.
struct Range {
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
  bool above_min = false;  // min itself is excluded
  bool below_max = false;  // max itself is excluded
  bool infinite = false;   // .inf is allowed too

  static Range Positive() { return {.min = 0, .above_min = true}; }
};

// A bound that no number of bytes on any machine meets: lists leave it out.
inline constexpr uint64_t kBytesMost = 1ull << 50;

class Fields {
 public:
  virtual ~Fields() = default;

  // These visit one key each. A key that is not written keeps its value, the default.
  virtual void Text(const Key& key, std::string* value, Use use = Use::kOptional) = 0;
  virtual void OneOf(const Key& key, std::string* value, std::span<const std::string_view> choices,
                     Use use = Use::kOptional) = 0;
  virtual void Number(const Key& key, std::optional<double>* value, const Range& range,
                      Use use = Use::kOptional) = 0;
  virtual void Integer(const Key& key, uint64_t* value, uint64_t min, uint64_t max,
                       Use use = Use::kOptional) = 0;
  virtual void Flag(const Key& key, bool* value, Use use = Use::kOptional) = 0;
  // A number of bytes; KiB, MiB or GiB may follow it. A `max` of kBytesMost is not listed.
  virtual void Bytes(const Key& key, uint64_t* value, uint64_t min, uint64_t max) = 0;
  virtual void Integers(const Key& key, std::vector<uint32_t>* values, uint32_t min, uint32_t max,
                        Use use = Use::kOptional) = 0;
  // A list of texts; a single text stands for a list of one.
  virtual void Texts(const Key& key, std::vector<std::string>* values,
                     Use use = Use::kOptional) = 0;
  // The same of patterns of file names, which stand for the files that they match.
  virtual void Files(const Key& key, std::vector<std::string>* values, Use use = Use::kOptional) {
    Texts(key, values, use);
  }
  // The same of the names of columns in order; in a list, a column without a name is "".
  virtual void Columns(const Key& key, std::vector<std::string>* values, Use use = Use::kOptional) {
    Texts(key, values, use);
  }
  // A text, or its location: {file: PATH} or {credential: NAME}.
  virtual void Hidden(const Key& key, Secret* value, Use use = Use::kOptional) = 0;
  // A section whose keys are not ours: all keys are taken as written, dots included.
  virtual void Verbatim(const Key& key, std::vector<Property>* properties,
                        Use use = Use::kOptional) = 0;
  // A section whose keys are any texts, each with a text. `what` names the text in a refusal.
  virtual void OwnNames(const Key& key, Words* words, Use use = Use::kOptional,
                        std::string_view what = "a text") = 0;
  virtual void Section(const Key& key, const std::function<void(Fields&)>& describe) = 0;

  void Number(const Key& key, double* value, const Range& range, Use use = Use::kOptional) {
    std::optional<double> number = *value;
    Number(key, &number, range, use);
    *value = *number;
  }
  void Integer(const Key& key, uint32_t* value, uint32_t min, uint32_t max,
               Use use = Use::kOptional) {
    uint64_t number = *value;
    Integer(key, &number, min, max, use);
    *value = static_cast<uint32_t>(number);
  }
  // `names` are in the order of the enumeration's values, which count from 0.
  template <class E>
  void Enum(const Key& key, E* value, std::span<const std::string_view> names,
            Use use = Use::kOptional) {
    TACIT_CHECK(static_cast<size_t>(*value) < names.size(), "every value has a name");
    std::string name(names[static_cast<size_t>(*value)]);
    OneOf(key, &name, names, use);
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) *value = static_cast<E>(i);
    }
  }
  // Visits a kind, whose names are those of its table.
  template <class E, class Row, size_t n>
  void Kind(const Key& key, E* value, std::span<const Row, n> kinds, Use use = Use::kOptional) {
    std::vector<std::string_view> names;
    for (const Row& row : kinds) names.push_back(row.name);
    std::string name(RowOf(kinds, *value).name);
    OneOf(key, &name, names, use);
    for (const Row& row : kinds)
      if (row.name == name) *value = row.kind;
  }
  // Visits a text of one byte. The section checks its length as it is written.
  void Character(const Key& key, char* value, Use use) {
    std::string text(1, *value);
    Text(key, &text, use);
    if (!text.empty()) *value = text[0];
  }
  // Visits a section of names with 0 or 1 each, which the section checks.
  void Labels(const Key& key, std::vector<std::pair<std::string, bool>>* labels, Use use) {
    Words words;
    for (const auto& [name, label] : *labels) words.emplace_back(name, label ? "1" : "0");
    OwnNames(key, &words, use, "0 or 1");
    labels->clear();
    for (auto& [name, label] : words) labels->emplace_back(std::move(name), label == "1");
  }
  // A list of sections, at least one; `compact` dumps each on one line.
  template <class T>
  void Sections(const Key& key, std::vector<T>* items, void (*describe)(Fields&, T&),
                bool compact) {
    List(
        key, [items](size_t size) { items->resize(size); }, items->size(),
        [items, describe](size_t i, Fields& fields) { describe(fields, (*items)[i]); }, compact);
  }

 protected:
  virtual void List(const Key& key, const std::function<void(size_t)>& resize, size_t size,
                    const std::function<void(size_t, Fields&)>& describe, bool compact) = 0;
};

}  // namespace tacit::config
