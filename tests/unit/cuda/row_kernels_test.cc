// The kernels of a step's rows against the CPU's code: indices against a naive model; sums, counts
// of numbers and scales bit for bit, given the same gradients.
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <optional>
#include <random>

#include "cuda/kernels/rows/scales.h"
#include "cuda/learn/step_rows_index.h"
#include "mechanism/clip_law.h"
#include "mechanism/contribution.h"
#include "model/row_gradients.h"
#include "unit/cuda/replayed_noise.h"
#include "unit/cuda/step_trial.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

class RowKernels : public OnDevice {
 protected:
  template <class T>
  std::vector<std::remove_const_t<T>> Read(DeviceSpan<T> from) {
    std::vector<std::remove_const_t<T>> values(from.size);
    EXPECT_TRUE(stream_->Download(from, std::span(values)));
    EXPECT_TRUE(stream_->Synchronize());
    return values;
  }

  // Brings a step to the device and finds its rows, in launches that are larger than the step.
  void Begin(StepRowsIndex& index, const RowSpace& space, const stream::StepBatch& step,
             DeviceSpan<const uint32_t> names = {}) {
    if (!staging_) {
      auto staging = StepStaging::Make(*stream_, {.slots = 3,
                                                  .dense_width = 2,
                                                  .space_rows = space.rows(),
                                                  .chunk_examples = 1000,
                                                  .round_examples = 16});
      ASSERT_TRUE(staging);
      staging_.emplace(std::move(*staging));
    }
    ASSERT_TRUE(stream_->Synchronize());
    const auto staged = staging_->Bring(step, false);
    ASSERT_TRUE(staged);
    ASSERT_TRUE(index.Begin(**staged, names));
    ASSERT_TRUE(index.FindTouched(*stream_));
  }
  void Select(StepRowsIndex& index, const mechanism::Recipe& recipe, const Buffer<NoiseKey>& key,
              const std::vector<uint64_t>& extra = {}, DeviceSpan<const uint32_t> names = {}) {
    ASSERT_TRUE(index.Prepare(recipe, extra, names, 8));
    ASSERT_TRUE(index.Select(*stream_, recipe, key.span()));
    ASSERT_TRUE(index.ListWritten(*stream_));
    ASSERT_TRUE(stream_->Synchronize());
  }
  void TearDown() override {
    staging_.reset();
    OnDevice::TearDown();
  }
  std::optional<StepStaging> staging_;

  // A recipe that selects by a threshold, and its index after a selection.
  mechanism::Recipe Threshold(double threshold) {
    const RowSpace space = TrialModel(ops::Precision::kF32).space;
    return *MakeTrialMechanism(space, {.threshold = threshold})->recipe();
  }
};

TEST_F(RowKernels, IndexIsThatOfANaiveModel) {
  if (device_ == nullptr) return;
  const RowSpace space = TrialModel(ops::Precision::kF32).space;
  auto index = StepRowsIndex::Make(*stream_, space.rows());
  ASSERT_TRUE(index);
  ASSERT_TRUE(index->Cover(space.rows()));
  const auto key = ToDevice<NoiseKey>({KeyOfStep(0)});
  std::mt19937_64 random(7);
  for (const uint32_t units : {13u, 0u, 1u, 40u}) {
    NextOrder(static_cast<int>(units));
    const auto step = RandomStep(space, 2, units, 12, random);
    const std::vector<uint64_t>& row = step.examples.row;
    Begin(*index, space, step);
    Select(*index, Threshold(1), key);
    const StepRows rows = index->rows();
    const auto place = Read(rows.place), next = Read(rows.next), cell = Read(rows.cell);
    const auto first = Read(rows.first);
    // Places count rows in the order in which entries first name them.
    std::map<uint64_t, uint32_t> place_of;
    std::map<std::pair<uint32_t, uint64_t>, size_t> last_of;  // per unit and row: its last entry
    for (size_t e = 0, c = 0; e < row.size(); ++e) {
      while (step.examples.slot_end[c] <= e) ++c;
      ASSERT_EQ(cell[e], c) << "entry " << e;
      ASSERT_EQ(place[e], place_of.try_emplace(row[e], place_of.size()).first->second);
      const uint32_t unit = step.unit_of[c / step.examples.slots];
      const auto [before, is_first] = last_of.try_emplace({unit, row[e]}, e);
      ASSERT_EQ(first[e], is_first) << "entry " << e;
      if (!is_first) {
        ASSERT_EQ(next[before->second], e);
      }
      before->second = e;
    }
    for (const auto& [of, e] : last_of) ASSERT_EQ(next[e], kNone);
    EXPECT_EQ(Read(index->touched_count())[0], place_of.size());
    ASSERT_TRUE(index->End(*stream_));
    EXPECT_EQ(Read(index->owner()), std::vector<uint32_t>(space.rows(), kNone));
  }
}

// The decision for every touched row, from counts and words of noise.
TEST_F(RowKernels, KeptRowsAreThoseWhoseNoisyCountsReachTheThreshold) {
  if (device_ == nullptr) return;
  const RowSpace space = TrialModel(ops::Precision::kF32).space;
  auto index = StepRowsIndex::Make(*stream_, space.rows());
  ASSERT_TRUE(index);
  ASSERT_TRUE(index->Cover(space.rows()));
  std::mt19937_64 random(8);
  size_t kept_rows = 0, others = 0;
  for (uint32_t number = 0; number < 6; ++number) {
    const NoiseKey key = KeyOfStep(number);
    const auto on_device = ToDevice<NoiseKey>({key});
    const auto step = RandomStep(space, 2, 12, 3, random);
    const mechanism::Recipe recipe = Threshold(1.5);
    model::Activations activations;
    model::ActivationIndexer().Index(step.examples.row, step.examples.slot_end, step.examples.slots,
                                     step.unit_of, step.units, &activations);
    std::vector<int64_t> counts(activations.rows.size(), 0);
    for (size_t unit = 0; unit < activations.units(); ++unit)
      for (const uint32_t place : activations.UnitRows(unit))
        counts[place] += mechanism::ContributionSteps(recipe.selection_clip, recipe.selection_grid,
                                                      activations.UnitRows(unit).size());
    // Two extra rows: one that is touched, and one that is not.
    const std::vector<uint64_t> extra = {activations.rows[0], space.rows() - 1};
    // Rows are named by their numbers, or as a cache may name them.
    const bool named = number % 2 == 1;
    const auto name_of = [&](uint64_t row) {
      return static_cast<uint32_t>(2 * (space.rows() - 1 - row) + number);
    };
    const auto names_of = [&](const std::vector<uint64_t>& numbers) {
      std::vector<uint32_t> names;
      for (const uint64_t row : numbers)
        if (named) names.push_back(name_of(row));
      return ToDevice(names);
    };
    const auto names = names_of(step.examples.row), extra_names = names_of(extra);
    if (named) {
      ASSERT_TRUE(index->Cover(2 * space.rows() + number));
    }
    Begin(*index, space, step, names.span());
    Select(*index, recipe, on_device, extra, extra_names.span());
    const StepRows rows = index->rows();
    const auto place = Read(rows.place);
    const auto kept = Read(rows.kept);
    std::vector<uint64_t> want;
    for (size_t e = 0; e < step.examples.row.size(); ++e) {
      const auto at = static_cast<size_t>(
          std::lower_bound(activations.rows.begin(), activations.rows.end(), step.examples.row[e]) -
          activations.rows.begin());
      const int64_t noise =
          PairOf(Words(key, NoiseQuery::kSelection, step.examples.row[e], 1).data(),
                 recipe.selection_grid.stddev)
              .first;
      ASSERT_EQ(kept[place[e]], counts[at] + noise >= recipe.threshold) << "entry " << e;
      if (place[e] == want.size()) want.push_back(step.examples.row[e]);
    }
    std::vector<uint32_t> written;
    for (size_t p = 0; p < want.size(); ++p)
      if (kept[p]) written.push_back(static_cast<uint32_t>(want[p]));
    kept_rows += written.size();
    others += want.size() - written.size();
    EXPECT_EQ(Read(index->kept_count())[0], written.size());
    written.push_back(static_cast<uint32_t>(space.rows() - 1));
    ASSERT_EQ(Read(index->written_count())[0], written.size());
    EXPECT_EQ(Read(index->written().row.Sub(0, written.size())), written);
    std::vector<uint32_t> written_names;
    for (const uint32_t row : written) written_names.push_back(named ? name_of(row) : row);
    EXPECT_EQ(Read(index->written().name.Sub(0, written.size())), written_names);
    ASSERT_TRUE(index->End(*stream_));
  }
  EXPECT_GT(kept_rows, 10u);
  EXPECT_GT(others, 10u);
}

TEST_F(RowKernels, SumsAndNumbersAreTheCpusBitForBit) {
  if (device_ == nullptr) return;
  const RowSpace space = TrialModel(ops::Precision::kF32).space;
  const std::vector<uint32_t> column = {0, 3, 23}, dim = {3, 20, 1};
  constexpr uint32_t kWidth = 24, kStride = 20;
  std::vector<DeviceSlot> slots;
  for (size_t s = 0; s < dim.size(); ++s) slots.push_back({.dim = dim[s], .column = column[s]});
  const auto on_slots = ToDevice(slots);
  auto index = StepRowsIndex::Make(*stream_, space.rows());
  ASSERT_TRUE(index);
  ASSERT_TRUE(index->Cover(space.rows()));
  const auto key = ToDevice<NoiseKey>({KeyOfStep(0)});
  std::mt19937_64 random(9);
  std::normal_distribution<float> normal;
  const auto step = RandomStep(space, 2, 15, 4, random);
  const size_t examples_count = step.examples.size();
  std::vector<float> gradient(examples_count * kWidth), scale(examples_count);
  for (float& x : gradient) x = normal(random);
  for (size_t i = 0; i < scale.size(); ++i)
    scale[i] = 1 / (1.5f + static_cast<float>(step.unit_of[i]));
  Begin(*index, space, step);
  const mechanism::Recipe recipe = Threshold(1);
  Select(*index, recipe, key);
  StepRows rows = index->rows();
  const auto on_gradient = ToDevice(gradient), on_scale = ToDevice(scale);
  rows.slots = on_slots.span();
  rows.entries_count = static_cast<uint32_t>(index->entries());
  rows.input_gradient = {on_gradient.span().data, static_cast<uint32_t>(examples_count), kWidth,
                         kWidth};
  const auto squared = Make<float>(step.units);
  const auto numbers = Make<uint32_t>(step.units);
  const auto sums = ToDevice(std::vector<int64_t>(index->entries() * kStride, 0));
  ASSERT_TRUE(RowNorms(*stream_, rows, squared.span(), numbers.span()));
  ASSERT_TRUE(AddRowSums(*stream_, rows, on_scale.span(), recipe.grid.step, kStride, sums.span()));

  // The same rows, kept by the CPU.
  model::Activations activations;
  model::ActivationIndexer().Index(step.examples.row, step.examples.slot_end, step.examples.slots,
                                   step.unit_of, step.units, &activations);
  const auto written = Read(index->written().row.Sub(0, Read(index->kept_count())[0]));
  model::RowSelection selection;
  for (const uint64_t row : activations.rows)
    selection.kept.push_back(std::ranges::find(written, row) != written.end());
  model::StepGradient sum;
  sum.Reset(space, activations, selection, 1);
  const model::Examples examples{.size = examples_count,
                                 .units = step.units,
                                 .unit_of = step.unit_of,
                                 .label = step.examples.label,
                                 .dense = step.examples.dense,
                                 .slot_end = step.examples.slot_end,
                                 .slot_row = activations.slot_row};
  WorkerPool workers{WorkerPool::Options{}};
  model::RowGradients host(column, dim, workers);
  const ops::ConstMatrix host_gradient(gradient.data(), examples_count, kWidth);
  host.SumOnGrid(examples, host_gradient, scale, recipe.grid.step, &sum);
  const auto got = FromDevice(sums);
  ASSERT_FALSE(written.empty());
  for (size_t i = 0; i < written.size(); ++i) {
    const auto at = static_cast<size_t>(std::ranges::find(sum.rows, written[i]) - sum.rows.begin());
    const auto want = sum.RowSum(at);
    for (size_t c = 0; c < want.size(); ++c)
      ASSERT_EQ(got[i * kStride + c], want[c]) << "row " << written[i] << ", number " << c;
  }
  std::vector<uint32_t> end(step.units, 0), host_numbers(step.units);
  for (size_t i = 0; i < examples_count; ++i) end[step.unit_of[i]] = static_cast<uint32_t>(i + 1);
  for (size_t u = 1; u < end.size(); ++u) end[u] = std::max(end[u], end[u - 1]);
  std::vector<float> host_squared(step.units);
  host.SquaredNorms(examples, activations, sum.kept_place, end, host_gradient, host_squared,
                    host_numbers);
  EXPECT_EQ(FromDevice(numbers), host_numbers);
  const auto got_squared = FromDevice(squared);
  for (size_t u = 0; u < step.units; ++u)
    EXPECT_NEAR(got_squared[u], host_squared[u], 2e-7 * host_squared[u]) << "unit " << u;
}

TEST_F(RowKernels, ScalesAreTheCpusBitForBit) {
  if (device_ == nullptr) return;
  constexpr uint32_t kUnits = 150, kGroups = 4;
  constexpr double kBound = 0.7, kDense = 33;
  std::mt19937_64 random(10);
  std::lognormal_distribution<float> spread(0, 3);
  model::GroupNorms norms{.groups = kGroups, .units = kUnits, .squared = {}};
  for (size_t i = 0; i < kGroups * kUnits; ++i) norms.squared.push_back(spread(random));
  norms.squared[7] = 0;
  std::vector<uint32_t> numbers(kUnits);
  for (uint32_t& n : numbers) n = static_cast<uint32_t>(random() % 500);
  const std::vector<double> given = {1, 2, 3, 4};
  std::vector<std::pair<ClipLaw, std::unique_ptr<mechanism::Clipper>>> clips;
  clips.emplace_back(ClipLaw::kFlat, mechanism::MakeFlatClipper(kBound, 200));
  clips.emplace_back(ClipLaw::kAutomatic, mechanism::MakeAutomaticClipper(kBound, 200));
  clips.emplace_back(ClipLaw::kPerLayer, mechanism::MakePerLayerClipper(kBound, given, 200));
  for (const auto& [law, clipper] : clips) {
    mechanism::Recipe recipe;
    ASSERT_TRUE(clipper->Describe(&recipe));
    norms.rounding.clear();
    for (const uint32_t n : numbers)
      norms.rounding.push_back(static_cast<float>(
          recipe.grid.step * (std::sqrt(static_cast<double>(n)) / 2 + std::sqrt(kDense)) *
          (1 + 0x1p-20)));
    std::vector<float> want(norms.squared.size());
    clipper->rule().Scales(norms, want);
    const auto squared = ToDevice(norms.squared);
    const auto on_numbers = ToDevice(numbers);
    const auto shares = ToDevice(recipe.root_shares);
    const auto scales = Make<float>(want.size());
    const auto bounded = Make<uint8_t>(kUnits);
    const auto clipped = ToDevice<uint32_t>({0});
    ASSERT_TRUE(UnitScales(*stream_,
                           {.law = law,
                            .bound = recipe.bound,
                            .grid_step = recipe.grid.step,
                            .dense_root = std::sqrt(kDense),
                            .root_share = shares.span()},
                           kGroups, squared.span(), on_numbers.span(), {}, scales.span(),
                           bounded.span(), clipped.span()));
    EXPECT_EQ(FromDevice(scales), want);
    EXPECT_EQ(FromDevice(bounded), std::vector<uint8_t>(kUnits, 1));
  }
}

}  // namespace
}  // namespace tacit::cuda::testing
