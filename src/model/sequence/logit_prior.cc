#include "model/sequence/logit_prior.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace tacit::model {

DecayedLogits::DecayedLogits(uint32_t catalogue, double decay)
    : catalogue_(catalogue), decay_(static_cast<float>(decay)) {
  TACIT_CHECK(decay >= 0 && decay < 1);
  for (double weight = decay; weight >= 1e-7; weight *= decay) ++reach_;
}

void DecayedLogits::Set(std::vector<float> table) {
  TACIT_CHECK(table.size() == size_t{catalogue_} * catalogue_, "a row of the catalogue per item");
  table_ = std::move(table);
  row_of_ = nullptr;
  ++version_;
}

void DecayedLogits::Set(RowOf row) {
  table_ = {};
  row_of_ = std::move(row);
  ++version_;
}

void DecayedLogits::Append(const UnitRows& rows, size_t from, size_t end, std::vector<float>* made,
                           float* to) const {
  if (row_of_) made->resize(catalogue_);
  for (size_t r = from; r < end; ++r) {
    TACIT_CHECK(rows.item[r] < catalogue_, "items are of the catalogue");
    if (row_of_) row_of_(rows.item[r], *made);
    const float* const row = row_of_ ? made->data() : &table_[size_t{rows.item[r]} * catalogue_];
#pragma GCC ivdep
    for (size_t b = 0; b < catalogue_; ++b) to[b] = decay_ * to[b] + row[b];
  }
}

// A row continues from the row before it, if that is near and of the same crop.
void DecayedLogits::Fill(const UnitRows& rows, std::span<const uint32_t> places,
                         ops::Matrix logits) const {
  TACIT_CHECK(logits.rows == places.size() && logits.cols == catalogue_);
  if (table_.empty() && !row_of_) {
    for (size_t i = 0; i < places.size(); ++i) std::fill_n(logits.Row(i), catalogue_, 0.0f);
    return;
  }
  std::vector<float> made;
  size_t crop = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const size_t place = places[i];
    while (rows.crop_end[crop] <= place) ++crop;
    const size_t crop_begin = crop == 0 ? 0 : rows.crop_end[crop - 1];
    float* const to = logits.Row(i);
    if (i > 0 && places[i - 1] >= crop_begin && place - places[i - 1] <= reach_) {
      std::memcpy(to, logits.Row(i - 1), catalogue_ * sizeof(float));
      Append(rows, places[i - 1] + 1, place + 1, &made, to);
    } else {
      std::fill_n(to, catalogue_, 0.0f);
      Append(rows, std::max(crop_begin, place + 1 - std::min(place + 1, reach_)), place + 1, &made,
             to);
    }
  }
}

void LogitPrior::FillFirst(std::span<float> logits) const { std::ranges::fill(logits, 0.0f); }

void ItemLogits::FillFirst(std::span<float> logits) const {
  std::ranges::copy(logits_, logits.begin());
}

void ItemLogits::Set(std::vector<float> logits) {
  TACIT_CHECK(logits.size() == logits_.size(), "a logit per item of the catalogue");
  logits_ = std::move(logits);
  ++version_;
}

void ItemLogits::Fill(const UnitRows&, std::span<const uint32_t> places, ops::Matrix logits) const {
  TACIT_CHECK(logits.rows == places.size() && logits.cols == logits_.size());
  for (size_t i = 0; i < places.size(); ++i) std::ranges::copy(logits_, logits.Row(i));
}

}  // namespace tacit::model
