#include "privacy/allowance_forecast.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace tacit::privacy {
namespace {

constexpr std::array<double, 4> kShares = {0.1, 0.25, 0.5, 0.9};
constexpr double kCenturyMs = 100 * 365.25 * 86400e3;

// The steps that a user's next participation counts for.
uint64_t NextTakes(const Bounds& bounds) { return std::max<uint64_t>(1, bounds.period_steps); }

// A user can be learnt from while no more steps than these are used.
int64_t LastUsed(const Bounds& bounds) {
  return static_cast<int64_t>(bounds.allowance) - static_cast<int64_t>(NextTakes(bounds));
}

}  // namespace

AllowancesLeft CountLeft(const UsersByUses& by_used, const Bounds& bounds) {
  AllowancesLeft left;
  for (const auto& [used, users] : by_used) {
    left.users += users;
    if (int64_t{used} > LastUsed(bounds)) {
      left.none += users;
      continue;
    }
    const uint64_t rest = bounds.allowance - used;
    const uint64_t quarter = (4 * rest + bounds.allowance - 1) / bounds.allowance;
    left.quarters[std::clamp<uint64_t>(quarter, 1, 4) - 1] += users;
  }
  return left;
}

std::vector<UsersGone> ForetellGone(const UsersByUses& by_used, const Bounds& bounds,
                                    int64_t begin_ms, int64_t end_ms) {
  std::vector<UsersGone> gone;
  if (end_ms <= begin_ms) return gone;
  const AllowancesLeft now = CountLeft(by_used, bounds);
  const double all = static_cast<double>(now.users);
  auto next = std::ranges::upper_bound(kShares, now.share_without());
  uint64_t without = now.none;
  // The users who have used most are the first to have none left.
  for (auto user = by_used.rbegin(); user != by_used.rend() && next != kShares.end(); ++user) {
    const auto [used, users] = *user;
    if (int64_t{used} > LastUsed(bounds)) continue;  // counted
    if (used == 0) break;
    without += users;
    const double steps = static_cast<double>(LastUsed(bounds)) + 1 - used;
    const double ahead = static_cast<double>(end_ms - begin_ms) * steps / used;
    if (ahead > kCenturyMs) break;
    for (; next != kShares.end() && static_cast<double>(without) >= *next * all; ++next)
      gone.push_back({*next, end_ms + static_cast<int64_t>(ahead)});
  }
  return gone;
}

}  // namespace tacit::privacy
