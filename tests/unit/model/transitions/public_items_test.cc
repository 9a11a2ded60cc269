#include "model/transitions/public_items.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "model/transitions/buckets.h"
#include "world.h"

namespace tacit::model::transitions {
namespace {

using testing::ElementsAre;

TEST(PublicItems, ATitleTellsItsYearAndItsWords) {
  EXPECT_EQ(YearOfTitle("Toy Story (1995)"), 1995);
  EXPECT_EQ(YearOfTitle("City of Lost Children, The (Cite (1900) des enfants) (1995)"), 1995);
  EXPECT_EQ(YearOfTitle("Heat (1995) (TV)"), 1995);
  EXPECT_EQ(YearOfTitle("Heat (1995) ("), 1995);
  EXPECT_EQ(YearOfTitle("2001: A Space Odyssey"), 0);
  EXPECT_EQ(YearOfTitle("Nine (99)"), 0);
  EXPECT_EQ(YearOfTitle("(19x5)"), 0);
  EXPECT_EQ(YearOfTitle("("), 0);
  EXPECT_EQ(YearOfTitle(""), 0);
  EXPECT_THAT(WordsOfTitle("Star Wars: Episode IV - A New Hope, star (1977)"),
              ElementsAre("episode", "hope", "new", "star", "wars"));
  EXPECT_THAT(WordsOfTitle("M\xe9nage \xc3\xa0 (1986)"), ElementsAre("m\xe9nage"));
}

TEST(PublicItems, AWordIsRareThatAFewTitlesHave) {
  std::vector<ItemText> texts(600);
  for (size_t i = 0; i < texts.size(); ++i) texts[i].title = "the movie";
  texts[1].title = "Alien (1979)";
  texts[2].title = "Aliens, the alien (1986)";
  texts[3].title = "Unique";
  for (size_t i = 10; i < 14; ++i) texts[i].title = "four times";
  const PublicItems catalogue(texts);
  EXPECT_TRUE(catalogue.ShareRareWord(1, 2));
  EXPECT_TRUE(catalogue.ShareRareWord(2, 1));
  EXPECT_FALSE(catalogue.ShareRareWord(1, 3));
  EXPECT_FALSE(catalogue.ShareRareWord(4, 5)) << "everybody has it";
  EXPECT_FALSE(catalogue.ShareRareWord(10, 11)) << "four of 600 are more than three";
}

TEST(PublicItems, TheCommonestGenresAreToldApart) {
  std::vector<ItemText> texts(200);
  for (size_t i = 0; i < texts.size(); ++i)
    texts[i].genres = {i < 100 ? "common" : "g" + std::to_string(i), "second"};
  texts[5].genres = {};
  const PublicItems catalogue(texts);
  EXPECT_EQ(catalogue.first_genres(), 65u);
  EXPECT_EQ(catalogue.features(5).first_genre, 0);
  EXPECT_EQ(catalogue.features(5).genres, 0u);
  EXPECT_EQ(catalogue.features(0).first_genre, catalogue.features(1).first_genre);
  EXPECT_NE(catalogue.features(0).first_genre, catalogue.features(150).first_genre);
  EXPECT_EQ(std::popcount(catalogue.features(0).genres), 2);
  for (uint32_t i = 0; i < 200; ++i) EXPECT_LT(catalogue.features(i).first_genre, 65);
}

// The items in the data decide nothing: each item is as it is among all that are described.
TEST(PublicItems, ItemsAreAsTheyAreAmongAllThatAreDescribed) {
  const auto texts = SomeTexts(80, 7);
  const std::vector<uint32_t> items = {71, 3, 40, 8, 65};
  const PublicItems all(texts), some(texts, items);
  ASSERT_EQ(some.items(), 5u);
  EXPECT_EQ(some.first_genres(), all.first_genres());
  const std::vector<double> alike(80, 1.0);
  const Buckets of_all(all, alike, 3), of_some(some, std::span(alike).first(5), 3);
  size_t otherwise = 0;
  std::vector<ItemText> alone;
  for (const uint32_t item : items) alone.push_back(texts[item]);
  const PublicItems counted_alone(alone);
  const Buckets of_alone(counted_alone, std::span(alike).first(5), 3);
  for (uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(some.features(i), all.features(items[i]));
    for (uint32_t j = 0; j < 5; ++j)
      EXPECT_EQ(some.ShareRareWord(i, j), all.ShareRareWord(items[i], items[j]));
    for (const size_t table : {Buckets::kYears, Buckets::kGenres}) {
      EXPECT_EQ(of_some.bins(i)[table], of_all.bins(items[i])[table]);
      otherwise += of_alone.bins(i)[table] != of_all.bins(items[i])[table] ? 1 : 0;
    }
  }
  EXPECT_GT(otherwise, 0u) << "counted over the data's items alone it would be told";
}

// Ids as far apart as numbers can be are the most apart, either way.
TEST(Buckets, AnyTwoIdsHaveADistance) {
  std::vector<ItemText> texts(3);
  texts[0].id = std::numeric_limits<int64_t>::min();
  texts[1].id = std::numeric_limits<int64_t>::max();
  texts[2].id = std::numeric_limits<int64_t>::max() - 2000;
  const PublicItems catalogue(texts);
  const Buckets buckets(catalogue, std::vector<double>(3, 1.0), 1);
  const auto of = [&](uint32_t a, uint32_t b) { return buckets.Of(Buckets::kKinship, a, b); };
  EXPECT_EQ(of(0, 1), of(2, 1));
  EXPECT_EQ(of(1, 0), of(1, 2));
  EXPECT_NE(of(0, 1), of(1, 0));
}

// All that kinship depends on.
struct Kin {
  int years = 0, distance = 0, overlap = 0;
  bool word = false, genre = false;
  friend bool operator==(const Kin&, const Kin&) = default;
};

// Buckets are labels: two pairs share one exactly when all that a bucket depends on is the same.
TEST(Buckets, PairsShareABucketWhenTheyAreAlikeInAllItGoesBy) {
  const auto texts = SomeTexts(80, 5);
  const PublicItems catalogue(texts);
  std::vector<double> popularity(80);
  for (size_t i = 0; i < 80; ++i) popularity[i] = 1 + static_cast<double>(i * i % 37);
  const Buckets buckets(catalogue, popularity, 5);
  ASSERT_EQ(buckets.tables(), 4u);
  const auto kin = [&](uint32_t a, uint32_t b) {
    const auto &x = catalogue.features(a), &y = catalogue.features(b);
    Kin kin;
    const int years = y.year - x.year;
    const std::vector<int> ends = {0, 2, 5, 10, 20};
    const auto step = std::lower_bound(ends.begin(), ends.end(), std::abs(years)) - ends.begin();
    kin.years = x.year == 0 || y.year == 0 ? 99 : static_cast<int>(years < 0 ? -step : step);
    const auto width =
        static_cast<int>(std::floor(std::log2(std::max(1.0, std::fabs(y.id - x.id)))));
    kin.distance = (std::min(width, 9) + 1) * (y.id > x.id ? 1 : -1);
    const double common = std::popcount(x.genres & y.genres),
                 all = std::popcount(x.genres | y.genres);
    const double jaccard = common == 0 ? 0 : common / all;
    kin.overlap = jaccard == 0 ? 0 : jaccard < 0.5 ? 1 : jaccard < 1 ? 2 : 3;
    const auto u = WordsOfTitle(texts[a].title), v = WordsOfTitle(texts[b].title);
    for (const std::string& word : u) {
      const auto has = [&](const ItemText& t) {
        return std::ranges::count(WordsOfTitle(t.title), word) > 0;
      };
      const auto titles = std::ranges::count_if(texts, has);
      kin.word |= std::ranges::count(v, word) > 0 && titles >= 2 && titles <= 2;
    }
    kin.genre = x.first_genre == y.first_genre;
    return kin;
  };
  std::vector<std::pair<uint32_t, Kin>> seen;
  for (uint32_t a = 0; a < 80; ++a)
    for (uint32_t b = 0; b < 80; ++b) {
      if (a == b) continue;
      const uint32_t bucket = buckets.Of(Buckets::kKinship, a, b);
      ASSERT_LT(bucket, buckets.size(Buckets::kKinship));
      const Kin here = kin(a, b);
      EXPECT_EQ(bucket % 2 == 1, here.genre);
      EXPECT_EQ(Buckets::AreFar(bucket / 16 % Buckets::kIdSteps), std::abs(here.distance) == 10);
      for (const auto& [other, there] : seen)
        ASSERT_EQ(other == bucket, there == here) << a << ' ' << b;
      if (std::ranges::find(seen, bucket, &std::pair<uint32_t, Kin>::first) == seen.end())
        seen.emplace_back(bucket, here);
      for (size_t table : {Buckets::kRanks, Buckets::kYears, Buckets::kGenres})
        ASSERT_LT(buckets.Of(table, a, b), buckets.size(table));
    }
  EXPECT_GT(seen.size(), 100u);
}

TEST(Buckets, RankBinsHoldEqualPopularity) {
  const PublicItems catalogue(1000);
  std::vector<double> popularity(1000);
  for (size_t i = 0; i < 1000; ++i) popularity[i] = 100.0 / (1 + static_cast<double>(i));
  const Buckets buckets(catalogue, popularity, 4);
  EXPECT_EQ(buckets.tables(), 1u);
  double total = 0;
  std::vector<double> held(4);
  for (uint32_t i = 0; i < 1000; ++i) {
    held[buckets.bins(i)[Buckets::kRanks]] += popularity[i];
    total += popularity[i];
    if (i > 0) {
      EXPECT_GE(buckets.bins(i)[0], buckets.bins(i - 1)[0]);
    }
  }
  for (const double h : held) EXPECT_NEAR(h / total, 0.25, 0.1);
}

}  // namespace
}  // namespace tacit::model::transitions
