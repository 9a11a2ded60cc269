#pragma once

#include <rocksdb/io_status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacit::store {

// A place in a file that RocksDB wrote as a log: its write-ahead logs and its list of tables.
struct LogDamage {
  std::string file;
  uint64_t offset = 0;  // of the record's header
  std::string what;
  // The file ends within a record, or sectors of its last batch were never written. A crash or a
  // loss of power leaves that behind, and then nothing that was synced is lost.
  bool torn = false;
};
// "FILE is damaged at offset N: what".
std::string Describe(const LogDamage& damage);

// Reads every record of a log and checks its CRC-32C, by the published format ("Write Ahead Log
// File Format" of RocksDB's wiki): blocks of 32 KiB, and records of checksum:u32 length:u16 type:u8
// payload. Returns the first damaged record; nothing if there is none. `followed`: a later log has
// batches, so that all of this one were on disk.
Result<std::optional<LogDamage>> FindLogDamage(const std::string& file, bool followed = false);

// Corruption where RocksDB would pass over damage without a word, and with it over records that
// were synced. It leaves out the rest of a block where a header has neither length nor type, and
// the rest of the file where a header's type is of a log that is used again, or its length goes
// beyond the file's end. Reads headers alone where all are well. `file` names the open file, which
// ends at `bytes`.
rocksdb::IOStatus CheckNothingIsPassedOver(const std::string& file, int fd, uint64_t bytes);

// Tells a file that RocksDB writes as a log by its name.
bool IsLog(std::string_view file);

// Checks the file CURRENT, one line with the name of the list of tables.
std::optional<LogDamage> CheckCurrent(const std::string& store);

// Tells whether a folder has tables, blobs or write-ahead logs, with any CURRENT. RocksDB
// makes the first of them after CURRENT: where there is none, a store was killed while it was made.
bool HoldsRecords(const std::string& store);

// Looks into all logs and the list of tables of a store, and into the file that names the latter;
// where it names none, into all lists.
// Returns what is damaged or torn, a place a file.
Result<std::vector<LogDamage>> CheckLogs(const std::string& store);

// The torn logs of a store, each of which is good up to its offset. Returns nothing if the store is
// damaged besides.
std::vector<LogDamage> TornLogs(const std::string& store);
// Cuts them there. Returns false if there are none, or one cannot be cut. REQUIRES that no process
// has the store open.
bool CutTornLogs(const std::string& store);

// The reason why RocksDB could not open this store, with the place and what to do, if a log is the
// cause; else its own words.
std::string ExplainCorruption(const std::string& store, const std::string& own_words);

}  // namespace tacit::store
