// Mistakes that private training is known for. Each test has a criterion that follows from the
// promise, which what the product does meets and the same with the mistake in it does not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "naive.h"
#include "privacy/gaussian.h"
#include "privacy/ledger.h"
#include "stream/steps/participation.h"
#include "support/fixed_noise.h"

namespace tacit {
namespace {

using mechanism::AdaFestOptions;
using mechanism::Fault;
using mechanism::NaiveStep;
using mechanism::StepUnits;
using mechanism::Update;
using privacy::CommitCharge;
using privacy::Ledger;

// ---- The mechanism: the sum is clipped first and noised then, and the divisor is public. ----

AdaFestOptions Options(double sigma) {
  return {.sigma_selection = 1,
          .sigma_gradient = sigma,
          .clip_selection = 1,
          .clip_gradient = 0.5,
          .threshold = 0,
          .expected_batch = 100};
}

// A unit whose dense gradient is at least the clip, in this direction, and that has no rows.
mechanism::UnitGradient UnitTowards(double direction) {
  return {.dense = {4 * direction, 0, 0}, .rows = {}};
}

// The first dense number of many updates, times the public divisor: the noised sum.
struct Sums {
  double mean = 0, variance = 0;
};

class MechanismBench {
 public:
  MechanismBench() { space_.AddTable("t", 4, 1); }

  Sums OfProduct(const StepUnits& units, const AdaFestOptions& options) const {
    const auto adafest = mechanism::MakeAdaFest(space_, options);
    auto noise = noise::FixedNoise(7);
    mechanism::StepRunner runner(space_, units);
    return Measure(options, [&]() -> const Update& { return runner.Run(*adafest, noise); });
  }

  Sums OfNaive(const StepUnits& units, const AdaFestOptions& options, Fault fault) const {
    const auto keep_all = [](mechanism::Random&, std::vector<uint8_t>* kept) {
      std::fill(kept->begin(), kept->end(), uint8_t{1});
    };
    NaiveStep naive(space_, units,
                    {.sigma_gradient = options.sigma_gradient,
                     .clip_gradient = options.clip_gradient,
                     .expected_batch = options.expected_batch},
                    keep_all, fault, 5);
    return Measure(options, [&]() -> const Update& { return naive.Step(); });
  }

 private:
  static constexpr int kDraws = 20000;

  static Sums Measure(const AdaFestOptions& options, const std::function<const Update&()>& draw) {
    Sums sums;
    for (int i = 0; i < kDraws; ++i) {
      const double sum = draw().dense[0] * options.expected_batch;
      sums.mean += sum / kDraws;
      sums.variance += sum * sum / kDraws;
    }
    sums.variance -= sums.mean * sums.mean;
    return sums;
  }

  RowSpace space_;
};

// The sum's noise is what is charged for: (clip * sigma)^2, to 5 standard deviations.
bool HasTheNoiseThatIsCharged(const Sums& sums, const AdaFestOptions& options) {
  const double charged = std::pow(options.clip_gradient * options.sigma_gradient, 2);
  return std::abs(sums.variance / charged - 1) < 5 * std::sqrt(2 / 20000.0);
}

TEST(PlantedBugs, NoiseInsideTheClipIsFound) {
  const MechanismBench bench;
  const AdaFestOptions options = Options(2);
  const StepUnits units = {UnitTowards(1), UnitTowards(1), UnitTowards(-1)};
  EXPECT_TRUE(HasTheNoiseThatIsCharged(bench.OfProduct(units, options), options));
  EXPECT_TRUE(HasTheNoiseThatIsCharged(bench.OfNaive(units, options, Fault::kNone), options));
  EXPECT_FALSE(
      HasTheNoiseThatIsCharged(bench.OfNaive(units, options, Fault::kNoiseInsideClip), options));
}

TEST(PlantedBugs, AnEmptyBatchWithoutNoiseIsFound) {
  const MechanismBench bench;
  const AdaFestOptions options = Options(2);
  EXPECT_TRUE(HasTheNoiseThatIsCharged(bench.OfProduct({}, options), options));
  EXPECT_FALSE(
      HasTheNoiseThatIsCharged(bench.OfNaive({}, options, Fault::kEmptyBatchSilent), options));
}

// One unit more moves the mean of the update by no more than the clip over the public divisor.
bool OneUnitMovesNoMoreThanTheClip(const Sums& with, const Sums& without,
                                   const AdaFestOptions& options) {
  const double slack = 10 * std::sqrt((with.variance + without.variance) / 20000);
  return std::abs(with.mean - without.mean) <= options.clip_gradient + slack;
}

TEST(PlantedBugs, TheRealisedBatchAsDivisorIsFound) {
  const MechanismBench bench;
  const AdaFestOptions options = Options(0.05);
  const StepUnits with = {UnitTowards(1), UnitTowards(-1)}, without = {UnitTowards(1)};
  EXPECT_TRUE(OneUnitMovesNoMoreThanTheClip(bench.OfProduct(with, options),
                                            bench.OfProduct(without, options), options));
  EXPECT_FALSE(OneUnitMovesNoMoreThanTheClip(bench.OfNaive(with, options, Fault::kRealisedBatch),
                                             bench.OfNaive(without, options, Fault::kRealisedBatch),
                                             options));
}

// ---- The charge: sigma = (s1^-2 + s2^-2)^(-1/2), one event a step. ----

constexpr double kDelta = 1e-6;

privacy::Charge ChargeOf(double noise_multiplier, double sampling_rate = 1) {
  return {.mechanism = privacy::MechanismKind::kDpSgd,
          .noise_multiplier = noise_multiplier,
          .sigma_gradient = noise_multiplier,
          .clip_gradient = 1,
          .sampling_rate = sampling_rate};
}

CommitCharge StepOf(const privacy::Charge& charge, uint64_t begin, uint64_t end) {
  return {"ctr", charge, 1, 1, "log", {{0, begin, end}}};
}

Ledger NewLedger(privacy::ParticipationMode mode = privacy::ParticipationMode::kOnce) {
  Ledger ledger;
  EXPECT_TRUE(
      ledger.Declare({.learner = "ctr", .participation = mode, .epsilon = 100, .delta = kDelta}));
  return ledger;
}

void Append(Ledger& ledger, uint64_t commit, const std::vector<CommitCharge>& charges) {
  ledger.Append(CommitSeq(commit), static_cast<int64_t>(commit), charges, Digest{1}, "test");
}

// A chain with this charge verifies.
bool Verifies(const privacy::Charge& charge) {
  Ledger ledger = NewLedger();
  Append(ledger, 1, {StepOf(charge, 0, 10)});
  return static_cast<bool>(privacy::VerifyChain(ledger.entries()));
}

TEST(PlantedBugs, TheExponentMinusTwoInSigmaIsFound) {
  RowSpace space;
  space.AddTable("t", 4, 1);
  AdaFestOptions options = Options(0.8);
  options.sigma_selection = 0.8;
  const privacy::Charge right = mechanism::MakeAdaFest(space, options)->charge();
  EXPECT_NEAR(right.noise_multiplier, 0.8 / std::sqrt(2.0), 1e-12);
  EXPECT_TRUE(Verifies(right));
  privacy::Charge wrong = right;
  wrong.noise_multiplier = std::pow(2 * std::pow(0.8, -2), -2);
  EXPECT_FALSE(Verifies(wrong));
  // Less noise than there is would be found as well.
  wrong.noise_multiplier = 0.3;
  EXPECT_FALSE(Verifies(wrong));
}

// True if the ledger's epsilon of 49 steps, each with two queries of 0.8 on one sampled batch of
// 2048 in 1e5, covers dp_accounting's 5.77 for the joint event (tests/golden/adafest.csv).
bool CoversTwoQueriesOnOneBatch(const std::vector<privacy::Charge>& charges_of_a_step) {
  Ledger ledger = NewLedger(privacy::ParticipationMode::kPoisson);
  uint64_t commit = 0;
  for (const privacy::Charge& charge : charges_of_a_step) {
    CommitCharge steps = StepOf(charge, 0, 100000);
    steps.steps = steps.steps_per_offset = 49;
    Append(ledger, ++commit, {steps});
  }
  privacy::EpsilonMeter meter;
  return meter.Bounds(ledger.entries().back().worst, Delta(1e-5)).upper > 5.76;
}

TEST(PlantedBugs, TwoQueriesOnOneBatchBilledAsTwoSampledEventsAreFound) {
  RowSpace space;
  space.AddTable("t", 4, 1);
  AdaFestOptions options = Options(0.8);
  options.sigma_selection = 0.8;
  options.sampling_rate = 2048 / 1e5;
  EXPECT_TRUE(CoversTwoQueriesOnOneBatch({mechanism::MakeAdaFest(space, options)->charge()}));
  const privacy::Charge each = ChargeOf(0.8, 2048 / 1e5);
  EXPECT_FALSE(CoversTwoQueriesOnOneBatch({each, each}));
}

// ---- The ledger: every release is charged, and it never goes back. ----

// Steps with these ranges; `charge` is what is done about each. Every step counts, and the first
// already costs.
bool ChargesEveryStep(const std::function<void(Ledger&, uint64_t, const CommitCharge&)>& charge) {
  Ledger ledger = NewLedger();
  for (uint64_t commit = 1; commit <= 3; ++commit)
    charge(ledger, commit, StepOf(ChargeOf(2), 5, 5));
  const privacy::LedgerTotal total = ledger.Learners()[0];
  return total.steps == 3 &&
         total.epsilon >= privacy::GaussianEpsilon(0.5, Delta(kDelta)).value * (1 - 1e-9);
}

TEST(PlantedBugs, AnEmptyBatchThatIsNotChargedIsFound) {
  EXPECT_TRUE(ChargesEveryStep([](Ledger& ledger, uint64_t commit, const CommitCharge& step) {
    Append(ledger, commit, {step});
  }));
  EXPECT_FALSE(ChargesEveryStep([](Ledger& ledger, uint64_t commit, const CommitCharge& step) {
    if (step.ranges[0].size() > 0) Append(ledger, commit, {step});
  }));
}

// A model is trained on records, restored to before, and trained on them again. `restore` makes the
// ledger it continues with, from that of the checkpoint and that of today. Both uses must be in it.
bool ChargesWhatWasAbandoned(
    const std::function<Ledger(const Ledger& checkpoint, const Ledger& today)>& restore) {
  Ledger ledger = NewLedger();
  Append(ledger, 1, {StepOf(ChargeOf(2), 0, 100)});
  const Ledger checkpoint = ledger;
  Append(ledger, 2, {StepOf(ChargeOf(2), 100, 200)});
  const double told = ledger.Learners()[0].epsilon;
  Ledger restored = restore(checkpoint, ledger);
  const std::vector<CommitCharge> again = {StepOf(ChargeOf(2), 100, 200)};
  const double foretold = restored.EpsilonAfter(again);
  Append(restored, 3, again);
  const double both = privacy::GaussianEpsilon(std::sqrt(0.5), Delta(kDelta)).value;
  const double epsilon = restored.Learners()[0].epsilon;
  return epsilon >= told && epsilon >= both * (1 - 1e-9) && foretold == epsilon;
}

Ledger Reopened(const Ledger& ledger) {
  auto reopened = Ledger::Restore(ledger.entries(), ledger.EncodeState());
  EXPECT_TRUE(reopened) << reopened.error().message;
  return *reopened;
}

TEST(PlantedBugs, ALedgerRewoundByARestoreIsFound) {
  EXPECT_TRUE(
      ChargesWhatWasAbandoned([](const Ledger&, const Ledger& today) { return Reopened(today); }));
  EXPECT_FALSE(ChargesWhatWasAbandoned(
      [](const Ledger& checkpoint, const Ledger&) { return Reopened(checkpoint); }));
  // Nor may the state of today be put beside the entries of then.
  Ledger ledger = NewLedger();
  Append(ledger, 1, {StepOf(ChargeOf(2), 0, 100)});
  const Ledger checkpoint = ledger;
  Append(ledger, 2, {StepOf(ChargeOf(2), 0, 100)});
  EXPECT_FALSE(Ledger::Restore(ledger.entries(), checkpoint.EncodeState()));
  EXPECT_FALSE(Ledger::Restore(checkpoint.entries(), ledger.EncodeState()));
}

// ---- The sample: each unit in each step with the rate, beside any others. ----

constexpr uint64_t kEvents = 400, kSteps = 2000;
constexpr double kRate = 0.25;

// Counts the events in each step of a period of kEvents.
std::vector<uint64_t> BatchSizes(uint64_t most) {
  const auto participation =
      stream::MakePoissonParticipation({.offsets_per_period = kEvents,
                                        .steps_per_period = kSteps,
                                        .sampling_rate = kRate,
                                        .start = {}},
                                       std::make_unique<noise::FixedNoise>(3));
  event::RawRecords frame;
  frame.end.resize(kEvents);
  event::Batch batch;
  batch.dense_width = 1;
  for (uint64_t offset = 0; offset < kEvents; ++offset) {
    batch.offset.push_back(offset);
    batch.timestamp_ms.push_back(0);
    batch.label.push_back(0);
    batch.dense.push_back(0);
  }
  std::vector<uint64_t> sizes;
  const auto take = [&](stream::StepBatch&& step) {
    if (!step.preview()) sizes.push_back(std::min<uint64_t>(step.units, most));
    return true;
  };
  participation->Cut(frame, batch, take);
  participation->Finish(take);
  return sizes;
}

// The sizes are binomial: their mean and variance are, to 5 standard deviations.
bool IsPoissonSampled(const std::vector<uint64_t>& sizes) {
  if (sizes.size() != kSteps) return false;
  const double steps = kSteps, variance = kEvents * kRate * (1 - kRate);
  double mean = 0, square = 0;
  for (uint64_t size : sizes) {
    const double off = static_cast<double>(size) - kEvents * kRate;
    mean += off / steps;
    square += off * off / steps;
  }
  return std::abs(mean) < 5 * std::sqrt(variance / steps) &&
         std::abs(square / variance - 1) < 5 * std::sqrt(2 / steps);
}

TEST(PlantedBugs, ATruncatedBatchIsFound) {
  EXPECT_TRUE(IsPoissonSampled(BatchSizes(kEvents)));
  // Cut at its expected size, and at two standard deviations above.
  EXPECT_FALSE(IsPoissonSampled(BatchSizes(100)));
  EXPECT_FALSE(IsPoissonSampled(BatchSizes(108)));
}

}  // namespace
}  // namespace tacit
