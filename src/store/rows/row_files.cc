#include "store/rows/row_files.h"

#include <fmt/format.h>

#include <filesystem>

namespace tacit::store {

RowFiles::RowFiles(const Rocks& rocks, rocksdb::ColumnFamilyHandle* family, std::string prefix,
                   uint64_t bytes_most)
    : rocks_(&rocks), prefix_(std::move(prefix)), bytes_most_(bytes_most) {
  arg_.column_family = family;
  rocksdb::IngestExternalFileOptions& options = arg_.options;
  options.move_files = true;
  options.write_global_seqno = false;
  options.snapshot_consistency = true;   // published snapshots must not see rows of later commits
  options.verify_file_checksum = false;  // the file would be read for it once more
}

RowFiles::~RowFiles() {
  std::error_code ignored;
  for (const std::string& file : arg_.external_files) std::filesystem::remove(file, ignored);
}

std::string RowFiles::Doing() const { return "writing rows to " + prefix_; }

Status RowFiles::Put(std::string_view key, std::string_view value) {
  if (!writer_) TACIT_RETURN_IF_ERROR(Begin());
  TACIT_RETURN_IF_ERROR(ToStatus(writer_->Put(AsSlice(key), AsSlice(value)), Doing()));
  return writer_->FileSize() < bytes_most_ ? Status{} : Finish();
}

Status RowFiles::Begin() {
  writer_ = std::make_unique<rocksdb::SstFileWriter>(rocksdb::EnvOptions(), RowsFileOptions(),
                                                     arg_.column_family,
                                                     /*invalidate_page_cache=*/false);
  arg_.external_files.push_back(fmt::format("{}-{}.tmp", prefix_, arg_.external_files.size()));
  // The name that a failed removal has left is a live table's, too, and RocksDB would write into
  // it.
  std::error_code error;
  std::filesystem::remove(arg_.external_files.back(), error);
  if (error) return Fail(ErrorCode::kIo, fmt::format("{}: {}", Doing(), error.message()));
  return ToStatus(writer_->Open(arg_.external_files.back()), Doing());
}

Status RowFiles::Finish() {
  if (!writer_) return {};
  rocksdb::ExternalSstFileInfo written;
  const Status finished = ToStatus(writer_->Finish(&written), Doing());
  writer_.reset();
  arg_.files_checksums.push_back(written.file_checksum);
  arg_.files_checksum_func_names.push_back(written.file_checksum_func_name);
  return finished;
}

rocksdb::Status RowFiles::Ingest(const Rocks& rocks, std::vector<RowFiles>& files) {
  std::vector<rocksdb::IngestExternalFileArg> arguments;
  for (const RowFiles& one : files)
    if (!one.empty()) arguments.push_back(one.arg_);
  if (arguments.empty()) return rocksdb::Status::OK();
  return rocks.db().IngestExternalFiles(arguments);
}

}  // namespace tacit::store
