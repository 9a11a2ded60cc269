#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "model/ranking/place.h"

namespace tacit::train {

// The places that a recommender gave the answers to a number of questions.
struct RankScore {
  uint64_t hits = 0;  // answers among the ten best
  double gain = 0;    // sum of 1 / log2(place + 1) over them: NDCG@10 times the questions

  void Add(size_t place) {
    hits += place <= model::kPlacesCounted ? 1 : 0;
    gain += model::GainAt(place);
  }
  void Merge(const RankScore& other) {
    hits += other.hits;
    gain += other.gain;
  }
};

// Units that were asked for their next item, and how the model and its two baselines placed it.
struct RankTotals {
  uint64_t asked = 0;
  RankScore model = {}, popular = {}, successor = {};

  void Merge(const RankTotals& other) {
    asked += other.asked;
    model.Merge(other.model);
    popular.Merge(other.popular);
    successor.Merge(other.successor);
  }
  // HIT@10 and NDCG@10 of the model or a baseline; NaN without a question.
  double Hit(const RankScore& score) const { return Mean(static_cast<double>(score.hits)); }
  double Ndcg(const RankScore& score) const { return Mean(score.gain); }

 private:
  double Mean(double sum) const { return asked == 0 ? NAN : sum / static_cast<double>(asked); }
};

}  // namespace tacit::train
