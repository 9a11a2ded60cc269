#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "event/raw_records.h"
#include "stream/log/input_file.h"

namespace tacit::stream {

// Cuts a file into records, one per line. A last line without its newline is a record. A line
// longer than `max_record_bytes` is a record with a fault and is never held in memory. A damaged
// file ends with one record with a fault, which also stands for the line that the damage cut short.
// A byte order mark of UTF-8 at a file's beginning is no part of its first line. Not thread-safe.
//
// A packed file that is cut gives the lines that are known to have a successor: so the last line of
// a file always comes together with its end. To read further fails until the file has grown, and
// then goes on as if it had never been cut. Where standard input has no more yet, it is the same.
class LineReader {
 public:
  LineReader(std::unique_ptr<InputFile> file, size_t max_record_bytes);

  // Appends lines until `records` has `lines_max` of them, its bytes reach `bytes_max` or the file
  // ends or is cut. Fails where a cut leaves nothing to append: file().cut() tells this failure
  // from others.
  Status Read(size_t lines_max, size_t bytes_max, event::RawRecords* records);
  // Skips up to `lines` records and returns how many it skipped. Fails at a cut before that; waits
  // for standard input.
  // REQUIRES that nothing was read yet.
  Result<uint64_t> Skip(uint64_t lines);
  // Returns true if no record is left, and none will be written behind a cut.
  Result<bool> AtEnd();

  const InputFile& file() const { return *file_; }

 private:
  // The last line before a cut, as far as it could be read.
  struct HeldLine {
    std::string text;
    bool ended = false;  // its newline was read
    bool too_long = false;
  };

  // Fills the empty buffer; it stays empty at the end of the file and at a cut.
  Status Refill();
  bool AtCut() const { return begin_ == end_ && !file_->cut().empty(); }
  // Returns true if the file is damaged and the damage is not yet reported.
  bool FaultPending() const { return !file_->fault().empty() && !fault_told_; }
  // Appends the next line in pieces, or holds it at a cut. REQUIRES !AtEnd().
  Status ReadLine(event::RawRecords* records);
  void EndDamaged(size_t line_begin, event::RawRecords* records);

  const std::unique_ptr<InputFile> file_;
  const size_t max_record_bytes_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // unread part of the buffer
  bool begun_ = false;          // something was read
  std::optional<HeldLine> held_;
  bool fault_told_ = false;
};

}  // namespace tacit::stream
