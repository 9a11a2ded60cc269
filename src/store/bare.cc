#include "store/bare.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>

#include "store/disk/rocks.h"

namespace tacit::store {
namespace {

// Scatters the rows, as hashed buckets are.
constexpr uint64_t kScatter = 0x9e3779b97f4a7c15;

Result<double> WriteInto(const std::string& folder, uint64_t rows, uint32_t floats,
                         uint64_t batch_rows) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  rocksdb::DB* opened = nullptr;
  TACIT_RETURN_IF_ERROR(ToStatus(rocksdb::DB::Open(options, folder, &opened), "opening " + folder));
  const std::unique_ptr<rocksdb::DB> db(opened);
  rocksdb::WriteOptions synced;
  synced.sync = true;
  std::vector<float> row(floats, 1);
  rocksdb::WriteBatch batch;
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t begin = 0; begin < rows; begin += batch_rows) {
    batch.Clear();
    for (uint64_t i = begin; i < std::min(rows, begin + batch_rows); ++i) {
      row[0] = static_cast<float>(i);
      const RowKey key = EncodeRowKey({.high = PlaceHigh(0, 0, 0), .bucket = i * kScatter});
      batch.Put({key.data(), key.size()},
                {reinterpret_cast<const char*>(row.data()), floats * sizeof(float)});
    }
    TACIT_RETURN_IF_ERROR(ToStatus(db->Write(synced, &batch), "writing to " + folder));
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Result<double> WriteBareRows(const std::string& folder, uint64_t rows, uint32_t floats,
                             uint64_t batch_rows) {
  auto seconds = WriteInto(folder, rows, floats, batch_rows);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return seconds;
}

}  // namespace tacit::store
