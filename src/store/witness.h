#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"

namespace tacit::store {

// What a witness has seen: the newest commit of a lineage.
struct WitnessRecord {
  std::string lineage;
  CommitSeq seq;
  Digest head{};
};

// The file outside the store that remembers how far the store has come, so that an older copy of it
// cannot pass for the newest. Two checksummed slots are written in turn: a write cut short leaves
// the other. The format is in README.md. Not thread-safe; readers elsewhere may read at any time.
class WitnessFile {
 public:
  // The newest readable slot; nothing when there is no file. kCorruption: neither slot is readable.
  static Result<std::optional<WitnessRecord>> Read(const std::string& path);

  // Opens the file, or creates it with this record in it.
  static Result<std::unique_ptr<WitnessFile>> OpenOrCreate(const std::string& path,
                                                           const WitnessRecord& first);
  ~WitnessFile();
  WitnessFile(const WitnessFile&) = delete;
  WitnessFile& operator=(const WitnessFile&) = delete;

  // Returns once the record is on the disk.
  Status Write(const WitnessRecord& record);

 private:
  WitnessFile(std::string path, int fd, int slot) : path_(std::move(path)), fd_(fd), slot_(slot) {}

  const std::string path_;
  const int fd_;
  int slot_;  // the one to write next: not the newest
};

// Whether a store that stands at `store` may be opened beside this witness: not behind it, of its
// lineage, with its head. A store ahead of it crashed between sync and witness, and may.
Status CheckWitness(const WitnessRecord& witness, const WitnessRecord& store,
                    const std::string& witness_path, const std::string& store_path);

}  // namespace tacit::store
