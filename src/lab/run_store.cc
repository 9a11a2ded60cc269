#include "lab/run_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace tacit::lab {
namespace {

// The beginning of every run's line: its id.
constexpr std::string_view kRunBegins = "{\"id\":";

bool BeginsLikeARun(std::string_view line) {
  const size_t length = std::min(line.size(), kRunBegins.size());
  return line.substr(0, length) == kRunBegins.substr(0, length);
}

}  // namespace

tl::unexpected<Error> CannotWrite(const std::string& path) {
  return Fail(ErrorCode::kIo, path + ": cannot be written");
}

Status ReadRunLines(const std::string& path,
                    const std::function<Status(const std::string& line)>& take) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {};
  uint64_t number = 0;
  std::streamoff good = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (file.eof()) {
      if (BeginsLikeARun(line)) break;
      return Fail(ErrorCode::kCorruption,
                  fmt::format("{}:{}: not a finished run, nor one cut short: the file is another's",
                              path, number));
    }
    Status taken = take(line);
    if (!taken) return Fail(std::move(taken.error()).Context(fmt::format("{}:{}", path, number)));
    good = file.tellg();
  }
  file.close();
  std::error_code error;
  if (std::filesystem::file_size(path, error) != static_cast<uint64_t>(good))
    std::filesystem::resize_file(path, static_cast<uint64_t>(good), error);
  if (error) return CannotWrite(path);
  return {};
}

Status AppendRunLine(const std::string& path, const std::string& line) {
  std::ofstream file(path, std::ios::binary | std::ios::app);
  file << line << '\n';
  if (!file.flush()) return CannotWrite(path);
  return {};
}

}  // namespace tacit::lab
