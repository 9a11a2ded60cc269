#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "model/sequence/layout.h"
#include "model/sequence/trained_scorer.h"
#include "serve/items/item_model.h"

namespace tacit::serve {
namespace {

constexpr uint64_t kColdScores = uint64_t{1} << 24;

// The parts of a snapshot that a state is made of. Commits share them until they change.
struct SequenceSource {
  std::shared_ptr<const store::DenseState> dense;
  std::shared_ptr<const std::string> released = {};  // null where the model has no start

  bool operator==(const SequenceSource&) const = default;
};

class SequenceState final : public ItemState {
 public:
  SequenceState(SequenceSource source, const model::SequenceLayout& layout,
                std::span<const float> served, ReleasedStart start)
      : source_(std::move(source)), start_(std::move(start)) {
    scorer_.Publish(layout, served, start_.noise.view(), start_.prior.get());
  }

  bool IsOf(const SequenceSource& source) const { return source_ == source; }
  void SetColdStart(std::vector<float> scores) { cold_start_ = std::move(scores); }

  // Scores every item; kCorruption for scores that are not finite.
  Status Score(std::span<const uint32_t> history, std::span<float> scores) const {
    TACIT_RETURN_IF_ERROR(scorer_.Score(history, scores));
    if (std::ranges::all_of(scores, [](float s) { return std::isfinite(s); })) return {};
    return Fail(ErrorCode::kCorruption, "the model's scores are not numbers");
  }

 private:
  const SequenceSource source_;
  const ReleasedStart start_;
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
  SequenceItems(LearnerIndex learner, const model::SequenceOptions& options, model::KeptNoise noise,
                ReadStart start)
      : learner_(learner),
        layout_(options),
        noise_(std::move(noise)),
        read_start_(std::move(start)) {}

  std::string_view kind() const override { return "sequence"; }
  uint32_t items() const override { return layout_.options().catalogue; }

  Result<std::shared_ptr<const ItemState>> Build(
      const store::Snapshot& snapshot,
      const std::shared_ptr<const ItemState>& last) const override {
    SequenceSource source{.dense = snapshot.Dense(learner_)};
    if (read_start_) source.released = snapshot.Released(learner_);
    // With a start, the first release comes with the first step.
    if (source.dense == nullptr || (read_start_ && source.released == nullptr))
      return std::shared_ptr<const ItemState>();
    if (last != nullptr && static_cast<const SequenceState&>(*last).IsOf(source)) return last;
    const std::span<const float> served = snapshot.ServedDense(learner_);
    if (served.size() != layout_.size())
      return Fail(ErrorCode::kCorruption, fmt::format("{} parameters where the model has {}",
                                                      served.size(), layout_.size()));
    ReleasedStart start{.prior = nullptr, .noise = noise_};
    if (read_start_) {
      TACIT_ASSIGN(start, read_start_(*source.released));
    }
    auto state =
        std::make_shared<SequenceState>(std::move(source), layout_, served, std::move(start));
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
  const model::KeptNoise noise_;
  const ReadStart read_start_;
};

}  // namespace

std::shared_ptr<const ItemModel> MakeSequenceItems(LearnerIndex learner,
                                                   const model::SequenceOptions& options,
                                                   model::KeptNoise noise, ReadStart start) {
  TACIT_CHECK(model::CheckOptions(options).has_value() && options.catalogue > 0);
  TACIT_CHECK(noise.item_variance.empty() || noise.item_variance.size() == options.catalogue,
              "a variance per item");
  return std::make_shared<const SequenceItems>(learner, options, std::move(noise),
                                               std::move(start));
}

}  // namespace tacit::serve
