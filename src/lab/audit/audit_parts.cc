#include "lab/audit/audit_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tacit::lab {

AuditParts::AuditParts(TrainedAudit kind, uint64_t seed, uint64_t canaries,
                       std::vector<uint64_t> units)
    : kind_(kind), units_(std::move(units)) {
  for (size_t i = 0; i < sizeof(seed); ++i) key_[i] = static_cast<uint8_t>(seed >> (8 * i));
  std::ranges::sort(units_);
  if (kind != TrainedAudit::kOneRun || canaries >= units_.size()) return;
  std::vector<uint64_t> hashes;
  for (const uint64_t unit : units_) hashes.push_back(HashOf("canary", unit));
  std::ranges::nth_element(hashes, hashes.begin() + static_cast<ptrdiff_t>(canaries));
  first_no_canary_ = hashes[canaries];
  all_canaries_ = false;
}

uint64_t AuditParts::HashOf(std::string_view what, uint64_t id) const {
  return SipHash(key_)(fmt::format("{} {}", what, id)).low;
}

uint32_t AuditParts::DrawnFor(uint64_t unit, uint32_t item, uint32_t items) const {
  return static_cast<uint32_t>(HashOf(fmt::format("drawn for {}", unit), item) % items);
}

bool AuditParts::scored(uint64_t unit) const {
  if (!std::ranges::binary_search(units_, unit)) return false;
  if (kind_ == TrainedAudit::kMembership) return HashOf("part", unit) % 3 != 0;
  return all_canaries_ || HashOf("canary", unit) < first_no_canary_;
}

AuditParts::Place AuditParts::PlaceIn(bool reference, uint64_t unit) const {
  if (scored(unit))
    return {.learnt = !reference && member(unit),
            .scored = true,
            .changed = kind_ == TrainedAudit::kOneRun};
  const bool beside = kind_ == TrainedAudit::kOneRun || !std::ranges::binary_search(units_, unit);
  return {.learnt = beside || reference};
}

}  // namespace tacit::lab
