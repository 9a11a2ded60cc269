#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

struct gzFile_s;

namespace tacit::cli {

// Rows generated before each write.
inline constexpr uint64_t kChunkRows = 8192;

// Writes a log file, gzip or plain, under a temporary name until it is complete.
class LogWriter {
 public:
  static Result<std::unique_ptr<LogWriter>> Create(const std::string& path, bool plain);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  Status Write(std::string_view bytes);
  Status Close();

 private:
  explicit LogWriter(std::string path) : path_(std::move(path)) {}
  std::string TemporaryPath() const { return path_ + ".part"; }

  std::string path_;
  gzFile_s* file_ = nullptr;
};

}  // namespace tacit::cli
