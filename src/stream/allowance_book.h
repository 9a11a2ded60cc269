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

// Where it is kept what users have used.
class AllowanceView {
 public:
  virtual ~AllowanceView() = default;
  // Fills in what each of these users, named by `user`, has used as of the learner's last commit or
  // of one before it, and returns the Position::step of that commit. Never goes back.
  virtual Result<uint64_t> Read(std::span<UserUses> users) = 0;
};

// What a learner's users have used, steps that are cut and not committed yet included. Holds those
// alone; the rest is asked of the view. Exact. One for all passes over a source: the steps of the
// last pass may not be committed when the next one begins. Not thread-safe.
class AllowanceBook {
 public:
  // `view` must outlive the book.
  explicit AllowanceBook(AllowanceView& view) : view_(view) {}

  // Fills in what each user has used.
  Status Read(std::span<UserUses> users);
  // These are cut into this step, which comes after all before it.
  void Count(uint64_t step, std::span<const UserUses> uses);

 private:
  struct Pending {
    UserUses uses;
    uint64_t step = 0;  // that they are as of
  };
  void Forget(uint64_t committed);

  AllowanceView& view_;
  std::unordered_map<Hash128, Pending> pending_;
  std::deque<std::pair<uint64_t, std::vector<Hash128>>> steps_;  // who is in pending_, by step
};

}  // namespace tacit::stream
