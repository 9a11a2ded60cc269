// The notation is base/bytes.h's; spending.cc has the grammar of a spending.
//     coverage  := partitions:u32 partition*partitions
//     partition := topic:string partition:i32 steps:u64 step*steps
//     step      := offset:u64 spending              what holds from this offset on
// Partitions ascend by (topic, partition), steps by offset. No step equals the one before it; the
// last one is empty.
#include "privacy/coverage.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "base/bytes.h"
#include "base/check.h"

namespace tacit::privacy {
// Makes `offset` the beginning of a step, without changing the function.
Coverage::Steps::iterator Coverage::SplitAt(Steps& steps, uint64_t offset) {
  const auto after = steps.upper_bound(offset);
  if (after == steps.begin()) return steps.emplace_hint(after, offset, Spending{});
  const auto before = std::prev(after);
  if (before->first == offset) return before;
  return steps.emplace_hint(after, offset, before->second);
}

void Coverage::AddTo(Steps& steps, uint64_t begin, uint64_t end, const Spending& spending) {
  auto step = SplitAt(steps, begin);
  const auto last = SplitAt(steps, end);
  Spending before = step == steps.begin() ? Spending{} : std::prev(step)->second;
  // Erases steps that equal the one before: this happens after the last step, through rounding, or
  // if both are infinite.
  for (bool inside = true; inside;) {
    inside = step != last;
    if (inside) {
      step->second.Add(spending);
      InsertMaximal(step->second, &worst_);
    }
    if (step->second == before) {
      step = steps.erase(step);
    } else {
      before = step->second;
      ++step;
    }
  }
}

void Coverage::Add(const Use& use) {
  if (use.spending.empty()) return;
  for (const OffsetRange& range : use.ranges) {
    TACIT_CHECK(range.begin <= range.end, "a range that ends before it begins");
    if (range.size() > 0)
      AddTo(partitions_[Place(use.topic, range.partition)], range.begin, range.end, use.spending);
  }
}

// Collects the uses in a small coverage, as ranges may overlap within and between uses, and lays it
// over this one step by step.
std::vector<Spending> Coverage::WorstAfter(std::span<const Use> uses) const {
  Coverage more;
  for (const Use& use : uses) more.Add(use);
  std::vector<Spending> worst = worst_;
  for (const auto& [place, steps] : more.partitions_) {
    const auto found = partitions_.find(place);
    for (auto step = steps.begin(); step != steps.end(); ++step) {
      if (step->second.empty()) continue;
      const auto consider = [&](Spending used) {
        used.Add(step->second);
        InsertMaximal(std::move(used), &worst);
      };
      if (found == partitions_.end()) {
        consider({});
        continue;
      }
      const Steps& here = found->second;
      auto used = here.upper_bound(step->first);
      consider(used == here.begin() ? Spending{} : std::prev(used)->second);
      const uint64_t end = std::next(step)->first;
      for (; used != here.end() && used->first < end; ++used) consider(used->second);
    }
  }
  return worst;
}

void Coverage::AddAll(const Coverage& other) {
  for (const auto& [place, steps] : other.partitions_) {
    for (auto step = steps.begin(); step != steps.end(); ++step) {
      if (step->second.empty()) continue;
      const OffsetRange range{place.second, step->first, std::next(step)->first};
      Add({place.first, {&range, 1}, step->second});
    }
  }
}

std::string Coverage::Encode() const {
  ByteWriter out;
  out.Put(static_cast<uint32_t>(partitions_.size()));
  for (const auto& [place, steps] : partitions_) {
    out.PutString(place.first).Put(place.second).Put(static_cast<uint64_t>(steps.size()));
    for (const auto& [offset, spending] : steps) {
      out.Put(offset);
      spending.EncodeTo(&out);
    }
  }
  return std::move(out).Take();
}

bool Coverage::DecodeSteps(ByteReader* in, Steps* steps) {
  constexpr size_t kLeastBytesEach = 28;
  const auto count = in->Get<uint64_t>();
  if (count == 0 || count > in->remaining() / kLeastBytesEach) return false;
  for (uint64_t k = 0; k < count; ++k) {
    const auto offset = in->Get<uint64_t>();
    Spending spending;
    if (!Spending::Decode(in, &spending)) return false;
    const bool ascends = steps->empty() || offset > steps->rbegin()->first;
    if (!ascends || spending == (steps->empty() ? Spending{} : steps->rbegin()->second))
      return false;
    steps->emplace_hint(steps->end(), offset, std::move(spending));
  }
  return steps->rbegin()->second.empty();
}

Result<Coverage> Coverage::Decode(std::string_view bytes) {
  const auto broken = [] { return Fail(ErrorCode::kCorruption, "coverage is not well-formed"); };
  ByteReader in(bytes);
  Coverage coverage;
  const auto partitions = in.Get<uint32_t>();
  for (uint32_t i = 0; i < partitions && in.ok(); ++i) {
    std::string topic(in.GetString());
    const Place place(std::move(topic), in.Get<int32_t>());
    // Places are written in order, once each, and every partition has a step.
    if (!coverage.partitions_.empty() && !(coverage.partitions_.rbegin()->first < place))
      return broken();
    Steps& steps = coverage.partitions_[place];
    if (!DecodeSteps(&in, &steps)) return broken();
    for (const auto& [offset, spending] : steps)
      if (!spending.empty()) InsertMaximal(spending, &coverage.worst_);
  }
  if (!in.at_end()) return broken();
  return coverage;
}

}  // namespace tacit::privacy
