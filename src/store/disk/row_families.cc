#include "store/disk/row_families.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "base/check.h"
#include "base/text.h"
#include "store/disk/file_digest.h"
#include "store/disk/folder.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRowsFolder = "rows";

// Reads G-S, with nothing before or after it.
std::optional<RowFamily> PairOf(std::string_view text) {
  RowFamily family;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, family.generation);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, family.shard);
  if (second.ec != std::errc() || second.ptr != end || family.generation == 0) return std::nullopt;
  return family;
}

std::string RandomName() {
  std::array<uint8_t, 8> bytes;
  TACIT_CHECK(RAND_bytes(bytes.data(), bytes.size()) == 1, "the system has no randomness");
  return "tacit-shard-" + ToHex(bytes);
}

Status Checked(const std::error_code& error, std::string_view doing, const std::string& path) {
  if (!error) return {};
  return Fail(FolderError(error.value(), doing, path));
}

}  // namespace

std::string RowFamily::Name() const { return fmt::format("rows-{}-{}", generation, shard); }
std::string RowFamily::Folder() const {
  return fmt::format("{}/{}-{}", kRowsFolder, generation, shard);
}

std::optional<RowFamily> RowFamilyOf(std::string_view name) {
  constexpr std::string_view kPrefix = "rows-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto family = PairOf(name.substr(kPrefix.size()));
  return family && family->Name() == name ? family : std::nullopt;
}

std::optional<RowFamily> RowFamilyOfFolder(std::string_view folder) {
  const size_t slash = folder.find('/');
  if (slash == folder.npos || folder.substr(0, slash) != kRowsFolder) return std::nullopt;
  const auto family = PairOf(folder.substr(slash + 1));
  return family && family->Folder() == folder ? family : std::nullopt;
}

Result<std::vector<std::string>> FoldersOf(const std::string& store) {
  std::vector<std::string> folders{""};
  const fs::path rows = fs::path(store) / kRowsFolder;
  std::error_code error;
  if (!fs::is_directory(rows, error)) return folders;
  for (fs::directory_iterator it(rows, error), end; !error && it != end; it.increment(error))
    folders.push_back(NameIn(std::string(kRowsFolder), it->path().filename()));
  TACIT_RETURN_IF_ERROR(Checked(error, "reading", rows));
  std::ranges::sort(folders);
  return folders;
}

std::string NameIn(const std::string& folder, const std::string& name) {
  return folder.empty() || name.empty() ? folder + name : folder + "/" + name;
}

Status MakeRowFolder(const std::string& store, const RowFamily& family,
                     const std::vector<std::string>& paths) {
  const std::string folder = store + "/" + family.Folder();
  std::error_code error;
  fs::create_directories(fs::path(folder).parent_path(), error);
  TACIT_RETURN_IF_ERROR(Checked(error, "creating", fs::path(folder).parent_path()));
  if (paths.empty()) {
    fs::create_directory(folder, error);
    TACIT_RETURN_IF_ERROR(Checked(error, "creating", folder));
  } else {
    const fs::path parent = fs::absolute(paths[family.shard % paths.size()]);
    const fs::path target = parent / RandomName();
    error = MakeOwnFolder(target);
    TACIT_RETURN_IF_ERROR(Checked(error, "creating", target));
    TACIT_RETURN_IF_ERROR(SyncFolder(parent));
    fs::create_directory_symlink(target, folder, error);
    TACIT_RETURN_IF_ERROR(Checked(error, "linking", folder));
  }
  TACIT_RETURN_IF_ERROR(SyncFolder(fs::path(folder).parent_path()));
  return SyncFolder(store);
}

Status NeedRowFolder(const std::string& store, const RowFamily& family) {
  const fs::path folder = fs::path(store) / family.Folder();
  std::error_code error;
  if (fs::exists(folder, error)) return {};
  if (!fs::is_symlink(folder, error)) return MakeRowFolder(store, family, {});
  return Fail(ErrorCode::kIo,
              fmt::format("shard {} of store {} is in {}, which is not there: is its disk mounted?",
                          family.shard, store, fs::read_symlink(folder, error).string()));
}

Status RemoveRowFolder(const std::string& store, const std::string& folder) {
  const fs::path path = fs::path(store) / folder;
  std::error_code error;
  if (fs::is_symlink(path, error)) {
    const fs::path target = fs::read_symlink(path, error);
    TACIT_RETURN_IF_ERROR(Checked(error, "reading", path));
    fs::remove_all(target, error);
    TACIT_RETURN_IF_ERROR(Checked(error, "removing", target));
  }
  fs::remove_all(path, error);
  return Checked(error, "removing", path);
}

Status RemoveStore(const std::string& store) {
  TACIT_ASSIGN(const auto folders, FoldersOf(store));
  for (const std::string& folder : folders)
    if (!folder.empty()) TACIT_RETURN_IF_ERROR(RemoveRowFolder(store, folder));
  std::error_code error;
  fs::remove_all(store, error);
  return Checked(error, "removing", store);
}

}  // namespace tacit::store
