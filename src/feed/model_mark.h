#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/siphash.h"

namespace tacit::feed {

// Marks what a version's model is, under a key that its publisher shares with workers. A writer of
// the topic who lacks the key can neither change a row nor bring an older one back, also where
// compaction has mixed the rows of several versions: the mark is of all rows that were ever
// written, as they are at the version's head.
//
// It is a sum of pseudo-random numbers, one a row, so that a changed row is taken out and put in
// again. The sum itself is never shown. A guess holds with probability 2^-64. Not thread-safe.
class ModelMark {
 public:
  explicit ModelMark(const SipHash::Key& key) : hash_(key) {}

  // A row's number. 0 stands for no row.
  uint64_t OfRow(uint16_t learner, uint64_t row, std::span<const float> floats);
  void Replace(uint64_t before, uint64_t now) { sum_ += now - before; }
  // The mark of the version of this head, with these released states: by learner, null where there
  // is none.
  Hash128 Of(const Digest& head,
             const std::vector<std::shared_ptr<const std::string>>& released) const;

 private:
  const SipHash hash_;
  uint64_t sum_ = 0;
  std::string text_;  // of a row
};

}  // namespace tacit::feed
