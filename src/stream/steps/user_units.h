#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/siphash.h"
#include "base/user_uses.h"
#include "event/batch.h"
#include "stream/steps/participation.h"

// Code shared by the participations of unit user. Private to the room.
namespace tacit::stream {

// A grouping of examples by user. Keeps its memory.
class UserGroups {
 public:
  // Groups examples by user; leaves out examples without a user.
  void Group(const SipHash& hash, const event::TextColumn& users);

  size_t size() const { return users_.size(); }
  // The users in the order in which they first appear.
  std::span<const Hash128> users() const { return users_; }
  // A user's place among sum blocks (BlocksByUser): the same in every store.
  uint64_t block_hash(size_t user) const { return block_hashes_[user]; }
  // The users, in the order of these hashes.
  std::vector<uint32_t> ByBlock() const;
  // A user's examples, in order.
  std::span<const uint32_t> Examples(size_t user) const {
    const uint32_t begin = user == 0 ? 0 : end_[user - 1];
    return {examples_.data() + begin, end_[user] - begin};
  }

 private:
  uint32_t PlaceOf(const Hash128& user, std::string_view id);

  std::vector<Hash128> users_;
  std::vector<uint64_t> block_hashes_;
  std::vector<uint32_t> slots_;  // open addressing: user + 1, or 0
  std::vector<uint32_t> user_of_, examples_, end_;
};

// A batch of units: unit u is examples [unit_end[u - 1], unit_end[u]).
struct UnitBatch {
  event::Batch examples;
  std::vector<uint32_t> unit_end;
  std::vector<UserUses> uses;          // as counted, of the users let in
  std::vector<uint64_t> block_hashes;  // of these users
  UsersCame came;

  size_t units() const { return unit_end.size(); }
};

// Takes the units of the users that `admit` lets in, their examples side by side, and users of a
// sum block side by side, too. `admit` decides by the user's own uses alone, and counts the user if
// it lets it in.
template <class Admit>
Status TakeUsers(const UserOptions& options, const event::Batch& examples, UserGroups* groups,
                 AllowanceBook* book, const Admit& admit, UnitBatch* out) {
  groups->Group(SipHash(options.key), examples.user);
  std::vector<UserUses> uses(groups->size());
  for (size_t i = 0; i < uses.size(); ++i) uses[i].user = groups->users()[i];
  TACIT_RETURN_IF_ERROR(book->Read(uses));
  out->examples = EmptyLike(examples);
  UsersCame& came = out->came;
  for (const uint32_t i : groups->ByBlock()) {
    auto own = groups->Examples(i);
    ++came.users;
    came.records += own.size();
    if (!admit(&uses[i])) {
      ++came.users_left_out;
      came.records_left_out += own.size();
      continue;
    }
    if (options.records_max > 0 && own.size() > options.records_max)
      own = own.first(options.records_max);
    for (uint32_t example : own) out->examples.AppendRange(examples, example, example + 1);
    out->unit_end.push_back(static_cast<uint32_t>(out->examples.size()));
    out->uses.push_back(uses[i]);
    out->block_hashes.push_back(groups->block_hash(i));
  }
  return {};
}

// Makes the `once` participation of unit user.
std::unique_ptr<Participation> MakeUserOnce(OnceOptions options);

}  // namespace tacit::stream
