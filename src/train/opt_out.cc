#include "train/opt_out.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files/byte_order_mark.h"
#include "base/files/regular_file.h"
#include "base/text.h"

namespace tacit::train {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t'; }
bool IsControl(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

// Leaves out a comment behind an id, and blanks at the ends.
std::string_view BareId(std::string_view line) {
  for (size_t i = 1; i < line.size(); ++i)
    if (line[i] == '#' && IsBlank(line[i - 1])) line = line.substr(0, i);
  while (!line.empty() && IsBlank(line.front())) line.remove_prefix(1);
  while (!line.empty() && IsBlank(line.back())) line.remove_suffix(1);
  return line;
}

}  // namespace

Result<OptOut> OptOut::Read(const std::string& path, const SipHash::Key& key) {
  TACIT_ASSIGN(const std::string text, ReadRegularFile(path));
  std::string_view rest = text;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  OptOut read(key);
  read.digest_ = Sha256().Update(text).Finish();
  for (uint64_t number = 1; !rest.empty(); ++number) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    if (line.find('\0') != line.npos)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}:{}: has a zero byte, so the line would name nobody: the list has "
                              "to be plain text in UTF-8",
                              path, number));
    const std::string_view bare = BareId(line);
    const bool odd = bare != line || std::ranges::any_of(line, IsControl) || !IsUtf8(line);
    if (odd && read.odd_.count++ == 0) read.odd_.first = number;
    read.users_.push_back(read.hash_(line));
    if (bare != line && !bare.empty()) read.users_.push_back(read.hash_(bare));
  }
  std::ranges::sort(read.users_);
  const auto [first, last] = std::ranges::unique(read.users_);
  read.users_.erase(first, last);
  return read;
}

uint64_t OptOut::BytesOf(const std::string& path) {
  const auto text = ReadRegularFile(path);
  if (!text) return 0;
  const uint64_t lines = static_cast<uint64_t>(std::ranges::count(*text, '\n')) + 1;
  return 2 * sizeof(Hash128) * 2 * lines;  // twice: a line may name two
}

bool OptOut::Has(std::string_view user) const {
  return std::ranges::binary_search(users_, hash_(user));
}

}  // namespace tacit::train
