#pragma once

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <system_error>
#include <vector>

namespace tacit::test {

// The regular files in a folder and in the folders below it, links to folders included, in order.
inline std::vector<std::filesystem::path> FilesBelow(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (const auto& entry :
       fs::recursive_directory_iterator(folder, fs::directory_options::follow_directory_symlink))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

// The bytes of the files of these kinds. RocksDB's own threads delete files that are no longer
// used: a file that goes meanwhile counts nothing.
inline uint64_t BytesBelow(const std::filesystem::path& folder,
                           std::initializer_list<std::string_view> kinds) {
  namespace fs = std::filesystem;
  uint64_t bytes = 0;
  std::error_code gone;
  for (const auto& entry :
       fs::recursive_directory_iterator(folder, fs::directory_options::follow_directory_symlink)) {
    if (std::ranges::find(kinds, entry.path().extension()) == kinds.end()) continue;
    const uint64_t size = entry.file_size(gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

}  // namespace tacit::test
