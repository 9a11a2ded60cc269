#include "base/score_histogram.h"

#include <numeric>
#include <utility>

#include "base/auc.h"
#include "base/bytes.h"
#include "base/check.h"

// Bytes of released scores:
//     scores := version:u8 bins:u32 step_begin:u64 step_end:u64 last:counts all:counts
//     counts := windows:u64 variance:f64 misses:f64*bins clicks:f64*bins
namespace tacit {
namespace {

constexpr uint8_t kScoresVersion = 1;
constexpr uint32_t kBinsMost = 1 << 16;
// Sums below this many deviations of their noise say nothing.
constexpr double kDeviationsToSay = 5;

void PutCounts(const ReleasedScores::Counts& counts, ByteWriter* out) {
  out->Put(counts.windows).Put(counts.variance);
  out->PutArray(std::span<const double>(counts.misses));
  out->PutArray(std::span<const double>(counts.clicks));
}

ReleasedScores::Counts GetCounts(uint32_t bins, ByteReader* in) {
  ReleasedScores::Counts counts;
  counts.windows = in->Get<uint64_t>();
  counts.variance = in->Get<double>();
  counts.misses.resize(bins);
  counts.clicks.resize(bins);
  in->GetArray(std::span<double>(counts.misses));
  in->GetArray(std::span<double>(counts.clicks));
  return counts;
}

double SumOf(std::span<const double> counts) {
  return std::accumulate(counts.begin(), counts.end(), 0.0);
}

}  // namespace

// The deviations follow from how the figures move with each count, which all have the same noise.
ScoreFigures FiguresOf(const ScoreBins& bins, std::span<const double> misses,
                       std::span<const double> clicks, double deviation) {
  TACIT_CHECK(misses.size() == bins.size() && clicks.size() == bins.size());
  const double positives = SumOf(clicks), negatives = SumOf(misses);
  ScoreFigures figures{.events = positives + negatives, .clicks = positives};
  const double least = kDeviationsToSay * deviation * std::sqrt(static_cast<double>(bins.size()));
  if (!(positives > least) || !(negatives > least)) return figures;
  double predicted = 0;
  for (uint32_t bin = 0; bin < bins.size(); ++bin)
    predicted += (clicks[bin] + misses[bin]) * bins.Probability(bin);
  const auto [auc, drawn] = EstimateAuc(misses, clicks);
  const double calibration = predicted / positives;
  double auc_moves = 0, calibration_moves = 0, below_misses = 0, below_clicks = 0;
  for (uint32_t bin = 0; bin < bins.size(); ++bin) {
    const double won = (below_misses + misses[bin] / 2) / negatives;
    const double lost = (positives - below_clicks - clicks[bin] / 2) / positives;
    const double of_click = (won - auc) / positives, of_miss = (lost - auc) / negatives;
    auc_moves += of_click * of_click + of_miss * of_miss;
    const double share = bins.Probability(bin) / positives;
    const double less = share - calibration / positives;
    calibration_moves += share * share + less * less;
    below_misses += misses[bin];
    below_clicks += clicks[bin];
  }
  figures.auc = auc;
  figures.auc_deviation = deviation * std::sqrt(auc_moves);
  figures.auc_interval = ProbabilityInterval(auc, std::hypot(drawn, figures.auc_deviation));
  figures.calibration = calibration;
  figures.calibration_deviation = deviation * std::sqrt(calibration_moves);
  return figures;
}

ScoreFigures ReleasedScores::Counts::Figures() const {
  if (misses.empty()) return {};
  return FiguresOf(ScoreBins(static_cast<uint32_t>(misses.size())), misses, clicks,
                   std::sqrt(variance));
}

void ReleasedScores::Counts::Add(const Counts& more) {
  if (misses.size() != more.misses.size()) {
    *this = more;
    return;
  }
  windows += more.windows;
  variance += more.variance;
  for (size_t i = 0; i < misses.size(); ++i) {
    misses[i] += more.misses[i];
    clicks[i] += more.clicks[i];
  }
}

std::string ReleasedScores::Encode() const {
  ByteWriter out;
  out.Put(kScoresVersion).Put(static_cast<uint32_t>(last.misses.size()));
  out.Put(step_begin).Put(step_end);
  PutCounts(last, &out);
  PutCounts(all, &out);
  return std::move(out).Take();
}

Result<ReleasedScores> ReleasedScores::Decode(std::string_view bytes) {
  ByteReader in(bytes);
  const auto version = in.Get<uint8_t>();
  const auto bins = in.Get<uint32_t>();
  const Error damaged{ErrorCode::kCorruption, "released scores: damaged bytes"};
  if (version != kScoresVersion || bins == 0 || bins > kBinsMost) return Fail(damaged);
  ReleasedScores scores;
  scores.step_begin = in.Get<uint64_t>();
  scores.step_end = in.Get<uint64_t>();
  scores.last = GetCounts(bins, &in);
  scores.all = GetCounts(bins, &in);
  if (!in.at_end()) return Fail(damaged);
  return scores;
}

}  // namespace tacit
