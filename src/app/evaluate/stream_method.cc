#include "app/evaluate/stream_method.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "app/evaluate/item_histogram.h"
#include "app/evaluate/ranked_method.h"
#include "app/evaluate/trained_model.h"
#include "app/evaluate/trained_stream.h"
#include "base/check.h"
#include "model/transitions/scorer.h"
#include "train/transitions_release.h"

namespace tacit::app {
namespace {

using model::transitions::Catalogue;
using model::transitions::Options;

class TransitionsStream final : public StreamMethod {
 public:
  // Without a catalogue of its own it goes by the number of items alone.
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
  const Catalogue plain_;
  model::transitions::ReleasedModel model_;
  std::optional<model::transitions::Scorer> scorer_;
};

// The sums of all periods, the same answer for everybody.
class PopularityStream final : public StreamMethod {
 public:
  explicit PopularityStream(const SequenceSetting& setting)
      : options_(setting.transitions), scores_(setting.catalogue->items()) {}

  Result<double> Learn(const StreamPeriod& period, double mu, noise::NoiseSource& noise,
                       WorkerPool&) override {
    const ItemHistogram histogram =
        ReleaseItems(period.histories, period.known, options_.popularity_items, mu, noise);
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

Status CheckStreamMethod(std::string_view name) {
  TACIT_RETURN_IF_ERROR(CheckSequenceMethod(name));
  if (name != kRankedMethod) return {};
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("--learner {} learns its order from everybody at once, not from a --stream; "
                  "transitions, which it begins with, does",
                  name));
}

std::string StreamMethodIdentity(std::string_view name, const SequenceSetting& setting) {
  std::string identity = SequenceMethodIdentity(name, setting);
  // Where counts are among them, their constants have it.
  if (!LearnsAtOnce(name) && !BeginsWithCounts(name))
    identity += fmt::format(" forget {}", setting.transitions.forget);
  return identity;
}

std::unique_ptr<StreamMethod> MakeStreamMethod(std::string_view name,
                                               const SequenceSetting& setting,
                                               WorkerPool& workers) {
  TACIT_CHECK(setting.catalogue != nullptr);
  if (name == "popularity") return std::make_unique<PopularityStream>(setting);
  if (!LearnsAtOnce(name)) return MakeTrainedStream(name, setting, workers);
  return std::make_unique<TransitionsStream>(setting, name == "transitions", workers);
}

}  // namespace tacit::app
