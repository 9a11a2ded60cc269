#include "train/linear/arithmetic.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/moving_average.h"
#include "model/linear/row.h"
#include "model/linear/state.h"
#include "train/click/memory_rows.h"
#include "train/linear/linear_columns.h"
#include "train/linear/linear_part_summer.h"

namespace tacit::train {
namespace {

namespace linear = model::linear;

constexpr size_t kInputs = 4096;
constexpr uint64_t kRowSeed = 1;

// Numbers in [-scale, scale), the same everywhere.
std::vector<float> Numbers(uint64_t stream, float scale) {
  std::vector<float> numbers(kInputs);
  InitialRow(kRowSeed, stream, scale, numbers);
  return numbers;
}

stream::StepBatch Events() {
  const std::vector<float> value = Numbers(0, 20), label = Numbers(1, 1);
  stream::StepBatch step;
  step.examples.dense_width = 1;
  step.examples.slots = 1;
  for (size_t i = 0; i < kInputs; ++i) {
    step.examples.label.push_back(label[i] > 0 ? 1.0f : 0.0f);
    step.examples.dense.push_back(value[i]);
    step.examples.row.push_back(i);
    step.examples.slot_end.push_back(static_cast<uint32_t>(i + 1));
    step.unit_of.push_back(static_cast<uint32_t>(i));
  }
  step.units = kInputs;
  return step;
}

std::string Part() {
  const LinearLearnerOptions options{
      .id = "arithmetic",
      .index = LearnerIndex(0),
      .columns = std::make_shared<const linear::Columns>(linear::Columns(
          {{.name = "category", .rows = kInputs}}, {{.name = "number"}}, linear::Bins())),
      .update = {},
      .noise_multiplier = 1};
  MemoryRows rows(LinearRowLayout(*options.columns));
  const std::vector<float> weights = Numbers(2, 12), moves = Numbers(3, 2);
  linear::State state;
  state.periods = 2;
  state.bias = -1.25;
  state.priors.resize(options.columns->size());
  for (uint64_t row = 0; row < options.columns->space().rows(); ++row) {
    float* floats = nullptr;
    TACIT_CHECK(rows.Gather({&row, 1}, {&floats, 1}).has_value(), "rows in memory");
    floats[linear::kWeight] = weights[row % kInputs];
    floats[linear::kMove] = moves[row % kInputs];
    floats[linear::kPeriod] = CountAsFloat(1 + row % 2);
  }
  WorkerPool workers({.workers = 1});
  const auto summer = MakeLinearPartSummer(options, rows, workers);
  const bool summed = summer->Load(state.Encode(*options.columns)) && summer->Add(Events());
  TACIT_CHECK(summed, "made events of a made model");
  return summer->Take();
}

}  // namespace

Digest ArithmeticDigest(const LibraryFunctions& functions) {
  ByteWriter numbers;
  for (const float x : Numbers(4, 40)) {
    const double e = functions.exp(static_cast<double>(-std::abs(x)));
    numbers.Put(e).Put(functions.log(1 + e));
    // From 4e-18 to 2e17, as what is logged.
    const double size = functions.exp(static_cast<double>(x));
    numbers.Put(functions.log1p(size)).Put(functions.log1pf(static_cast<float>(size)));
    numbers.Put(functions.pow(size, linear::UpdateOptions().scale_power));
  }
  return Sha256().Update(numbers.bytes()).Update(Part()).Finish();
}

}  // namespace tacit::train
