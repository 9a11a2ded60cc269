#include "feed/model_mark.h"

#include <cstring>

#include "base/bytes.h"

namespace tacit::feed {

uint64_t ModelMark::OfRow(uint16_t learner, uint64_t row, std::span<const float> floats) {
  constexpr size_t kHead = 1 + sizeof(learner) + sizeof(row);
  // Without a writer of its own: each changed row costs this.
  text_.resize(kHead + floats.size_bytes());
  text_[0] = 'r';
  std::memcpy(text_.data() + 1, &learner, sizeof(learner));
  std::memcpy(text_.data() + 1 + sizeof(learner), &row, sizeof(row));
  std::memcpy(text_.data() + kHead, floats.data(), floats.size_bytes());
  return hash_(text_).low;
}

Hash128 ModelMark::Of(const Digest& head,
                      const std::vector<std::shared_ptr<const std::string>>& released) const {
  ByteWriter text;
  text.Put('v').PutArray(std::span<const uint8_t>(head)).Put(sum_);
  for (const auto& state : released) text.PutString(state ? *state : "");
  return hash_(text.bytes());
}

}  // namespace tacit::feed
