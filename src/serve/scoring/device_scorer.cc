#include "serve/scoring/device_scorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/files/log.h"
#include "metrics/families.h"

namespace tacit::serve {
namespace {

// Names the version of a snapshot. A number alone does not: two stores that were one, and a commit
// that charges nothing, may share it or the ledger's head.
void NameVersion(const store::Snapshot& snapshot, std::string* name) {
  const auto append = [&](const auto& bytes) { name->append(bytes.begin(), bytes.end()); };
  name->clear();
  append(snapshot.head());
  append(snapshot.term());
  fmt::format_to(std::back_inserter(*name), "{} {}", snapshot.version().value, snapshot.lineage());
}

// The click model of one thread, on a device that all threads share. A request goes to the device
// in as few passes as the device's sizes allow, each of the same version.
class DeviceClickScorer final : public RowScorer {
 public:
  DeviceClickScorer(std::shared_ptr<ScoringDevice> device, LearnerIndex index, std::string learner,
                    const event::FeatureTransform& transform, const model::PctrOptions& options)
      : shared_(std::move(device)),
        index_(index),
        learner_(learner),
        embeds_(!options.space.tables().empty()),
        host_(index, std::move(learner), transform, options) {
    transform.StartBatch(&chunk_);
  }

  Status Score(const store::Snapshot& snapshot, const event::Batch& batch,
               std::span<float> scores) override {
    TACIT_CHECK(scores.size() == batch.size());
    if (!shared_->Takes(batch.size())) return host_.Score(snapshot, batch, scores);
    TACIT_ASSIGN(const std::span<const float> dense, host_.ParametersOf(snapshot));
    read_failed_ = false;
    NameVersion(snapshot, &version_name_);
    const model::PctrVersion version{
        .name = version_name_,
        .dense = dense,
        .read = [this, &snapshot](std::span<const uint64_t> rows, std::span<float> out) {
          Status read = snapshot.Rows(index_, rows, out);
          read_failed_ = !read;
          return read;
        }};
    const auto all = ScoreThere(version, batch, scores);
    if (!all && !read_failed_) shared_->Drop(all.error());
    if (!all || !*all) return host_.Score(snapshot, batch, scores);
    TACIT_RETURN_IF_ERROR(MakeProbabilities(learner_, snapshot, scores));
    shared_->Count(batch.size());
    return {};
  }

 private:
  // Sets `scores` to logits. Returns false if an example alone is too large for the device.
  Result<bool> ScoreThere(const model::PctrVersion& version, const event::Batch& batch,
                          std::span<float> scores);
  // Takes examples from `begin` on, `n` at most, until their entries and rows have room on the
  // device. Returns how many it took.
  size_t TakeChunk(const event::Batch& batch, size_t begin, size_t n);
  std::span<const uint64_t> Entries() const {
    return {chunk_.row.data(), embeds_ ? chunk_.row.size() : 0};
  }
  std::span<const uint32_t> SlotEnds() const {
    return {chunk_.slot_end.data(), embeds_ ? chunk_.slot_end.size() : 0};
  }

  const std::shared_ptr<ScoringDevice> shared_;
  const LearnerIndex index_;
  const std::string learner_;
  const bool embeds_;  // a model without tables uses only the dense numbers
  ClickScorer host_;
  model::ActivationIndexer indexer_;
  model::Activations activations_;
  event::Batch chunk_;
  std::vector<uint32_t> unit_of_;
  std::string version_name_;
  bool read_failed_ = false;  // of this request: the fault is not the device's
};

size_t DeviceClickScorer::TakeChunk(const event::Batch& batch, size_t begin, size_t n) {
  const model::PctrDevice& device = shared_->device();
  for (; n > 0; n /= 2) {
    chunk_.Clear();
    chunk_.AppendRange(batch, begin, begin + n);
    if (Entries().size() > device.entries_most()) continue;
    if (const size_t had = unit_of_.size(); had < n) {
      unit_of_.resize(n);
      std::iota(unit_of_.begin() + static_cast<ptrdiff_t>(had), unit_of_.end(),
                static_cast<uint32_t>(had));
    }
    indexer_.Index(Entries(), SlotEnds(), embeds_ ? chunk_.slots : 0, std::span(unit_of_).first(n),
                   n, &activations_);
    if (activations_.rows.size() <= device.rows_most()) return n;
  }
  return 0;
}

Result<bool> DeviceClickScorer::ScoreThere(const model::PctrVersion& version,
                                           const event::Batch& batch, std::span<float> scores) {
  size_t most = shared_->device().examples_most();
  for (size_t begin = 0; begin < batch.size();) {
    const size_t n = TakeChunk(batch, begin, std::min(most, batch.size() - begin));
    if (n == 0) return false;
    const model::Examples examples{.size = n,
                                   .units = n,
                                   .unit_of = std::span(unit_of_).first(n),
                                   .label = chunk_.label,
                                   .dense = chunk_.dense,
                                   .slot_end = SlotEnds(),
                                   .slot_row = activations_.slot_row};
    TACIT_RETURN_IF_ERROR(
        shared_->device().Forward(version, examples, activations_.rows, scores.subspan(begin, n)));
    begin += n;
    most = n;  // what follows is much like it
  }
  return true;
}

class DeviceClickModel final : public RowModel {
 public:
  DeviceClickModel(std::shared_ptr<ScoringDevice> device, LearnerIndex index, std::string learner,
                   std::shared_ptr<const event::FeatureTransform> transform,
                   const model::PctrOptions& options)
      : device_(std::move(device)),
        index_(index),
        learner_(std::move(learner)),
        transform_(std::move(transform)),
        options_(options),
        host_(MakeClickModel(index_, learner_, transform_, options_)) {}
  std::string_view kind() const override { return host_->kind(); }
  std::unique_ptr<RowScorer> MakeScorer() const override {
    return std::make_unique<DeviceClickScorer>(device_, index_, learner_, *transform_, options_);
  }
  uint32_t RowWidth(size_t feature) const override { return host_->RowWidth(feature); }

 private:
  const std::shared_ptr<ScoringDevice> device_;
  const LearnerIndex index_;
  const std::string learner_;
  const std::shared_ptr<const event::FeatureTransform> transform_;
  const model::PctrOptions options_;
  const std::shared_ptr<const RowModel> host_;
};

}  // namespace

ScoringDevice::ScoringDevice(std::unique_ptr<model::PctrDevice> device, size_t rows_least,
                             std::string learner, metrics::Registry& registry)
    : device_(std::move(device)),
      rows_least_(rows_least),
      learner_(std::move(learner)),
      used_(registry.AddGauge("tacit_gpu_scoring", {{"learner", learner_}})),
      scored_(registry.AddCounter("tacit_gpu_scored_rows_total", {{"learner", learner_}})) {
  used_.Set(1);
}

void ScoringDevice::Drop(const Error& why) {
  if (!works_.exchange(false)) return;
  used_.Set(0);
  spdlog::warn("learner '{}': large requests are scored on the CPU from here on, because {}",
               learner_, why.message);
}

std::shared_ptr<const RowModel> MakeClickModelOn(
    std::shared_ptr<ScoringDevice> device, LearnerIndex index, std::string learner,
    std::shared_ptr<const event::FeatureTransform> transform, const model::PctrOptions& options) {
  return std::make_shared<DeviceClickModel>(std::move(device), index, std::move(learner),
                                            std::move(transform), options);
}

}  // namespace tacit::serve
