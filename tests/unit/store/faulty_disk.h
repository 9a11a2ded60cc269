#pragma once

#include <cstdint>
#include <string>

// A disk that fails, or loses its power, at a chosen write: the C library's writing and syncing
// calls, defined once more in the program that links faulty_disk.cc. RocksDB and the store write
// through them without knowing.
namespace tacit::test {

struct DiskFault {
  enum class Kind { kFull, kBroken, kPowerLoss };

  Kind kind = Kind::kPowerLoss;
  std::string folder;  // writes to files below count
  uint64_t write = 0;  // the number of the write, from 1
  // A power loss takes the bytes that were not synced: all of them, or those from a random
  // one on (`torn`).
  bool torn = false;
  uint64_t seed = 0;
};

// kFull: this write and all later ones fail with ENOSPC. kBroken: this one fails with EIO.
// kPowerLoss: what is not synced is lost, and the process dies.
void BreakDisk(const DiskFault& fault);
// Counts the writes so far.
uint64_t DiskWrites();

}  // namespace tacit::test
