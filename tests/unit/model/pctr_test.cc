// The click model in f32 against float64 loops that materialise every unit's gradient.
#include "model/pctr.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/text.h"
#include "pctr_step.h"
#include "scale_rules.h"

namespace tacit::model {
namespace {

using testing::KeepAll;
using testing::LoopBackward;
using testing::LoopGradient;
using testing::Problem;
using testing::RunStep;
using testing::SquaredLength;
using testing::StepResult;

// Two thirds of the touched rows, and half of the untouched.
RowSelection KeepSome(const Problem& problem, uint64_t seed) {
  std::mt19937_64 random(seed);
  RowSelection selection;
  for (size_t i = 0; i < problem.activations.rows.size(); ++i)
    selection.kept.push_back(random() % 3 > 0);
  for (uint64_t row = 0; row < problem.model.space.rows(); ++row)
    if (!std::binary_search(problem.activations.rows.begin(), problem.activations.rows.end(),
                            row) &&
        random() % 2)
      selection.extra.push_back(row);
  return selection;
}

// Masked to the selection, then squared by group.
GroupNorms LoopNorms(const Problem& problem, const std::vector<LoopGradient>& gradients) {
  const auto widths = problem.model.Widths();
  GroupNorms norms{widths.size(), gradients.size(), {}};
  size_t at = 0;
  for (size_t l = 0; l + 1 < widths.size(); ++l) {
    const size_t size = (widths[l] + 1) * widths[l + 1];
    for (const LoopGradient& g : gradients)
      norms.squared.push_back(
          static_cast<float>(SquaredLength(std::span(g.dense).subspan(at, size))));
    at += size;
  }
  for (const LoopGradient& g : gradients) {
    double sum = 0;
    for (const auto& [row, values] : g.rows) sum += SquaredLength(values);
    norms.squared.push_back(static_cast<float>(sum));
  }
  return norms;
}

void Mask(const Problem& problem, const RowSelection& selection,
          std::vector<LoopGradient>* gradients) {
  for (LoopGradient& g : *gradients)
    for (size_t i = 0; i < selection.kept.size(); ++i)
      if (!selection.kept[i]) g.rows.erase(problem.activations.rows[i]);
}

// Scaled by group: dense layers and rows apart.
LoopGradient LoopSum(const Problem& problem, const std::vector<LoopGradient>& gradients,
                     std::span<const float> scales) {
  const auto widths = problem.model.Widths();
  LoopGradient sum;
  sum.dense.resize(problem.dense_parameters.size());
  for (size_t u = 0; u < gradients.size(); ++u) {
    size_t at = 0;
    for (size_t l = 0; l + 1 < widths.size(); ++l)
      for (size_t end = at + (widths[l] + 1) * widths[l + 1]; at < end; ++at)
        sum.dense[at] += double{scales[l * gradients.size() + u]} * gradients[u].dense[at];
    LoopGradient rows;
    rows.rows = gradients[u].rows;
    sum.Add(rows, scales[(widths.size() - 1) * gradients.size() + u]);
  }
  return sum;
}

void ExpectSum(StepGradient& sum, const LoopGradient& want, const RowSelection& selection) {
  ASSERT_EQ(sum.dense.size(), want.dense.size());
  for (size_t i = 0; i < want.dense.size(); ++i)
    ASSERT_NEAR(sum.dense[i], want.dense[i], 2e-5 * (1 + std::abs(want.dense[i])));
  size_t kept = selection.extra.size();
  for (uint8_t keep : selection.kept) kept += keep;
  ASSERT_EQ(sum.rows.size(), kept);
  for (size_t i = 0; i < sum.rows.size(); ++i) {
    const auto found = want.rows.find(sum.rows[i]);
    const auto row = sum.Row(i);
    for (size_t c = 0; c < row.size(); ++c) {
      const double expected = found == want.rows.end() ? 0 : found->second[c];
      ASSERT_NEAR(row[c], expected, 2e-5 * (1 + std::abs(expected))) << "row " << sum.rows[i];
    }
  }
}

void CheckAgainstLoops(uint64_t seed, const Problem::Options& options, const ScaleRule& rule,
                       ops::Backend& backend) {
  SCOPED_TRACE(::testing::Message()
               << "seed " << seed << " examples " << options.examples << " on " << backend.name());
  const Problem problem(seed, options);
  Pctr model(problem.ModelOptions(), backend);
  ASSERT_EQ(model.dense_size(), problem.dense_parameters.size());
  const RowSelection selection = seed % 3 == 0 ? KeepAll(problem) : KeepSome(problem, seed);
  StepResult result = RunStep(problem, selection, rule, model);

  for (size_t i = 0; i < problem.label.size(); ++i) {
    const double logit =
        testing::LoopForward(problem.model, problem.Example(i), problem.Dense(), problem.RowMap())
            .back()[0];
    ASSERT_NEAR(result.logits[i], logit, 1e-5 * (1 + std::abs(logit)));
    const double loss = testing::LoopLoss(logit, problem.label[i]);
    ASSERT_NEAR(result.loss[i], loss, 1e-5 * (1 + std::abs(logit)));
  }
  auto gradients = problem.UnitGradients();
  Mask(problem, selection, &gradients);
  const GroupNorms want = LoopNorms(problem, gradients);
  ASSERT_EQ(result.norms.groups, want.groups);
  ASSERT_EQ(result.norms.units, want.units);
  ASSERT_EQ(result.norms.squared.size(), want.squared.size());
  for (size_t i = 0; i < want.squared.size(); ++i)
    ASSERT_NEAR(std::sqrt(result.norms.squared[i]), std::sqrt(want.squared[i]),
                1e-5 * std::sqrt(want.squared[i]) + 1e-10)
        << "group " << i / want.units << " unit " << i % want.units;
  std::vector<float> scales(want.squared.size());
  rule.Scales(result.norms, scales);
  ExpectSum(result.sum, LoopSum(problem, gradients, scales), selection);
}

TEST(Pctr, MatchesMaterialisedGradients) {
  WorkerPool one({1, false}), three({3, false});
  const auto reference = ops::MakeReferenceBackend();
  const auto single = ops::MakeCpuBackend(one), triple = ops::MakeCpuBackend(three);
  const testing::FlatClip flat(0.7);
  const testing::PerGroup per_group;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Problem::Options options{
        .examples = seed % 40, .one_example_per_unit = seed % 4 == 0, .weights = seed % 3 == 1};
    if (seed % 5 == 0) options.hidden = {};
    if (seed % 7 == 0) options.hidden = {33};
    const ScaleRule& rule =
        seed % 2 ? static_cast<const ScaleRule&>(flat) : static_cast<const ScaleRule&>(per_group);
    for (ops::Backend* backend : {reference.get(), single.get(), triple.get()}) {
      CheckAgainstLoops(seed, options, rule, *backend);
      if (HasFatalFailure()) return;
    }
  }
}

class PctrOnCpu : public ::testing::Test {
 protected:
  WorkerPool workers_{WorkerPool::Options{}};
  std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(workers_);
};

// Two records of one unit, equal except for their labels and a part of one number: a hundredth of
// it, or half.
Problem OppositeRecords(uint64_t seed) {
  Problem problem(seed, {.examples = 2, .hidden = {}, .spread = 0.02f});
  const size_t width = problem.model.dense_width;
  std::copy_n(problem.dense.begin(), width, problem.dense.begin() + static_cast<ptrdiff_t>(width));
  problem.dense[width] *= seed % 2 ? 1.01f : 1.5f;
  const uint32_t slots = static_cast<uint32_t>(problem.model.space.tables().size());
  const std::vector<uint64_t> first(problem.row.begin(),
                                    problem.row.begin() + problem.slot_end[slots - 1]);
  problem.row = first;
  problem.row.insert(problem.row.end(), first.begin(), first.end());
  for (uint32_t s = 0; s < slots; ++s)
    problem.slot_end[slots + s] = problem.slot_end[s] + static_cast<uint32_t>(first.size());
  problem.label = {0, 1};
  problem.unit_of = {0, 0};
  problem.units = 1;
  problem.Index();
  return problem;
}

// The length of a group's part of the records of a problem, one by one and added up.
std::vector<double> LengthsOfRecords(const Problem& problem) {
  std::vector<double> lengths;
  for (size_t i = 0; i < problem.label.size(); ++i) {
    Problem alone = problem;
    LoopGradient one =
        LoopBackward(problem.model, problem.Example(i), problem.Dense(), problem.RowMap());
    alone.units = 1;
    const GroupNorms norms = LoopNorms(alone, {std::move(one)});
    lengths.resize(norms.groups);
    for (size_t g = 0; g < norms.groups; ++g) lengths[g] += std::sqrt(norms.squared[g]);
  }
  return lengths;
}

// A user's records may all but cancel. The stated norm is that of what is left, or a sixteenth of
// what the records are one by one, the larger of both; what is added is no longer than the clip.
TEST_F(PctrOnCpu, RecordsOfAUnitThatNearlyCancelAreClippedByWhatIsLeft) {
  constexpr double kClip = 1e-4;
  size_t by_the_rest = 0, by_the_records = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Problem problem = OppositeRecords(seed);
    Pctr model(problem.ModelOptions(), *backend_);
    StepResult result = RunStep(problem, KeepAll(problem), testing::FlatClip(kClip), model);
    const GroupNorms want = LoopNorms(problem, problem.UnitGradients());
    const auto ones =
        LoopBackward(problem.model, problem.Example(0), problem.Dense(), problem.RowMap());
    ASSERT_LT(want.squared[0], SquaredLength(ones.dense) / (seed % 2 ? 100 : 2))
        << "they do not cancel";
    const std::vector<double> records = LengthsOfRecords(problem);
    for (size_t g = 0; g < want.groups; ++g) {
      double length = std::sqrt(want.squared[g]);
      // Embedding rows are summed as integers, which leaves no remainder.
      if (g + 1 < want.groups) {
        (length < records[g] / 16 ? by_the_records : by_the_rest)++;
        length = std::max(length, records[g] / 16);
      }
      // The remainder is known as well as the records' f32 gradients, and its length is never
      // understated.
      ASSERT_NEAR(std::sqrt(result.norms.squared[g]), length, 1e-5 * length + 2e-7)
          << "seed " << seed << " group " << g;
    }
    double squared = 0;
    for (float x : result.sum.dense) squared += double{x} * x;
    for (float x : result.sum.row_values) squared += double{x} * x;
    ASSERT_LE(std::sqrt(squared), kClip * (1 + 1e-6)) << "seed " << seed;
  }
  EXPECT_GT(by_the_rest, 20u);
  EXPECT_GT(by_the_records, 20u);
}

// A user of many records: forming the gradient is then cheaper than all pairs of them.
TEST_F(PctrOnCpu, AUnitOfManyRecordsHasItsNorm) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Problem problem(seed, {.examples = 120});
    for (size_t i = 0; i < problem.unit_of.size(); ++i) problem.unit_of[i] = i < 100 ? 0 : 1;
    problem.units = 2;
    problem.Index();
    Pctr model(problem.ModelOptions(), *backend_);
    StepResult result = RunStep(problem, KeepAll(problem), testing::FlatClip(0.5), model);
    const GroupNorms want = LoopNorms(problem, problem.UnitGradients());
    for (size_t i = 0; i < want.squared.size(); ++i)
      ASSERT_NEAR(std::sqrt(result.norms.squared[i]), std::sqrt(want.squared[i]),
                  1e-5 * std::sqrt(want.squared[i]));
  }
}

TEST_F(PctrOnCpu, EmptyBatchGivesZeros) {
  const Problem problem(1, {.examples = 0});
  Pctr model(problem.ModelOptions(), *backend_);
  const RowSelection selection{{}, {0, 3, 22}};
  StepResult result = RunStep(problem, selection, testing::FlatClip(1), model);
  EXPECT_EQ(result.sum.dense, std::vector<float>(model.dense_size(), 0.0f));
  EXPECT_EQ(result.sum.rows, selection.extra);
  EXPECT_EQ(result.sum.row_values, std::vector<float>(3 + 3 + 17, 0.0f));
  EXPECT_TRUE(result.norms.squared.empty());
}

TEST_F(PctrOnCpu, ARuleWithoutNormsGivesThePlainSum) {
  const Problem problem(3, {.examples = 30});
  Pctr model(problem.ModelOptions(), *backend_);
  StepResult plain = RunStep(problem, KeepAll(problem), testing::NoClip(), model);
  StepResult unit = RunStep(problem, KeepAll(problem), testing::FlatClip(1e9), model);
  EXPECT_TRUE(plain.norms.squared.empty());
  EXPECT_EQ(plain.sum.dense, unit.sum.dense);
  EXPECT_EQ(plain.sum.row_values, unit.sum.row_values);
}

TEST_F(PctrOnCpu, ClippedSumRepeatsToTheLastBit) {
  const Problem problem(11, {.examples = 37});
  const Problem other(12, {.examples = 55});
  Pctr model(problem.ModelOptions(), *backend_);
  const testing::FlatClip rule(0.3);
  StepResult first = RunStep(problem, KeepSome(problem, 1), rule, model);
  StepGradient again;
  GroupNorms norms;
  ASSERT_TRUE(model.ClippedSum(problem.View(), problem.activations, KeepSome(problem, 1), rule,
                               &again, &norms));
  EXPECT_EQ(again.dense, first.sum.dense);
  EXPECT_EQ(again.row_values, first.sum.row_values);
  EXPECT_EQ(norms.squared, first.norms.squared);
  // And after a larger step in between, in a model with a past.
  RunStep(other, KeepAll(other), rule, model);
  StepResult later = RunStep(problem, KeepSome(problem, 1), rule, model);
  EXPECT_EQ(later.sum.dense, first.sum.dense);
  EXPECT_EQ(later.sum.row_values, first.sum.row_values);
}

// One unit whose numbers overflow must not decide what the others' sum is.
TEST_F(PctrOnCpu, AUnitThatIsNotFiniteAddsNothing) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf(""), 3e38f}) {
    Problem problem(21, {.examples = 20});
    Pctr model(problem.ModelOptions(), *backend_);
    const uint32_t unit = problem.unit_of[10];
    problem.dense[10 * problem.model.dense_width] = bad;
    const testing::FlatClip rule(0.5);
    StepResult result = RunStep(problem, KeepAll(problem), rule, model);

    Problem clean(21, {.examples = 20});
    auto gradients = clean.UnitGradients();
    gradients[unit] = LoopGradient{std::vector<double>(clean.dense_parameters.size()), {}};
    GroupNorms norms = LoopNorms(clean, gradients);
    std::vector<float> scales(norms.squared.size());
    rule.Scales(norms, scales);
    ExpectSum(result.sum, LoopSum(clean, gradients, scales), KeepAll(problem));
    for (size_t g = 0; g < result.norms.groups; ++g)
      EXPECT_EQ(result.norms.squared[g * result.norms.units + unit], 0);
  }
}

TEST_F(PctrOnCpu, CallsOutOfOrderAreRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Problem problem(1, {.examples = 4});
  Pctr model(problem.ModelOptions(), *backend_);
  StepGradient sum;
  GroupNorms norms;
  EXPECT_DEATH((void)model.ClippedSum(problem.View(), problem.activations, KeepAll(problem),
                                      testing::NoClip(), &sum, &norms),
               "follows Backward");
}

PctrOptions PaperModel() {
  PctrOptions options;
  for (int s = 0; s < 26; ++s)
    options.space.AddTable("c" + std::to_string(s), 1000, s < 25 ? 14 : 13);
  options.dense_width = 13;
  return options;
}

TEST_F(PctrOnCpu, SizesOfThePapersModel) {
  const Pctr model(PaperModel(), *backend_);
  EXPECT_EQ(model.dense_size(), 377u * 598 + 3u * 599 * 598 + 599);
  EXPECT_NEAR(model.FlopsPerExample(), 7.8e6, 0.05e6);
}

TEST_F(PctrOnCpu, InitialDenseIsHeUniform) {
  const Pctr model(PaperModel(), *backend_);
  const auto dense = model.InitialDense(5);
  EXPECT_EQ(dense, model.InitialDense(5));
  EXPECT_NE(dense, model.InitialDense(6));
  size_t at = 0;
  for (const auto& [in, out] : {std::pair<size_t, size_t>{376, 598}, {598, 598}}) {
    const double bound = std::sqrt(6.0 / in);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < in * out; ++i) {
      ASSERT_LE(std::abs(dense[at + i]), bound * 1.000001);
      sum += dense[at + i];
      squares += double{dense[at + i]} * dense[at + i];
    }
    const double n = in * out;
    EXPECT_NEAR(sum / n, 0, 5 * bound / std::sqrt(3 * n));
    EXPECT_NEAR(squares / n, 2.0 / in, 0.01 * 2.0 / in);  // the variance He et al. derive
    at += in * out;
    for (size_t i = 0; i < out; ++i) ASSERT_EQ(dense[at + i], 0) << "bias";
    at += out;
  }
}

TEST_F(PctrOnCpu, FingerprintIsOfTheDocumentedBytes) {
  PctrOptions options;
  options.space.AddTable("ad", 1000, 8);
  options.space.AddTable("site", 70000, 14);
  options.dense_width = 13;
  options.hidden = {32, 16};
  // Computed from the grammar in pctr.cc with Python's struct and hashlib.
  EXPECT_EQ(ToHex(Pctr(options, *backend_).Fingerprint()),
            "ad84bc6432b476e17663cf4134c1857911e923f8e03335fd3feab959eeb4571e");
}

TEST_F(PctrOnCpu, FingerprintTellsModelsApart) {
  std::vector<std::string> seen;
  const auto add = [&](const auto& change) {
    PctrOptions options;
    options.space.AddTable("ad", 1000, 8);
    options.dense_width = 13;
    options.hidden = {32, 16};
    change(options);
    seen.push_back(ToHex(Pctr(options, *backend_).Fingerprint()));
  };
  add([](PctrOptions&) {});
  add([](PctrOptions& o) { o.dense_width = 12; });
  add([](PctrOptions& o) { o.hidden = {32}; });
  add([](PctrOptions& o) { o.hidden = {16, 32}; });
  add([](PctrOptions& o) { o.precision = ops::Precision::kBf16; });
  add([](PctrOptions& o) { o.space.AddTable("site", 5, 2); });
  for (const RowSpace::Table& table :
       {RowSpace::Table{"ae", 1000, 8}, {"ad", 1001, 8}, {"ad", 1000, 9}}) {
    add([&](PctrOptions& o) {
      o.space = RowSpace();
      o.space.AddTable(table.name, table.rows, table.dim);
    });
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
}

}  // namespace
}  // namespace tacit::model
