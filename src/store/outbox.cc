#include "store/outbox.h"

#include <memory>

namespace tacit::store {

Status Outbox::Find(const Rocks& rocks) {
  const std::unique_ptr<rocksdb::Iterator> it(
      rocks.db().NewIterator({}, rocks.family(Family::kDeltas)));
  for (it->SeekToFirst(); it->Valid(); it->Next())
    Add(CommitSeq(SequenceOf(it->key().ToStringView())), it->value().size());
  return ToStatus(it->status(), "reading store " + rocks.path());
}

void Outbox::Add(CommitSeq seq, uint64_t bytes) {
  kept_.push_back({seq, bytes});
  bytes_ += bytes;
}

Status Outbox::Trim(const Rocks& rocks, CommitSeq taken, uint64_t bytes_most) {
  rocksdb::WriteBatch batch;
  while (!kept_.empty() && (kept_.front().seq <= taken || bytes_ > bytes_most)) {
    batch.Delete(rocks.family(Family::kDeltas), SequenceKey(kept_.front().seq.value));
    bytes_ -= kept_.front().bytes;
    kept_.pop_front();
  }
  return batch.Count() == 0 ? Status{} : rocks.WriteSynced(batch);
}

}  // namespace tacit::store
