#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "workers/records.h"
#include "workers/seal.h"
#include "workers/slices.h"

namespace tacit::workers {

// The two topics as an operator finds them: the newest plan, the workers that were heard, and what
// of the plan's slices lies summed. What was written again later counts as it did for its readers:
// the plan of the latest time, and each worker's last hello. Records come in their order, those of
// NAME.plan first. It counts a body by its ranges, and says nothing of its sums. Not thread-safe.
class Overview {
 public:
  struct Heard {
    Hello hello;
    int64_t at_ms = 0;  // the record's time
  };
  // A slice of the plan, and how much of it bodies have.
  struct Progress {
    Slice slice;
    uint64_t offsets = 0, delivered = 0;
  };

  explicit Overview(const SharedKey& key) : key_(key) {}

  void SeePlan(std::string_view value);
  void SeeSums(std::string_view key, std::string_view value, int64_t time_ms);

  const std::optional<Plan>& plan() const { return plan_; }
  // By name; a worker that has said that it leaves is none of them.
  const std::map<std::string, Heard>& workers() const { return workers_; }
  std::vector<Progress> slices() const;
  // Chunks of other periods than the plan's.
  uint64_t others() const { return others_; }
  // The records that cannot be read, by the reason.
  const std::map<std::string, uint64_t>& unread() const { return unread_; }

 private:
  struct Body {
    Ranges ranges{};              // of its first chunk
    std::set<uint32_t> chunks{};  // that are here
    uint64_t missing = 0;         // bytes
  };

  void SeeChunk(const SealedRecord& record);

  SharedKey key_;
  std::optional<Plan> plan_;
  std::map<std::string, Heard> workers_;
  std::map<std::string, uint64_t> newest_hello_;  // by worker: its number
  std::map<BodyName, Body> bodies_;
  uint64_t others_ = 0;
  std::map<std::string, uint64_t> unread_;
};

}  // namespace tacit::workers
