#include "train/opt_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace tacit::train {

Result<OptOut> OptOut::Read(const std::string& path, const SipHash::Key& key) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Fail(ErrorCode::kNotFound, fmt::format("{} cannot be read", path));
  OptOut read(key);
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || line.starts_with('#')) continue;
    read.users_.push_back(read.hash_(line));
  }
  if (file.bad()) return Fail(ErrorCode::kIo, fmt::format("{} cannot be read to its end", path));
  std::ranges::sort(read.users_);
  const auto [first, last] = std::ranges::unique(read.users_);
  read.users_.erase(first, last);
  return read;
}

uint64_t OptOut::LinesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return 0;
  const auto ends = std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  return static_cast<uint64_t>(ends) + 1;
}

bool OptOut::Has(std::string_view user) const {
  return std::ranges::binary_search(users_, hash_(user));
}

}  // namespace tacit::train
