#pragma once

#include <cstdint>
#include <string>

#include "script.h"
#include "store/care/restore.h"

namespace tacit::store {

// An allowance that no user of the script exceeds by that commit: each is in two of three.
inline constexpr uint32_t AllowanceOfScript(uint64_t through) {
  return static_cast<uint32_t>((2 * through + 2) / 3);
}

// The request restores a store whose commits `from` + 1 to `through` of script.h are lost.
inline RestoreRequest RestoreOfScript(const StoreOptions& store, const std::string& checkpoint,
                                      uint64_t from, uint64_t through, const Digest& head) {
  RestoreRequest request{.from = checkpoint,
                         .counts_of = {},
                         .store = store,
                         .through = CommitSeq(through),
                         .head = head,
                         .gaps = {}};
  if (through == from) return request;
  LearnerGap gap{.learner = LearnerIndex(0),
                 .charges = {},
                 .position = Script::PositionOf(through),
                 .step = through,
                 .users = LearnerGap::Users::kAll,
                 .gap = {.steps = static_cast<uint32_t>(through - from),
                         .allowance = AllowanceOfScript(through),
                         .period = through},
                 .counted = {}};
  for (uint64_t seq = from + 1; seq <= through; ++seq)
    gap.charges.push_back(TestCharge("ctr", seq));
  request.gaps.push_back(std::move(gap));
  return request;
}

}  // namespace tacit::store
