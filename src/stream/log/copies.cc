#include "stream/log/copies.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "base/hash.h"
#include "base/text.h"
#include "event/raw_records.h"
#include "stream/log/input_file.h"
#include "stream/log/line_reader.h"

namespace tacit::stream {
namespace {

constexpr size_t kLinesCompared = 1000, kLinesOfACopy = 20;
constexpr size_t kRecordBytes = 1 << 20, kBytesCompared = 16 << 20;

// The lines that a file, or the part before its cut, begins with; nothing where they are few.
Result<std::optional<std::string>> BeginningOf(const std::string& path) {
  TACIT_ASSIGN(auto file, InputFile::Open(path));
  LineReader reader(std::move(file), kRecordBytes);
  event::RawRecords lines;
  if (!reader.Read(kLinesCompared, kBytesCompared, &lines) || lines.size() < kLinesOfACopy)
    return std::optional<std::string>();
  std::string beginning;
  for (size_t i = 0; i < lines.size(); ++i) beginning.append(lines[i]).push_back('\n');
  return std::optional(std::move(beginning));
}

}  // namespace

Status CheckNoCopies(const std::vector<std::string>& files) {
  std::map<Digest, std::string> seen;
  for (const std::string& file : files) {
    TACIT_ASSIGN(const auto beginning, BeginningOf(file));
    if (!beginning) continue;
    const auto [first, fresh] = seen.emplace(Sha256().Update(*beginning).Finish(), file);
    if (!fresh)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: has the lines of {}; a copy counts its records twice, so leave "
                              "one of them out",
                              file, first->second));
  }
  return {};
}

}  // namespace tacit::stream
