#include "lab/passing_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace tacit::lab {

Result<PassingFolder> PassingFolder::Make() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error) {
    const char* const named = std::getenv("TMPDIR");
    return Fail(ErrorCode::kIo,
                fmt::format("{}: making a folder for the run: {}; name another place with TMPDIR",
                            named == nullptr ? "/tmp" : named, error.message()));
  }
  std::string path = (parent / "tacit-run-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr)
    return Fail(ErrorCode::kIo, fmt::format("{}: making a folder for the run: {}; name another "
                                            "place with TMPDIR",
                                            path, std::generic_category().message(errno)));
  return PassingFolder(std::move(path));
}

PassingFolder::~PassingFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace tacit::lab
