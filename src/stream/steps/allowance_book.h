#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/user_uses.h"

namespace tacit::stream {

// The stored allowances that users have used.
class AllowanceView {
 public:
  virtual ~AllowanceView() = default;
  // Fills in the uses of these users, named by `user`, as of the learner's last commit or an
  // earlier one, and returns the Position::step of that commit. Never goes back to an earlier
  // commit.
  virtual Result<uint64_t> Read(std::span<UserUses> users) = 0;
};

// The allowances that a learner's users have used, including steps that are cut and not committed
// yet. Keeps only uncommitted counts; reads committed ones from the view. Exact. All passes over a
// source share one book: the steps of the last pass may be uncommitted when the next one begins.
// Not thread-safe.
class AllowanceBook {
 public:
  // `view` must outlive the book.
  explicit AllowanceBook(AllowanceView& view) : view_(view) {}

  // Fills in the uses of each user.
  Status Read(std::span<UserUses> users);
  // Notes these uses, counted in this step, which comes after all earlier ones.
  void Count(uint64_t step, std::span<const UserUses> uses);

 private:
  struct Pending {
    UserUses uses;
    uint64_t step = 0;  // the uses are as of this step
  };
  void Forget(uint64_t committed);

  AllowanceView& view_;
  std::unordered_map<Hash128, Pending> pending_;
  std::deque<std::pair<uint64_t, std::vector<Hash128>>> steps_;  // the users in pending_, by step
};

}  // namespace tacit::stream
