#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "event/raw_records.h"
#include "stream/log/input_file.h"

namespace tacit::stream {

// Cuts a file into records. A record longer than `max_record_bytes` has a fault and is never handed
// on. A damaged file ends with one record with a fault, which also stands for what the damage cut
// short. Not thread-safe.
//
// A file that is cut gives the records before the cut. To read further fails until the file has
// grown, and then goes on as if it had never been cut. Where standard input has no more yet, it is
// the same.
class RecordReader {
 public:
  virtual ~RecordReader() = default;

  // Appends records until `records` has `records_max` of them, its bytes reach `bytes_max` or the
  // file ends or is cut. Fails where a cut leaves nothing to append: cut() tells this failure from
  // others.
  virtual Status Read(size_t records_max, size_t bytes_max, event::RawRecords* records) = 0;
  // Skips up to `records` records and returns how many it skipped. Fails at a cut before that;
  // waits for standard input. REQUIRES that nothing was read yet.
  virtual Result<uint64_t> Skip(uint64_t records) = 0;
  // Returns true if no record is left, and none will be written behind a cut.
  virtual Result<bool> AtEnd() = 0;

  // As InputFile has them.
  virtual const std::string& cut() const { return file_->cut(); }
  virtual const std::string& fault() const { return file_->fault(); }
  const InputFile& file() const { return *file_; }

 protected:
  RecordReader(std::unique_ptr<InputFile> file, size_t max_record_bytes)
      : file_(std::move(file)), max_record_bytes_(max_record_bytes) {}

  static void EndRecord(event::RawRecords* records) {
    records->end.push_back(static_cast<uint32_t>(records->bytes.size()));
  }
  static void EndFaulty(std::string reason, event::RawRecords* records) {
    records->faults.push_back({static_cast<uint32_t>(records->size()), std::move(reason)});
    EndRecord(records);
  }
  std::string TooLong() const {
    return "the record is longer than " + std::to_string(max_record_bytes_) + " bytes";
  }
  tl::unexpected<Error> NotWhole() const {
    return Fail(ErrorCode::kIo,
                cut() +
                    ": the file is not whole. It is still being written, or its copy was broken "
                    "off: put the whole file in its place");
  }

  const std::unique_ptr<InputFile> file_;
  const size_t max_record_bytes_;
};

}  // namespace tacit::stream
