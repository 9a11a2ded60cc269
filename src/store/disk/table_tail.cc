#include "store/disk/table_tail.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include "store/disk/row_families.h"

namespace tacit::store {
namespace {

// RocksDB's table format, versions 1 to 5: a footer of a checksum's type, the places of the
// metaindex and of the index, zeros, the version and a magic number.
constexpr size_t kFooterBytes = 53;
constexpr uint64_t kTableMagic = 0x88e241b785f4cff7;
constexpr std::string_view kPropertiesName = "rocksdb.properties";
constexpr uint32_t kSaysHashIndex = uint32_t{1} << 31;
constexpr uint64_t kMetaindexMost = uint64_t{1} << 20;

std::optional<uint64_t> TakeVarint(std::string_view* in) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !in->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(in->front());
    in->remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return std::nullopt;
}

struct BlockPlace {
  uint64_t offset = 0, bytes = 0;
};
std::optional<BlockPlace> TakePlace(std::string_view* in) {
  const auto offset = TakeVarint(in), bytes = TakeVarint(in);
  if (!offset || !bytes) return std::nullopt;
  return BlockPlace{*offset, *bytes};
}

std::optional<std::string> ReadAt(std::ifstream& file, uint64_t offset, size_t bytes) {
  std::string read(bytes, '\0');
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(read.data(), static_cast<std::streamsize>(bytes));
  if (!file) return std::nullopt;
  return read;
}

// The place of the properties in a metaindex block, whose keys are prefixed by those before them.
std::optional<BlockPlace> FindProperties(std::string_view block) {
  std::string key;
  while (!block.empty()) {
    const auto shared = TakeVarint(&block), own = TakeVarint(&block), bytes = TakeVarint(&block);
    if (!shared || !own || !bytes || *shared > key.size() || *own > block.size()) break;
    key.resize(*shared);
    key += block.substr(0, *own);
    block.remove_prefix(*own);
    if (*bytes > block.size()) break;
    std::string_view value = block.substr(0, *bytes);
    if (key == kPropertiesName) return TakePlace(&value);
    block.remove_prefix(*bytes);
  }
  return std::nullopt;
}

// The last number of the block of properties; nothing if it is not found.
std::optional<uint32_t> LastOfProperties(std::ifstream& file, uint64_t size) {
  if (size < kFooterBytes) return std::nullopt;
  const auto footer = ReadAt(file, size - kFooterBytes, kFooterBytes);
  if (!footer) return std::nullopt;
  uint64_t magic = 0;
  std::memcpy(&magic, footer->data() + kFooterBytes - sizeof(magic), sizeof(magic));
  std::string_view places = std::string_view(*footer).substr(1);
  const auto metaindex = TakePlace(&places);
  if (magic != kTableMagic || !metaindex || metaindex->bytes > kMetaindexMost) return std::nullopt;
  const auto block = ReadAt(file, metaindex->offset, metaindex->bytes);
  const auto properties = block ? FindProperties(*block) : std::nullopt;
  uint32_t last = 0;
  if (!properties || properties->bytes < sizeof(last) || properties->bytes > size ||
      properties->offset > size - properties->bytes)
    return std::nullopt;
  const auto end =
      ReadAt(file, properties->offset + properties->bytes - sizeof(last), sizeof(last));
  if (!end) return std::nullopt;
  std::memcpy(&last, end->data(), sizeof(last));
  return last;
}

}  // namespace

Status CheckTableTail(const std::string& path) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return {};
  const auto last = LastOfProperties(file, size);
  if (!last || (*last & kSaysHashIndex) == 0) return {};
  return Fail(ErrorCode::kCorruption,
              fmt::format("{}: its block of properties is damaged, and RocksDB cannot read it; "
                          "restore a checkpoint",
                          path));
}

Status CheckTableTails(const std::string& store) {
  TACIT_ASSIGN(const auto folders, FoldersOf(store));
  for (const std::string& folder : folders) {
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(store) / folder, error))
      if (entry.path().extension() == ".sst")
        TACIT_RETURN_IF_ERROR(CheckTableTail(entry.path().string()));
  }
  return {};
}

}  // namespace tacit::store
