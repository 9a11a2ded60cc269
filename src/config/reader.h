#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/fields.h"
#include "config/tree.h"

namespace tacit::config {

// The result of reading a tree. A missing required key is reported only when nothing else is wrong:
// it may be there under a misspelt name.
struct Outcome {
  Status wrong;    // the first failure; after it nothing more is read
  Status missing;  // the first required key that is not there
};

// Reads one section of a tree into the values described to it. Remembers which keys were asked for,
// so that Finish can refuse unknown ones. The readers of all sections share `outcome`, which must
// outlive them.
class Reader : public Fields {
 public:
  Reader(Place place, Outcome* outcome) : place_(std::move(place)), outcome_(*outcome) {}

  void Text(const Key& key, std::string* value, Use use) override;
  void OneOf(const Key& key, std::string* value, std::span<const std::string_view> choices,
             Use use) override;
  void Number(const Key& key, std::optional<double>* value, const Range& range, Use use) override;
  void Integer(const Key& key, uint64_t* value, uint64_t min, uint64_t max, Use use) override;
  void Flag(const Key& key, bool* value, Use use) override;
  void Bytes(const Key& key, uint64_t* value, uint64_t min, uint64_t max) override;
  void Integers(const Key& key, std::vector<uint32_t>* values, uint32_t min, uint32_t max,
                Use use) override;
  void Texts(const Key& key, std::vector<std::string>* values, Use use) override;
  void Columns(const Key& key, std::vector<std::string>* values, Use use) override;
  void Hidden(const Key& key, Secret* value, Use use) override;
  void Verbatim(const Key& key, std::vector<Property>* properties, Use use) override;
  void OwnNames(const Key& key, Words* words, Use use, std::string_view what) override;
  void Section(const Key& key, const std::function<void(Fields&)>& describe) override;

  // Refuses keys that were written but not asked for.
  void Finish();

 protected:
  void List(const Key& key, const std::function<void(size_t)>& resize, size_t size,
            const std::function<void(size_t, Fields&)>& describe, bool compact) override;

 private:
  bool going() const { return outcome_.wrong.has_value(); }
  // Returns the place of a key that was written with a value to be read; nullopt otherwise.
  std::optional<Place> Written(std::string_view key, Use use);
  // Returns the scalar at a place that was written; for anything else returns null and notes a
  // failure.
  const Tree* Scalar(const std::optional<Place>& place, std::string_view what);
  void Fail(const Place& place, std::string_view message);
  // Keeps the default of an unused key and ignores its value, so that nothing depends on it.
  template <class T>
  static void Assign(T* value, T read, Use use) {
    if (IsUsed(use)) *value = std::move(read);
  }
  std::optional<Secret> ReadHidden(const Place& place);
  void ReadTexts(const Key& key, std::vector<std::string>* values, Use use, bool empty_items);
  uint64_t ReadInteger(const Place& place, std::string_view text, bool quoted, uint64_t min,
                       uint64_t max);

  Place place_;
  Outcome& outcome_;
  std::vector<std::string_view> asked_;
};

}  // namespace tacit::config
