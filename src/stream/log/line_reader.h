#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "event/raw_records.h"
#include "stream/log/input_file.h"
#include "stream/log/record_reader.h"

namespace tacit::stream {

// A record is a line. A last line without its newline is one. A line that is too long is never held
// in memory. A byte order mark of UTF-8 at a file's beginning is no part of its first line.
//
// A packed file that is cut gives the lines that are known to have a successor: so the last line of
// a file always comes together with its end.
class LineReader final : public RecordReader {
 public:
  LineReader(std::unique_ptr<InputFile> file, size_t max_record_bytes);

  Status Read(size_t lines_max, size_t bytes_max, event::RawRecords* records) override;
  Result<uint64_t> Skip(uint64_t lines) override;
  Result<bool> AtEnd() override;

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

  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // unread part of the buffer
  bool begun_ = false;          // something was read
  std::optional<HeldLine> held_;
  bool fault_told_ = false;
};

}  // namespace tacit::stream
