#include "model/transitions/cell_walk.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tacit::model::transitions {
namespace {

// A walk may look at this many cells, and at a few for each that is wanted. These take about a
// second.
constexpr uint64_t kWalkedLeast = uint64_t{1} << 28;
constexpr uint64_t kWalkedForEach = 8;

}  // namespace

KinshipBounds::KinshipBounds(const Prior& prior) {
  if (!prior.has_kinship()) {
    far_.fill(1);
    return;
  }
  const std::span<const float> factors = prior.factors(Buckets::kKinship);
  for (Buckets::Kin kin; kin.overlap < Buckets::kOverlaps; ++kin.overlap)
    for (kin.same_genre = 0; kin.same_genre < 2; ++kin.same_genre)
      for (kin.word = 0; kin.word < 2; ++kin.word)
        for (kin.years = Buckets::kYearSteps; kin.years-- > 0;) Fill(kin, factors);
  near_most_ = std::ranges::max(near_);
}

// Fills the bounds of the ranges that begin at kin.years. Later ranges, and pairs without a common
// word, are filled already.
void KinshipBounds::Fill(const Buckets::Kin& kin, std::span<const float> factors) {
  float own = 0;
  for (Buckets::Kin pair = kin; pair.ids < Buckets::kIdSteps; ++pair.ids) {
    float& most = Buckets::AreFar(pair.ids) ? own : near_[pair.ids];
    most = std::max(most, factors[Buckets::KinshipBucket(pair)]);
  }
  for (uint32_t last = kin.years; last < Buckets::kYearSteps; ++last) {
    float& most = far_[At(kin, last)];
    most = own;
    Buckets::Kin other = kin;
    ++other.years;
    if (last > kin.years) most = std::max(most, Far(other, last));
    other = kin;
    other.word = 0;
    if (kin.word != 0) most = std::max(most, Far(other, last));
  }
}

Walk::Walk(const Prior& prior, uint64_t count, const Options& options)
    : prior_(prior),
      walked_most_(std::max(kWalkedLeast, kWalkedForEach * count)),
      kinship_(prior),
      described_(prior.buckets().catalogue().described()) {
  for (const double p : prior.popularity()) {
    from_.push_back(static_cast<float>(std::pow(p, 1 - options.support_from)));
    to_.push_back(static_cast<float>(std::pow(p, 1 - options.support_to)));
  }
  FillGroups();
  if (described_) FillNear();
}

void Walk::FillGroups() {
  static constexpr ItemFeatures kNothing = {};
  const Buckets& buckets = prior_.buckets();
  std::map<Buckets::Bins, std::map<uint64_t, Part>> groups;
  for (uint32_t i = 0; i < prior_.items(); ++i) {
    const ItemFeatures& features = described_ ? buckets.catalogue().features(i) : kNothing;
    Part& part = groups[buckets.bins(i)][features.genres];
    part.items.push_back(i);
    part.words |= features.words;
    part.first_year = std::min(part.first_year, features.year);
    part.last_year = std::max(part.last_year, features.year);
  }
  for (auto& [bins, parts] : groups) {
    Group group{.bins = bins};
    for (auto& [genres, part] : parts) {
      part.genres = genres;
      std::ranges::stable_sort(part.items, [&](uint32_t a, uint32_t b) { return to_[a] > to_[b]; });
      group.parts.push_back(std::move(part));
    }
    // Parts behind one that is out are out too.
    std::ranges::stable_sort(group.parts, [&](const Part& a, const Part& b) {
      return to_[a.items[0]] > to_[b.items[0]];
    });
    group.most_from = from_[group.parts[0].items[0]];
    for (const Part& part : group.parts) group.heads.push_back({to_[part.items[0]], part.genres});
    groups_.push_back(std::move(group));
  }
}

void Walk::FillNear() {
  for (uint32_t item = 0; item < prior_.items(); ++item)
    by_id_.push_back({IdOf(item), item, prior_.buckets().bins(item)});
  std::ranges::sort(by_id_, {}, [](const ById& one) { return std::pair(one.id, one.item); });
  place_.resize(by_id_.size());
  for (uint32_t i = 0; i < by_id_.size(); ++i) {
    place_[by_id_[i].item] = i;
    to_by_id_.push_back(to_[by_id_[i].item]);
  }
  for (const Group& from : groups_) {
    near_most_.push_back(0);
    for (const Group& to : groups_) near_most_.back() = std::max(near_most_.back(), Near(from, to));
  }
}

float Walk::Most() const {
  float most = 0;
  for (const Group& from : groups_)
    for (const Group& to : groups_)
      most = std::max(
          most, from.most_from * to.heads[0].most_to * std::max(Far(from, to), Near(from, to)));
  return most;
}

float Walk::KinshipMost(int16_t first_year, int16_t last_year, uint64_t words, uint32_t overlap,
                        bool same, const Part& to) const {
  Buckets::Kin kin{
      .overlap = overlap, .word = (words & to.words) != 0 ? 1u : 0u, .same_genre = same ? 1u : 0u};
  // All of a part have a year, or none has.
  if (last_year == 0 || to.last_year == 0) {
    kin.years = Buckets::kYearSteps - 1;
    return kinship_.Far(kin, kin.years);
  }
  kin.years = Buckets::YearStep(to.first_year - last_year);
  return kinship_.Far(kin, Buckets::YearStep(to.last_year - first_year));
}

}  // namespace tacit::model::transitions
