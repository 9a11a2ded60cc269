#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "http/caller.h"

namespace tacit::http {

// The requests a second that one caller of each role may make; 0: no bound.
using CallerRates = std::array<uint32_t, kCallerRoles>;

// Compares two digests in a time that does not depend on them.
bool SameDigest(const Digest& a, const Digest& b);

// The place of `wanted` in `digests`, or their number. Every digest is compared, wherever the
// wanted one stands. `same` answers 0 or 1.
template <class Same>
size_t PlaceOf(std::span<const Digest> digests, const Digest& wanted, Same same) {
  size_t place = digests.size();
  for (size_t i = 0; i < digests.size(); ++i) {
    const size_t mask = size_t{0} - static_cast<size_t>(same(digests[i], wanted));
    place = (place & ~mask) | (i & mask);
  }
  return place;
}

// The callers of one reading of the file. Immutable.
class CallerTable {
 public:
  static constexpr size_t kCallersMost = 10'000;

  // Reads the text of a file: a line has ROLE NAME sha256:HEX, and user=ID behind it for the role
  // user, percent-encoded. Empty lines and those that begin with # are passed over. A caller that
  // `before` has too, with the same digest, role and rate, keeps its pace. kInvalidArgument names
  // `file` and line, and repeats nothing that may be a token.
  static Result<CallerTable> Parse(std::string_view text, const std::string& file,
                                   const CallerRates& rates, const CallerTable* before = nullptr);

  // The same callers, those of a role whose rate is another one with a pace of their own.
  CallerTable WithRates(const CallerRates& rates) const;

  // The caller of a token with this digest, or null. Takes as long for either.
  const Caller* Find(const Digest& digest) const;
  size_t size() const { return callers_.size(); }

 private:
  std::vector<Digest> digests_;
  std::vector<Caller> callers_;  // in the same order
};

}  // namespace tacit::http
