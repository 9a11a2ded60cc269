#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "model/sequence/layout.h"
#include "model/sequence/trained_scorer.h"
#include "serve/recommend/item_model.h"

namespace tacit::serve {
namespace {

constexpr uint64_t kColdScores = uint64_t{1} << 24;

class SequenceState final : public ItemState {
 public:
  SequenceState(std::shared_ptr<const store::DenseState> source,
                const model::SequenceLayout& layout, std::span<const float> served,
                const SequenceNoise& noise)
      : source_(std::move(source)) {
    scorer_.Publish(
        layout, served,
        {.weight_variance = noise.weight_variance, .item_variance = noise.item_variance}, nullptr);
  }

  bool IsOf(const std::shared_ptr<const store::DenseState>& source) const {
    return source_ == source;
  }
  void SetColdStart(std::vector<float> scores) { cold_start_ = std::move(scores); }

  // Scores every item; kCorruption for scores that are not finite.
  Status Score(std::span<const uint32_t> history, std::span<float> scores) const {
    TACIT_RETURN_IF_ERROR(scorer_.Score(history, scores));
    if (std::ranges::all_of(scores, [](float s) { return std::isfinite(s); })) return {};
    return Fail(ErrorCode::kCorruption, "the model's scores are not numbers");
  }

 private:
  const std::shared_ptr<const store::DenseState> source_;  // commits share it until it changes
  model::TrainedScorer scorer_;
};

class SequenceScorer final : public ItemScorer {
 public:
  Status Score(const ItemState& state, std::span<const uint32_t> history,
               std::span<float> scores) override {
    return static_cast<const SequenceState&>(state).Score(history, scores);
  }
};

class SequenceItems final : public ItemModel {
 public:
  SequenceItems(LearnerIndex learner, const model::SequenceOptions& options, SequenceNoise noise)
      : learner_(learner), layout_(options), noise_(std::move(noise)) {}

  uint32_t items() const override { return layout_.options().catalogue; }

  Result<std::shared_ptr<const ItemState>> Build(
      const store::Snapshot& snapshot,
      const std::shared_ptr<const ItemState>& last) const override {
    auto source = snapshot.Dense(learner_);
    if (source == nullptr) return std::shared_ptr<const ItemState>();
    if (last != nullptr && static_cast<const SequenceState&>(*last).IsOf(source)) return last;
    const std::span<const float> served = snapshot.ServedDense(learner_);
    if (served.size() != layout_.size())
      return Fail(ErrorCode::kCorruption, fmt::format("{} parameters where the model has {}",
                                                      served.size(), layout_.size()));
    auto state = std::make_shared<SequenceState>(std::move(source), layout_, served, noise_);
    TACIT_ASSIGN(std::vector<float> cold, ColdStart(*state));
    state->SetColdStart(std::move(cold));
    return std::shared_ptr<const ItemState>(std::move(state));
  }

  std::unique_ptr<ItemScorer> MakeScorer() const override {
    return std::make_unique<SequenceScorer>();
  }

 private:
  Result<std::vector<float>> ColdStart(const SequenceState& state) const {
    const uint64_t firsts = std::clamp<uint64_t>(kColdScores / items(), 1, items());
    std::vector<double> sum(items());
    std::vector<float> scores(items());
    for (uint64_t i = 0; i < firsts; ++i) {
      const auto first = static_cast<uint32_t>(i * items() / firsts);
      TACIT_RETURN_IF_ERROR(state.Score({&first, 1}, scores));
      for (size_t item = 0; item < sum.size(); ++item) sum[item] += scores[item];
    }
    std::vector<float> cold;
    for (const double s : sum) cold.push_back(static_cast<float>(s / static_cast<double>(firsts)));
    return cold;
  }

  const LearnerIndex learner_;
  const model::SequenceLayout layout_;
  const SequenceNoise noise_;
};

}  // namespace

std::shared_ptr<const ItemModel> MakeSequenceItems(LearnerIndex learner,
                                                   const model::SequenceOptions& options,
                                                   SequenceNoise noise) {
  TACIT_CHECK(model::CheckOptions(options).has_value() && options.catalogue > 0);
  TACIT_CHECK(noise.item_variance.empty() || noise.item_variance.size() == options.catalogue,
              "a variance per item");
  return std::make_shared<const SequenceItems>(learner, options, std::move(noise));
}

}  // namespace tacit::serve
