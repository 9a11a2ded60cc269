#include "lab/next_item/counted_method.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "model/transitions/scorer.h"
#include "train/item_histogram.h"
#include "train/transitions_release.h"

namespace tacit::lab {
namespace {

class TransitionsMethod final : public SequenceMethod {
 public:
  // Without `described`, it knows only the number of items.
  TransitionsMethod(const SequenceSetting& setting, bool described)
      : options_(setting.transitions),
        plain_(setting.catalogue->items()),
        catalogue_(described ? *setting.catalogue : plain_) {}

  Result<double> Fit(const model::Histories& train, const EpsilonDelta& privacy,
                     noise::NoiseSource& noise, WorkerPool& workers,
                     const std::function<void(double)>& progress) override {
    TACIT_ASSIGN(const auto release,
                 train::ReleaseTransitions(train, catalogue_, options_, MuOf(privacy), noise,
                                           workers, progress));
    scorer_.emplace(release.estimate(), options_, workers);
    return EpsilonOf(release.MuSquared(), privacy);
  }

  void Score(std::span<const uint32_t> history, std::span<float> scores) const override {
    scorer_->Score(history, scores);
  }

 private:
  const model::transitions::Options options_;
  const model::transitions::PublicItems plain_;
  const model::transitions::PublicItems& catalogue_;
  std::optional<model::transitions::Scorer> scorer_;
};

class PopularityMethod final : public SequenceMethod {
 public:
  explicit PopularityMethod(const SequenceSetting& setting) : options_(setting.transitions) {}

  Result<double> Fit(const model::Histories& train, const EpsilonDelta& privacy,
                     noise::NoiseSource& noise, WorkerPool&,
                     const std::function<void(double)>&) override {
    TACIT_RETURN_IF_ERROR(CheckEpsilonDelta(privacy));
    TACIT_RETURN_IF_ERROR(model::CheckHistories(train));
    train::ItemHistogram histogram =
        train::ReleaseItems(train, {}, options_.popularity_items, MuOf(privacy), noise);
    scores_ = std::move(histogram.sums);
    return EpsilonOf(histogram.charge.MuSquared(), privacy);
  }

  void Score(std::span<const uint32_t>, std::span<float> scores) const override {
    std::ranges::copy(scores_, scores.begin());
  }

 private:
  const model::transitions::Options options_;
  std::vector<float> scores_;
};

}  // namespace

std::unique_ptr<SequenceMethod> MakeCountedMethod(std::string_view name,
                                                  const SequenceSetting& setting) {
  if (name == "popularity") return std::make_unique<PopularityMethod>(setting);
  return std::make_unique<TransitionsMethod>(setting, name == "transitions");
}

}  // namespace tacit::lab
