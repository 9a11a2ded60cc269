#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/result.h"
#include "store/types/delta.h"

namespace tacit::store {

// A learner as the store knows it. `key` identifies it in every key permanently; its place in the
// configuration may change.
struct LearnerRecord {
  uint16_t key = 0;
  std::string name;
  Digest model_fingerprint{};
  RowLayout layout;
};

std::string EncodeLearner(const LearnerRecord& record);
Result<LearnerRecord> DecodeLearner(uint16_t key, std::string_view bytes);

}  // namespace tacit::store
