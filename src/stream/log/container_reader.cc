#include "stream/log/container_reader.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "event/run_codec.h"

namespace tacit::stream {
namespace {

constexpr size_t kContainerChunk = 256 << 10, kSyncBytes = 16, kBlockHeadBytes = 20;
constexpr std::string_view kTooLarge = "it unpacks to more than 64 MiB";

// Makes room for more. Returns false if there is as much as there may be.
bool Grow(std::string* out) {
  if (out->size() >= ContainerReader::kBlockBytesMost) return false;
  out->resize(
      std::min(std::max(out->size() * 2, kContainerChunk), ContainerReader::kBlockBytesMost));
  return true;
}

// Unpacks a block. Returns what is wrong with it.
std::string Inflate(std::string_view packed, std::string* out) {
  z_stream stream{};
  TACIT_CHECK(inflateInit2(&stream, -MAX_WBITS) == Z_OK, "out of memory");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  int code = Z_OK;
  size_t done = 0;
  while (code == Z_OK && (done < out->size() || Grow(out))) {
    stream.next_out = reinterpret_cast<Bytef*>(out->data() + done);
    stream.avail_out = static_cast<uInt>(out->size() - done);
    code = inflate(&stream, Z_NO_FLUSH);
    done = out->size() - stream.avail_out;
  }
  inflateEnd(&stream);
  out->resize(done);
  if (code == Z_OK) return std::string(kTooLarge);
  if (code != Z_STREAM_END) return "corrupt deflate data";
  // Writers in Python leave the end of zlib's checksum behind it.
  return "";
}

// The same.
std::string Expand(std::string_view packed, std::string* out) {
  const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(),
                                                                          &ZSTD_freeDStream);
  TACIT_CHECK(stream != nullptr, "out of memory");
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  size_t done = 0, code = 1;
  while (code != 0) {
    if (done == out->size() && !Grow(out)) return std::string(kTooLarge);
    ZSTD_outBuffer chunk{out->data() + done, out->size() - done, 0};
    code = ZSTD_decompressStream(stream.get(), &chunk, &in);
    if (ZSTD_isError(code)) return fmt::format("corrupt zstd data ({})", ZSTD_getErrorName(code));
    done += chunk.pos;
    if (code != 0 && in.pos == in.size && chunk.pos < chunk.size) return "truncated zstd data";
  }
  out->resize(done);
  return in.pos == in.size ? "" : "bytes follow its zstd data";
}

// Passes over values.
struct NoSink {
  event::MaybeBad Value(const event::AvroStep&, const event::AvroValue&) { return std::nullopt; }
  event::MaybeBad Open(const event::AvroStep&) { return std::nullopt; }
  void Key(std::string_view) {}
  void Close(const event::AvroStep&) {}
};

}  // namespace

ContainerReader::ContainerReader(std::unique_ptr<InputFile> file, size_t max_record_bytes,
                                 std::shared_ptr<event::AvroSchemas> schemas)
    : RecordReader(std::move(file), max_record_bytes), schemas_(std::move(schemas)) {}

Result<bool> ContainerReader::Have(size_t bytes) {
  while (rest().size() < bytes) {
    if (begin_ > 0) buffer_.erase(0, std::exchange(begin_, 0));
    const size_t before = buffer_.size();
    buffer_.resize(before + kContainerChunk);
    auto got = file_->Read(std::span(buffer_).subspan(before));
    buffer_.resize(before + got.value_or(0));
    if (!got) return Fail(std::move(got.error()));
    if (*got == 0) return false;
  }
  return true;
}

void ContainerReader::Take(size_t bytes) {
  begin_ += bytes;
  offset_ += bytes;
}

void ContainerReader::EndsEarly(std::string_view what) {
  const std::string how =
      fmt::format("{} at byte {} of {}", what, offset_ + rest().size(), file_->path());
  if (!file_->fault().empty())
    fault_ = file_->fault();
  else if (!file_->cut().empty())
    cut_ = file_->cut();
  else if (file_->cut_is() == InputFile::CutIs::kDamage)
    fault_ = how;
  else
    cut_ = how;
}

Status ContainerReader::Open() {
  cut_.clear();
  while (!opened_) {
    const std::string_view head = rest();
    if (head.substr(0, kContainerMagic.size()) != kContainerMagic.substr(0, head.size()))
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: is no Avro container file: it does not begin with Obj and a byte "
                      "of value 1",
                      file_->path()));
    event::AvroBytes header(head);
    header.Take(kContainerMagic.size());
    if (Status read = ReadHeader(&header); !read)
      return Fail(std::move(read.error()).Context(file_->path()));
    if (!header.damaged()) {
      Take(head.size() - header.left());
      opened_ = true;
      return {};
    }
    if (head.size() > kHeaderBytesMost)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: its header is damaged, or longer than {} bytes", file_->path(),
                              kHeaderBytesMost));
    TACIT_ASSIGN(const bool more, Have(head.size() + 1));
    if (more) continue;
    EndsEarly("truncated Avro header");
    return {};
  }
  return {};
}

// Leaves damage where the header goes on behind what is there.
Status ContainerReader::ReadHeader(event::AvroBytes* header) {
  std::string_view codec = "null", schema;
  for (int64_t left = 1; left != 0;) {
    left = header->Long();
    if (left < 0) header->Long();  // the block's bytes
    const uint64_t pairs = left < 0 ? -static_cast<uint64_t>(left) : static_cast<uint64_t>(left);
    for (uint64_t i = 0; i < pairs && !header->damaged(); ++i) {
      const std::string_view key = header->Bytes(), value = header->Bytes();
      if (key == "avro.codec") codec = value;
      if (key == "avro.schema") schema = value;
    }
    if (header->damaged()) return {};
  }
  const std::string_view sync = header->Take(kSyncBytes);
  if (header->damaged()) return {};
  static constexpr std::string_view kCodecs[] = {"null", "deflate", "zstandard"};
  const auto known = std::ranges::find(kCodecs, codec);
  if (known == std::end(kCodecs))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("its codec is {}, and null, deflate and zstandard are read: write it "
                            "with one of them",
                            event::Quoted(codec)));
  codec_ = static_cast<Codec>(known - std::begin(kCodecs));
  sync_ = sync;
  event::SchemaGuid key{};
  const Digest digest = Sha256().Update(schema).Finish();
  std::copy_n(digest.begin(), key.size(), key.begin());
  TACIT_RETURN_IF_ERROR(schemas_->Add(key, schema));
  TACIT_ASSIGN(auto writer, event::AvroSchema::Parse(schema));
  static const auto kNoPlaces = std::make_shared<const std::vector<event::PlaceNode>>(1);
  TACIT_ASSIGN(skipper_, event::AvroProgram::Compile(std::move(writer), nullptr, kNoPlaces));
  frame_.assign(1, '\1').append(reinterpret_cast<const char*>(key.data()), key.size());
  return {};
}

Result<bool> ContainerReader::NextBlock() {
  cut_.clear();
  if (!fault_.empty()) return false;
  TACIT_RETURN_IF_ERROR(Open());
  if (!opened_) return false;
  TACIT_ASSIGN(const bool begins, Have(1));
  if (!begins) {
    // Between two blocks a file may end.
    if (!file_->fault().empty() || !file_->cut().empty()) EndsEarly("");
    return false;
  }
  TACIT_RETURN_IF_ERROR(Have(kBlockHeadBytes));
  event::AvroBytes head(rest());
  const int64_t count = head.Long(), size = head.Long();
  if (head.damaged() && rest().size() < kBlockHeadBytes) {
    EndsEarly("truncated Avro block");
    return false;
  }
  const auto damaged = [this](std::string_view how) {
    fault_ = fmt::format("damaged Avro block ({}) at byte {} of {}", how, offset_, file_->path());
    return false;
  };
  if (head.damaged() || count < 0 || size < 0) return damaged("no count and size");
  if (size > static_cast<int64_t>(kBlockBytesMost)) return damaged("it is larger than 64 MiB");
  const size_t before = rest().size() - head.left(), packed = static_cast<size_t>(size);
  TACIT_ASSIGN(const bool whole, Have(before + packed + kSyncBytes));
  if (!whole) {
    EndsEarly("truncated Avro block");
    return false;
  }
  if (rest().substr(before + packed, kSyncBytes) != sync_)
    return damaged("the sync marker is not behind it");
  const std::string wrong = Unpack(rest().substr(before, packed), static_cast<uint64_t>(count));
  if (!wrong.empty())
    block_fault_ =
        fmt::format("damaged Avro block ({}) at byte {} of {}", wrong, offset_, file_->path());
  Take(before + packed + kSyncBytes);
  return true;
}

std::string ContainerReader::Unpack(std::string_view packed, uint64_t count) {
  ends_.clear();
  next_ = 0;
  block_.clear();
  if (codec_ == Codec::kNull) block_ = packed;
  std::string wrong;
  if (codec_ == Codec::kDeflate) wrong = Inflate(packed, &block_);
  if (codec_ == Codec::kZstandard) wrong = Expand(packed, &block_);
  if (!wrong.empty()) return wrong;
  event::AvroBytes bytes(block_);
  for (NoSink sink; count > 0; --count) {
    if (const auto bad = skipper_->Read(&bytes, &stack_, &sink)) {
      wrong = fmt::format("record {} of it is damaged", ends_.size() + 1);
      break;
    }
    ends_.push_back(static_cast<uint32_t>(block_.size() - bytes.left()));
  }
  if (wrong.empty() && bytes.left() > 0) wrong = "bytes follow its records";
  if (!wrong.empty()) ends_.clear();
  return wrong;
}

void ContainerReader::Append(event::RawRecords* records) {
  if (next_ < ends_.size()) {
    const size_t begin = next_ == 0 ? 0 : ends_[next_ - 1], size = ends_[next_] - begin;
    ++next_;
    if (size > max_record_bytes_) return EndFaulty(TooLong(), records);
    records->bytes.append(frame_).append(block_, begin, size);
    return EndRecord(records);
  }
  if (!block_fault_.empty()) return EndFaulty(std::exchange(block_fault_, {}), records);
  EndFaulty(fault_, records);
  fault_told_ = true;
}

Result<bool> ContainerReader::AtEnd() {
  while (!HasRecord()) {
    TACIT_ASSIGN(const bool more, NextBlock());
    if (!more) return !HasRecord() && cut_.empty();
  }
  return false;
}

Status ContainerReader::Read(size_t records_max, size_t bytes_max, event::RawRecords* records) {
  while (records->size() < records_max && records->bytes.size() < bytes_max) {
    TACIT_ASSIGN(const bool at_end, AtEnd());
    if (at_end) return {};
    if (!HasRecord()) return records->size() == 0 ? Status(NotWhole()) : Status();
    Append(records);
  }
  return {};
}

Result<uint64_t> ContainerReader::Skip(uint64_t records) {
  event::RawRecords passed;
  uint64_t skipped = 0;
  while (skipped < records) {
    TACIT_ASSIGN(const bool at_end, AtEnd());
    if (at_end) break;
    if (HasRecord()) {
      passed.Clear();
      Append(&passed);
      ++skipped;
    } else if (!file_->waiting()) {
      return NotWhole();
    }
  }
  return skipped;
}

}  // namespace tacit::stream
