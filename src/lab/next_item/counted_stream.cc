#include "lab/next_item/counted_stream.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "model/transitions/scorer.h"
#include "train/item_histogram.h"
#include "train/transitions_release.h"

namespace tacit::lab {
namespace {

using model::transitions::Options;
using model::transitions::PublicItems;

class TransitionsStream final : public StreamMethod {
 public:
  // Without `described`, it knows only the number of items.
  TransitionsStream(const SequenceSetting& setting, bool described, WorkerPool& workers)
      : plain_(setting.catalogue->items()),
        model_(described ? *setting.catalogue : plain_, setting.transitions, workers) {}

  uint32_t context() const override { return model_.options().lags; }

  Result<double> Learn(const StreamPeriod& period, double mu, noise::NoiseSource& noise,
                       WorkerPool& workers) override {
    TACIT_ASSIGN(const auto charge, train::ReleaseTransitionsPeriod(
                                        {.histories = period.histories, .known = period.known}, mu,
                                        noise, workers, &model_));
    scorer_.emplace(model_.estimate(), model_.options(), workers);
    return charge.MuSquared();
  }

  void Score(std::span<const uint32_t> history, std::span<float> scores) const override {
    scorer_->Score(history, scores);
  }

 private:
  const PublicItems plain_;
  model::transitions::ReleasedModel model_;
  std::optional<model::transitions::Scorer> scorer_;
};

// Adds up the histograms of all periods; gives the same answer to every user.
class PopularityStream final : public StreamMethod {
 public:
  explicit PopularityStream(const SequenceSetting& setting)
      : options_(setting.transitions), scores_(setting.catalogue->items()) {}

  Result<double> Learn(const StreamPeriod& period, double mu, noise::NoiseSource& noise,
                       WorkerPool&) override {
    const train::ItemHistogram histogram =
        train::ReleaseItems(period.histories, period.known, options_.popularity_items, mu, noise);
    for (size_t item = 0; item < scores_.size(); ++item)
      scores_[item] = static_cast<float>(options_.forget * scores_[item] + histogram.sums[item]);
    return histogram.charge.MuSquared();
  }

  void Score(std::span<const uint32_t>, std::span<float> scores) const override {
    std::ranges::copy(scores_, scores.begin());
  }

 private:
  const Options options_;
  std::vector<float> scores_;
};

}  // namespace

std::unique_ptr<StreamMethod> MakeCountedStream(std::string_view name,
                                                const SequenceSetting& setting,
                                                WorkerPool& workers) {
  if (name == "popularity") return std::make_unique<PopularityStream>(setting);
  return std::make_unique<TransitionsStream>(setting, name == "transitions", workers);
}

}  // namespace tacit::lab
