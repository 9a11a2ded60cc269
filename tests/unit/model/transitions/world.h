#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "model/histories.h"
#include "model/transitions/public_items.h"

// A small public catalogue and people who follow habits, the same for the same seed.
namespace tacit::model::transitions {

inline std::vector<ItemText> SomeTexts(uint32_t items, uint64_t seed) {
  static const std::vector<std::string> kGenres = {"Drama", "Comedy", "Action", "Horror", "War"};
  static const std::vector<std::string> kWords = {"star", "wars", "alien", "love", "the", "story"};
  std::mt19937_64 random(seed);
  std::vector<ItemText> texts(items);
  for (uint32_t i = 0; i < items; ++i) {
    texts[i].id = static_cast<int64_t>(1 + i + random() % 7 * 50);
    texts[i].title = kWords[random() % kWords.size()] + " of item " + std::to_string(i);
    if (random() % 10 > 0) texts[i].title += " (" + std::to_string(1950 + random() % 50) + ")";
    for (uint64_t g = random() % 4; g > 0; --g)
      texts[i].genres.push_back(kGenres[random() % kGenres.size()]);
  }
  return texts;
}

// Item i is followed by i + 1 or i + 3 more often than by others; early items are popular. Some
// histories are empty, some have one item, items come again.
inline Histories SomeHistories(uint32_t items, size_t units, size_t longest, uint64_t seed) {
  std::mt19937_64 random(seed);
  Histories histories;
  histories.catalogue = items;
  for (size_t unit = 0; unit < units; ++unit) {
    uint32_t item = 0;
    for (size_t length = random() % (longest + 1); length > 0; --length) {
      const double u = std::uniform_real_distribution<>()(random);
      if (random() % 2 == 0)
        item = static_cast<uint32_t>(u * u * items);
      else
        item = (item + (random() % 3 == 0 ? 3 : 1)) % items;
      histories.items.push_back(item);
    }
    histories.end.push_back(histories.items.size());
  }
  return histories;
}

// The same with the histories of one unit replaced.
inline Histories With(const Histories& histories, size_t unit, std::vector<uint32_t> items) {
  Histories other;
  other.catalogue = histories.catalogue;
  for (size_t u = 0; u < histories.units(); ++u) {
    const auto of = histories.Of(u);
    if (u == unit)
      other.items.insert(other.items.end(), items.begin(), items.end());
    else
      other.items.insert(other.items.end(), of.begin(), of.end());
    other.end.push_back(other.items.size());
  }
  return other;
}

}  // namespace tacit::model::transitions
