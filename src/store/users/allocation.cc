#include "store/users/allocation.h"

#include "store/disk/seal.h"

namespace tacit::store {

void PutAllocation(const Rocks& rocks, uint16_t learner, const std::string& allocation,
                   rocksdb::WriteBatch* batch) {
  auto* family = rocks.family(Family::kMeta);
  const std::string key = LearnerKey(meta::kAllocationPrefix, learner);
  if (allocation.empty()) {
    batch->Delete(family, key);
  } else {
    batch->Put(family, key, Seal(allocation));
  }
}

Result<std::string> ReadAllocation(const Rocks& rocks, uint16_t learner) {
  TACIT_ASSIGN(auto allocation,
               rocks.Get(Family::kMeta, LearnerKey(meta::kAllocationPrefix, learner)));
  return allocation ? *std::move(allocation) : std::string();
}

Status ForgetAllocations(const Rocks& rocks) {
  TACIT_ASSIGN(const auto known, rocks.Scan(Family::kMeta, meta::kAllocationPrefix));
  if (known.empty()) return {};
  rocksdb::WriteBatch batch;
  for (const auto& [key, allocation] : known) batch.Delete(rocks.family(Family::kMeta), key);
  return rocks.WriteSynced(batch);
}

}  // namespace tacit::store
