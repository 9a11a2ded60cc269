#include "train/sequence/sequence_trainer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace tacit::train {
namespace {

double RateOf(double expected_batch, uint64_t units) {
  return std::min(1.0, expected_batch / static_cast<double>(std::max<uint64_t>(1, units)));
}

}  // namespace

Status CheckOptions(const SequenceTrainingOptions& options, uint64_t units) {
  TACIT_RETURN_IF_ERROR(CheckOptions(options));
  if (units == 0) return Fail(ErrorCode::kInvalidArgument, "sequence training: there are no units");
  if (options.expected_batch <= static_cast<double>(units)) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("sequence training: expected_batch {} of {} units",
                          options.expected_batch, units));
}

SequenceTrainer::SequenceTrainer(SequenceTrainingOptions options, const model::Histories& histories,
                                 ops::Backend& backend, std::unique_ptr<noise::NoiseSource> noise,
                                 std::unique_ptr<noise::NoiseSource> coins)
    : histories_(histories),
      sampler_(histories.units(), RateOf(options.expected_batch, histories.units()),
               std::move(coins)),
      stepper_(std::move(options), {.rate = sampler_.rate()}, backend, std::move(noise)) {
  const Status status = CheckOptions(this->options(), histories.units());
  TACIT_CHECK(status.has_value(), "options are checked before a trainer is made");
  TACIT_CHECK(histories.catalogue == this->options().model.catalogue,
              "histories of another catalogue");
  // Items index embeddings and logits.
  TACIT_CHECK(model::CheckHistories(histories).has_value(), "every item is of the catalogue");
}

Status SequenceTrainer::Step(SequenceStepReport* report) {
  TACIT_CHECK(!done(), "a step more than was planned and charged");
  const model::HistoryUnits units(model().layout().options(), histories_, sampler_.Sample());
  return stepper_.Step(units, report);
}

Status SequenceTrainer::Score(std::span<const std::span<const uint32_t>> histories,
                              const model::SequenceModel::Take& take) {
  return model().Score(Weights(), parameter_noise(), histories, take);
}

}  // namespace tacit::train
