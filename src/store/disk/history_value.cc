// The values of `histories`, sealed. The notation is base/bytes.h's, the keys are user_values.h's.
//     history := commit:u64 added:u32 age_most_ms:i64 items:u32 item*items       oldest item first
//     item    := item:u32 unix_ms:i64
// `commit` changed the value last and appended the last `added` items. `age_most_ms` 0: items are
// kept for ever.
#include "store/disk/history_value.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "store/disk/seal.h"

namespace tacit::store {
namespace {

// Drops old items during compaction. Keeps damaged values, which readers report.
class HistoryFilter final : public rocksdb::CompactionFilter {
 public:
  HistoryFilter(int64_t wall, int64_t known) : wall_(wall), known_(known) {}
  const char* Name() const override { return "tacit.histories"; }
  bool Filter(int, const rocksdb::Slice& key, const rocksdb::Slice& value, std::string* new_value,
              bool* value_changed) const override {
    if (key.size() <= sizeof(uint16_t)) return false;  // a learner's step
    const auto payload = Unseal(value.ToStringView(), "a user's history");
    KeptHistory kept;
    if (!payload || !DecodeHistory(*payload, &kept)) return false;
    const size_t before = kept.items.size();
    const bool capped = kept.Cap(wall_);
    kept.Forget(known_);
    if (kept.items.empty()) return true;
    *value_changed = capped || kept.items.size() < before;
    if (*value_changed) *new_value = Seal(EncodeHistory(kept));
    return false;
  }

 private:
  const int64_t wall_, known_;
};

class HistoryFilters final : public rocksdb::CompactionFilterFactory {
 public:
  explicit HistoryFilters(std::shared_ptr<RetentionClock> retention)
      : retention_(std::move(retention)) {}
  const char* Name() const override { return "tacit.histories"; }
  std::unique_ptr<rocksdb::CompactionFilter> CreateCompactionFilter(
      const rocksdb::CompactionFilter::Context&) override {
    return std::make_unique<HistoryFilter>(retention_->WallTime(), retention_->Now());
  }

 private:
  const std::shared_ptr<RetentionClock> retention_;
};

}  // namespace

std::string EncodeHistory(const KeptHistory& kept) {
  ByteWriter writer;
  writer.Put(kept.commit).Put(kept.added).Put(kept.age_most);
  writer.Put(static_cast<uint32_t>(kept.items.size()));
  for (const HistoryItem& item : kept.items) writer.Put(item.item).Put(item.timestamp_ms);
  return std::move(writer).Take();
}

bool DecodeHistory(std::string_view payload, KeptHistory* kept) {
  ByteReader reader(payload);
  kept->commit = reader.Get<uint64_t>();
  kept->added = reader.Get<uint32_t>();
  kept->age_most = reader.Get<int64_t>();
  const auto items = reader.Get<uint32_t>();
  for (uint32_t i = 0; i < items && reader.ok(); ++i) {
    const auto item = reader.Get<uint32_t>();
    kept->items.push_back({item, reader.Get<int64_t>()});
  }
  return reader.at_end() && kept->added <= kept->items.size();
}

std::shared_ptr<rocksdb::CompactionFilterFactory> MakeHistoryFilter(
    std::shared_ptr<RetentionClock> retention) {
  return std::make_shared<HistoryFilters>(std::move(retention));
}

}  // namespace tacit::store
