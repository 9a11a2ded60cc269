#include "train/opt_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "base/byte_order_mark.h"
#include "base/regular_file.h"
#include "base/text.h"

namespace tacit::train {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t'; }
bool IsControl(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

// REQUIRES a line that is not empty.
bool IsOdd(std::string_view line) {
  return IsBlank(line.front()) || IsBlank(line.back()) || std::ranges::any_of(line, IsControl) ||
         !IsUtf8(line);
}

// A file that the list may be read from. Nothing is waited for.
Result<std::ifstream> Open(const std::string& path) {
  TACIT_RETURN_IF_ERROR(OpenRegularFile(path));
  std::ifstream file(path, std::ios::binary);
  if (!file) return Fail(ErrorCode::kIo, fmt::format("{} cannot be read", path));
  return file;
}

}  // namespace

Result<OptOut> OptOut::Read(const std::string& path, const SipHash::Key& key) {
  TACIT_ASSIGN(std::ifstream file, Open(path));
  OptOut read(key);
  uint64_t number = 0;
  for (std::string text; std::getline(file, text);) {
    std::string_view line = text;
    if (++number == 1 && line.starts_with(kByteOrderMark))
      line.remove_prefix(kByteOrderMark.size());
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    if (line.find('\0') != line.npos)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}:{}: has a zero byte, so the line would name nobody: the list has "
                              "to be plain text in UTF-8",
                              path, number));
    if (IsOdd(line) && read.odd_.count++ == 0) read.odd_.first = number;
    read.users_.push_back(read.hash_(line));
  }
  if (file.bad()) return Fail(ErrorCode::kIo, fmt::format("{} cannot be read to its end", path));
  std::ranges::sort(read.users_);
  const auto [first, last] = std::ranges::unique(read.users_);
  read.users_.erase(first, last);
  return read;
}

uint64_t OptOut::LinesOf(const std::string& path) {
  auto file = Open(path);
  if (!file) return 0;
  std::array<char, 1 << 16> some;
  uint64_t ends = 0;
  do {
    file->read(some.data(), some.size());
    ends += static_cast<uint64_t>(std::count(some.data(), some.data() + file->gcount(), '\n'));
  } while (*file);
  return ends + 1;
}

bool OptOut::Has(std::string_view user) const {
  return std::ranges::binary_search(users_, hash_(user));
}

}  // namespace tacit::train
