#include "stream/steps/user_units.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "base/hash.h"

namespace tacit::stream {

void UserGroups::Group(const SipHash& hash, const event::TextColumn& users) {
  constexpr uint32_t kNobody = ~uint32_t{0};
  const size_t n = users.size();
  users_.clear();
  block_hashes_.clear();
  end_.clear();
  slots_.assign(std::bit_ceil(2 * n + 1), 0);
  user_of_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    user_of_[i] = users[i].empty() ? kNobody : PlaceOf(hash(users[i]), users[i]);
    if (user_of_[i] != kNobody) ++end_[user_of_[i]];
  }
  uint32_t begin = 0;  // a counting sort
  for (uint32_t& count : end_) begin += std::exchange(count, begin);
  examples_.resize(begin);
  for (size_t i = 0; i < n; ++i)
    if (user_of_[i] != kNobody) examples_[end_[user_of_[i]]++] = static_cast<uint32_t>(i);
}

std::vector<uint32_t> UserGroups::ByBlock() const {
  std::vector<uint32_t> order(users_.size());
  std::iota(order.begin(), order.end(), 0u);
  // Users of one hash, if there are any, stay in the order in which they appear.
  std::ranges::stable_sort(order, {}, [this](uint32_t i) { return block_hashes_[i]; });
  return order;
}

uint32_t UserGroups::PlaceOf(const Hash128& user, std::string_view id) {
  const size_t mask = slots_.size() - 1;
  for (size_t slot = user.low & mask;; slot = (slot + 1) & mask) {
    if (slots_[slot] == 0) {
      users_.push_back(user);
      block_hashes_.push_back(BucketHash(id, 0));
      end_.push_back(0);
      slots_[slot] = static_cast<uint32_t>(users_.size());
    }
    if (users_[slots_[slot] - 1] == user) return slots_[slot] - 1;
  }
}

}  // namespace tacit::stream
