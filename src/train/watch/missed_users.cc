#include "train/watch/missed_users.h"

#include <algorithm>
#include <iterator>

#include "base/hash.h"

namespace tacit::train {
namespace {

constexpr size_t kUsersMost = 32'768;
constexpr uint64_t kSeed = 0x7461636974;
constexpr double kExpected = 3;      // records from which on a user's absence means something
constexpr uint32_t kAsked = 100;     // such users, at least
constexpr uint64_t kEnough = 2;      // records for each followed user, from which shares are known
constexpr uint32_t kLooksMost = 60;  // after which a window ends with what it has
constexpr double kShareOfWindow = 0.2;  // of a window in what is usual, at least
constexpr double kRare = 0.01;          // users of fewer records a window are no longer followed

}  // namespace

void MissedUsers::See(std::string_view user) {
  ++records_;
  const uint64_t hash = BucketHash(user, kSeed);
  if ((hash & skip_mask_) != 0) return;
  ++users_[hash].came;
  ++followed_;
  if (users_.size() > kUsersMost) ThinOut();
}

void MissedUsers::ThinOut() {
  skip_mask_ = 2 * skip_mask_ + 1;
  std::erase_if(users_, [this](const auto& user) { return (user.first & skip_mask_) != 0; });
}

std::optional<double> MissedUsers::EndWindow(bool keep) {
  uint32_t asked = 0, absent = 0;
  for (const auto& [hash, user] : users_) {
    if (user.usual * static_cast<double>(records_) < kExpected) continue;
    ++asked;
    absent += user.came == 0 ? 1 : 0;
  }
  // The first window only learns.
  const bool seen_enough = learnt_ ? asked >= kAsked : followed_ >= kEnough * users_.size();
  if (!seen_enough && ++looks_ < kLooksMost) return std::nullopt;
  Learn(keep || !learnt_);
  if (asked < kAsked) return std::nullopt;
  return static_cast<double>(absent) / asked;
}

// The first windows weigh by their records: users in a small one by chance would be
// expected back for long.
void MissedUsers::Learn(bool keep) {
  if (keep) learnt_from_ += records_;
  const double weight = learnt_from_ == 0
                            ? 1
                            : std::max(kShareOfWindow, static_cast<double>(records_) /
                                                           static_cast<double>(learnt_from_));
  for (auto user = users_.begin(); user != users_.end();) {
    User& seen = user->second;
    const double share = seen.came / static_cast<double>(records_ == 0 ? 1 : records_);
    if (keep) seen.usual += weight * (share - seen.usual);
    seen.came = 0;
    const bool rare = seen.usual * static_cast<double>(records_) < kRare;
    user = rare ? users_.erase(user) : std::next(user);
  }
  learnt_ = true;
  records_ = followed_ = 0;
  looks_ = 0;
}

}  // namespace tacit::train
