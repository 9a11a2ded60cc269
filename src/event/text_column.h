#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacit::event {

// Strings of a batch or of a run of records, end to end. Empty if the source has no such column.
class TextColumn {
 public:
  void Append(std::string_view text) {
    bytes_.append(text);
    end_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
  size_t size() const { return end_.size(); }
  bool empty() const { return end_.empty(); }
  std::string_view operator[](size_t i) const {
    const uint32_t begin = i == 0 ? 0 : end_[i - 1];
    return std::string_view(bytes_).substr(begin, end_[i] - begin);
  }
  void Clear() { Truncate(0); }
  // Keeps the first `size` strings.
  void Truncate(size_t size) {
    end_.resize(size);
    bytes_.resize(size == 0 ? 0 : end_.back());
  }

 private:
  std::string bytes_;
  std::vector<uint32_t> end_;
};

}  // namespace tacit::event
