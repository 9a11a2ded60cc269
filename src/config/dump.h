#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/fields.h"

namespace tacit::config {

// Writes the section described to it as YAML, without keys of other kinds. A value whose key
// IsSecret is written as "(redacted)".
class Dumper : public Fields {
 public:
  // Appends to `yaml`. `indent` spaces precede each key; a compact section is one line.
  Dumper(std::string* yaml, size_t indent, bool compact)
      : yaml_(*yaml), indent_(indent), compact_(compact) {}

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
  void Files(const Key& key, std::vector<std::string>* values, Use use) override;
  void Hidden(const Key& key, Secret* value, Use use) override;
  void Verbatim(const Key& key, std::vector<Property>* properties, Use use) override;
  void OwnNames(const Key& key, Words* words, Use use, std::string_view what) override;
  void Section(const Key& key, const std::function<void(Fields&)>& describe) override;

 protected:
  void List(const Key& key, const std::function<void(size_t)>& resize, size_t size,
            const std::function<void(size_t, Fields&)>& describe, bool compact) override;

 private:
  void Write(std::string_view key, std::string_view value, Use use);

  std::string& yaml_;
  size_t indent_;
  bool compact_;
  bool first_ = true;
};

}  // namespace tacit::config
