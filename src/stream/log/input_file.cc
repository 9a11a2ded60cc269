#include "stream/log/input_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/files/regular_file.h"

namespace tacit::stream {
namespace {

constexpr size_t kChunkBytes = 256 << 10;
// Compared with each chunk: few enough to cost next to nothing, and logs differ in them.
constexpr size_t kHeadBytes = 4096;

tl::unexpected<Error> SystemFailure(ErrorCode code, const std::string& path) {
  return Fail(code, fmt::format("{}: {}", path, std::strerror(errno)));
}

// Calls pread(2) until `out` is full or the file ends.
Result<size_t> ReadAt(int fd, const std::string& path, uint64_t offset, std::span<char> out) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got =
        ::pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemFailure(ErrorCode::kIo, path);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

enum class Packing { kNone, kGzip, kZstd };

constexpr std::string_view kGzipMagic = "\x1f\x8b", kZstdMagic = "\x28\xb5\x2f\xfd";
constexpr std::string_view kSkippableMagic = "\x2a\x4d\x18";  // after a byte 0x50 to 0x5f

// Compares as many bytes as both have.
bool Agree(std::string_view head, std::string_view magic) {
  const size_t both = std::min(head.size(), magic.size());
  return head.substr(0, both) == magic.substr(0, both);
}

// The first bytes tell. Of a file that ends before they do its name tells: no packed file is so
// short, so it is still being written.
Packing PackingOf(std::string_view head, std::string_view path) {
  const auto is = [&](std::string_view magic, std::string_view suffix) {
    return Agree(head, magic) && (head.size() >= magic.size() || path.ends_with(suffix));
  };
  if (is(kGzipMagic, ".gz")) return Packing::kGzip;
  if (is(kZstdMagic, ".zst")) return Packing::kZstd;
  // Zstd data may begin with a skippable frame, as parallel packers write.
  if (!head.empty() && (head[0] & 0xf0) == 0x50) {
    head.remove_prefix(1);
    if (is(kSkippableMagic, ".zst")) return Packing::kZstd;
  }
  return Packing::kNone;
}

class PlainFile final : public InputFile {
 public:
  explicit PlainFile(Opened opened) : InputFile(std::move(opened)) {}
  Result<size_t> Read(std::span<char> out) override {
    ForgetCut();
    return ReadRaw(out);
  }
};

// One or more gzip members (RFC 1952), followed by zero bytes if tapes or block devices left them.
class GzipFile final : public InputFile {
 public:
  explicit GzipFile(Opened opened) : InputFile(std::move(opened)), input_(kChunkBytes) {
    constexpr int kGzipOnly = 16;
    TACIT_CHECK(inflateInit2(&stream_, MAX_WBITS + kGzipOnly) == Z_OK, "out of memory");
  }
  ~GzipFile() override { inflateEnd(&stream_); }

  Result<size_t> Read(std::span<char> out) override {
    ForgetCut();
    input_ended_ = false;
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    while (stream_.avail_out > 0 && !done_ && !stopped()) {
      if (stream_.avail_in == 0 && !input_ended_) TACIT_RETURN_IF_ERROR(Refill());
      if (in_member_)
        Inflate();
      else
        FindMember();
    }
    return out.size() - stream_.avail_out;
  }

 private:
  Status Refill() {
    TACIT_ASSIGN(const size_t got, ReadRaw(input_));
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(got);
    input_ended_ = got == 0 && !waiting();
    return {};
  }

  void Inflate() {
    const int code = inflate(&stream_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
      in_member_ = false;
    } else if (code == Z_BUF_ERROR) {  // no progress is possible with this input
      if (input_ended_) SetCut("truncated gzip data");
    } else if (code != Z_OK) {
      Damaged(fmt::format("corrupt gzip data ({})",
                          stream_.msg != nullptr ? stream_.msg : "needs a dictionary"));
    }
  }

  void FindMember() {
    while (stream_.avail_in > 0 && *stream_.next_in == 0) {
      ++stream_.next_in;
      --stream_.avail_in;
    }
    if (stream_.avail_in > 0) {
      TACIT_CHECK(inflateReset(&stream_) == Z_OK);
      in_member_ = true;
    } else if (input_ended_) {
      done_ = true;
    }
  }

  void Damaged(std::string_view how) { SetFault(how, raw_read() - stream_.avail_in); }

  z_stream stream_{};
  std::vector<char> input_;
  bool in_member_ = true, input_ended_ = false, done_ = false;
};

// One or more zstd frames (RFC 8878); skippable ones are skipped. A window is at most 128 MiB, as
// for the zstd program itself.
class ZstdFile final : public InputFile {
 public:
  explicit ZstdFile(Opened opened) : InputFile(std::move(opened)), input_(kChunkBytes) {
    TACIT_CHECK(stream_ != nullptr, "out of memory");
    wanted_ = frame_start_ = ZSTD_initDStream(stream_.get());
  }

  Result<size_t> Read(std::span<char> out) override {
    ForgetCut();
    input_ended_ = false;
    ZSTD_outBuffer unpacked{out.data(), out.size(), 0};
    while (unpacked.pos < unpacked.size && !done_ && !stopped()) {
      if (begin_ == end_ && !input_ended_) TACIT_RETURN_IF_ERROR(Refill());
      if (begin_ < end_ || !drained_)
        Unpack(&unpacked);
      else if (waiting())
        break;
      else if (in_frame_)
        SetCut("truncated zstd data");
      else
        done_ = true;
    }
    return unpacked.pos;
  }

 private:
  struct Deleter {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };

  Status Refill() {
    begin_ = 0;
    TACIT_ASSIGN(end_, ReadRaw(input_));
    input_ended_ = end_ == 0 && !waiting();
    return {};
  }

  // Feeds at most the next block: damage after it must not cost its content.
  void Unpack(ZSTD_outBuffer* out) {
    ZSTD_inBuffer in{input_.data() + begin_, std::min(wanted_, end_ - begin_), 0};
    const size_t code = ZSTD_decompressStream(stream_.get(), out, &in);
    if (ZSTD_isError(code)) {
      Damaged(fmt::format("corrupt zstd data ({})", ZSTD_getErrorName(code)));
      return;
    }
    begin_ += in.pos;
    in_frame_ = code != 0;
    wanted_ = in_frame_ ? code : frame_start_;
    drained_ = !in_frame_ || out->pos < out->size;
  }

  void Damaged(std::string_view how) { SetFault(how, raw_read() - (end_ - begin_)); }

  std::unique_ptr<ZSTD_DStream, Deleter> stream_{ZSTD_createDStream()};
  std::vector<char> input_;
  size_t begin_ = 0, end_ = 0;  // unread part of the input
  size_t wanted_ = 0;           // how much of it the next call may take
  size_t frame_start_ = 0;      // the same at the beginning of a frame
  // Nothing more comes out before something goes in; zstd calls it an error to ask too often.
  bool drained_ = true;
  bool in_frame_ = true, input_ended_ = false, done_ = false;
};

}  // namespace

tl::unexpected<Error> ChangedWhileRead(const std::string& path, std::string_view how) {
  return Fail(ErrorCode::kRefused,
              fmt::format("{}: {} while it was read. A log that is read may grow, and must not be "
                          "truncated (copytruncate of logrotate), overwritten or moved: put it "
                          "back as it was and start again, which goes on from the last commit",
                          path, how));
}

Result<size_t> InputFile::ReadRaw(std::span<char> out) {
  if (opened_.input != nullptr) {
    TACIT_ASSIGN(const StandardInput::Got got, opened_.input->ReadAt(raw_read_, out));
    waiting_ = got.waits;
    if (waiting_) cut_ = fmt::format("no more than {} bytes of {}", raw_read_, opened_.path);
    raw_read_ += got.bytes;
    return got.bytes;
  }
  TACIT_ASSIGN(const size_t got, ReadAt(opened_.fd.get(), opened_.path, raw_read_, out));
  TACIT_RETURN_IF_ERROR(CheckUntouched(raw_read_ + got));
  raw_read_ += got;
  return got;
}

// Comes after the read: what was written before it shows.
Status InputFile::CheckUntouched(uint64_t read) const {
  struct stat now {};
  if (::fstat(opened_.fd.get(), &now) != 0) return SystemFailure(ErrorCode::kIo, opened_.path);
  if (static_cast<uint64_t>(now.st_size) < std::max(read, opened_.raw_size))
    return ChangedWhileRead(opened_.path, "has become shorter");
  char head[kHeadBytes];
  TACIT_ASSIGN(const size_t got, ReadAt(opened_.fd.get(), opened_.path, 0,
                                        std::span(head).first(opened_.head.size())));
  if (std::string_view(head, got) != opened_.head)
    return ChangedWhileRead(opened_.path, "was overwritten");
  return {};
}

void InputFile::SetFault(std::string_view how, uint64_t raw_offset) {
  fault_ = fmt::format("{} at byte {} of {}", how, raw_offset, opened_.path);
}

void InputFile::SetCut(std::string_view how) {
  if (opened_.cut == CutIs::kDamage) return SetFault(how, raw_read_);
  cut_ = fmt::format("{} at byte {} of {}", how, raw_read_, opened_.path);
}

Result<Digest> InputFile::HashPrefix(uint64_t bytes) const {
  std::vector<char> prefix(bytes);
  if (opened_.input != nullptr) {
    TACIT_ASSIGN(const StandardInput::Got got, opened_.input->ReadAt(0, prefix));
    return Sha256().Update(std::string_view(prefix.data(), got.bytes)).Finish();
  }
  TACIT_ASSIGN(const size_t got, ReadAt(opened_.fd.get(), opened_.path, 0, prefix));
  return Sha256().Update(std::string_view(prefix.data(), got)).Finish();
}

Result<InputFile::Opened> InputFile::OpenBytes(const std::string& path, CutIs cut) {
  Opened opened;
  opened.path = path;
  opened.head.resize(kHeadBytes);
  opened.cut = cut;
  size_t got = 0;
  if (path == kStandardInput) {
    opened.path = kStandardInputShown;
    opened.input = &StandardInput::Get();
    TACIT_ASSIGN(opened.raw_size, opened.input->Begin());
    TACIT_ASSIGN(const StandardInput::Got first, opened.input->ReadAt(0, opened.head));
    got = first.bytes;
  } else {
    TACIT_ASSIGN(opened.fd, OpenRegularFile(path));
    struct stat info {};
    if (::fstat(opened.fd.get(), &info) != 0) return SystemFailure(ErrorCode::kIo, path);
    opened.raw_size = static_cast<uint64_t>(info.st_size);
    opened.inode = {info.st_dev, info.st_ino};
    TACIT_ASSIGN(got, ReadAt(opened.fd.get(), path, 0, opened.head));
  }
  opened.head.resize(got);
  return opened;
}

Result<std::unique_ptr<InputFile>> InputFile::Open(const std::string& path, CutIs cut) {
  TACIT_ASSIGN(Opened opened, OpenBytes(path, cut));
  std::unique_ptr<InputFile> file;
  switch (PackingOf(std::string_view(opened.head).substr(0, 4), path)) {
    case Packing::kNone:
      file = std::make_unique<PlainFile>(std::move(opened));
      break;
    case Packing::kGzip:
      file = std::make_unique<GzipFile>(std::move(opened));
      break;
    case Packing::kZstd:
      file = std::make_unique<ZstdFile>(std::move(opened));
      break;
  }
  return file;
}

}  // namespace tacit::stream
