#pragma once

#include <algorithm>
#include <filesystem>
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

}  // namespace tacit::test
