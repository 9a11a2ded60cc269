#include "serve/versions/canary.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "base/siphash.h"

namespace tacit::serve {

bool IsOfCanary(const Canary& canary, std::string_view lineage, std::string_view key) {
  // The key of the hash is known to all servers of the lineage: nothing secret hangs on the side.
  const Hash128 drawn = SipHash()(fmt::format("canary {} {}", canary.version, lineage));
  SipHash::Key hash_key;
  std::memcpy(hash_key.data(), &drawn.low, 8);
  std::memcpy(hash_key.data() + 8, &drawn.high, 8);
  // The upper 53 bits are a number below 1 that a double holds exactly.
  const double place = std::ldexp(static_cast<double>(SipHash(hash_key)(key).low >> 11), -53);
  return place < canary.share;
}

}  // namespace tacit::serve
