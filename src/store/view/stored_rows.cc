#include "store/view/stored_rows.h"

#include <fmt/format.h>

#include <memory>

#include "store/rows/row_codec.h"
#include "store/view/fold.h"

namespace tacit::store {

Status ForStoredRows(const Rocks& rocks, const SnapshotImpl& snapshot,
                     const LearnerDirectory& directory, const EachStoredRow& each) {
  const auto show = [&](const FoldRow& row) {
    const RowKey key = EncodeRowKey(row.place);
    return each({key.data(), key.size()},
                {reinterpret_cast<const char*>(row.floats.data()), row.floats.size_bytes()});
  };
  const std::vector<FoldRow> overlay = *MergeOverlay(directory, snapshot.view());
  auto next = overlay.begin();
  rocksdb::ReadOptions options;
  options.snapshot = snapshot.held();
  options.fill_cache = false;
  for (auto* family : rocks.row_families()) {
    const std::unique_ptr<rocksdb::Iterator> it(rocks.db().NewIterator(options, family));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      const std::string_view key = it->key().ToStringView();
      if (key == kRowsMarkerKey) break;  // the last key
      bool newer = false;
      for (; next != overlay.end(); ++next) {
        const RowKey other = EncodeRowKey(next->place);
        const std::string_view place(other.data(), other.size());
        if (place > key) break;
        newer = newer || place == key;
        TACIT_RETURN_IF_ERROR(show(*next));
      }
      if (!newer) TACIT_RETURN_IF_ERROR(each(key, it->value().ToStringView()));
    }
    TACIT_RETURN_IF_ERROR(ToStatus(it->status(), "reading rows of store " + rocks.path()));
  }
  for (; next != overlay.end(); ++next) TACIT_RETURN_IF_ERROR(show(*next));
  return {};
}

Result<StoredRowParser::Row> StoredRowParser::Parse(std::string_view key, std::string_view stored) {
  const bool is_row = key.size() == kRowKeyBytes;
  const auto learner = static_cast<uint16_t>(is_row ? SequenceOf(key.substr(1, 2)) : ~0u);
  const auto number = static_cast<uint16_t>(is_row ? SequenceOf(key.substr(3, 2)) : ~0u);
  const auto table = learner < records_.size() ? records_[learner].layout.TableOfNumber(number)
                                               : std::optional<uint32_t>();
  const auto does_not_fit = [&] {
    return Fail(ErrorCode::kCorruption, fmt::format("a row of learner {} does not fit", learner));
  };
  if (!table) return does_not_fit();
  const RowLayout& layout = records_[learner].layout;
  const uint32_t dim = layout.space.tables()[*table].dim;
  floats_.resize(layout.RowFloats(*table));
  if (!DecodeRow(stored, dim, layout.state_floats[*table], floats_)) return does_not_fit();
  return Row{.learner = &records_[learner],
             .number = number,
             .dim = dim,
             .bucket = SequenceOf(key.substr(5)),
             .floats = floats_};
}

}  // namespace tacit::store
