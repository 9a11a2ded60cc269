#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "base/siphash.h"

namespace tacit::train {

// Users who are never learnt from, read from a file of ids, one a line. Holds their keyed hashes
// alone, 16 bytes each. Immutable; thread-safe.
class OptOut {
 public:
  // Lines that begin or end with a blank, hold a blank before a '#' or a control character, or are
  // no UTF-8. An id may be so, so that such a line names two: itself as it stands, and what is left
  // of it without the comment and the blanks at its ends.
  struct OddLines {
    uint64_t count = 0;
    uint64_t first = 0;  // its number, from 1 on
  };

  // Empty lines and those that begin with '#' name nobody, and a byte order mark is no part of the
  // first. kNotFound, kIo: the file. kInvalidArgument: it is no regular file, or a line, which the
  // message names, has a zero byte, as all have in UTF-16.
  static Result<OptOut> Read(const std::string& path, const SipHash::Key& key);
  // The most bytes that Read takes for users, whom it sorts, for plans of memory; 0 if the file
  // cannot be read.
  static uint64_t BytesOf(const std::string& path);

  bool Has(std::string_view user) const;
  // Ids, of which an odd line has two.
  size_t size() const { return users_.size(); }
  const OddLines& odd_lines() const { return odd_; }
  // SHA-256 of the file's bytes.
  const Digest& digest() const { return digest_; }

 private:
  explicit OptOut(const SipHash::Key& key) : hash_(key) {}

  SipHash hash_;
  std::vector<Hash128> users_;  // ascending
  OddLines odd_;
  Digest digest_{};
};

}  // namespace tacit::train
