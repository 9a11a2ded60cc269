#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "script.h"
#include "store/restore.h"

namespace tacit::store {

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
                 .gap = {.steps = static_cast<uint32_t>(through - from), .period = through},
                 .counted = {}};
  for (uint64_t seq = from + 1; seq <= through; ++seq)
    gap.charges.push_back(TestCharge("ctr", seq));
  for (uint64_t u = 0; u < Script::kUsers; ++u)
    gap.most_uses = std::max(gap.most_uses, Script::UsesOf(u, through).used);
  gap.gap.most = gap.most_uses;
  request.gaps.push_back(std::move(gap));
  return request;
}

}  // namespace tacit::store
