#include "train/sequence/sequence_start.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "model/sequence/counted_logits.h"
#include "model/sequence/popularity.h"
#include "model/transitions/released_model.h"
#include "train/counts/item_histogram.h"
#include "train/counts/transitions_release.h"

namespace tacit::train {
namespace {

using Kind = SequenceStartOptions::Kind;

Status RefuseStart(std::string why) {
  return Fail(ErrorCode::kInvalidArgument, "sequence start: " + std::move(why));
}

double MuOfOpening(const SequenceStartOptions& options) {
  return options.noise_multiplier > 0 ? 1 / options.noise_multiplier
                                      : std::numeric_limits<double>::infinity();
}

void CheckPaid(const SequenceStartOptions& options, double mu_squared) {
  const privacy::Charge charge = OpeningCharge(options);
  TACIT_CHECK(!charge.Bounded() || mu_squared <= charge.MuSquared() * (1 + 1e-9),
              "an opening released more than it is charged for");
}

// Releases one histogram per period and adds them up.
class PopularStart final : public SequenceStart {
 public:
  PopularStart(const SequenceStartOptions& options, uint32_t items)
      : options_(options), running_(items), logits_(items) {}

  Status Release(const StepHistories& period, double users, noise::NoiseSource& noise) override {
    const ItemHistogram histogram =
        ReleaseItems(period.histories, period.before, std::numeric_limits<size_t>::max(),
                     MuOfOpening(options_), noise);
    CheckPaid(options_, histogram.charge.MuSquared());
    running_.Add(histogram.sums, histogram.stddev, users, options_.forget);
    logits_.Set(running_.Logits());
    return {};
  }

  const model::LogitPrior* prior() const override {
    return options_.popularity_is_prior ? &logits_ : nullptr;
  }
  std::vector<float> ItemShares() const override { return running_.Shares(); }

  std::string Encode() const override { return running_.Encode(); }
  Status Load(std::string_view bytes) override {
    TACIT_ASSIGN(running_, model::RunningItems::Decode(bytes, running_.Shares().size()));
    logits_.Set(running_.Logits());
    return {};
  }

 private:
  const SequenceStartOptions options_;
  model::RunningItems running_;
  model::ItemLogits logits_;
};

// Releases the shaped count model, which carries its own state from period to period.
class CountedStart final : public SequenceStart {
 public:
  CountedStart(const SequenceStartOptions& options, WorkerPool& workers)
      : options_(options),
        workers_(workers),
        model_(*options_.catalogue, options_.counts, workers),
        logits_(options_.catalogue->items(), options_.counts.recent_decay) {}

  Status Release(const StepHistories& period, double, noise::NoiseSource& noise) override {
    TACIT_ASSIGN(const TransitionsCharge paid,
                 ReleaseTransitionsPeriod({.histories = period.histories, .known = period.before},
                                          MuOfOpening(options_), noise, workers_, &model_));
    CheckPaid(options_, paid.MuSquared());
    SetLogits();
    return {};
  }

  const model::LogitPrior* prior() const override { return &logits_; }

  std::string Encode() const override { return model_.Encode(); }
  Status Load(std::string_view bytes) override {
    TACIT_ASSIGN(model_, model::transitions::ReleasedModel::Decode(bytes, *options_.catalogue,
                                                                   options_.counts, workers_));
    if (model_.periods() > 0) SetLogits();
    return {};
  }

 private:
  void SetLogits() {
    model::SetCountedLogits(model_.estimate(), model_.options(), options_.counts_weight, workers_,
                            &logits_);
  }

  const SequenceStartOptions options_;
  WorkerPool& workers_;
  model::transitions::ReleasedModel model_;
  model::DecayedLogits logits_;
};

}  // namespace

Status CheckOptions(const SequenceStartOptions& o, uint32_t items) {
  if (o.kind == Kind::kNone) return {};
  if (!(o.noise_multiplier >= 0 && std::isfinite(o.noise_multiplier)))
    return RefuseStart(fmt::format("noise_multiplier {} is no noise", o.noise_multiplier));
  if (o.kind == Kind::kPopularity) {
    if (o.forget >= 0 && o.forget <= 1) return {};
    return RefuseStart(fmt::format("forget {} is not in 0 to 1", o.forget));
  }
  if (o.catalogue == nullptr || o.catalogue->items() != items)
    return RefuseStart(fmt::format("counts need a catalogue of the model's {} items", items));
  // With a larger weight, sums of logits would not fit floats.
  constexpr double kWeightMost = 1e6;
  if (!(o.counts_weight >= 0 && o.counts_weight <= kWeightMost))
    return RefuseStart(
        fmt::format("counts_weight {} is not in 0 to {:g}", o.counts_weight, kWeightMost));
  return {};
}

bool HasNoTable(const SequenceStartOptions& options) {
  return options.kind == Kind::kCounts && !options.counts.IsDense(options.catalogue->items());
}

// Several histograms on the same users are one Gaussian, and the ledger knows a histogram beside
// steps as a vocabulary's.
privacy::Charge OpeningCharge(const SequenceStartOptions& options) {
  if (options.noise_multiplier == 0) return {};
  return {.mechanism = privacy::MechanismKind::kVocabulary,
          .noise_multiplier = options.noise_multiplier,
          .sigma_selection = options.noise_multiplier,
          .clip_selection = 1};
}

Result<std::string> GrownStart(std::string_view released, const SequenceStartOptions& before,
                               uint32_t items_before, const SequenceStartOptions& after,
                               uint32_t items_after, WorkerPool& workers,
                               std::span<const uint32_t> places) {
  if (before.kind == Kind::kPopularity) {
    TACIT_ASSIGN(auto running, model::RunningItems::Decode(released, items_before));
    running.GrowTo(items_after, places);
    return running.Encode();
  }
  TACIT_CHECK(before.kind == Kind::kCounts, "there is no start to grow");
  TACIT_ASSIGN(const auto counts, model::transitions::ReleasedModel::Decode(
                                      released, *before.catalogue, before.counts, workers));
  TACIT_ASSIGN(const auto grown, counts.Grown(*after.catalogue, places));
  return grown.Encode();
}

std::unique_ptr<SequenceStart> MakeSequenceStart(const SequenceStartOptions& options,
                                                 uint32_t items, WorkerPool& workers) {
  switch (options.kind) {
    case Kind::kNone:
      return nullptr;
    case Kind::kPopularity:
      return std::make_unique<PopularStart>(options, items);
    case Kind::kCounts:
      return std::make_unique<CountedStart>(options, workers);
  }
  return nullptr;
}

}  // namespace tacit::train
