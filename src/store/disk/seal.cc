#include "store/disk/seal.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>
#include <memory>

#include "base/check.h"

namespace tacit::store {
namespace {

constexpr size_t kSealBytes = sizeof(uint64_t);

struct StateDeleter {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

}  // namespace

std::string Seal(std::string_view payload) {
  const uint64_t checksum = XXH3_64bits(payload.data(), payload.size());
  std::string sealed(kSealBytes, '\0');
  sealed.reserve(kSealBytes + payload.size());
  std::memcpy(sealed.data(), &checksum, kSealBytes);
  return sealed.append(payload);
}

uint64_t SealOf(std::span<const std::string_view> pieces) {
  const std::unique_ptr<XXH3_state_t, StateDeleter> state(XXH3_createState());
  TACIT_CHECK(state != nullptr, "out of memory");
  XXH3_64bits_reset(state.get());
  for (std::string_view piece : pieces) XXH3_64bits_update(state.get(), piece.data(), piece.size());
  return XXH3_64bits_digest(state.get());
}

Result<std::string_view> Unseal(std::string_view sealed, std::string_view what) {
  uint64_t checksum = 0;
  if (sealed.size() < kSealBytes)
    return Fail(ErrorCode::kCorruption, fmt::format("{} is cut short", what));
  std::memcpy(&checksum, sealed.data(), kSealBytes);
  const std::string_view payload = sealed.substr(kSealBytes);
  if (XXH3_64bits(payload.data(), payload.size()) != checksum)
    return Fail(ErrorCode::kCorruption, fmt::format("{} does not match its checksum", what));
  return payload;
}

}  // namespace tacit::store
