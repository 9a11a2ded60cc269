#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/files/unique_fd.h"
#include "base/result.h"
#include "store/witness/witness_record.h"

namespace tacit::store {

// The result of reading a witness.
struct WitnessSight {
  WitnessRecord record;  // the newest readable record
  // The other slot is unreadable; it held the previous record or a later one. Either a write of the
  // later one was cut short, or the file was damaged.
  bool in_doubt = false;
  bool whole = false;  // fully readable
};

// A file outside the store that remembers the store's newest commit, so that an older copy cannot
// pass for the newest. Its records go into two slots in turn, each as two copies: a write that is
// cut short leaves the other slot, and damage in one place leaves the other copy. witness_record.cc
// has the byte grammar. Not thread-safe; other processes may read it at any time.
class WitnessFile {
 public:
  // Returns nothing if there is no file. kCorruption: neither slot is readable. kRefused: it was
  // written before 0.1.0.
  static Result<std::optional<WitnessSight>> Read(const std::string& path);

  // Takes the file over and updates it to `now`, or creates it and its folder. REQUIRES that the
  // file's earlier contents were checked. A crash leaves either the old file or the new one.
  static Result<std::unique_ptr<WitnessFile>> OpenAt(const std::string& path,
                                                     const WitnessRecord& now);
  WitnessFile(const WitnessFile&) = delete;
  WitnessFile& operator=(const WitnessFile&) = delete;

  // Writes a record and returns once it is on disk. If the file was removed, or replaced by one
  // that holds the record written last, it is written anew and a warning is logged. kRefused: it
  // was replaced by another file, which is left unchanged.
  Status Write(const WitnessRecord& record);

  // The number of times that a removed or replaced file was written anew.
  uint64_t times_lost() const { return times_lost_; }

 private:
  explicit WitnessFile(std::string path) : path_(std::move(path)) {}
  enum class Replace { kNo, kYes };
  Status Renew(const WitnessRecord& record, Replace replace);
  Result<bool> IsInPlace() const;
  Status CheckReplacement() const;

  const std::string path_;
  UniqueFd fd_;
  WitnessRecord last_;
  uint64_t writes_ = 0;    // number of the last write
  uint32_t distance_ = 0;  // between the two slots
  uint64_t times_lost_ = 0;
};

// A store's knowledge of its own commits.
struct StoreChain {
  std::string lineage;
  CommitSeq seq;  // the last one
  Terms terms;
  std::map<CommitSeq, Digest> heads;  // the last commit's, and some earlier ones
  std::vector<Ancestor> ancestors = {};

  // Decides whether a commit at or before the last one is this store's own, and not a fork's.
  bool Has(const RememberedCommit& commit) const;
  // The witness was left by the lost store that this one was restored for, and this one's ledger
  // has the charges of all that it has seen.
  bool Continues(const WitnessRecord& witness) const;
};

// A witness's path and its name in messages.
struct WitnessPlace {
  std::string path;
  std::string_view kind = "witness";  // or "mark"
};

// Checks that a store may be opened beside this witness: it has the witness's lineage, is not
// older, and has the witnessed commit among its own. A store ahead of the witness may have crashed
// between sync and witness, or have been run without it. kRefused names the difference.
Status CheckWitness(const WitnessRecord& witness, const StoreChain& store,
                    const WitnessPlace& place, const std::string& store_path);

// Checks whether the unreadable part of a witness may have held a commit that the store lacks. A
// write that was cut short never looks like that: the store is synced before its witness is
// written.
Status CheckDamage(const WitnessSight& sight, CommitSeq store, const WitnessPlace& place,
                   const std::string& store_path);

}  // namespace tacit::store
