#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "event/raw_records.h"
#include "stream/log/input_file.h"

namespace tacit::stream {

// Cuts a file into records, one per line. A last line without its newline is a record. A line
// longer than `max_record_bytes` is a record with a fault and is never held in memory. A damaged
// file ends with one record with a fault, which also stands for the line that the damage cut short.
// A byte order mark of UTF-8 at a file's beginning is no part of its first line. Not thread-safe.
class LineReader {
 public:
  LineReader(std::unique_ptr<InputFile> file, size_t max_record_bytes);

  // Appends lines until `records` has `lines_max` of them, its bytes reach `bytes_max` or the file
  // ends.
  Status Read(size_t lines_max, size_t bytes_max, event::RawRecords* records);
  // Skips up to `lines` records and returns how many it skipped.
  Result<uint64_t> Skip(uint64_t lines);
  // Returns true if no record is left.
  Result<bool> AtEnd();

  const InputFile& file() const { return *file_; }

 private:
  // Fills the empty buffer; it stays empty at the end of the file.
  Status Refill();
  // Returns true if the file is damaged and the damage is not yet reported.
  bool FaultPending() const { return !file_->fault().empty() && !fault_told_; }
  // Appends the next line in pieces. REQUIRES !AtEnd().
  Status ReadLine(event::RawRecords* records);
  void EndDamaged(size_t line_begin, event::RawRecords* records);

  const std::unique_ptr<InputFile> file_;
  const size_t max_record_bytes_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // unread part of the buffer
  bool begun_ = false;          // something was read
  bool fault_told_ = false;
};

}  // namespace tacit::stream
