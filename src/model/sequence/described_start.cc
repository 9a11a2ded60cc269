#include "model/sequence/described_start.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/hash.h"

namespace tacit::model {
namespace {

constexpr int kYearsApart = 8;
constexpr double kWordWeight = 0.5;
// Rows that no parameter of a model begins as: those are named by places below 2^60.
constexpr uint64_t kNamed = uint64_t{1} << 63, kYears = uint64_t{1} << 62;

void AddDrawn(uint64_t seed, uint64_t row, double weight, std::vector<float>* drawn,
              std::span<float> sum) {
  InitialRow(seed, row, 1, *drawn);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<float>(weight * (*drawn)[i]);
}

}  // namespace

// Writes the item's description as a vector of the length of a row that is drawn from [-1, 1).
// Returns false where there is none.
bool DescribedStart::Describe(uint32_t item, uint64_t seed, std::span<float> out,
                              std::vector<float>* drawn) const {
  const transitions::ItemFeatures& features = items_->features(item);
  std::ranges::fill(out, 0.0f);
  const double per_genre = 1 / std::sqrt(std::max(1, std::popcount(features.genres)));
  for (uint64_t left = features.genres; left != 0; left &= left - 1)
    AddDrawn(seed, kNamed | items_->genre_name(std::countr_zero(left)), per_genre, drawn, out);
  if (features.year != 0) {
    const int before = features.year / kYearsApart;
    const double past = static_cast<double>(features.year % kYearsApart) / kYearsApart;
    const double length = std::hypot(past, 1 - past);
    AddDrawn(seed, kYears | static_cast<uint64_t>(before), (1 - past) / length, drawn, out);
    AddDrawn(seed, kYears | static_cast<uint64_t>(before + 1), past / length, drawn, out);
  }
  for (const uint32_t word : items_->rare_words(item))
    AddDrawn(seed, kNamed | items_->word_name(word), kWordWeight, drawn, out);
  const double square = std::inner_product(out.begin(), out.end(), out.begin(), 0.0);
  if (square == 0) return false;
  const auto scale = static_cast<float>(std::sqrt(static_cast<double>(out.size()) / 3 / square));
  for (float& x : out) x *= scale;
  return true;
}

void DescribedStart::MixIn(const SequenceLayout& layout, uint64_t seed,
                           std::span<const uint32_t> items, std::span<float> parameters) const {
  if (items_ == nullptr || !items_->described() || share_ == 0) return;
  TACIT_CHECK(items_->items() == layout.options().catalogue, "descriptions of another catalogue");
  const size_t width = layout.items().cols;
  std::vector<float> described(width), drawn(width);
  const auto own = static_cast<float>(std::sqrt(1 - share_));
  const auto by_public = SequenceLayout::kInitialItemScale * static_cast<float>(std::sqrt(share_));
  for (const uint32_t item : items) {
    if (!Describe(item, seed, described, &drawn)) continue;
    const auto mix = [&](const ParameterTable& table) {
      const std::span<float> row = parameters.subspan(table.offset + item * width, width);
      for (size_t i = 0; i < width; ++i) row[i] = own * row[i] + by_public * described[i];
    };
    mix(layout.items());
    if (!layout.options().tied) mix(layout.output());
  }
}

void DescribedStart::MixIn(const SequenceLayout& layout, uint64_t seed,
                           std::span<float> parameters) const {
  std::vector<uint32_t> all(layout.options().catalogue);
  std::iota(all.begin(), all.end(), 0u);
  MixIn(layout, seed, all, parameters);
}

}  // namespace tacit::model
