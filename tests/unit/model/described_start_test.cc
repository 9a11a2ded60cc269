#include "model/sequence/described_start.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace tacit::model {
namespace {

using transitions::ItemText;
using transitions::PublicItems;

SequenceLayout LayoutOf(uint32_t items, uint32_t width, bool tied = true) {
  SequenceOptions options;
  options.catalogue = items;
  options.length = 4;
  options.width = width;
  options.blocks = 1;
  options.tied = tied;
  options.item_bias = true;
  return SequenceLayout(options);
}

std::vector<ItemText> Shelf() {
  return {{1, "Alien (1979)", {"Horror", "Space"}},
          {2, "Aliens (1986)", {"Action", "Space"}},
          {3, "Alien Nation (1988)", {"Action"}},
          {4, "Emma (1996)", {"Romance"}},
          {5, "Emma's Nation (1996)", {"Romance", "Action", "Space"}},
          {6, "", {}},
          {7, "Persuasion", {"Romance"}},
          {8, "Zebra", {"Western"}},
          {9, "Zebra", {"Crime"}}};
}

std::vector<float> Begin(const SequenceLayout& layout, const std::vector<ItemText>& texts,
                         double share, uint64_t seed = 5) {
  std::vector<float> parameters = layout.Initial(seed);
  DescribedStart(std::make_shared<PublicItems>(texts), share).MixIn(layout, seed, parameters);
  return parameters;
}

std::span<const float> RowOf(const ParameterTable& table, std::span<const float> parameters,
                             uint32_t item) {
  return parameters.subspan(table.offset + item * table.cols, table.cols);
}

double Dot(std::span<const float> a, std::span<const float> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// Computes from the texts what two descriptions have in common.
double InCommon(const ItemText& a, const ItemText& b, const std::set<std::string>& rare) {
  double sum = 0;
  for (const std::string& genre : a.genres)
    if (std::ranges::find(b.genres, genre) != b.genres.end())
      sum += 1 / std::sqrt(static_cast<double>(a.genres.size() * b.genres.size()));
  const auto weight_at = [](int year, int knot) {
    const double past = year / 8.0 - std::floor(year / 8.0);
    const int first = year / 8;
    const double weight = knot == first ? 1 - past : knot == first + 1 ? past : 0;
    return weight / std::hypot(past, 1 - past);
  };
  const int year_a = transitions::YearOfTitle(a.title), year_b = transitions::YearOfTitle(b.title);
  if (year_a != 0 && year_b != 0)
    for (int knot = 0; knot < 300; ++knot) sum += weight_at(year_a, knot) * weight_at(year_b, knot);
  const std::vector<std::string> words = transitions::WordsOfTitle(b.title);
  for (const std::string& word : transitions::WordsOfTitle(a.title))
    if (rare.contains(word) && std::ranges::find(words, word) != words.end()) sum += 0.25;
  return sum;
}

TEST(DescribedStart, ItemsAreAsNearAsTheirDescriptionsAre) {
  constexpr uint32_t kWidth = 4096;
  constexpr double kShare = 0.6, kSquare = 0.05 * 0.05 * kWidth / 3;
  const std::vector<ItemText> texts = Shelf();
  const auto layout = LayoutOf(static_cast<uint32_t>(texts.size()), kWidth);
  const std::vector<float> begun = Begin(layout, texts, kShare);
  const std::set<std::string> rare{"alien", "emma", "nation", "zebra"};  // of two titles each
  for (uint32_t i = 0; i < texts.size(); ++i)
    for (uint32_t j = 0; j <= i; ++j) {
      const double own = InCommon(texts[i], texts[i], rare),
                   other = InCommon(texts[j], texts[j], rare);
      const double near = own * other > 0
                              ? kShare * InCommon(texts[i], texts[j], rare) / std::sqrt(own * other)
                              : 0;
      EXPECT_NEAR(Dot(RowOf(layout.items(), begun, i), RowOf(layout.items(), begun, j)) / kSquare,
                  i == j ? 1 : near, 0.06)
          << i << " " << j;
    }
}

TEST(DescribedStart, NothingElseIsMoved) {
  const std::vector<ItemText> texts = Shelf();
  for (const bool tied : {true, false}) {
    const auto layout = LayoutOf(static_cast<uint32_t>(texts.size()), 8, tied);
    const std::vector<float> drawn = layout.Initial(5), begun = Begin(layout, texts, 0.6);
    std::vector<uint8_t> may(drawn.size());
    for (const ParameterTable* table : {&layout.items(), &layout.output()})
      for (uint32_t item = 0; item < texts.size(); ++item)
        if (item != 5)
          std::fill_n(may.begin() + static_cast<ptrdiff_t>(table->offset + item * table->cols),
                      table->cols, 1);
    for (size_t i = 0; i < drawn.size(); ++i) EXPECT_EQ(begun[i] != drawn[i], may[i] == 1) << i;
    EXPECT_EQ(Begin(layout, texts, 0), drawn);
    std::vector<float> undescribed = drawn;
    DescribedStart(std::make_shared<PublicItems>(static_cast<uint32_t>(texts.size())), 0.6)
        .MixIn(layout, 5, undescribed);
    DescribedStart().MixIn(layout, 5, undescribed);
    EXPECT_EQ(undescribed, drawn);
  }
}

TEST(DescribedStart, AnOutputOfItsOwnBeginsBesideTheItems) {
  const std::vector<ItemText> texts = Shelf();
  const auto layout = LayoutOf(static_cast<uint32_t>(texts.size()), 8, false);
  const std::vector<float> begun = Begin(layout, texts, 1);
  for (const uint32_t item : {0u, 3u, 6u})
    for (size_t i = 0; i < 8; ++i)
      EXPECT_EQ(RowOf(layout.items(), begun, item)[i], RowOf(layout.output(), begun, item)[i]);
}

// Else what comes later would begin far from what is like it.
TEST(DescribedStart, AnItemBeginsTheSameWhateverElseIsDescribed) {
  const std::vector<ItemText> texts = Shelf();
  std::vector<ItemText> more = texts;
  // Another genre is the commonest now, and more words are rare, of which some come first.
  for (int i = 0; i < 20; ++i)
    more.push_back({100 + i, i < 2 ? "Aardvark Days (1950)" : "(1950)", {"Western"}});
  std::ranges::rotate(more, more.begin() + 3);
  const auto before = LayoutOf(static_cast<uint32_t>(texts.size()), 8),
             after = LayoutOf(static_cast<uint32_t>(more.size()), 8);
  const std::vector<float> was = Begin(before, texts, 1), is = Begin(after, more, 1);
  for (uint32_t item = 0; item < texts.size(); ++item) {
    if (item == 5) continue;  // has no description
    const auto now = static_cast<uint32_t>(std::ranges::find(more, texts[item].id, &ItemText::id) -
                                           more.begin());
    for (size_t i = 0; i < 8; ++i)
      EXPECT_EQ(RowOf(before.items(), was, item)[i], RowOf(after.items(), is, now)[i]) << item;
  }
}

}  // namespace
}  // namespace tacit::model
