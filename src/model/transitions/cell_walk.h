#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/threads/worker_pool.h"
#include "model/transitions/buckets.h"
#include "model/transitions/options.h"
#include "model/transitions/prior.h"

namespace tacit::model::transitions {

// A cell and its score.
struct Scored {
  float score = 0;
  uint32_t a = 0, b = 0;
  // Orders larger scores first, of equals the earlier cell.
  friend bool operator<(const Scored& x, const Scored& y) {
    if (x.score != y.score) return x.score > y.score;
    return std::pair(x.a, x.b) < std::pair(y.a, y.b);
  }
};

// The largest factor of kinship of pairs whose ids are far apart, by what is known of many pairs at
// once; and that of pairs whose ids are near.
class KinshipBounds {
 public:
  explicit KinshipBounds(const Prior& prior);

  // Returns the largest factor where the step of years is from kin.years to `last_years`. With
  // kin.word a rare word may be shared, or not.
  float Far(const Buckets::Kin& kin, uint32_t last_years) const {
    return far_[At(kin, last_years)];
  }
  // Returns the largest factor of any years and words.
  float Far(uint32_t overlap, bool same_genre) const {
    return Far({.overlap = overlap, .word = 1, .same_genre = same_genre ? 1u : 0u},
               Buckets::kYearSteps - 1);
  }
  // Returns the largest factor where ids are in this step; that of all steps that are near, 0 if
  // none is.
  float Near(uint32_t ids) const { return near_[ids]; }
  float Near() const { return near_most_; }

 private:
  void Fill(const Buckets::Kin& kin, std::span<const float> factors);
  static size_t At(const Buckets::Kin& kin, uint32_t last_years) {
    return (((kin.years * Buckets::kYearSteps + last_years) * Buckets::kOverlaps + kin.overlap) *
                2 +
            kin.same_genre) *
               2 +
           kin.word;
  }
  // They are kept per first and last step of years, of which there are few.
  static constexpr size_t kBounds =
      size_t{Buckets::kYearSteps} * Buckets::kYearSteps * Buckets::kOverlaps * 4;
  std::array<float, kBounds> far_ = {};
  std::array<float, Buckets::kIdSteps> near_ = {};
  float near_most_ = 0;
};

// Walks the cells whose score is at least a threshold. Items are in groups that the tables of bins
// cannot tell apart, and within these in parts of the same genres: so nearly all of a pair's
// kinship is known before the pair is looked at, and few are looked at in vain. What is not known
// is whether ids are near: such pairs are found by going along the ids.
class Walk {
 public:
  // A walk is for `count` cells.
  Walk(const Prior& prior, uint64_t count, const Options& options);

  // Calls visit(Scored, worker); the same cells with the same scores every time. All cells of an
  // item a are visited by one worker. Returns false, after only a part of them, if more than
  // walked_most_ cells would have to be looked at.
  template <class Visit>
  bool AtLeast(float threshold, WorkerPool& workers, const Visit& visit) const {
    const size_t stride = workers.workers();
    std::atomic<uint64_t> walked = 0;
    workers.Run(stride, [&](size_t begin, size_t end, size_t worker) {
      const auto visit_here = [&](const Scored& scored) { visit(scored, worker); };
      for (size_t first = begin; first < end; ++first)
        for (size_t g = first; g < groups_.size(); g += stride) {
          for (const Group& to : groups_) {
            if (walked > walked_most_) return;
            WalkGroups(groups_[g], to, threshold, &walked, visit_here);
          }
          if (described_) WalkNear(groups_[g], threshold, &walked, visit_here);
        }
    });
    return walked <= walked_most_;
  }

  // A bound that no cell's score exceeds.
  float Most() const;

 private:
  // The pairs that are passed by in the time that one is looked at.
  static constexpr uint64_t kPassedForOne = 16;

  struct Part {
    uint64_t genres = 0, words = 0;  // words: a bit for each that some item has
    int16_t first_year = std::numeric_limits<int16_t>::max(), last_year = 0;
    std::vector<uint32_t> items = {};  // by falling popularity
  };
  // The little that tells of most parts that they are out.
  struct Head {
    float most_to = 0;
    uint64_t genres = 0;
  };
  struct Group {
    Buckets::Bins bins = {};
    float most_from = 0;           // of the first part
    std::vector<Part> parts = {};  // those of the most popular items first
    std::vector<Head> heads = {};  // per part
  };
  // An item in the order of ids.
  struct ById {
    int64_t id = 0;
    uint32_t item = 0;
    Buckets::Bins bins = {};
  };

  void FillGroups();
  void FillNear();

  // Raises a bound so that it stays one when products are rounded.
  static float Above(float x) { return x * (1 + 0x1p-18f); }
  static bool SameGenre(const Group& from, const Group& to) {
    return from.bins[Buckets::kGenres] == to.bins[Buckets::kGenres];
  }
  // Bounds of the factors of pairs that are far, and of those that are near.
  float Far(const Group& from, const Group& to) const {
    float most = 0;
    for (uint32_t overlap = 0; overlap < Buckets::kOverlaps; ++overlap)
      most = std::max(most, kinship_.Far(overlap, SameGenre(from, to)));
    return Above(prior_.BinFactor(from.bins, to.bins) * most);
  }
  float Near(const Group& from, const Group& to) const {
    return Above(prior_.BinFactor(from.bins, to.bins) * kinship_.Near());
  }
  // The most of kinship from items of these years and words to those of a part, where ids are far.
  float KinshipMost(int16_t first_year, int16_t last_year, uint64_t words, uint32_t overlap,
                    bool same, const Part& to) const;

  template <class Visit>
  void WalkGroups(const Group& from, const Group& to, float threshold,
                  std::atomic<uint64_t>* walked, const Visit& visit) const {
    const float bound = Far(from, to), popular = to.heads[0].most_to;
    if (from.most_from * popular * bound < threshold) return;
    const float by_bins = prior_.BinFactor(from.bins, to.bins);
    std::array<float, Buckets::kOverlaps> bounds;
    for (uint32_t overlap = 0; overlap < bounds.size(); ++overlap)
      bounds[overlap] = Above(by_bins * kinship_.Far(overlap, SameGenre(from, to)));
    for (const Part& left : from.parts) {
      const float own = from_[left.items[0]];
      if (own * popular * bound < threshold) return;
      for (size_t i = 0; i < to.heads.size(); ++i) {
        const Head& head = to.heads[i];
        if (own * head.most_to * bound < threshold) break;
        const uint32_t overlap = Buckets::OverlapStep(left.genres, head.genres);
        if (own * head.most_to * bounds[overlap] < threshold) continue;
        WalkParts(left, to.parts[i], by_bins, overlap, SameGenre(from, to), threshold, walked,
                  visit);
      }
      if (*walked > walked_most_) return;
    }
  }

  template <class Visit>
  void WalkParts(const Part& from, const Part& to, float by_bins, uint32_t overlap, bool same,
                 float threshold, std::atomic<uint64_t>* walked, const Visit& visit) const {
    // A bound of an item's own is worth its work where there is much to leave out.
    constexpr size_t kLargePart = 16;
    const bool large = described_ && to.items.size() >= kLargePart;
    const auto bound_of = [&](int16_t first_year, int16_t last_year, uint64_t words) {
      if (!described_) return Above(by_bins);
      return Above(by_bins * KinshipMost(first_year, last_year, words, overlap, same, to));
    };
    const float bound = bound_of(from.first_year, from.last_year, from.words);
    uint64_t looked_at = 0;
    for (const uint32_t a : from.items) {
      if (from_[a] * to_[to.items[0]] * bound < threshold || looked_at > walked_most_) break;
      float own = bound;
      if (large) {
        const ItemFeatures& features = prior_.buckets().catalogue().features(a);
        own = bound_of(features.year, features.year, features.words);
      }
      for (const uint32_t b : to.items) {
        if (from_[a] * to_[b] * own < threshold) break;
        ++looked_at;
        if (a == b || (described_ && Buckets::AreNear(IdOf(a), IdOf(b)))) continue;
        Look(a, b, by_bins, threshold, visit);
      }
    }
    if (looked_at > 0) walked->fetch_add(looked_at, std::memory_order_relaxed);
  }

  // Walks the cells of a group's items whose ids are near.
  template <class Visit>
  void WalkNear(const Group& from, float threshold, std::atomic<uint64_t>* walked,
                const Visit& visit) const {
    const float most = near_most_[static_cast<size_t>(&from - groups_.data())];
    uint64_t passed = 0, looked_at = 0;
    const auto look = [&](const ById& a, size_t place) {
      ++passed;
      if (from_[a.item] * to_by_id_[place] * most < threshold) return;
      const ById& b = by_id_[place];
      const float by_bins = prior_.BinFactor(from.bins, b.bins);
      ++looked_at;
      const float bound = Above(by_bins * kinship_.Near(Buckets::IdStep(a.id, b.id)));
      if (from_[a.item] * to_by_id_[place] * bound < threshold) return;
      Look(a.item, b.item, by_bins, threshold, visit);
    };
    for (const Part& part : from.parts)
      for (const uint32_t item : part.items) {
        const size_t own = place_[item];
        const ById& a = by_id_[own];
        for (size_t i = own; i-- > 0 && Buckets::AreNear(a.id, by_id_[i].id);) look(a, i);
        for (size_t i = own + 1; i < by_id_.size() && Buckets::AreNear(a.id, by_id_[i].id); ++i)
          look(a, i);
        if (passed / kPassedForOne + looked_at + *walked > walked_most_) break;
      }
    walked->fetch_add(passed / kPassedForOne + looked_at, std::memory_order_relaxed);
  }

  template <class Visit>
  void Look(uint32_t a, uint32_t b, float by_bins, float threshold, const Visit& visit) const {
    const float score = from_[a] * to_[b] * (by_bins * prior_.KinshipFactor(a, b));
    if (score >= threshold) visit(Scored{score, a, b});
  }
  int64_t IdOf(uint32_t item) const { return prior_.buckets().catalogue().features(item).id; }

  const Prior& prior_;
  const uint64_t walked_most_;
  const KinshipBounds kinship_;
  const bool described_;
  std::vector<float> from_, to_;  // p_a^(1 - support_from), p_b^(1 - support_to)
  std::vector<Group> groups_;
  // Described items in the order of their ids, and to_ in it; each item's place in it; per group,
  // the bound of the factors of all that may be near.
  std::vector<ById> by_id_;
  std::vector<float> to_by_id_;
  std::vector<uint32_t> place_;
  std::vector<float> near_most_;
};

}  // namespace tacit::model::transitions
