#pragma once

#include <cstdint>

#include "base/result.h"

// Divides memory.total_bytes. docs/internals/wiring.md derives the sums.
namespace tacit::wiring {

struct Assembly;

// The division of the memory total; every part is at least what its room needs to work.
struct MemoryPlan {
  uint64_t row_cache_bytes = 0;      // per learner
  uint64_t store_bytes = 0;          // block cache and memtables
  uint64_t queue_bytes = 0;          // decoded steps waiting
  uint64_t model_bytes = 0;          // dense parameters, optimiser, activations
  uint64_t overlay_bytes = 0;        // committed rows and dense blobs not yet folded
  uint64_t request_bytes = 0;        // connections, requests and answers; the next two among them
  uint64_t held_bytes = 0;           // of requests being received and answers being sent
  uint64_t operator_held_bytes = 0;  // the same at serve.operator_listen
};

// Divides memory_total_bytes of the assembly's configuration among its learners and what serves
// them, or names the least total that would do. Does not read assembly.memory.
Result<MemoryPlan> PlanMemory(const Assembly& assembly);

// The bytes that a worker takes beside its model, which grows by some 70 a row that was ever
// released. kInvalidArgument: they are more than the total.
Result<uint64_t> PlanWorker(const Assembly& assembly);

// The bytes that each checkpoint that `--serve-only` has open may take for reading:
// serve.versions.open of them, and one more while they change, are within the total together with
// what serves them. Where they have no room, the failure names the least total, and how many would
// have room.
Result<uint64_t> PlanReaders(const Assembly& assembly);

}  // namespace tacit::wiring
