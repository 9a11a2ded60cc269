#include "app/evaluate/sequence_method.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "app/evaluate/item_histogram.h"
#include "app/evaluate/ranked_method.h"
#include "app/evaluate/trained_method.h"
#include "app/evaluate/trained_model.h"
#include "base/check.h"
#include "base/text.h"
#include "model/transitions/scorer.h"
#include "privacy/gaussian.h"
#include "privacy/mu.h"
#include "train/transitions_release.h"

namespace tacit::app {
namespace {

constexpr std::array<std::string_view, 3> kCounted = {"transitions", "transitions-no-items",
                                                      "popularity"};

// The counted ones, then the trained.
const std::vector<std::string_view>& Names() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names(kCounted.begin(), kCounted.end());
    names.push_back(kRankedMethod);
    names.insert(names.end(), TrainedMethodNames().begin(), TrainedMethodNames().end());
    return names;
  }();
  return kNames;
}

class TransitionsMethod final : public SequenceMethod {
 public:
  // Without a catalogue of its own it goes by the number of items alone.
  TransitionsMethod(const SequenceSetting& setting, bool described)
      : options_(setting.transitions),
        plain_(setting.catalogue->items()),
        catalogue_(described ? *setting.catalogue : plain_) {}

  Result<double> Fit(const model::Histories& train, const SequencePrivacy& privacy,
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
  const model::transitions::Catalogue plain_;
  const model::transitions::Catalogue& catalogue_;
  std::optional<model::transitions::Scorer> scorer_;
};

class PopularityMethod final : public SequenceMethod {
 public:
  explicit PopularityMethod(const SequenceSetting& setting) : options_(setting.transitions) {}

  Result<double> Fit(const model::Histories& train, const SequencePrivacy& privacy,
                     noise::NoiseSource& noise, WorkerPool&,
                     const std::function<void(double)>&) override {
    TACIT_RETURN_IF_ERROR(CheckSequencePrivacy(privacy));
    TACIT_RETURN_IF_ERROR(model::CheckHistories(train));
    ItemHistogram histogram =
        ReleaseItems(train, {}, options_.popularity_items, MuOf(privacy), noise);
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

std::span<const std::string_view> SequenceMethodNames() { return Names(); }

Status CheckSequenceMethod(std::string_view name) {
  if (std::ranges::find(Names(), name) != Names().end()) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("--learner {}: no learner of sequences{}; there are {}", name,
                          DidYouMean(name, Names()), fmt::join(Names(), ", ")));
}

double MuOf(const SequencePrivacy& privacy) {
  return std::isinf(privacy.epsilon)
             ? privacy.epsilon
             : privacy::GaussianMu(Epsilon(privacy.epsilon), Delta(privacy.delta));
}

double EpsilonOf(double mu_squared, const SequencePrivacy& privacy) {
  return privacy::GaussianEpsilon(std::sqrt(mu_squared), Delta(privacy.delta)).value;
}

Status CheckSequencePrivacy(const SequencePrivacy& privacy) {
  Status mu = privacy::CheckMu(MuOf(privacy));
  if (mu) return {};
  return Fail(
      std::move(mu.error())
          .Context(fmt::format("--epsilon {:g} at delta {:g}", privacy.epsilon, privacy.delta)));
}

bool LearnsAtOnce(std::string_view name) {
  return std::ranges::find(kCounted, name) != kCounted.end();
}

std::string SequenceMethodIdentity(std::string_view name, const SequenceSetting& setting) {
  const bool counted = LearnsAtOnce(name), ranked = name == kRankedMethod;
  std::string identity(name);
  if (counted || ranked || BeginsWithCounts(name)) identity += " " + setting.transitions.Text();
  if (ranked) return identity + " " + setting.ranked.Text();
  if (!counted) identity += " " + setting.trained.Text();
  return identity;
}

std::unique_ptr<SequenceMethod> MakeSequenceMethod(std::string_view name,
                                                   const SequenceSetting& setting) {
  TACIT_CHECK(setting.catalogue != nullptr);
  if (name == "popularity") return std::make_unique<PopularityMethod>(setting);
  if (name == kRankedMethod) return MakeRankedMethod(setting);
  if (!LearnsAtOnce(name)) return MakeTrainedMethod(name, setting);
  return std::make_unique<TransitionsMethod>(setting, name == "transitions");
}

}  // namespace tacit::app
