#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/worker_pool.h"
#include "model/sequence/sequence_model.h"
#include "ops/backend.h"
#include "serve/recommend/item_model.h"

namespace tacit::serve {
namespace {

constexpr uint64_t kColdScores = uint64_t{1} << 24;

class SequenceState final : public ItemState {
 public:
  SequenceState(std::shared_ptr<const store::DenseState> source, std::span<const float> served)
      : source_(std::move(source)), parameters_(served.begin(), served.end()) {}

  bool IsOf(const std::shared_ptr<const store::DenseState>& source) const {
    return source_ == source;
  }
  std::span<const float> parameters() const { return parameters_; }
  void SetColdStart(std::vector<float> scores) { cold_start_ = std::move(scores); }

 private:
  const std::shared_ptr<const store::DenseState> source_;  // which commits share until it changes
  const std::vector<float> parameters_;
};

// A model on one thread.
class SequenceScorer final : public ItemScorer {
 public:
  SequenceScorer(const model::SequenceOptions& options, const SequenceNoise& noise)
      : noise_(noise),
        workers_(WorkerPool::Options{.workers = 1}),
        backend_(ops::MakeCpuBackend(workers_)),
        model_(options, *backend_) {}

  Status Score(const ItemState& state, std::span<const uint32_t> history,
               std::span<float> scores) override {
    return ScoreAll(state, {&history, 1}, [&](std::span<const float> found) {
      std::ranges::copy(found, scores.begin());
    });
  }

  // take(scores) for each history.
  template <class Take>
  Status ScoreAll(const ItemState& state, std::span<const std::span<const uint32_t>> histories,
                  const Take& take) {
    bool finite = true;
    TACIT_RETURN_IF_ERROR(model_.Score(
        static_cast<const SequenceState&>(state).parameters(),
        {.weight_variance = noise_.weight_variance, .item_variance = noise_.item_variance},
        histories, [&](size_t, std::span<float> scores, size_t) {
          finite = finite && std::ranges::all_of(scores, [](float s) { return std::isfinite(s); });
          take(scores);
        }));
    if (!finite) return Fail(ErrorCode::kCorruption, "the model's scores are not numbers");
    return {};
  }

  size_t parameters() const { return model_.layout().size(); }

 private:
  const SequenceNoise& noise_;  // the model's, which outlives its scorers
  WorkerPool workers_;
  std::unique_ptr<ops::Backend> backend_;
  model::SequenceModel model_;
};

class SequenceItems final : public ItemModel {
 public:
  SequenceItems(LearnerIndex learner, const model::SequenceOptions& options, SequenceNoise noise)
      : learner_(learner), options_(options), noise_(std::move(noise)) {}

  uint32_t items() const override { return options_.catalogue; }

  Result<std::shared_ptr<const ItemState>> Build(
      const store::Snapshot& snapshot,
      const std::shared_ptr<const ItemState>& last) const override {
    auto source = snapshot.Dense(learner_);
    if (source == nullptr) return std::shared_ptr<const ItemState>();
    if (last != nullptr && static_cast<const SequenceState&>(*last).IsOf(source)) return last;
    SequenceScorer scorer(options_, noise_);
    const std::span<const float> served = snapshot.ServedDense(learner_);
    if (served.size() != scorer.parameters())
      return Fail(ErrorCode::kCorruption, fmt::format("{} parameters where the model has {}",
                                                      served.size(), scorer.parameters()));
    auto state = std::make_shared<SequenceState>(std::move(source), served);
    TACIT_ASSIGN(std::vector<float> cold, ColdStart(&scorer, *state));
    state->SetColdStart(std::move(cold));
    return std::shared_ptr<const ItemState>(std::move(state));
  }

  std::unique_ptr<ItemScorer> MakeScorer() const override {
    return std::make_unique<SequenceScorer>(options_, noise_);
  }

 private:
  Result<std::vector<float>> ColdStart(SequenceScorer* scorer, const SequenceState& state) const {
    const uint64_t firsts = std::clamp<uint64_t>(kColdScores / items(), 1, items());
    std::vector<uint32_t> first(firsts);
    std::vector<std::span<const uint32_t>> histories;
    for (uint64_t i = 0; i < firsts; ++i) {
      first[i] = static_cast<uint32_t>(i * items() / firsts);
      histories.emplace_back(&first[i], 1);
    }
    std::vector<double> sum(items());
    TACIT_RETURN_IF_ERROR(scorer->ScoreAll(state, histories, [&](std::span<const float> scores) {
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += scores[i];
    }));
    std::vector<float> cold;
    for (const double s : sum) cold.push_back(static_cast<float>(s / static_cast<double>(firsts)));
    return cold;
  }

  const LearnerIndex learner_;
  const model::SequenceOptions options_;
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
