// Tests the parts of a sequence model beside its arithmetic: options, layout, crops, coins.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "model/sequence/coins.h"
#include "model/sequence/layout.h"
#include "model/sequence/logit_prior.h"
#include "model/sequence/output_layer.h"
#include "model/sequence/unit_rows.h"
#include "ops/matrix_buffer.h"

namespace tacit::model {
namespace {

SequenceOptions Small() {
  SequenceOptions options;
  options.catalogue = 20;
  options.length = 4;
  options.width = 8;
  return options;
}

TEST(SequenceOptions, WhatDoesNotGoTogetherIsRefused) {
  EXPECT_TRUE(CheckOptions(Small()));
  const auto refused = [](auto change, const char* name) {
    SequenceOptions options = Small();
    change(&options);
    const Status status = CheckOptions(options);
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(status.error().message.find(name), std::string::npos) << status.error().message;
  };
  refused([](auto* o) { o->catalogue = 1; }, "catalogue");
  for (const uint32_t number : {0u, 0xffffffffu}) {
    refused([&](auto* o) { o->length = number; }, "length");
    refused([&](auto* o) { o->width = number; }, "width");
    refused([&](auto* o) { o->blocks = number; }, "blocks");
    refused([&](auto* o) { o->crops = number; }, "crops");
  }
  refused([](auto* o) { o->width = 1 << 16; }, "more than 4294967296 numbers");
  refused([](auto* o) { o->feed_forward = 0xffffffff; }, "feed_forward");
  refused([](auto* o) { o->heads = 3; }, "heads");
  refused([](auto* o) { o->dropout = 1; }, "dropout");
  refused([](auto* o) { o->label_smoothing = -1; }, "label_smoothing");
  refused([](auto* o) { o->negatives = 20; }, "negatives");
  refused([](auto* o) { o->negatives = 3, o->item_bias = true; }, "item_bias");
  refused([](auto* o) { o->mask_seen = true, o->negatives = 3; }, "mask_seen");
  refused([](auto* o) { o->mask_seen = true, o->label_smoothing = 0.1f; }, "mask_seen");
  refused([](auto* o) { o->re_attention.kappa = -1; }, "kappa");
  refused([](auto* o) { o->re_attention.kappa = 1e30f; }, "kappa");
}

TEST(SequenceLayout, GroupsFollowOneAnother) {
  for (const bool tied : {true, false}) {
    SequenceOptions options = Small();
    options.tied = tied;
    options.item_bias = tied;
    options.norm = tied ? SequenceOptions::Norm::kPre : SequenceOptions::Norm::kPost;
    const SequenceLayout layout(options);
    size_t at = 0;
    std::set<std::string> names;
    for (const ParameterGroup& group : layout.groups()) {
      EXPECT_EQ(group.offset, at);
      at += group.size;
      names.insert(group.name);
    }
    EXPECT_EQ(at, layout.size());
    EXPECT_EQ(names.size(), layout.groups().size());
    EXPECT_EQ(layout.Find("output") != nullptr, !tied);
    EXPECT_EQ(layout.Find("item_bias") != nullptr, tied);
    EXPECT_EQ(layout.Find("last_norm") != nullptr, tied);
  }
}

TEST(SequenceLayout, InitialValuesAreAFunctionOfTheSeed) {
  const SequenceLayout layout(Small());
  const auto one = layout.Initial(1);
  EXPECT_EQ(one, layout.Initial(1));
  EXPECT_NE(one, layout.Initial(2));
  const ParameterGroup& norm = *layout.Find("block1.second_norm");
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(one[norm.offset + i], 1);
    EXPECT_EQ(one[norm.offset + 8 + i], 0);
  }
  // Glorot: each of queries, keys and values has 8 + 8 ends.
  const ParameterGroup& qkv = *layout.Find("block0.qkv");
  double squared = 0;
  for (size_t i = 0; i < 8 * 24; ++i) squared += std::pow(one[qkv.offset + i], 2);
  EXPECT_NEAR(squared / (8 * 24), 6.0 / 16 / 3, 0.03);
}

TEST(SequenceLayout, FingerprintKnowsWhatIsStored) {
  std::set<Digest> seen = {SequenceLayout(Small()).Fingerprint()};
  const auto other = [&](auto change) {
    SequenceOptions options = Small();
    change(&options);
    return seen.insert(SequenceLayout(options).Fingerprint()).second;
  };
  EXPECT_TRUE(other([](auto* o) { o->catalogue = 21; }));
  EXPECT_TRUE(other([](auto* o) { o->length = 5; }));
  EXPECT_TRUE(other([](auto* o) { o->width = 16; }));
  EXPECT_TRUE(other([](auto* o) { o->heads = 2; }));
  EXPECT_TRUE(other([](auto* o) { o->blocks = 1; }));
  EXPECT_TRUE(other([](auto* o) { o->feed_forward = 9; }));
  EXPECT_TRUE(other([](auto* o) { o->tied = false; }));
  EXPECT_TRUE(other([](auto* o) { o->item_bias = true; }));
  EXPECT_TRUE(other([](auto* o) { o->norm = SequenceOptions::Norm::kPre; }));
  EXPECT_TRUE(other([](auto* o) { o->embedding_scale = 1; }));
  EXPECT_FALSE(other([](auto* o) { o->dropout = 0.5f, o->crops = 3, o->feed_forward = 8; }));
}

TEST(CutCrops, TheLatestWindowsSideBySide) {
  SequenceOptions options = Small();
  const std::vector<uint32_t> history = {10, 11, 12, 13, 14, 15, 16};
  UnitRows rows;
  CutCrops(options, history, 0, 0, &rows);
  EXPECT_EQ(rows.item, (std::vector<uint32_t>{12, 13, 14, 15}));
  EXPECT_EQ(rows.target, (std::vector<uint32_t>{13, 14, 15, 16}));
  EXPECT_EQ(rows.position, (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(rows.weight, std::vector<float>(4, 0.25f));
  options.crops = 3;
  options.mean_loss = false;
  options.last_position_only = true;
  CutCrops(options, history, 0, 0, &rows);
  EXPECT_EQ(rows.item, (std::vector<uint32_t>{12, 13, 14, 15, 10, 11}));
  EXPECT_EQ(rows.target, (std::vector<uint32_t>{13, 14, 15, 16, 11, 12}));
  EXPECT_EQ(rows.position, (std::vector<uint32_t>{0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(rows.crop_end, (std::vector<uint32_t>{4, 6}));
  EXPECT_EQ(rows.weight, (std::vector<float>{0, 0, 0, 1, 0, 1}));
  CutCrops(options, std::span(history).first(1), 0, 0, &rows);
  EXPECT_EQ(rows.size(), 0u);
  CutCrops(options, {}, 0, 0, &rows);
  EXPECT_EQ(rows.size(), 0u);
}

TEST(CutCrops, RandomWindowsAreEverywhereAndFollowTheCoins) {
  SequenceOptions options = Small();
  options.crops = 2;
  options.random_crops = true;
  std::vector<uint32_t> history(9);
  for (uint32_t i = 0; i < 9; ++i) history[i] = i;
  std::set<uint32_t> begins;
  UnitRows rows, again;
  for (uint64_t coins = 0; coins < 200; ++coins) {
    CutCrops(options, history, 0, coins, &rows);
    ASSERT_EQ(rows.crop_end, (std::vector<uint32_t>{4, 8}));
    for (size_t r = 0; r < 8; ++r) ASSERT_EQ(rows.target[r], rows.item[r] + 1);
    begins.insert(rows.item[0]);
    CutCrops(options, history, 0, coins, &again);
    ASSERT_EQ(rows.item, again.item);
  }
  EXPECT_EQ(begins, (std::set<uint32_t>{0, 1, 2, 3, 4}));
}

// The pairs that a history's crops predict, each with how often.
std::map<std::pair<uint32_t, uint32_t>, int> PairsOf(const UnitRows& rows) {
  std::map<std::pair<uint32_t, uint32_t>, int> pairs;
  for (size_t r = 0; r < rows.size(); ++r) {
    EXPECT_EQ(rows.weight[r] > 0, rows.target[r] != kNoItem);
    if (rows.target[r] != kNoItem) ++pairs[{rows.item[r], rows.target[r]}];
  }
  return pairs;
}

TEST(CutCrops, AHistoryThatIsCutAnywhereHasEachPairOnce) {
  SequenceOptions options = Small();
  options.crops = 100;
  std::mt19937_64 random(5);
  for (int times = 0; times < 200; ++times) {
    std::vector<uint32_t> history(random() % 14);
    for (uint32_t i = 0; i < history.size(); ++i) history[i] = i;
    std::map<std::pair<uint32_t, uint32_t>, int> all;
    UnitRows rows;
    for (size_t known = 0; known < history.size();) {
      const size_t end = known + 1 + random() % (history.size() - known);
      CutCrops(options, std::span(history).first(end), known, 0, &rows);
      for (const auto& [pair, count] : PairsOf(rows)) all[pair] += count;
      known = end;
    }
    ASSERT_EQ(all.size(), history.empty() ? 0 : history.size() - 1);
    for (const auto& [pair, count] : all) ASSERT_EQ(pair.second, count * (pair.first + 1));
    CutCrops(options, history, history.size(), 0, &rows);
    ASSERT_EQ(rows.size(), 0u) << "nothing is new";
  }
}

TEST(CutCrops, WhatIsKnownIsReadAndNotPredicted) {
  SequenceOptions options = Small();
  const std::vector<uint32_t> history = {10, 11, 12, 13, 14, 15, 16};
  UnitRows rows;
  CutCrops(options, history, 5, 0, &rows);
  EXPECT_EQ(rows.item, (std::vector<uint32_t>{12, 13, 14, 15}));
  EXPECT_EQ(rows.target, (std::vector<uint32_t>{kNoItem, kNoItem, 15, 16}));
  EXPECT_EQ(rows.position, (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(rows.weight, (std::vector<float>{0, 0, 0.5f, 0.5f}));
  options.crops = 3;
  CutCrops(options, history, 2, 0, &rows);
  EXPECT_EQ(rows.target, (std::vector<uint32_t>{13, 14, 15, 16, kNoItem, 12}));
  // Windows at random are of what is new alone, and of all of it.
  options.random_crops = true;
  std::set<uint32_t> begins;
  std::vector<uint32_t> longer(12);
  for (uint32_t i = 0; i < 12; ++i) longer[i] = i;
  for (uint64_t coins = 0; coins < 200; ++coins) {
    CutCrops(options, longer, 5, coins, &rows);
    ASSERT_EQ(rows.crop_end, (std::vector<uint32_t>{4, 8, 12}));
    for (size_t r = 0; r < 12; ++r) ASSERT_EQ(rows.target[r], rows.item[r] + 1);
    begins.insert(rows.item[0]);
  }
  EXPECT_EQ(begins, (std::set<uint32_t>{4, 5, 6, 7}));
}

TEST(ItemLogits, AreTheSameBehindEverything) {
  ItemLogits popular(3);
  UnitRows rows;
  rows.Append(std::vector<uint32_t>{0, 1, 2}, std::vector<uint32_t>{1, 2, 0}, 4);
  const std::vector<uint32_t> places = {0, 2};
  std::vector<float> logits(6, 9.0f);
  popular.Fill(rows, places, {logits.data(), 2, 3});
  EXPECT_EQ(logits, std::vector<float>(6)) << "until it is told";
  popular.Set({1, 2, 3});
  popular.Fill(rows, places, {logits.data(), 2, 3});
  EXPECT_EQ(logits, (std::vector<float>{1, 2, 3, 1, 2, 3}));
}

// Any places of any crops, against the sum as it is written down.
TEST(DecayedLogits, AreTheDecayedSumOfWhatIsBefore) {
  constexpr uint32_t kItems = 7;
  std::mt19937_64 random(11);
  std::vector<float> table;
  for (uint32_t i = 0; i < kItems * kItems; ++i)
    table.push_back(std::uniform_real_distribution<float>(-1, 1)(random));
  for (const double decay : {0.0, 0.25, 0.875}) {
    const DecayedLogits known(table, kItems, decay);
    for (int trial = 0; trial < 50; ++trial) {
      UnitRows rows;
      for (int crop = 0; crop < 3; ++crop) {
        std::vector<uint32_t> items(1 + random() % 300);
        for (uint32_t& item : items) item = static_cast<uint32_t>(random() % kItems);
        rows.Append(items, items, 300);
      }
      std::vector<uint32_t> places;
      for (uint32_t r = 0; r < rows.size(); ++r)
        if (random() % (trial % 2 ? 2 : 150) == 0) places.push_back(r);
      ops::MatrixBuffer<float> logits;
      logits.Reset(places.size(), kItems);
      known.Fill(rows, places, logits.view());
      for (size_t i = 0; i < places.size(); ++i) {
        size_t crop = 0;
        while (rows.crop_end[crop] <= places[i]) ++crop;
        std::vector<double> want(kItems);
        for (size_t r = crop == 0 ? 0 : rows.crop_end[crop - 1]; r <= places[i]; ++r)
          for (uint32_t b = 0; b < kItems; ++b)
            want[b] = decay * want[b] + double{table[rows.item[r] * kItems + b]};
        for (uint32_t b = 0; b < kItems; ++b)
          ASSERT_NEAR(logits.view().Row(i)[b], want[b], 1e-5)
              << "decay " << decay << " place " << i;
      }
    }
  }
}

TEST(DropoutCoins, KeepTheirShareAndDependOnUnitSiteAndSeed) {
  constexpr size_t kRows = 200, kCols = 50;
  const auto draw = [](DropoutCoins coins, uint32_t site) {
    ops::MatrixBuffer<float> factors;
    factors.Reset(kRows, kCols);
    coins.Draw(site, factors.view());
    std::vector<float> all;
    for (size_t r = 0; r < kRows; ++r)
      all.insert(all.end(), factors.view().Row(r), factors.view().Row(r) + kCols);
    return all;
  };
  const DropoutCoins coins{3, 7, 0.2f};
  const auto one = draw(coins, 0);
  size_t kept = 0;
  for (const float f : one) {
    ASSERT_TRUE(f == 0 || std::abs(f - 1.25f) < 1e-4f);
    kept += f > 0;
  }
  EXPECT_NEAR(static_cast<double>(kept), 8000, 6 * 40);
  EXPECT_EQ(one, draw(coins, 0));
  EXPECT_NE(one, draw(coins, 1));
  EXPECT_NE(one, draw({4, 7, 0.2f}, 0));
  EXPECT_NE(one, draw({3, 8, 0.2f}, 0));
}

TEST(OutputStep, NegativesAreDistinctAndTheCoinsAlone) {
  SequenceOptions options = Small();
  options.negatives = 12;
  const SequenceLayout layout(options);
  const auto parameters = layout.Initial(1);
  OutputStep step(layout), again(layout);
  const auto ops = ops::MakeReferenceUnitOps(ops::Precision::kF32);
  std::vector<size_t> drawn(options.catalogue);
  for (uint64_t coins = 0; coins < 2000; ++coins) {
    step.Begin(parameters, coins, *ops);
    ASSERT_EQ(step.negatives().size(), 12u);
    ASSERT_EQ(std::set<uint32_t>(step.negatives().begin(), step.negatives().end()).size(), 12u);
    for (uint32_t item = 0; item < options.catalogue; ++item) {
      const int32_t place = step.PlaceOf(item);
      if (place < 0) continue;
      ASSERT_EQ(step.negatives()[static_cast<size_t>(place)], item);
      ++drawn[item];
    }
  }
  for (const size_t count : drawn) EXPECT_NEAR(static_cast<double>(count), 1200, 6 * 22);
  again.Begin(parameters, 1999, *ops);
  EXPECT_TRUE(std::ranges::equal(step.negatives(), again.negatives()));
}

}  // namespace
}  // namespace tacit::model
