#include "cli/generate/log_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>

namespace tacit::cli {

Result<std::unique_ptr<LogWriter>> LogWriter::Create(const std::string& path, bool plain) {
  constexpr unsigned kMode = 0666;
  TACIT_ASSIGN(auto file, console::AtomicFile::Create(path, kMode));
  std::unique_ptr<LogWriter> writer(new LogWriter(path, std::move(file)));
  // zlib closes the descriptor that it writes to.
  const int fd = ::fcntl(writer->file_->fd(), F_DUPFD_CLOEXEC, 0);
  if (fd >= 0) writer->packer_ = gzdopen(fd, plain ? "wbT" : "wb1");
  if (writer->packer_ == nullptr) {
    if (fd >= 0) ::close(fd);
    return Fail(writer->Failure("create").error());
  }
  gzbuffer(writer->packer_, 1 << 18);
  return writer;
}

LogWriter::~LogWriter() {
  if (packer_ != nullptr) gzclose(packer_);
}

Status LogWriter::Failure(std::string_view doing) const {
  return Fail(ErrorCode::kIo, fmt::format("cannot {} {}: {}", doing, path_, std::strerror(errno)));
}

Status LogWriter::Write(std::string_view bytes) {
  const int written = gzwrite(packer_, bytes.data(), static_cast<unsigned>(bytes.size()));
  return written == static_cast<int>(bytes.size()) ? Status() : Failure("write");
}

Status LogWriter::Close() {
  const int closed = gzclose(packer_);
  packer_ = nullptr;
  if (closed != Z_OK) return Failure("finish");
  return file_->Commit();
}

}  // namespace tacit::cli
