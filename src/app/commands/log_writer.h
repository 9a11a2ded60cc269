#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

struct gzFile_s;

namespace tacit::app {

// A log file being written, gzip or plain, under a temporary name until it is whole.
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

}  // namespace tacit::app
