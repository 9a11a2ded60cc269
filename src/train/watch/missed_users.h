#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace tacit::train {

// Tells which share of the users who come often has stayed away. It follows a sample of users,
// drawn by a hash of their names, and learns how many of a window's records are each one's. Holds
// no names; at most 32,768 users (some 2 MB).
class MissedUsers {
 public:
  void See(std::string_view user);
  // Ends a window: the share of users that did not come among those of whom it should have seen
  // several records; nothing while there are too few such users, and the window goes on. What is
  // usual is learnt from the window if `keep`: those who stay away would soon be expected to.
  std::optional<double> EndWindow(bool keep = true);

 private:
  struct User {
    double usual = 0;   // share of all records
    uint32_t came = 0;  // records of this window
  };

  void ThinOut();
  void Learn(bool keep);

  std::unordered_map<uint64_t, User> users_;
  uint64_t skip_mask_ = 0;    // a user is followed if none of these bits of the hash is set
  uint64_t records_ = 0;      // of this window
  uint64_t learnt_from_ = 0;  // records of all windows that the usual was learnt from
  uint64_t followed_ = 0;     // of these, from users who are followed
  uint32_t looks_ = 0;        // at this window
  bool learnt_ = false;       // whether anything is usual yet
};

}  // namespace tacit::train
