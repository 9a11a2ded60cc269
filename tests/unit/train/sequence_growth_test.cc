// A sequence model goes on with more items than it had.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "model/sequence/layout.h"
#include "model/sequence/popularity.h"
#include "train/sequence/sequence_learner.h"

namespace tacit::train {
namespace {

SequenceTrainingOptions TrainingOf(uint32_t items, bool tied) {
  SequenceTrainingOptions options;
  options.model.catalogue = items;
  options.model.length = 6;
  options.model.width = 8;
  options.model.blocks = 2;
  options.model.tied = tied;
  options.model.item_bias = true;
  options.optimizer.average_decay = 0.9;
  return options;
}

store::DenseState SomeDense(const SequenceTrainingOptions& options, size_t parameters,
                            std::mt19937& random) {
  std::normal_distribution<float> normal;
  store::DenseState dense;
  for (size_t i = 0; i < parameters; ++i) dense.parameters.push_back(normal(random));
  dense.optimizer.resize(Optimizer(options.optimizer).DenseStateFloats(parameters));
  for (float& number : dense.optimizer) number = normal(random);
  return dense;
}

TEST(SequenceGrowth, WhatWasKnownStaysAndNewItemsBeginAsInANewModel) {
  std::mt19937 random(1);
  for (const bool tied : {true, false}) {
    const SequenceTrainingOptions was = TrainingOf(12, tied), is = TrainingOf(17, tied);
    const model::SequenceLayout before(was.model), after(is.model);
    store::DenseState dense = SomeDense(was, before.size(), random);
    const auto grown = GrownDense(is, 12, dense);
    ASSERT_TRUE(grown) << grown.error().message;
    ASSERT_EQ(grown->parameters.size(), after.size());
    const std::vector<float> initial = after.Initial(is.seed);
    const MovingAverage average(0.9);
    size_t fresh = 0;
    for (const model::ParameterGroup& group : after.groups()) {
      const model::ParameterGroup* const from = before.Find(group.name);
      ASSERT_NE(from, nullptr);
      for (size_t i = 0; i < group.size; ++i) {
        const float got = grown->parameters[group.offset + i];
        const float averaged = average.Of(after.size(), grown->optimizer)[group.offset + i];
        if (i < from->size) {
          ASSERT_EQ(got, dense.parameters[from->offset + i]) << group.name << " " << i;
          ASSERT_EQ(averaged, average.Of(before.size(), dense.optimizer)[from->offset + i]);
          continue;
        }
        ++fresh;
        ASSERT_EQ(got, initial[group.offset + i]);
        ASSERT_EQ(averaged, got);
      }
    }
    // Five items more: embeddings, those of the output if it has its own, biases.
    EXPECT_EQ(fresh, 5u * (8 * (tied ? 1 : 2) + 1));
    dense.parameters.pop_back();
    const auto refused = GrownDense(is, 12, dense);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  }
}

// Items that have moved keep all that is known of them; new ones between them begin as no other.
TEST(SequenceGrowth, ItemsKeepTheirNumbersWhereverTheyStand) {
  std::mt19937 random(2);
  for (const bool tied : {true, false}) {
    const SequenceTrainingOptions was = TrainingOf(12, tied), is = TrainingOf(17, tied);
    const model::SequenceLayout before(was.model), after(is.model);
    store::DenseState dense = SomeDense(was, before.size(), random);
    std::vector<uint32_t> places(17);
    std::iota(places.begin(), places.end(), 0u);
    std::shuffle(places.begin(), places.end(), random);
    places.resize(12);
    const auto grown = GrownDense(is, 12, dense, places);
    ASSERT_TRUE(grown) << grown.error().message;
    const MovingAverage average(0.9);
    const auto now = average.Of(after.size(), grown->optimizer);
    const auto then = average.Of(before.size(), dense.optimizer);
    const auto expect_same = [&](size_t at, size_t from) {
      ASSERT_EQ(grown->parameters[at], dense.parameters[from]);
      ASSERT_EQ(now[at], then[from]);
      ASSERT_EQ(grown->optimizer[at], dense.optimizer[from]) << "the first moment";
    };
    for (uint32_t item = 0; item < 12; ++item) {
      for (size_t i = 0; i < 8; ++i) {
        expect_same(after.items().offset + places[item] * 8 + i,
                    before.items().offset + item * 8 + i);
        expect_same(after.output().offset + places[item] * 8 + i,
                    before.output().offset + item * 8 + i);
      }
      expect_same(after.item_bias().offset + places[item], before.item_bias().offset + item);
    }
    for (const model::ParameterGroup& group : after.groups())
      if (group.name != "items" && group.name != "output" && group.name != "item_bias")
        for (size_t i = 0; i < group.size; ++i)
          expect_same(group.offset + i, before.Find(group.name)->offset + i);
    // A new item has a bias of 0 and factors that no item of this model began with.
    const std::vector<float> initial = before.Initial(was.seed);
    for (uint32_t place = 0; place < 17; ++place) {
      if (std::ranges::find(places, place) != places.end()) continue;
      EXPECT_EQ(grown->parameters[after.item_bias().offset + place], 0);
      const float first = grown->parameters[after.items().offset + place * 8];
      EXPECT_NE(first, 0);
      for (uint32_t item = 0; item < 12; ++item)
        EXPECT_NE(first, initial[before.items().offset + item * 8]);
    }
  }
}

// A new item that is described like a known one begins as that one began, between others or last.
TEST(SequenceGrowth, NewItemsBeginAsTheyAreDescribed) {
  std::mt19937 random(3);
  std::vector<model::transitions::ItemText> texts(17);
  for (size_t i = 0; i < texts.size(); ++i) {
    const size_t genre = i < 12 ? i : i - 12;
    texts[i] = {static_cast<int64_t>(i), "", {"genre " + std::to_string(genre)}};
  }
  std::vector<uint32_t> last(12), between(12);
  std::iota(last.begin(), last.end(), 0u);
  std::iota(between.begin(), between.end(), 5u);  // the new ones come first
  for (const bool tied : {true, false}) {
    for (const std::vector<uint32_t>& places : {last, between}) {
      const SequenceTrainingOptions was = TrainingOf(12, tied);
      SequenceTrainingOptions is = TrainingOf(17, tied);
      std::vector<model::transitions::ItemText> now(17);
      for (uint32_t i = 0; i < 17; ++i)
        now[i < 12 ? places[i] : (i - 12 + (places == last ? 12 : 0))] = texts[i];
      is.described = model::DescribedStart(std::make_shared<model::transitions::PublicItems>(now),
                                           /*share=*/1);
      const model::SequenceLayout before(was.model), after(is.model);
      const store::DenseState dense = SomeDense(was, before.size(), random);
      const auto grown = GrownDense(
          is, 12, dense, places == last ? std::span<const uint32_t>() : std::span(places));
      ASSERT_TRUE(grown) << grown.error().message;
      const std::vector<float> begun = InitialParameters(is, after);
      for (uint32_t item = 0; item < 12; ++item) {
        const size_t at = after.output().offset + places[item] * 8;
        ASSERT_EQ(grown->parameters[at], dense.parameters[before.output().offset + item * 8]);
        if (item >= 5) continue;
        const size_t fresh = after.output().offset + (item + (places == last ? 12 : 0)) * 8;
        for (size_t i = 0; i < 8; ++i) {
          ASSERT_EQ(grown->parameters[fresh + i], begun[fresh + i]);
          ASSERT_EQ(begun[fresh + i], begun[at + i]) << "they are described alike";
        }
      }
    }
  }
}

TEST(SequenceGrowth, ItemsThatHaveMovedKeepTheirShares) {
  model::RunningItems running(3);
  running.Add(std::vector<float>{5, 2, 0.5f}, 0.1, 10, 1);
  const std::vector<float> before = running.Shares();
  running.GrowTo(5, std::vector<uint32_t>{4, 0, 2});
  const std::vector<float> after = running.Shares();
  EXPECT_EQ(after, (std::vector<float>{before[1], 0, before[2], 0, before[0]}));
}

TEST(SequenceGrowth, NobodyHasHadItemsThatAreNew) {
  model::RunningItems running(3);
  running.Add(std::vector<float>{5, 2, 0.5f}, 0.1, 10, 1);
  const std::vector<float> before = running.Shares();
  running.GrowTo(5);
  const std::vector<float> after = running.Shares();
  ASSERT_EQ(after.size(), 5u);
  for (size_t item = 0; item < 3; ++item) EXPECT_EQ(after[item], before[item]);
  EXPECT_EQ(after[3], 0);
  EXPECT_EQ(after[4], 0);
  const auto again = model::RunningItems::Decode(running.Encode(), 5);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->Logits(), running.Logits());
}

}  // namespace
}  // namespace tacit::train
