#include "cli/generate/interaction_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "base/check.h"

namespace tacit::cli {
namespace {

constexpr uint32_t kClusterItems = 25;
constexpr double kExponent = 0.8, kFlatness = 5;  // of popularity, over ranks
constexpr double kSwing = 0.5;                    // of its logarithm, over the days
constexpr double kNewItemShare = 0.2;             // share of the items that come later
constexpr double kNews = 2, kNewsDays = 3;        // how much more popular a new item is at first
constexpr double kAppeal = 0.7;                   // standard deviation
constexpr double kLeadDecay = 0.85;               // from an item in LeadsTo to the next

enum class ItemPurpose : uint32_t { kItem = 100, kLife, kLead, kTitle };

constexpr std::array<std::string_view, 16> kGenres = {
    "Action", "Adventure", "Animation", "Comedy",  "Crime",   "Documentary", "Drama", "Fantasy",
    "Horror", "Musical",   "Mystery",   "Romance", "Science", "Thriller",    "War",   "Western"};
constexpr std::array<std::string_view, 16> kSort = {
    "Silent", "Golden", "Last",   "Broken", "Hidden", "Distant", "Burning", "Secret",
    "Frozen", "Lonely", "Bright", "Savage", "Gentle", "Hollow",  "Crimson", "Forgotten"};
constexpr std::array<std::string_view, 16> kThing = {
    "Harbor", "Garden", "Winter", "Promise", "Empire", "Stranger", "Mountain", "Letter",
    "Voyage", "Mirror", "Shadow", "Island",  "Summer", "Station",  "Orchard",  "River"};
constexpr std::array<std::string_view, 16> kSyllables = {
    "ba", "do", "fe", "ga", "hu", "ka", "lo", "mi", "na", "po", "ra", "so", "tu", "va", "xe", "zo"};

uint32_t MainGenre(uint32_t cluster) { return cluster % kGenres.size(); }

}  // namespace

InteractionWorld::InteractionWorld(const Options& options)
    : options_(options), items_(options.items) {
  TACIT_CHECK(options.days > 0 && options.items > 0, "an empty world");
  members_.resize((options.items + kClusterItems - 1) / kClusterItems);
  const stream::Random draw(options.seed, ItemPurpose::kItem),
      lives(options.seed, ItemPurpose::kLife);
  for (uint32_t i = 0; i < options.items; ++i) {
    const auto words = draw.Block(i, 0, 0), life = lives.Block(i, 0, 0);
    Item& item = items_[i];
    // Every cluster has an item, and its first item exists from the start.
    const bool first = i < clusters();
    item.cluster = first ? i : static_cast<uint32_t>(uint64_t{words[0]} * clusters() >> 32);
    item.place = static_cast<uint32_t>(members_[item.cluster].size());
    members_[item.cluster].push_back(i);
    if (!first && options.days > 1 && stream::Uniform(life[0]) < kNewItemShare)
      item.first_day = 1 + life[1] % (options.days - 1);
    const double rank = stream::Uniform(words[1]) * options.items;
    item.popularity = static_cast<float>(-kExponent * std::log(rank + kFlatness));
    item.appeal = static_cast<float>(kAppeal * stream::Normals(words[2], words[3]).first);
    item.phase = static_cast<float>(stream::Uniform(life[2]));
    item.period = static_cast<float>(8 + 20 * stream::Uniform(life[3]));
  }
}

std::array<uint32_t, kTaken> InteractionWorld::LeadsTo(uint32_t item) const {
  const Item& from = items_[item];
  const std::vector<uint32_t>& own = members_[from.cluster];
  const std::vector<uint32_t>& next = members_[(from.cluster + 1) % clusters()];
  const stream::Random draw(options_.seed, ItemPurpose::kLead);
  std::array<uint32_t, kTaken> to;
  for (uint32_t i = 0; i < kTaken; i += 4) {
    const auto words = draw.Block(item, i, 0);
    to[i] = own[(from.place + 1 + i / 2) % own.size()];
    to[i + 1] = next[words[1] % next.size()];
    to[i + 2] = own[(from.place + 2 + i / 2) % own.size()];
    to[i + 3] = next[words[3] % next.size()];
  }
  return to;
}

InteractionWorld::Day::Day(const InteractionWorld& world, uint32_t day)
    : popular(world.items()), shown(world.items()), of_cluster(world.clusters()) {
  double all = 0, all_shown = 0;
  for (uint32_t i = 0; i < world.items(); ++i) {
    const Item& item = world.items_[i];
    if (day < item.first_day) continue;
    const double swing = std::sin(2 * std::numbers::pi * (day / item.period + item.phase));
    const double news =
        item.first_day == 0
            ? 0
            : kNews * std::exp(-static_cast<double>(day - item.first_day) / kNewsDays);
    popular[i] = std::exp(item.popularity + kSwing * swing) * (1 + news);
    shown[i] = popular[i] * std::exp(-item.appeal);
    all += popular[i];
    all_shown += shown[i];
  }
  for (uint32_t i = 0; i < world.items(); ++i) {
    popular[i] /= all;
    shown[i] /= all_shown;
    of_cluster[world.cluster_of(i)] += popular[i];
  }
  popular_table = std::make_unique<stream::AliasTable>(popular);
  shown_table = std::make_unique<stream::AliasTable>(shown);
  std::vector<double> weight;
  for (const std::vector<uint32_t>& members : world.members_) {
    weight.clear();
    for (const uint32_t item : members) weight.push_back(popular[item]);
    cluster_tables.emplace_back(weight);
  }
}

std::array<double, kTaken> InteractionWorld::Day::Leading(const InteractionWorld& world,
                                                          uint32_t item) const {
  const auto to = world.LeadsTo(item);
  std::array<double, kTaken> share{};
  double all = 0, weight = 1;
  for (uint32_t i = 0; i < kTaken; ++i, weight *= kLeadDecay)
    if (popular[to[i]] > 0) all += share[i] = weight;
  if (all > 0)
    for (double& s : share) s /= all;
  return share;
}

std::string_view InteractionWorld::Genre(uint32_t item) const {
  return kGenres[MainGenre(items_[item].cluster)];
}

// Makes a title. Four neighbours in a cluster share a rare word; a cluster's years lie close.
std::string InteractionWorld::Title(uint32_t item) const {
  const uint32_t cluster = items_[item].cluster, family = items_[item].place / 4;
  const stream::Random draw(options_.seed, ItemPurpose::kTitle);
  const auto own = draw.Block(item, 0, 0), of_family = draw.Block(cluster, family, 1);
  std::string word;
  for (uint32_t i = 0; i < 4; ++i) word += kSyllables[of_family[0] >> (4 * i) & 15];
  word[0] = static_cast<char>(word[0] - 'a' + 'A');
  const uint32_t year = 1950 + draw.Block(cluster, 0, 2)[0] % 68 + own[2] % 5;
  return fmt::format("The {} {} of {} ({})", kSort[own[0] % kSort.size()],
                     kThing[own[1] % kThing.size()], word, year);
}

std::string InteractionWorld::CatalogueText() const {
  std::string lines;
  const stream::Random draw(options_.seed, ItemPurpose::kTitle);
  for (uint32_t i = 0; i < items(); ++i) {
    const uint32_t cluster = items_[i].cluster;
    fmt::format_to(std::back_inserter(lines), "{}::{}::{}", Name(i), Title(i), Genre(i));
    const uint32_t second = draw.Block(cluster, 0, 3)[0] % kGenres.size();
    if (second != MainGenre(cluster))
      fmt::format_to(std::back_inserter(lines), "|{}", kGenres[second]);
    lines += '\n';
  }
  return lines;
}

}  // namespace tacit::cli
