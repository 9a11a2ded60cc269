// A period's way through the product: the stream's cut and draw of its steps, the learner's sums
// with their clip and noise, the bill. Faults are planted between them.
#include "audit/held_learner.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "audit/sums.h"
#include "base/check.h"
#include "mechanism/clipper.h"
#include "mechanism/private_step.h"
#include "mechanism/row_selector.h"
#include "privacy/bill.h"

namespace tacit::audit {
namespace {

using stream::StepBatch;

constexpr double kHeldClip = 1;
struct HeldRecord {
  float numbers[2];
  float label;
};
// The records of a period. The canary's gradient is far longer than the clip; those of the others
// point along it, and against it.
constexpr HeldRecord kRecords[] = {{{300, 0}, 1}, {{-1, 2}, 0}, {{0.5f, 0.5f}, 1}};
constexpr size_t kCanary = 0, kOfPeriod = std::size(kRecords);

train::ClickOptions ModelOptions() {
  train::ClickOptions options;
  options.id = "audited";
  options.index = LearnerIndex(0);
  options.model.dense_width = 2;
  options.model.hidden = {};
  // A step is far below the last place of a parameter: the model stays where it is, and so do the
  // gradients, all of which the adversary knows.
  options.optimizer = {
      .kind = train::OptimizerNamed("sgd"), .learning_rate = 1e-35, .row_learning_rate = 1e-35};
  return options;
}

event::Batch RecordsAt(uint64_t first_offset, bool with_canary) {
  event::Batch batch;
  batch.dense_width = 2;
  for (size_t i = 0; i < kOfPeriod; ++i) {
    if (i == kCanary && !with_canary) continue;
    batch.offset.push_back(first_offset + i);
    batch.timestamp_ms.push_back(0);
    batch.label.push_back(kRecords[i].label);
    batch.dense.insert(batch.dense.end(), std::begin(kRecords[i].numbers),
                       std::end(kRecords[i].numbers));
  }
  return batch;
}

// Gives steps of a period other records: those of `all` for which `in(record, step)` holds.
void Refill(const event::Batch& all, const std::function<bool(size_t, size_t)>& in,
            std::vector<StepBatch>* steps) {
  for (size_t s = 0; s < steps->size(); ++s) {
    StepBatch& step = (*steps)[s];
    step.examples = event::EmptyLike(all);
    step.unit_of.clear();
    step.sum_block_end.clear();  // one block
    step.units = 0;
    for (size_t record = 0; record < all.size(); ++record) {
      if (!in(record, s)) continue;
      step.examples.AppendRange(all, record, record + 1);
      step.unit_of.push_back(step.units++);
    }
  }
}

// Draws from another source, which keeps its key: a run can be repeated.
class DrawsOf final : public noise::SilentNoise {
 public:
  explicit DrawsOf(noise::NoiseSource& source) : source_(source) {}
  void FillKey(std::span<uint8_t, 32> key) override { source_.FillKey(key); }
  uint64_t GeometricSkip(double p) override { return source_.GeometricSkip(p); }

 private:
  noise::NoiseSource& source_;
};

}  // namespace

HeldLearner::HeldLearner(const HeldCase& audited, std::unique_ptr<noise::NoiseSource> draws)
    : audited_(audited), draws_(std::move(draws)), backend_(ops::MakeCpuBackend(workers_)) {
  MakeLearner();
  MakeParticipation({});
  LearnGradients();
}
HeldLearner::~HeldLearner() = default;

void HeldLearner::MakeLearner() {
  const HeldSetting& setting = audited_.setting;
  const bool coins = audited_.fault == HeldFault::kPoissonCharge;
  const train::ClickOptions options = ModelOptions();
  rows_ = std::make_unique<train::MemoryRows>(
      train::MakeRowLayout(options, model::Pctr(options.model, *backend_)));
  auto tap = std::make_unique<TappedNoise>();
  tap_ = tap.get();
  auto mechanism =
      mechanism::MakePrivateStep(options.model.space, mechanism::MakeAllRows(),
                                 mechanism::MakeFlatClipper(kHeldClip, setting.sigma),
                                 {.sigma_gradient = setting.sigma,
                                  .expected_batch = 1,
                                  .sampling_rate = 1 / static_cast<double>(setting.block_steps),
                                  .block_steps = coins ? 0 : setting.block_steps});
  learner_ = std::make_unique<train::ClickLearner>(options, std::move(mechanism), std::move(tap),
                                                   *backend_, *rows_, nullptr);
}

void HeldLearner::MakeParticipation(stream::Position start) {
  const auto& [sigma, block_steps, blocks] = audited_.setting;
  auto draws = std::make_unique<DrawsOf>(*draws_);
  if (audited_.fault == HeldFault::kPoissonSteps) {
    participation_ =
        stream::MakePoissonParticipation({.offsets_per_period = kOfPeriod,
                                          .steps_per_period = block_steps * blocks,
                                          .sampling_rate = 1 / static_cast<double>(block_steps),
                                          .start = std::move(start),
                                          .full_at_once = true},
                                         std::move(draws));
    return;
  }
  participation_ = stream::MakeAllocationParticipation({.offsets_per_period = kOfPeriod,
                                                        .block_steps = block_steps,
                                                        .blocks = blocks,
                                                        .start = std::move(start),
                                                        .full_at_once = true},
                                                       std::move(draws));
}

const std::vector<int64_t>& HeldLearner::Sum(const StepBatch& step, noise::NoiseSource* noise) {
  tap_->From(noise);
  tap_->draws().clear();
  const std::atomic<bool> go_on = false;
  train::StepReport report;
  const auto taken = learner_->TakeStep(step, go_on, &report);
  TACIT_CHECK(taken.has_value() && *taken, "the step failed");
  TACIT_CHECK(tap_->draws().size() == 1, "some numbers have no noise, or twice");
  return tap_->draws().front().values;
}

void HeldLearner::LearnGradients() {
  const event::Batch all = RecordsAt(0, true);
  std::vector<std::vector<double>> gradients;
  for (size_t record = 0; record < all.size(); ++record) {
    std::vector<StepBatch> step(1);
    Refill(
        all, [&](size_t at, size_t) { return at == record; }, &step);
    const auto& sum = Sum(step[0], nullptr);
    gradients.emplace_back(sum.begin(), sum.end());
  }
  const auto dot = [](const auto& a, const auto& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  canary_ = gradients[kCanary];
  const double squared = dot(canary_, canary_);
  for (double& number : canary_) number /= squared;
  for (const auto& gradient : gradients) along_canary_.push_back(dot(gradient, canary_));
}

std::span<const SeenStep> HeldLearner::Release(bool with_canary, noise::NoiseSource& noise) {
  const Steps steps = CutPeriod(with_canary);
  if (bill_.empty()) {
    privacy::Bill bill("audited", "log");
    for (const StepBatch& step : steps) bill.Add(train::Billed(step), learner_->charge(), {});
    bill_ = bill.Events();
  }
  seen_.clear();
  for (const StepBatch& step : steps) {
    const std::vector<int64_t>& sum = Sum(step, &noise);
    SeenStep seen;
    for (size_t i = 0; i < sum.size(); ++i) seen.canary += static_cast<double>(sum[i]) * canary_[i];
    for (const uint64_t offset : step.examples.offset) {
      if (offset % kOfPeriod == kCanary) continue;
      seen.canary -= along_canary_[offset % kOfPeriod];
      ++seen.others;
    }
    seen_.push_back(seen);
  }
  return seen_;
}

HeldLearner::Steps HeldLearner::CutPeriod(bool with_canary) {
  const uint64_t in_all = audited_.setting.block_steps * audited_.setting.blocks;
  const event::Batch all = RecordsAt(next_offset_, with_canary);
  event::RawRecords frame;
  frame.first_offset = next_offset_;
  frame.end.resize(kOfPeriod);
  next_offset_ += kOfPeriod;
  Steps steps;
  const auto cut = [&](uint64_t most) {
    participation_->Cut(frame, all, [&](StepBatch&& step) {
      if (step.preview()) return true;
      if (steps.size() == most) return false;
      steps.push_back(std::move(step));
      return true;
    });
  };
  if (audited_.fault == HeldFault::kKeyDrawnAnew) {
    for (uint64_t taken = 1; taken < in_all; ++taken) {
      cut(taken);
      stream::Position start = steps.back().after;
      TACIT_CHECK(start.allocation.has_value());
      std::array<uint8_t, 32> drawn;
      draws_->FillKey(drawn);
      std::copy_n(drawn.begin(), start.allocation->key.size(), start.allocation->key.begin());
      MakeParticipation(std::move(start));
    }
  }
  cut(in_all);
  TACIT_CHECK(steps.size() == in_all, "the period is not full");
  Plant(all, &steps);
  return steps;
}

void HeldLearner::Plant(const event::Batch& all, Steps* steps) {
  const size_t of_block = audited_.setting.block_steps;
  if (audited_.fault == HeldFault::kTwice) {
    const Steps before = *steps;
    const auto holds = [&](size_t step, uint64_t offset) {
      return std::ranges::binary_search(before[step].examples.offset, offset);
    };
    Refill(
        all,
        [&](size_t record, size_t step) {
          const uint64_t offset = all.offset[record];
          return holds(step, offset) || holds((step + 1) % before.size(), offset);
        },
        steps);
  } else if (audited_.fault == HeldFault::kByContent) {
    const auto place = [&](size_t record) {
      return static_cast<size_t>(std::max(0.0f, all.dense[2 * record])) % of_block;
    };
    Refill(
        all, [&](size_t record, size_t step) { return step % of_block == place(record); }, steps);
  } else if (audited_.fault == HeldFault::kEqualSteps) {
    std::vector<size_t> order(all.size());
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1],
                order[static_cast<size_t>(draws_->Uniform() * static_cast<double>(i))]);
    Refill(
        all, [&](size_t record, size_t step) { return order[record] % of_block == step; }, steps);
  }
}

}  // namespace tacit::audit
