// Faults in a transformer's mask, priors, dropout and corrected attention are found by what the
// tests of its steps compare, within the same bounds.
#include "unit/cuda/planted_sequence.h"

#include <gtest/gtest.h>

#include "unit/cuda/sequence_trial.h"

namespace tacit::cuda::testing {
namespace {

class PlantedSequence : public SequenceTrial {
 protected:
  static void Plant(SequenceFault fault) {
    PlantInLogits(fault);
    PlantInDropout(fault);
    PlantInVariance(fault);
    PlantInAttention(fault);
  }
  ~PlantedSequence() override { Plant(SequenceFault::kNone); }

  SequenceGap GapOf(
      SequenceFault fault, const train::SequenceTrainingOptions& training,
      const std::function<void(uint64_t step)>& before_step = [](uint64_t) {}) {
    Plant(fault);
    const SequenceGap gap = Measure(training, before_step);
    Plant(SequenceFault::kNone);
    return gap;
  }
  // Each of the faults is seen, and nothing without one.
  void ExpectFound(
      const train::SequenceTrainingOptions& training, double each,
      const std::vector<SequenceFault>& faults,
      const std::function<void(uint64_t step)>& before_step = [](uint64_t) {}) {
    ASSERT_TRUE(GapOf(SequenceFault::kNone, training, before_step).IsWithin(1e-4, each));
    for (const SequenceFault fault : faults) {
      const SequenceGap gap = GapOf(fault, training, before_step);
      EXPECT_FALSE(gap.IsWithin(1e-4, each))
          << "fault " << static_cast<int>(fault) << ": relative " << gap.relative << ", each "
          << gap.each << ", loss " << gap.loss;
    }
  }
};

using enum SequenceFault;

TEST_F(PlantedSequence, FaultsOfTheMaskAreFound) {
  SequenceOptions model = SmallModel();
  model.mask_seen = true;
  model.catalogue = 7;
  ExpectFound(Training(model), 3e-6, {kNoMask, kTargetsMasked});
}

TEST_F(PlantedSequence, FaultsOfPriorsAreFound) {
  const SequenceOptions model = SmallModel();
  auto training = Training(model);
  model::ItemLogits each(model.catalogue);
  training.prior = &each;
  ExpectFound(training, 3e-6, {kNoPrior, kPriorOfOthers},
              [&](uint64_t step) { each.Set(Logits(model.catalogue, step)); });
  model::DecayedLogits pairs(model.catalogue, 0.6);
  training.prior = &pairs;
  ExpectFound(training, 3e-6, {kNoPrior, kPriorWithoutDecay}, [&](uint64_t step) {
    if (step % 2 == 1) pairs.Set(Logits(size_t{model.catalogue} * model.catalogue, step));
  });
}

TEST_F(PlantedSequence, FaultsOfDropoutAreFound) {
  SequenceOptions model = SmallModel();
  model.dropout = 0.2f;
  ExpectFound(Training(model), 3e-6, {kOneCoinForAll, kOtherCoinsBehind});
  model.re_attention = {.kappa = 0.5f, .most = 2};
  auto training = Training(model);
  training.privacy.sigma = 0.05;
  ExpectFound(training, 1e-5, {kDroppedOnce});
}

TEST_F(PlantedSequence, FaultsOfVariancesAreFound) {
  ExpectFound(
      CorrectedTraining(SmallModel()), 1e-5,
      {kNoEmbedded, kEmbeddedUnscaled, kNoOwn, kOwnWithoutBias, kNoNormVariance, kNoReluVariance});
}

TEST_F(PlantedSequence, FaultsOfCorrectedAttentionAreFound) {
  ExpectFound(CorrectedTraining(SmallModel()), 1e-5, {kNoCorrection, kNoAttended});
  // Some corrections are longer than this.
  auto capped = CorrectedTraining(SmallModel());
  capped.model.re_attention.most = 0.1f;
  ExpectFound(capped, 1e-5, {kNoCorrection, kUncapped, kNoAttended});
}

}  // namespace
}  // namespace tacit::cuda::testing
