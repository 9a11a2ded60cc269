#include "train/quality/private_quality.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tacit::train {
namespace {

// Adds a range, as a part of the one before where it goes on from there.
void AddRange(const OffsetRange& range, std::vector<OffsetRange>* ranges) {
  for (OffsetRange& known : *ranges)
    if (known.partition == range.partition && known.end == range.begin) {
      known.end = range.end;
      return;
    }
  ranges->push_back(range);
}

}  // namespace

PrivateQuality::PrivateQuality(QualityOptions options, std::unique_ptr<noise::NoiseSource> noise)
    : options_(std::move(options)),
      bins_(options_.bins),
      noise_(std::move(noise)),
      account_(QualityAccount(options_.learner), options_.index, options_.topic,
               privacy::MechanismKind::kQuality, options_.noise_multiplier),
      counts_(size_t{2} * options_.bins),
      position_(options_.position),
      released_(options_.released) {
  TACIT_CHECK(options_.steps > 0, "a window holds something");
}

bool PrivateQuality::Overlaps(std::span<const OffsetRange> ranges) const {
  return std::ranges::any_of(ranges, [&](const OffsetRange& range) {
    return std::ranges::any_of(open_->ranges, [&](const OffsetRange& known) {
      return known.partition == range.partition && known.begin < range.end &&
             range.begin < known.end;
    });
  });
}

void PrivateQuality::Count(std::span<const float> logits, std::span<const float> labels) {
  TACIT_CHECK(logits.size() == labels.size());
  for (size_t i = 0; i < logits.size(); ++i)
    ++counts_[bins_.Of(logits[i]) + (labels[i] > 0.5f ? bins_.size() : 0)];
}

void PrivateQuality::SeePart(std::span<const float> logits, std::span<const float> labels) {
  Count(logits, labels);
}

void PrivateQuality::SeePart(const PartFigures& figures) {
  TACIT_CHECK(figures.bins.size() == counts_.size());
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += figures.bins[i];
}

void PrivateQuality::See(uint64_t step, std::span<const OffsetRange> ranges,
                         std::span<const float> logits, std::span<const float> labels) {
  TACIT_CHECK(!due(), "a window that is due comes before the next step");
  Count(logits, labels);
  const std::vector<uint64_t> counts =
      std::exchange(counts_, std::vector<uint64_t>(counts_.size()));
  if (step % options_.steps == 0)
    open_ = Window{.begin = step, .ranges = {}, .counts = std::vector<uint64_t>(counts.size())};
  // The window began in another run, or would have records of two passes.
  if (!open_ || step != open_->begin + open_->seen || Overlaps(ranges)) return open_.reset();
  ++open_->seen;
  for (const OffsetRange& range : ranges) AddRange(range, &open_->ranges);
  for (size_t i = 0; i < counts.size(); ++i) open_->counts[i] += counts[i];
}

std::vector<privacy::CommitCharge> PrivateQuality::ChargesWithDue() const {
  TACIT_CHECK(due());
  return account_.ChargesWith(open_->ranges);
}

void PrivateQuality::Release(const stream::Position& after) {
  TACIT_CHECK(due());
  const std::vector<float> noised = account_.Release(open_->ranges, open_->counts, *noise_);
  const auto bins = static_cast<ptrdiff_t>(bins_.size());
  ReleasedScores::Counts counts{.windows = 1,
                                .variance = options_.noise_multiplier * options_.noise_multiplier,
                                .misses = {noised.begin(), noised.begin() + bins},
                                .clicks = {noised.begin() + bins, noised.end()}};
  if (!released_) released_.emplace();
  released_->step_begin = open_->begin;
  released_->step_end = open_->begin + open_->seen;
  released_->all.Add(counts);
  released_->last = std::move(counts);
  position_ = after;
  position_.step = options_.position.step + (++windows_);
  open_.reset();
}

std::optional<store::LearnerCommit> PrivateQuality::TakePending() {
  auto commit = account_.TakePending(position_);
  if (commit) commit->released = std::make_shared<const std::string>(released_->Encode());
  return commit;
}

}  // namespace tacit::train
