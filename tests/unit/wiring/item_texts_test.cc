#include "wiring/plans/item_texts.h"

#include <gtest/gtest.h>

namespace tacit::wiring {
namespace {

model::transitions::PublicItems Texts(const char* lines) {
  auto items = event::ItemCatalogue::Parse(lines, "items");
  EXPECT_TRUE(items.has_value());
  return ItemTexts(*items);
}

TEST(ItemTexts, WhatIsSaidOfItemsIsThere) {
  const auto catalogue = Texts("7::Toy Story (1995)::Animation|Comedy\n3::Heat (1994)::Comedy\n");
  ASSERT_TRUE(catalogue.described());
  ASSERT_EQ(catalogue.items(), 2u);
  EXPECT_EQ(catalogue.features(0).id, 7);
  EXPECT_EQ(catalogue.features(0).year, 1995);
  EXPECT_EQ(catalogue.features(1).id, 3);
  EXPECT_EQ(catalogue.features(1).year, 1994);
  EXPECT_NE(catalogue.features(0).first_genre, catalogue.features(1).first_genre);
  EXPECT_NE(catalogue.features(0).genres & catalogue.features(1).genres, 0u);
}

TEST(ItemTexts, AnItemIsItsPlaceWhereNotAllAreNumbers) {
  const auto catalogue = Texts("7::A (1995)::x\nb::B (1994)::y\n9\n");
  ASSERT_EQ(catalogue.items(), 3u);
  for (uint32_t item = 0; item < 3; ++item) EXPECT_EQ(catalogue.features(item).id, item);
  EXPECT_EQ(catalogue.features(2).year, 0);
}

TEST(ItemTexts, NothingIsSaidOfBareIds) {
  const auto catalogue = Texts("7\n3\n");
  EXPECT_FALSE(catalogue.described());
  EXPECT_EQ(catalogue.items(), 2u);
}

}  // namespace
}  // namespace tacit::wiring
