#include "stream/log/line_reader.h"

#include <cstring>
#include <string_view>
#include <utility>

#include "base/files/byte_order_mark.h"

namespace tacit::stream {
namespace {

constexpr size_t kBufferBytes = 256 << 10;

// The length of the text before the next newline, or of all of it.
struct Piece {
  size_t length = 0;
  bool ends_line = false;
};
Piece NextPiece(const char* text, size_t size) {
  const void* newline = std::memchr(text, '\n', size);
  if (newline == nullptr) return {size, false};
  return {static_cast<size_t>(static_cast<const char*>(newline) - text), true};
}

}  // namespace

LineReader::LineReader(std::unique_ptr<InputFile> file, size_t max_record_bytes)
    : RecordReader(std::move(file), max_record_bytes), buffer_(kBufferBytes) {}

Status LineReader::Refill() {
  TACIT_ASSIGN(end_, file_->Read(buffer_));
  begin_ = 0;
  if (end_ == 0) return {};
  const bool at_beginning = !std::exchange(begun_, true);
  if (at_beginning && std::string_view(buffer_.data(), end_).starts_with(kByteOrderMark))
    begin_ = kByteOrderMark.size();
  return {};
}

Result<bool> LineReader::AtEnd() {
  if (begin_ < end_) return false;
  TACIT_RETURN_IF_ERROR(Refill());
  return begin_ == end_ && !AtCut() && !held_ && !FaultPending();
}

Status LineReader::Read(size_t lines_max, size_t bytes_max, event::RawRecords* records) {
  while (records->size() < lines_max && records->bytes.size() < bytes_max) {
    const Piece piece = NextPiece(buffer_.data() + begin_, end_ - begin_);
    const bool has_next = begin_ + piece.length + 1 < end_;
    if (has_next && piece.length <= max_record_bytes_ && !held_) [[likely]] {
      records->bytes.append(buffer_.data() + begin_, piece.length);
      EndRecord(records);
      begin_ += piece.length + 1;
      continue;
    }
    TACIT_ASSIGN(const bool at_end, AtEnd());
    if (at_end) return {};
    if (!AtCut()) TACIT_RETURN_IF_ERROR(ReadLine(records));
    if (AtCut() && records->size() == 0) return NotWhole();
    if (AtCut()) return {};
  }
  return {};
}

Status LineReader::ReadLine(event::RawRecords* records) {
  const size_t line_begin = records->bytes.size();
  HeldLine line = std::exchange(held_, std::nullopt).value_or(HeldLine{});
  records->bytes += line.text;
  bool last = false;
  while (!line.ended && !last) {
    if (begin_ == end_) TACIT_RETURN_IF_ERROR(Refill());
    if (begin_ == end_ && FaultPending()) {
      EndDamaged(line_begin, records);
      return {};
    }
    last = begin_ == end_;  // the file ends without a newline, or is cut
    const Piece piece = NextPiece(buffer_.data() + begin_, end_ - begin_);
    line.too_long |= records->bytes.size() - line_begin + piece.length > max_record_bytes_;
    if (!line.too_long) records->bytes.append(buffer_.data() + begin_, piece.length);
    begin_ += piece.length + (piece.ends_line ? 1 : 0);
    line.ended = piece.ends_line;
  }
  // A byte behind the line, or the file's end, must be there.
  if (begin_ == end_ && !last) TACIT_RETURN_IF_ERROR(Refill());
  if (line.too_long || AtCut()) {
    if (!line.too_long) line.text = records->bytes.substr(line_begin);
    records->bytes.resize(line_begin);
  }
  if (AtCut()) {
    held_ = std::move(line);
  } else if (line.too_long) {
    EndFaulty(TooLong(), records);
  } else {
    EndRecord(records);
  }
  return {};
}

// Drops the part of the last line that could be read: half a line may look like a whole one.
void LineReader::EndDamaged(size_t line_begin, event::RawRecords* records) {
  records->bytes.resize(line_begin);
  EndFaulty(file_->fault(), records);
  fault_told_ = true;
}

Result<uint64_t> LineReader::Skip(uint64_t lines) {
  uint64_t skipped = 0;
  bool in_line = false;
  while (skipped < lines) {
    if (begin_ == end_) TACIT_RETURN_IF_ERROR(Refill());
    if (AtCut() && file_->waiting()) continue;
    if (AtCut()) return NotWhole();
    if (begin_ == end_) {
      const bool last = in_line || FaultPending();
      fault_told_ = true;
      return skipped + (last ? 1 : 0);
    }
    const Piece piece = NextPiece(buffer_.data() + begin_, end_ - begin_);
    begin_ += piece.length + (piece.ends_line ? 1 : 0);
    in_line = !piece.ends_line;
    skipped += piece.ends_line ? 1 : 0;
  }
  return skipped;
}

}  // namespace tacit::stream
