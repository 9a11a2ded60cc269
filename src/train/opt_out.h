#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/siphash.h"

namespace tacit::train {

// Users who are never learnt from, read from a file of ids, one a line. Holds their keyed hashes
// alone, 16 bytes each. Immutable; thread-safe.
class OptOut {
 public:
  // Empty lines and those that begin with '#' name nobody. kNotFound, kIo: the file.
  static Result<OptOut> Read(const std::string& path, const SipHash::Key& key);
  // The most users that a file can name, for planning memory; 0 if it cannot be read.
  static uint64_t LinesOf(const std::string& path);

  bool Has(std::string_view user) const;
  size_t size() const { return users_.size(); }

 private:
  explicit OptOut(const SipHash::Key& key) : hash_(key) {}

  SipHash hash_;
  std::vector<Hash128> users_;  // ascending
};

}  // namespace tacit::train
