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

// Each section of the configuration declares its keys once (`Describe` in its file). Reading,
// dumping and listing the keys are three visitors of that one description, so they cannot disagree.
namespace tacit::config {

// The use of a key: may it, must it or must it not be written?
enum class Use {
  kOptional,
  kRequired,  // it has no default
  kUnused,    // belongs to another kind: checked when written, not used, not dumped
  kRefused,   // has no meaning here: an error when written
};
inline Use RequiredIf(bool needed) { return needed ? Use::kRequired : Use::kUnused; }
inline Use UsedIf(bool used) { return used ? Use::kOptional : Use::kUnused; }

// The numbers allowed for a key.
struct Range {
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
  bool above_min = false;  // min itself is excluded
  bool below_max = false;  // max itself is excluded
  bool infinite = false;   // .inf is allowed too

  static Range Positive() { return {.min = 0, .above_min = true}; }
  static Range NotNegative() { return {.min = 0}; }
};

class Fields {
 public:
  virtual ~Fields() = default;

  // These visit one key each. A key that is not written keeps its value, the default.
  virtual void Text(std::string_view key, std::string* value, Use use = Use::kOptional) = 0;
  virtual void OneOf(std::string_view key, std::string* value,
                     std::span<const std::string_view> choices, Use use = Use::kOptional) = 0;
  virtual void Number(std::string_view key, std::optional<double>* value, const Range& range,
                      Use use = Use::kOptional) = 0;
  virtual void Integer(std::string_view key, uint64_t* value, uint64_t min, uint64_t max,
                       Use use = Use::kOptional) = 0;
  virtual void Flag(std::string_view key, bool* value, Use use = Use::kOptional) = 0;
  // A number of bytes; KiB, MiB or GiB may follow it.
  virtual void Bytes(std::string_view key, uint64_t* value, uint64_t min, uint64_t max) = 0;
  virtual void Integers(std::string_view key, std::vector<uint32_t>* values, uint32_t min,
                        uint32_t max, Use use = Use::kOptional) = 0;
  // A list of texts; a single text stands for a list of one.
  virtual void Texts(std::string_view key, std::vector<std::string>* values,
                     Use use = Use::kOptional) = 0;
  // The same of patterns of file names, which stand for the files that they match.
  virtual void Files(std::string_view key, std::vector<std::string>* values,
                     Use use = Use::kOptional) {
    Texts(key, values, use);
  }
  // A text, or its location: {file: PATH} or {credential: NAME}.
  virtual void Hidden(std::string_view key, Secret* value, Use use = Use::kOptional) = 0;
  // A section whose keys are not ours: all keys are taken as written, dots included.
  virtual void Verbatim(std::string_view key, std::vector<Property>* properties,
                        Use use = Use::kOptional) = 0;
  // A section whose keys are any texts, each with a text.
  virtual void OwnNames(std::string_view key, Words* words, Use use = Use::kOptional) = 0;
  virtual void Section(std::string_view key, const std::function<void(Fields&)>& describe) = 0;

  void Number(std::string_view key, double* value, const Range& range, Use use = Use::kOptional) {
    std::optional<double> number = *value;
    Number(key, &number, range, use);
    *value = *number;
  }
  void Integer(std::string_view key, uint32_t* value, uint32_t min, uint32_t max,
               Use use = Use::kOptional) {
    uint64_t number = *value;
    Integer(key, &number, min, max, use);
    *value = static_cast<uint32_t>(number);
  }
  // `names` are in the order of the enumeration's values, which count from 0.
  template <class E>
  void Enum(std::string_view key, E* value, std::span<const std::string_view> names,
            Use use = Use::kOptional) {
    TACIT_CHECK(static_cast<size_t>(*value) < names.size(), "every value has a name");
    std::string name(names[static_cast<size_t>(*value)]);
    OneOf(key, &name, names, use);
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) *value = static_cast<E>(i);
    }
  }
  // Visits a kind, whose names are those of its table.
  template <class E, class Row>
  void Kind(std::string_view key, E* value, std::span<const Row> kinds, Use use = Use::kOptional) {
    std::vector<std::string_view> names;
    for (const Row& row : kinds) names.push_back(row.name);
    Enum(key, value, names, use);
  }
  // A list of sections, at least one; `compact` dumps each on one line.
  template <class T>
  void Sections(std::string_view key, std::vector<T>* items, void (*describe)(Fields&, T&),
                bool compact) {
    List(
        key, [items](size_t size) { items->resize(size); }, items->size(),
        [items, describe](size_t i, Fields& fields) { describe(fields, (*items)[i]); }, compact);
  }

 protected:
  virtual void List(std::string_view key, const std::function<void(size_t)>& resize, size_t size,
                    const std::function<void(size_t, Fields&)>& describe, bool compact) = 0;
};

}  // namespace tacit::config
