// Tests released counts as they are kept: the numbers of a period are made up here.
#include "model/transitions/released_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "world.h"

namespace tacit::model::transitions {
namespace {

using testing::HasSubstr;

class ReleasedModelTest : public testing::Test {
 protected:
  static constexpr uint32_t kItems = 30;

  ReleasedModelTest() {
    options_.cells_at_signal = 300, options_.signal_unit = 500, options_.items_power = 0;
  }

  std::vector<float> Sums(size_t n, double deviation, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> noise(0, deviation > 0 ? static_cast<float>(deviation) : 1);
    std::vector<float> sums;
    for (size_t i = 0; i < n; ++i)
      sums.push_back(static_cast<float>(random() % 50) * 0.3f +
                     (deviation > 0 ? noise(random) : 0));
    return sums;
  }
  // A period of numbers that follow from the seed.
  void Period(uint64_t seed, bool noiseless, ReleasedModel* model) {
    const double deviation = noiseless ? 0 : 2;
    model->AddPopularity(Sums(model->catalogue().items(), deviation, seed), deviation,
                         noiseless ? std::numeric_limits<double>::infinity() : 2);
    std::vector<ReleasedTable> tables;
    for (size_t t = 0; t < model->buckets().tables(); ++t)
      tables.push_back({Sums(model->buckets().size(t), deviation, seed + t), deviation});
    model->AddTables(tables);
    if (noiseless) {
      const auto seen = SeenCells(SomeHistories(model->catalogue().items(), 5, 9, seed), 3);
      const auto places = model->ChooseSeen(seen);
      model->Measure(0, places, Sums(places.size(), 0, seed + 5), 0);
      return;
    }
    for (size_t stage = 0; stage < kStages; ++stage) {
      const auto places = model->Choose(stage);
      model->Measure(stage, places, Sums(places.size(), 3, seed + 6 + stage), 3);
    }
  }
  ReleasedModel Decoded(const std::string& bytes, const PublicItems& catalogue) {
    auto model = ReleasedModel::Decode(bytes, catalogue, options_, workers_);
    EXPECT_TRUE(model) << model.error().message;
    return std::move(*model);
  }
  std::string Refusal(const std::string& bytes, const PublicItems& catalogue,
                      const Options& options) {
    const auto model = ReleasedModel::Decode(bytes, catalogue, options, workers_);
    EXPECT_FALSE(model);
    return model ? "" : model.error().message;
  }

  Options options_;
  const PublicItems described_{SomeTexts(kItems, 3)}, plain_{kItems};
  WorkerPool workers_{{.workers = 2}};
};

// More items, of which nothing is known: what was measured stays, and the next period measures all.
TEST_F(ReleasedModelTest, ALargerCatalogueTakesTheModelOver) {
  const auto texts = SomeTexts(kItems + 8, 3);
  for (const bool described : {false, true}) {
    for (const bool noiseless : {false, true}) {
      const PublicItems before = described ? PublicItems(std::span(texts).first(kItems)) : plain_;
      const PublicItems after = described ? PublicItems(texts) : PublicItems(kItems + 8);
      ReleasedModel model(before, options_, workers_);
      const auto empty = model.Grown(after);
      ASSERT_TRUE(empty);
      EXPECT_EQ(empty->Encode(), ReleasedModel(after, options_, workers_).Encode());
      for (uint64_t period = 1; period <= 2; ++period) Period(period, noiseless, &model);
      auto grown = model.Grown(after);
      ASSERT_TRUE(grown) << grown.error().message;
      EXPECT_EQ(grown->periods(), 2u);
      for (uint32_t item = 0; item < after.items(); ++item)
        EXPECT_EQ(grown->popularity_sums().sums[item],
                  item < kItems ? model.popularity_sums().sums[item] : 0);
      const Measured &was = model.estimate().measured(), &is = grown->estimate().measured();
      EXPECT_EQ(is.mean, was.mean);
      EXPECT_EQ(is.precision, was.precision);
      EXPECT_EQ(is.cells.column, was.cells.column);
      ASSERT_EQ(is.cells.items(), after.items());
      for (uint32_t item = 0; item < after.items(); ++item)
        EXPECT_EQ(is.cells.Row(item).size(), item < kItems ? was.cells.Row(item).size() : 0);
      const std::string bytes = grown->Encode();
      EXPECT_EQ(Decoded(bytes, after).Encode(), bytes);
      Period(3, noiseless, &*grown);
      EXPECT_EQ(grown->periods(), 3u);
      bool measures_new = false;
      for (uint32_t item = kItems; item < after.items(); ++item)
        measures_new |= !grown->estimate().cells().Row(item).empty();
      EXPECT_TRUE(measures_new);
    }
  }
}

// Items that have moved keep all that was measured of them, by the plainest of loops.
TEST_F(ReleasedModelTest, ItemsKeepTheirCountsWhereverTheyStand) {
  const PublicItems larger(kItems + 5);
  for (const bool noiseless : {false, true}) {
    ReleasedModel model(plain_, options_, workers_);
    for (uint64_t period = 1; period <= 2; ++period) Period(period, noiseless, &model);
    std::vector<uint32_t> places(kItems + 5);
    std::iota(places.begin(), places.end(), 0u);
    std::shuffle(places.begin(), places.end(), std::mt19937(4));
    places.resize(kItems);
    auto grown = model.Grown(larger, places);
    ASSERT_TRUE(grown) << grown.error().message;
    const Measured &was = model.estimate().measured(), &is = grown->estimate().measured();
    ASSERT_EQ(is.cells.size(), was.cells.size());
    ASSERT_GT(is.cells.size(), 0u);
    for (uint32_t a = 0; a < kItems; ++a) {
      EXPECT_EQ(grown->popularity_sums().sums[places[a]], model.popularity_sums().sums[a]);
      for (uint32_t b = 0; b < kItems; ++b) {
        const uint32_t before = was.cells.Find(a, b), now = is.cells.Find(places[a], places[b]);
        ASSERT_EQ(before == Cells::kNone, now == Cells::kNone);
        if (before == Cells::kNone) continue;
        EXPECT_EQ(is.mean[now], was.mean[before]);
        EXPECT_EQ(is.precision[now], was.precision[before]);
      }
    }
    const std::string bytes = grown->Encode();
    EXPECT_EQ(Decoded(bytes, larger).Encode(), bytes);
    Period(3, noiseless, &*grown);
    EXPECT_EQ(grown->periods(), 3u);
  }
}

// Items whose ids are no numbers are akin by their order, which may not change then.
TEST_F(ReleasedModelTest, DescribedItemsWithoutNumbersStayInOrder) {
  ReleasedModel model(described_, options_, workers_);
  Period(1, false, &model);
  std::vector<uint32_t> places(kItems);
  std::iota(places.begin(), places.end(), 0u);
  EXPECT_TRUE(model.Grown(described_, places));
  std::swap(places[0], places[1]);
  const auto refused = model.Grown(described_, places);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_NE(refused.error().message.find("leave those that there were in theirs"),
            std::string::npos);
}

// After any periods: the same bytes, the same weights to the bit, and from there on the same.
TEST_F(ReleasedModelTest, WhatIsReadIsWhatWasWritten) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const bool noiseless = seed % 4 == 3;
    const PublicItems& catalogue = seed % 2 == 0 ? described_ : plain_;
    options_.forget = seed < 4 ? 1 : 0.5;
    ReleasedModel model(catalogue, options_, workers_);
    EXPECT_EQ(Decoded(model.Encode(), catalogue).periods(), 0u);
    for (uint64_t period = 1; period <= 4; ++period) {
      const uint64_t numbers = random();
      Period(numbers, noiseless, &model);
      const std::string bytes = model.Encode();
      ReleasedModel again = Decoded(bytes, catalogue);
      ASSERT_EQ(again.Encode(), bytes);
      ASSERT_EQ(again.periods(), period);
      ASSERT_EQ(again.noiseless(), noiseless);
      for (uint32_t a = 0; a < kItems; ++a) {
        ASSERT_EQ(again.popularity()[a], model.popularity()[a]);
        for (uint32_t b = 0; b < kItems; ++b)
          ASSERT_EQ(again.estimate().Of(a, b), model.estimate().Of(a, b));
      }
      // Either continues.
      if (random() % 2 == 0) model = Decoded(bytes, catalogue);
    }
  }
}

TEST_F(ReleasedModelTest, DamagedBytesAreRefusedOrMeanWhatTheySay) {
  for (const PublicItems* catalogue : {&described_, &plain_}) {
    ReleasedModel model(*catalogue, options_, workers_);
    Period(1, false, &model);
    const std::string bytes = model.Encode();
    for (size_t size = 0; size < bytes.size(); size += 1 + size / 50)
      EXPECT_FALSE(ReleasedModel::Decode(bytes.substr(0, size), *catalogue, options_, workers_))
          << size;
    EXPECT_THAT(Refusal(bytes + "x", *catalogue, options_), HasSubstr("too many"));
    const auto flipped = [&](size_t at, int bit) {
      std::string damaged = bytes;
      damaged[at] ^= static_cast<char>(1 << bit);
      return damaged;
    };
    // The head is of what and how: no bit of it may differ.
    const size_t head = 4 + 17 + 4 + 4 + 32 + 4 + options_.Text().size();
    for (size_t at = 0; at < head; ++at) Refusal(flipped(at, at % 8), *catalogue, options_);
    std::mt19937_64 random(5);
    for (int i = 0; i < 60; ++i) {
      const std::string damaged = flipped(head + random() % (bytes.size() - head), random() % 8);
      const auto read = ReleasedModel::Decode(damaged, *catalogue, options_, workers_);
      if (read) {
        EXPECT_EQ(read->Encode(), damaged);
      }
    }
  }
}

TEST_F(ReleasedModelTest, WhatIsForeignIsRefusedByWhatDiffers) {
  ReleasedModel model(described_, options_, workers_);
  Period(1, false, &model);
  const std::string bytes = model.Encode();
  EXPECT_EQ(Refusal(bytes, PublicItems(31), options_),
            "released counts: made for a catalogue of 30 items, this one has 31");
  for (const PublicItems& other : {plain_, PublicItems(SomeTexts(kItems, 4))})
    EXPECT_EQ(Refusal(bytes, other, options_),
              "released counts: made for a catalogue that describes its items differently");
  Options others = options_;
  others.lags = 7;
  const std::string why = Refusal(bytes, described_, others);
  EXPECT_THAT(why, HasSubstr("made with other constants"));
  EXPECT_THAT(why, HasSubstr(options_.Text()));
  EXPECT_THAT(why, HasSubstr(others.Text()));
  EXPECT_EQ(Refusal("", described_, options_), "released counts: these bytes are something else");
  std::string later = bytes;
  later[4 + 17] = 2;
  EXPECT_THAT(Refusal(later, described_, options_),
              HasSubstr("version 2 is unknown, this program reads version 1"));
}

// One period's numbers give the same result as the parts of the book do.
TEST_F(ReleasedModelTest, OnePeriodIsTheBook) {
  ReleasedModel model(described_, options_, workers_);
  const std::vector<float> popularity_sums = Sums(kItems, 2, 7);
  model.AddPopularity(popularity_sums, 2, 2);
  std::vector<double> popularity;
  double signal = 0;
  for (const float sum : popularity_sums) {
    popularity.push_back(std::max({double{sum}, 1.0, 0.3 * 2}));
    signal += 2 * double{sum};
  }
  const Buckets buckets(described_, popularity, options_.rank_bins);
  std::vector<ReleasedTable> tables;
  for (size_t t = 0; t < 4; ++t) tables.push_back({Sums(buckets.size(t), 2, 8 + t), 2});
  model.AddTables(tables);
  Prior prior(buckets, popularity);
  prior.Fit(tables, options_, workers_);
  const double part = 300 * std::pow(signal / 500, 1.4);
  Estimate estimate(prior, TopCells(prior, static_cast<uint64_t>(1.3 * part), options_, workers_),
                    options_, workers_);
  const auto first = model.Choose(0);
  ASSERT_EQ(first.size(), estimate.cells().size());
  ASSERT_EQ(model.estimate().cells().column, estimate.cells().column);
  model.Measure(0, first, Sums(first.size(), 3, 20), 3);
  estimate.MeasureAll(Sums(first.size(), 3, 20), 3);
  for (const size_t stage : {1, 2}) {
    const auto places = model.Choose(stage);
    EXPECT_EQ(places, estimate.Top(static_cast<uint64_t>(options_.stage_cells[stage] * part)));
    model.Measure(stage, places, Sums(places.size(), 3, 20 + stage), 3);
    estimate.MeasureMore(places, Sums(places.size(), 3, 20 + stage), 3);
  }
  for (uint32_t a = 0; a < kItems; ++a)
    for (uint32_t b = 0; b < kItems; ++b)
      ASSERT_EQ(model.estimate().Of(a, b), estimate.Of(a, b)) << a << ' ' << b;
}

}  // namespace
}  // namespace tacit::model::transitions
