// The stored form of RunningItems, little-endian, sealed by the store. The notation is
// base/bytes.h's.
//     items := "tacit.popularity":string version:u32 size:u32 sum:f32*size variance:f64 units:f64
//     version := 1
// `variance` is that of the noise in each sum.
#include "model/sequence/popularity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"

namespace tacit::model {
namespace {

constexpr std::string_view kPopularityName = "tacit.popularity";
constexpr uint32_t kPopularityVersion = 1;

tl::unexpected<Error> PopularityDamaged(std::string_view why) {
  return Fail(ErrorCode::kCorruption, fmt::format("released popularity: {}", why));
}

}  // namespace

double ShareOfOne(std::span<const float> sums, double units) {
  units = std::max(1.0, units);
  return std::max(1.0, std::accumulate(sums.begin(), sums.end(), 0.0) / units) / units;
}

std::vector<float> ItemShares(std::span<const float> sums, double units) {
  const double one = ShareOfOne(sums, units);
  std::vector<float> shares(sums.size());
  for (size_t item = 0; item < sums.size(); ++item)
    shares[item] = static_cast<float>(std::clamp(sums[item] * one, 0.0, 1.0));
  return shares;
}

void RunningItems::Add(std::span<const float> sums, double stddev, double units, double forget) {
  TACIT_CHECK(sums.size() == sums_.size(), "histograms of one catalogue");
  for (size_t item = 0; item < sums_.size(); ++item)
    sums_[item] = static_cast<float>(forget * sums_[item] + sums[item]);
  variance_ = forget * forget * variance_ + stddev * stddev;
  units_ = forget * units_ + units;
}

void RunningItems::GrowTo(size_t items, std::span<const uint32_t> places) {
  TACIT_CHECK(items >= sums_.size(), "a catalogue that only grows");
  TACIT_CHECK(places.empty() || places.size() == sums_.size(), "a place for each item");
  const auto before = sums_;
  sums_.resize(items);
  if (places.empty()) return;
  std::ranges::fill(sums_, 0);
  for (size_t item = 0; item < places.size(); ++item) sums_[places[item]] = before[item];
}

std::vector<float> RunningItems::Logits() const {
  std::vector<float> logits = Shares();
  const double noise = std::sqrt(variance_) * ShareOfOne(sums_, units_);
  const auto least = static_cast<float>(std::min(1.0, std::max(1 / std::max(1.0, units_), noise)));
  for (float& logit : logits) logit = std::log(std::max(logit, least));
  return logits;
}

std::string RunningItems::Encode() const {
  ByteWriter writer;
  writer.PutString(kPopularityName).Put(kPopularityVersion);
  writer.Put(static_cast<uint32_t>(sums_.size())).PutArray(std::span(sums_));
  writer.Put(variance_).Put(units_);
  return std::move(writer).Take();
}

Result<RunningItems> RunningItems::Decode(std::string_view bytes, size_t items) {
  ByteReader reader(bytes);
  const std::string_view name = reader.GetString();
  const auto version = reader.Get<uint32_t>();
  if (!reader.ok() || name != kPopularityName)
    return PopularityDamaged("these bytes are something else");
  const auto size = reader.Get<uint32_t>();
  if (!reader.ok()) return PopularityDamaged("the head is cut short");
  if (version != kPopularityVersion || size != items)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("released popularity: version {} of {} items is stored, and version {} "
                            "of {} items is wanted",
                            version, size, kPopularityVersion, items));
  RunningItems running(items);
  reader.GetArray(std::span(running.sums_));
  running.variance_ = reader.Get<double>();
  running.units_ = reader.Get<double>();
  const auto is_number = [](double number) { return number >= 0 && std::isfinite(number); };
  if (!reader.at_end() || !is_number(running.variance_) || !is_number(running.units_) ||
      !std::ranges::all_of(running.sums_, [](float sum) { return std::isfinite(sum); }))
    return PopularityDamaged("the sums are cut short, too many, or no numbers");
  return running;
}

}  // namespace tacit::model
