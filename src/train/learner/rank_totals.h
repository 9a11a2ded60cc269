#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/interval.h"
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
  // Units that could not be asked: no model had been released, they had no history, or they took
  // nothing that is not in it.
  uint64_t without_model = 0, without_history = 0, without_news = 0;

  void Merge(const RankTotals& other) {
    asked += other.asked;
    without_model += other.without_model;
    without_history += other.without_history;
    without_news += other.without_news;
    model.Merge(other.model);
    popular.Merge(other.popular);
    successor.Merge(other.successor);
  }
  // HIT@10 and NDCG@10 of the model or a baseline; NaN without a question.
  double Hit(const RankScore& score) const { return Mean(static_cast<double>(score.hits)); }
  double Ndcg(const RankScore& score) const { return Mean(score.gain); }
  Interval HitInterval(const RankScore& score) const {
    return ShareInterval(static_cast<double>(score.hits), static_cast<double>(asked));
  }

 private:
  double Mean(double sum) const { return asked == 0 ? NAN : sum / static_cast<double>(asked); }
};

}  // namespace tacit::train
