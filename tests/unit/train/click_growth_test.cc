// A click network with other inputs predicts as before, and its optimiser goes on.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "base/threads/worker_pool.h"
#include "model/pctr.h"
#include "ops/backend.h"
#include "train/click/click_learner.h"
#include "train/optimizer/optimizer.h"

namespace tacit::train {
namespace {

std::vector<float> Normals(size_t n, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<OptimizerOptions> Kinds() {
  std::vector<OptimizerOptions> all;
  for (const OptimizerKind& kind : AllOptimizers())
    for (const double average : {0.0, 0.9})
      for (const float momentum : {0.0f, 0.9f}) {
        if (momentum > 0 && kind.name != "sgd") continue;
        OptimizerOptions options;
        options.kind = &kind;
        options.average_decay = average;
        options.momentum = momentum;
        all.push_back(options);
      }
  return all;
}

// Parameters that have moved to other places take the steps that they would have taken where they
// were, with anything that the optimiser keeps beside them.
TEST(ClickGrowth, AStateThatIsMovedGoesOnAsWhereItWas) {
  std::mt19937 random(3);
  WorkerPool workers({.workers = 2});
  constexpr size_t kBefore = 2000, kAfter = 2600;
  for (const OptimizerOptions& options : Kinds()) {
    SCOPED_TRACE(std::string(options.kind->name));
    Optimizer optimizer(options);
    std::vector<float> was = Normals(kBefore, random);
    std::vector<float> state(optimizer.DenseStateFloats(kBefore));
    for (int step = 0; step < 5; ++step)
      optimizer.StepDense(Normals(kBefore, random), 0.01, was, state, workers);
    // 400 of them are gone, 1,000 are new.
    std::vector<size_t> origin(kBefore);
    std::iota(origin.begin(), origin.end(), size_t{0});
    std::shuffle(origin.begin(), origin.end(), random);
    origin.resize(kBefore - 400);
    origin.resize(kAfter, Optimizer::kNew);
    std::shuffle(origin.begin(), origin.end(), random);
    std::vector<float> is(kAfter, 0.5f);
    for (size_t i = 0; i < kAfter; ++i)
      if (origin[i] != Optimizer::kNew) is[i] = was[origin[i]];
    std::vector<float> moved = optimizer.MovedDenseState(state, kBefore, origin, is);
    const MovingAverage average(options.average_decay);
    Optimizer other(options);
    for (int step = 0; step < 5; ++step) {
      const std::vector<float> gradient = Normals(kBefore, random);
      std::vector<float> gradient_there(kAfter, 0);
      for (size_t i = 0; i < kAfter; ++i)
        if (origin[i] != Optimizer::kNew) gradient_there[i] = gradient[origin[i]];
      // Kinds without a count of steps in the state keep it themselves.
      optimizer.StepDense(gradient, 0.01, was, state, workers);
      other.StepDense(gradient_there, 0.01, is, moved, workers);
      for (size_t i = 0; i < kAfter; ++i) {
        if (origin[i] == Optimizer::kNew) {
          ASSERT_TRUE(std::isfinite(is[i]));
          continue;
        }
        ASSERT_EQ(is[i], was[origin[i]]) << i;
        if (average.on()) {
          ASSERT_EQ(average.Of(kAfter, moved)[i], average.Of(kBefore, state)[origin[i]]);
        }
      }
      if (average.on() && options.kind->name == "sgd" && options.momentum == 0) {
        const auto fresh = std::ranges::find(origin, Optimizer::kNew) - origin.begin();
        ASSERT_FLOAT_EQ(average.Of(kAfter, moved)[static_cast<size_t>(fresh)], 0.5f);
      }
    }
  }
}

class GrownNetwork : public testing::Test {
 protected:
  static ClickOptions Options(std::vector<std::pair<std::string, uint32_t>> tables,
                              uint32_t numbers, std::vector<uint32_t> hidden = {7, 5}) {
    ClickOptions options;
    options.id = "ctr";
    for (const auto& [name, dim] : tables) options.model.space.AddTable(name, 10, dim);
    options.model.dense_width = numbers;
    options.model.hidden = std::move(hidden);
    return options;
  }
  // The logit of an example with these embeddings, table by table, and numbers.
  float Logit(const ClickOptions& options, const std::vector<float>& dense,
              std::vector<std::vector<float>> embeddings, const std::vector<float>& numbers) {
    model::Pctr model(options.model, *backend_);
    std::vector<uint32_t> slot_end, slot_row;
    std::vector<float*> rows;
    for (uint32_t slot = 0; slot < embeddings.size(); ++slot) {
      slot_row.push_back(slot);
      slot_end.push_back(slot + 1);
      rows.push_back(embeddings[slot].data());
    }
    model::Examples examples;
    examples.size = 1;
    examples.dense = numbers;
    examples.slot_end = slot_end;
    examples.slot_row = slot_row;
    float logit = 0;
    EXPECT_TRUE(model.Forward(examples, dense, rows, {&logit, 1}));
    return logit;
  }

  WorkerPool workers_{{.workers = 1}};
  std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(workers_);
};

TEST_F(GrownNetwork, PredictsAsBeforeWhereWhatIsNewIsZero) {
  std::mt19937 random(5);
  const ClickOptions was = Options({{"a", 3}, {"b", 4}, {"c", 2}}, 2);
  // c is gone, b comes first, n is new; of the numbers, the second comes first and one is new.
  const ClickOptions is = Options({{"b", 4}, {"n", 5}, {"a", 3}}, 3);
  const model::Pctr before(was.model, *backend_), after(is.model, *backend_);
  store::DenseState dense = InitialDense(was, before);
  dense.parameters = Normals(before.dense_size(), random);
  const size_t fresh = Optimizer::kNew;
  const std::vector<size_t> inputs = {
      3, 4, 5, 6, fresh, fresh, fresh, fresh, fresh, 0, 1, 2, 10, kNewWithoutWeight, 9};
  const auto grown = GrownDense(is, after, dense, inputs);
  ASSERT_TRUE(grown) << grown.error().message;
  ASSERT_EQ(grown->parameters.size(), after.dense_size());
  int learnable = 0;
  for (int trial = 0; trial < 20; ++trial) {
    const auto a = Normals(3, random), b = Normals(4, random), numbers = Normals(2, random);
    const float expected = Logit(was, dense.parameters, {a, b, {0, 0}}, numbers);
    // A new number may be anything: it has no weight yet.
    const float got = Logit(is, grown->parameters, {b, std::vector<float>(5), a},
                            {numbers[1], 3.0f * static_cast<float>(trial), numbers[0]});
    EXPECT_NEAR(got, expected, 1e-5 * std::max(1.0f, std::abs(expected)));
    // The embedding of a new feature has weights, or it could not be learnt.
    const float moved = Logit(is, grown->parameters, {b, std::vector<float>(5, 1.0f), a},
                              {numbers[1], 0, numbers[0]});
    learnable += moved != got;
  }
  EXPECT_GT(learnable, 10) << "units that are off let nothing through";
}

// New numbers of an embedding may be anything: they have no weight yet, and get one.
TEST_F(GrownNetwork, PredictsAsBeforeWhereEmbeddingsAreLonger) {
  std::mt19937 random(6);
  const ClickOptions was = Options({{"a", 3}, {"b", 2}}, 1), is = Options({{"a", 5}, {"b", 1}}, 1);
  const model::Pctr before(was.model, *backend_), after(is.model, *backend_);
  store::DenseState dense = InitialDense(was, before);
  dense.parameters = Normals(before.dense_size(), random);
  const std::vector<size_t> inputs = {0, 1, 2, kNewWithoutWeight, kNewWithoutWeight, 3, 5};
  const auto grown = GrownDense(is, after, dense, inputs);
  ASSERT_TRUE(grown) << grown.error().message;
  for (int trial = 0; trial < 20; ++trial) {
    auto a = Normals(3, random);
    const auto b = Normals(1, random), numbers = Normals(1, random);
    const float expected = Logit(was, dense.parameters, {a, {b[0], 0}}, numbers);
    for (const float more : Normals(2, random)) a.push_back(more);
    const float got = Logit(is, grown->parameters, {a, b}, numbers);
    EXPECT_NEAR(got, expected, 1e-5 * std::max(1.0f, std::abs(expected)));
  }
}

// A row that became longer takes the steps that it would have taken, in the numbers that it had,
// and its new numbers take those of a row that begins where they do. One that became shorter
// the same.
TEST(ClickGrowth, ARowThatIsMovedGoesOnAsItWas) {
  std::mt19937 random(8);
  WorkerPool workers({.workers = 1});
  for (OptimizerOptions options : Kinds())
    for (const bool lazy : {false, true})
      for (const auto& [before, now] : {std::pair<size_t, size_t>{4, 7}, {7, 4}}) {
        if (lazy && !options.kind->may_be_lazy) continue;
        options.moments = lazy ? OptimizerOptions::Moments::kLazy : OptimizerOptions::Moments::kOwn;
        SCOPED_TRACE(std::string(options.kind->name));
        Optimizer optimizer(options);
        std::vector<float> dense = {1}, dense_state(optimizer.DenseStateFloats(1));
        std::vector<float> was(before + optimizer.RowStateFloats(before));
        const auto step =
            [&](std::vector<std::pair<std::vector<float>*, std::vector<float>>> rows) {
              optimizer.StepDense(std::vector<float>{0.5f}, 0.01, dense, dense_state, workers);
              for (auto& [row, gradient] : rows) {
                const RowUpdate update{.gradient = gradient, .row = *row};
                optimizer.StepRows({&update, 1});
              }
            };
        for (int i = 0; i < 4; ++i) step({{&was, Normals(before, random)}});
        step({});
        const size_t kept = std::min(before, now);
        std::vector<float> is(now + optimizer.RowStateFloats(now));
        const std::vector<float> drawn = Normals(now, random);
        std::copy(drawn.begin(), drawn.end(), is.begin());
        optimizer.MoveRow(was, before, is, now);
        for (size_t i = 0; i < now; ++i) ASSERT_EQ(is[i], i < kept ? was[i] : drawn[i]);
        const MovingAverage average(options.average_decay);
        const auto expect_served = [&] {
          if (!average.on()) return;
          for (size_t i = 0; i < kept; ++i)
            ASSERT_EQ(average.Of(now, is)[i], average.Of(before, was)[i]);
        };
        expect_served();
        if (average.on() && now > before) {
          ASSERT_EQ(average.Of(now, is)[now - 1], drawn[now - 1]) << "served as it begins";
        }
        for (int i = 0; i < 3; ++i) {
          // Adagrad's rows share the mean of the squares: equal ones keep it.
          std::vector<float> gradient(before, 0.25f), gradient_there(now, 0.25f);
          step({{&was, gradient}, {&is, gradient_there}});
          for (size_t k = 0; k < kept; ++k) ASSERT_EQ(is[k], was[k]) << k;
          for (size_t k = kept; k < now; ++k) ASSERT_NE(is[k], drawn[k]) << "it learns";
          expect_served();
        }
      }
}

TEST_F(GrownNetwork, OfOtherLayersIsRefused) {
  const ClickOptions was = Options({{"a", 3}}, 2);
  const ClickOptions is = Options({{"a", 3}}, 2, {7, 6});
  const model::Pctr before(was.model, *backend_), after(is.model, *backend_);
  const std::vector<size_t> inputs = {0, 1, 2, 3, 4};
  const auto grown = GrownDense(is, after, InitialDense(was, before), inputs);
  ASSERT_FALSE(grown);
  EXPECT_EQ(grown.error().code, ErrorCode::kRefused);
}

}  // namespace
}  // namespace tacit::train
