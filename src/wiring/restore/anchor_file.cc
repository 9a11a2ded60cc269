#include "wiring/restore/anchor_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/files/regular_file.h"
#include "base/files/unique_fd.h"
#include "http/kept_file.h"

namespace tacit::wiring {
namespace {

tl::unexpected<Error> AnchorFailure(std::string_view doing, const std::string& path) {
  const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
  return Fail(code, fmt::format("{} anchors {}: {}", doing, path, std::strerror(errno)));
}

Result<std::string> ReadAnchorText(int fd, const std::string& path) {
  std::string text;
  char block[1 << 16];
  for (off_t at = 0;;) {
    const ssize_t bytes = ::pread(fd, block, sizeof(block), at);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return AnchorFailure("reading", path);
    if (bytes == 0) return text;
    text.append(block, static_cast<size_t>(bytes));
    at += bytes;
  }
}

struct AnchorText {
  AnchorFile file;
  size_t whole_bytes = 0;  // up to the end of the last whole line
  Digest last_line{};      // of the last whole line; all zero where there is none
};

Result<AnchorText> DecodeAnchorText(std::string_view text, const std::string& path) {
  std::vector<std::string_view> lines;
  AnchorText out;
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n', out.whole_bytes)) {
    lines.push_back(text.substr(out.whole_bytes, end - out.whole_bytes));
    out.whole_bytes = end + 1;
  }
  out.file.cut_off = out.whole_bytes < text.size();
  if (!lines.empty()) out.last_line = Sha256().Update(lines.back()).Finish();
  auto anchors = privacy::DecodeAnchors(lines);
  if (!anchors) return Fail(std::move(anchors.error()).Context("anchors " + path));
  out.file.anchors = std::move(*anchors);
  return out;
}

Result<AnchorText> ReadAnchors(int fd, const std::string& path) {
  TACIT_ASSIGN(const std::string text, ReadAnchorText(fd, path));
  return DecodeAnchorText(text, path);
}

// Two who add at once would follow the same line. Everybody who may read the file may lock it, and
// keep it locked: the wait is as long as an addition may take, and ends.
Status LockAnchors(int fd, const std::string& path) {
  for (int tries_left = 20; ::flock(fd, LOCK_EX | LOCK_NB) != 0; --tries_left) {
    if (errno != EWOULDBLOCK && errno != EINTR) return AnchorFailure("locking", path);
    if (tries_left == 0)
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("anchors {}: another process keeps the file locked (lslocks names "
                              "it), and nothing can be added meanwhile",
                              path));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return {};
}

Status WriteAnchorLine(int fd, const std::string& path, std::string_view line) {
  while (!line.empty()) {
    const ssize_t bytes = ::write(fd, line.data(), line.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return AnchorFailure("writing", path);
    line.remove_prefix(static_cast<size_t>(bytes));
  }
  if (::fsync(fd) != 0) return AnchorFailure("writing", path);
  return {};
}

// A file that was just made is there after a crash only when its folder is on the disk.
Status SyncAnchorFolder(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::absolute(path).parent_path();
  const UniqueFd folder(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || ::fsync(folder.get()) != 0) return AnchorFailure("writing", path);
  return {};
}

}  // namespace

Result<AnchorFile> ReadAnchorFile(const std::string& path) {
  const auto file = OpenRegularFile(path);
  if (!file) return Fail(file.error().code, "reading anchors " + file.error().message);
  TACIT_ASSIGN(AnchorText text, ReadAnchors(file->get(), path));
  return std::move(text.file);
}

Result<std::vector<privacy::Anchor>> ReadWholeAnchorFile(const std::string& path) {
  TACIT_ASSIGN(AnchorFile file, ReadAnchorFile(path));
  if (file.cut_off)
    return Fail(ErrorCode::kCorruption,
                fmt::format("anchors {}: line {} is cut off", path, file.anchors.size() + 1));
  return std::move(file.anchors);
}

Result<privacy::Anchor> AppendAnchor(const std::string& path, privacy::Anchor anchor,
                                     const privacy::AnchorSigner* signer, uint64_t least) {
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
  if (file.get() < 0) return AnchorFailure("opening", path);
  TACIT_RETURN_IF_ERROR(LockAnchors(file.get(), path));
  TACIT_ASSIGN(const AnchorText text, ReadAnchors(file.get(), path));
  const auto& anchors = text.file.anchors;
  if (anchors.size() < least)
    return Fail(ErrorCode::kCorruption,
                fmt::format("anchors {}: there were {}, and there are {}: lines were removed", path,
                            least, anchors.size()));
  if (text.file.cut_off && ::ftruncate(file.get(), static_cast<off_t>(text.whole_bytes)) != 0)
    return AnchorFailure("mending", path);
  anchor.number = anchors.size();
  anchor.previous = text.last_line;
  if (signer != nullptr) signer->Sign(&anchor);
  TACIT_RETURN_IF_ERROR(WriteAnchorLine(file.get(), path, anchor.Line() + "\n"));
  if (anchor.number == 0) TACIT_RETURN_IF_ERROR(SyncAnchorFolder(path));
  return anchor;
}

Result<privacy::AnchorSigner> ReadAnchorSigner(const std::string& key, const std::string& path) {
  http::FileStamp stamp;
  TACIT_ASSIGN(const std::string pem, http::ReadKeptFile(key, path, &stamp));
  auto signer = privacy::AnchorSigner::FromPem(pem);
  if (!signer)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: {} {}", key, path, signer.error().message));
  return signer;
}

Result<privacy::AnchorKeyId> ReadAnchorKeyFile(const std::string& key, const std::string& path) {
  TACIT_ASSIGN(const std::string pem, http::ReadOpenFile(key, path));
  auto id = privacy::ReadAnchorKey(pem);
  if (!id)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: {} {}", key, path, id.error().message));
  return id;
}

}  // namespace tacit::wiring
