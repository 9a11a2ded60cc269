#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace tacit::privacy {

struct LedgerEntry;

// The names that learners have now. Entries keep the names of their time: a learner that got
// another name says so in an entry (LedgerEntry::before), and its account goes on. A value.
class LearnerNames {
 public:
  LearnerNames() = default;
  explicit LearnerNames(std::span<const LedgerEntry> entries);

  // Takes note that a learner has another name from now on.
  void Rename(const std::string& before, const std::string& now);
  // The name now of the learner that had this one; itself if it was never another. Valid as long as
  // both this object and `name`.
  std::string_view Now(std::string_view name) const;
  // True if a learner had this name and has another now: the name is not given again.
  bool IsGivenUp(std::string_view name) const { return now_.contains(name); }

 private:
  std::map<std::string, std::string, std::less<>> now_;
};

}  // namespace tacit::privacy
