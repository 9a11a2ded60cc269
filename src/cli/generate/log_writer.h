#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "console/atomic_file.h"

struct gzFile_s;

namespace tacit::cli {

// Rows generated before each write.
inline constexpr uint64_t kChunkRows = 8192;

// Writes a log file, gzip or plain, which is there whole or not at all: nothing is left without
// Close.
class LogWriter {
 public:
  static Result<std::unique_ptr<LogWriter>> Create(const std::string& path, bool plain);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  Status Write(std::string_view bytes);
  Status Close();

 private:
  LogWriter(std::string path, std::unique_ptr<console::AtomicFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}
  Status Failure(std::string_view doing) const;

  const std::string path_;
  const std::unique_ptr<console::AtomicFile> file_;
  gzFile_s* packer_ = nullptr;
};

}  // namespace tacit::cli
