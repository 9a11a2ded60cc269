#include "stream/steps/allowance_book.h"

namespace tacit::stream {

Status AllowanceBook::Read(std::span<UserUses> users) {
  TACIT_ASSIGN(const uint64_t committed, view_.Read(users));
  Forget(committed);
  for (UserUses& uses : users)
    if (const auto found = pending_.find(uses.user); found != pending_.end())
      uses = found->second.uses;
  return {};
}

// Drops the uses of committed steps: the view has them now.
void AllowanceBook::Forget(uint64_t committed) {
  for (; !steps_.empty() && steps_.front().first <= committed; steps_.pop_front())
    for (const Hash128& user : steps_.front().second)
      if (const auto found = pending_.find(user);
          found != pending_.end() && found->second.step <= committed)
        pending_.erase(found);
}

void AllowanceBook::Count(uint64_t step, std::span<const UserUses> uses) {
  auto& users = steps_.emplace_back(step, std::vector<Hash128>()).second;
  users.reserve(uses.size());
  for (const UserUses& one : uses) {
    users.push_back(one.user);
    pending_[one.user] = {one, step};
  }
}

}  // namespace tacit::stream
