// tacit evaluate sequence beside the daemon's way of answering: a configuration's own model, given
// what the learner of an experiment would commit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "lab/next_item/methods.h"
#include "support/fixed_noise.h"
#include "support/process.h"
#include "unit/serve/recommend_fakes.h"
#include "wiring/assembly.h"
#include "wiring/plans/item_texts.h"

namespace tacit::lab {
namespace {

constexpr uint32_t kServedItems = 30;

// A commit of one learner, of which the average is served where it keeps one, as from a store.
class LearnersCommit final : public serve::RecommendSnapshot {
 public:
  LearnersCommit(train::Learner& learner, const MovingAverage& average)
      : RecommendSnapshot(1, {}), average_(average) {
    dense = learner.CopyDense();
    released = learner.TakeReleased();
  }
  std::span<const float> ServedDense(LearnerIndex) const override {
    if (!dense || !average_.on()) return RecommendSnapshot::ServedDense(LearnerIndex(0));
    return average_.Of(dense->parameters.size(), dense->optimizer);
  }

 private:
  const MovingAverage average_;
};

// A learner by its name here, and as a configuration has it.
struct Served {
  std::string name, model, mechanism, participation;
};

std::vector<Served> AllServed() {
  const std::string once = "{mode: once, batch: 100, max_participations: 2}";
  const std::string held =
      "{mode: poisson, batch: 20, sampling_rate: 1, steps_per_period: 4, period: 100, "
      "max_participations: 8}";
  const auto sequence = [&](const std::string& name, const std::string& more) {
    return Served{name, "{kind: sequence, length: 8, width: 16, blocks: 1" + more + "}",
                  "{kind: dp-sgd, clipping: automatic}", held};
  };
  return {{"transitions", "{kind: transitions, cells: 134217728}", "{kind: counts}", once},
          {"transitions-no-items", "{kind: transitions, described: false, cells: 134217728}",
           "{kind: counts}", once},
          {"transitions+ranker",
           "{kind: transitions, ranker: true, ranker_users: 20, cells: 134217728}",
           "{kind: counts}", once},
          sequence("transformer", ", start: popularity"),
          sequence("transformer-untied", ", tied: false, start: popularity"),
          sequence("gru", ", encoder: gru, start: popularity"),
          sequence("lstm", ", encoder: lstm, start: popularity"),
          sequence("transitions+transformer", ", start: counts, cells: 134217728")};
}

class ServedAnswersTest : public testing::TestWithParam<Served> {
 protected:
  ServedAnswersTest() {
    std::string items;
    for (uint32_t i = 0; i < kServedItems; ++i)
      items += fmt::format("{}::Title {} ({})::{}\n", i, i, 1950 + i, i % 2 == 0 ? "A" : "B");
    test::WriteFile(dir_ / "items.dat", items);
    for (uint32_t user = 0; user < 20; ++user) {
      for (uint32_t i = 0; i < 12; ++i)
        histories_.items.push_back((7 * user + (1 + user % 2) * i) % kServedItems);
      histories_.end.push_back(histories_.items.size());
      histories_.id.push_back(user);
    }
  }
  wiring::Assembly Assembled(const Served& served) {
    auto config = config::Parse(
        fmt::format("source: {{kind: log, files: /dev/null, format: json}}\n"
                    "catalogue: {{file: {}}}\n"
                    "schema: {{features: [{{name: C1, kind: categorical, buckets: 1000}}]}}\n"
                    "learners:\n"
                    "  - {{id: next, model: {}, mechanism: {}, participation: {},\n"
                    "     optimizer: {{kind: adam, ema: {}}},\n"
                    "     privacy: {{unit: user, epsilon: 8, delta: 1e-5}}}}\n"
                    "store: {{path: /tmp/tacit/store}}\n",
                    dir_ / "items.dat", served.model, served.mechanism, served.participation,
                    TrainedConstants().average_decay_private),
        "c.yaml", {});
    EXPECT_TRUE(config) << config.error().message;
    auto assembly = wiring::Assemble(std::move(*config));
    EXPECT_TRUE(assembly) << assembly.error().message;
    return std::move(*assembly);
  }

  const test::TempDir dir_;
  model::Histories histories_{.items = {}, .end = {}, .catalogue = kServedItems};
  WorkerPool workers_{WorkerPool::Options{2, false}};
};

INSTANTIATE_TEST_SUITE_P(, ServedAnswersTest, testing::ValuesIn(AllServed()), [](const auto& test) {
  std::string name = test.param.name;
  std::ranges::replace_if(
      name, [](char c) { return c == '-' || c == '+'; }, '_');
  return name;
});

// Bit for bit, of two periods under noise.
TEST_P(ServedAnswersTest, AreThoseThatEvaluateRanksBy) {
  const Served& served = GetParam();
  const wiring::Assembly assembly = Assembled(served);
  const wiring::ModelPlan& plan = *assembly.learners[0].model;
  const auto model = plan.Recommends();
  const auto scorer = model->MakeScorer();
  const model::transitions::PublicItems catalogue = wiring::ItemTexts(*assembly.items);
  SequenceSetting setting{.catalogue = &catalogue,
                          .transitions = {},
                          .trained = TrainedConstants::ForStreams(),
                          .ranked = {}};
  setting.trained.length = 8;
  setting.trained.width = 16;
  setting.trained.blocks = 1;
  setting.trained.epochs_private = 4;
  setting.ranked.steps = 5;
  const auto method = MakeStreamMethod(served.name, setting, workers_);
  const auto noise = std::make_unique<noise::FixedNoise>(1);
  std::vector<float> answered(kServedItems), evaluated(kServedItems);
  const std::vector<uint32_t> history = {4, 9, 2};
  std::shared_ptr<const serve::ItemState> before;
  for (int period = 0; period < 2; ++period) {
    const std::vector<uint32_t> known(histories_.units(), period == 0 ? 0 : 3);
    ASSERT_TRUE(method->Learn({histories_, known}, 2, *noise, workers_));
    const auto state =
        model->Build(LearnersCommit(*method->learner(), plan.Rows().average), nullptr);
    ASSERT_TRUE(state) << state.error().message;
    ASSERT_NE(*state, nullptr);
    method->Score(history, evaluated);
    ASSERT_TRUE(scorer->Score(**state, history, answered));
    EXPECT_EQ(answered, evaluated) << "period " << period;
    // Planted: the answers of a release that another came after.
    if (before) {
      ASSERT_TRUE(scorer->Score(*before, history, answered));
      EXPECT_NE(answered, evaluated);
    }
    before = *state;
  }
}

}  // namespace
}  // namespace tacit::lab
