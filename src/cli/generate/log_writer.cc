#include "cli/generate/log_writer.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tacit::cli {

Result<std::unique_ptr<LogWriter>> LogWriter::Create(const std::string& path, bool plain) {
  auto writer = std::unique_ptr<LogWriter>(new LogWriter(path));
  writer->file_ = gzopen(writer->TemporaryPath().c_str(), plain ? "wbT" : "wb1");
  if (writer->file_ == nullptr)
    return Fail(ErrorCode::kIo,
                fmt::format("cannot create {}: {}", writer->TemporaryPath(), strerror(errno)));
  gzbuffer(writer->file_, 1 << 18);
  return writer;
}

LogWriter::~LogWriter() {
  if (file_ != nullptr) gzclose(file_);
}

Status LogWriter::Write(std::string_view bytes) {
  if (gzwrite(file_, bytes.data(), static_cast<unsigned>(bytes.size())) !=
      static_cast<int>(bytes.size()))
    return Fail(ErrorCode::kIo, fmt::format("cannot write {}: {}", path_, strerror(errno)));
  return {};
}

Status LogWriter::Close() {
  const int closed = gzclose(file_);
  file_ = nullptr;
  if (closed != Z_OK || std::rename(TemporaryPath().c_str(), path_.c_str()) != 0)
    return Fail(ErrorCode::kIo, fmt::format("cannot finish {}: {}", path_, strerror(errno)));
  return {};
}

}  // namespace tacit::cli
