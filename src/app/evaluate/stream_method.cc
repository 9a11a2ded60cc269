#include "app/evaluate/stream_method.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "mechanism/unit_histogram.h"
#include "model/transitions/pairs.h"
#include "model/transitions/scorer.h"

namespace tacit::app {
namespace {

using model::transitions::Catalogue;
using model::transitions::Options;

constexpr std::array<std::string_view, 3> kNames = {"transitions", "transitions-no-items",
                                                    "popularity"};

class TransitionsStream final : public StreamMethod {
 public:
  // Without a catalogue of its own it goes by the number of items alone.
  TransitionsStream(const SequenceSetting& setting, bool described, WorkerPool& workers)
      : plain_(setting.catalogue->items()),
        model_(described ? *setting.catalogue : plain_, setting.transitions, workers) {}

  Result<double> Learn(const train::TransitionsPeriod& period, double mu, noise::NoiseSource& noise,
                       WorkerPool& workers) override {
    TACIT_ASSIGN(const auto charge,
                 train::ReleaseTransitionsPeriod(period, mu, noise, workers, &model_));
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

  Result<double> Learn(const train::TransitionsPeriod& period, double mu, noise::NoiseSource& noise,
                       WorkerPool&) override {
    const size_t items = scores_.size();
    mechanism::UnitHistogram histogram(items, std::isinf(mu) ? 0 : (1 + 1e-12) / mu);
    mechanism::UnitVector vector(items);
    for (size_t unit = 0; unit < period.histories.units(); ++unit) {
      vector.Clear();
      model::transitions::AddPopularity(period.histories.Of(unit).subspan(period.Known(unit)),
                                        options_.popularity_items, &vector);
      histogram.Add(vector);
    }
    const double mu_squared = histogram.charge().MuSquared();
    const std::vector<float> sums = std::move(histogram).Release(noise);
    for (size_t item = 0; item < items; ++item)
      scores_[item] = static_cast<float>(options_.forget * scores_[item] + sums[item]);
    return mu_squared;
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
  if (std::ranges::find(kNames, name) != kNames.end()) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("--learner {} learns from whole histories, many times over; those that "
                          "learn from a --stream as it goes on are {}",
                          name, fmt::join(kNames, ", ")));
}

std::unique_ptr<StreamMethod> MakeStreamMethod(std::string_view name,
                                               const SequenceSetting& setting,
                                               WorkerPool& workers) {
  TACIT_CHECK(setting.catalogue != nullptr);
  if (name == "popularity") return std::make_unique<PopularityStream>(setting);
  return std::make_unique<TransitionsStream>(setting, name == "transitions", workers);
}

}  // namespace tacit::app
