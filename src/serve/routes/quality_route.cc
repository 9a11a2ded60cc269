#include "serve/routes/quality_route.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <optional>
#include <span>

#include "metrics/families.h"
#include "serve/scoring/model_json.h"

namespace tacit::serve {
namespace {

// Reads what was released as of the snapshot; nothing before the first window. kCorruption for
// bytes that are none.
Result<std::optional<ReleasedScores>> ReleasedOf(const store::Snapshot& snapshot,
                                                 const ServedQuality& quality) {
  const auto bytes = snapshot.Released(quality.index);
  if (bytes == nullptr) return std::optional<ReleasedScores>();
  TACIT_ASSIGN(ReleasedScores scores, ReleasedScores::Decode(*bytes));
  return std::optional(std::move(scores));
}

// JSON has no NaN: a figure that the noise leaves nothing of is null.
void AppendFigure(std::string_view name, double figure, std::string* out) {
  *out += fmt::format(R"(,"{}":)", name);
  *out += std::isfinite(figure) ? fmt::format("{}", figure) : "null";
}

void AppendNumbers(std::string_view name, std::span<const double> numbers, std::string* out) {
  fmt::format_to(std::back_inserter(*out), R"(,"{}":[{}])", name, fmt::join(numbers, ","));
}

void AppendCounts(const ReleasedScores::Counts& counts, std::string* out) {
  const ScoreFigures figures = counts.Figures();
  *out += fmt::format(R"({{"windows":{})", counts.windows);
  AppendFigure("auc", figures.auc, out);
  AppendFigure("auc_deviation", figures.auc_deviation, out);
  AppendFigure("auc_low", figures.auc_interval.low, out);
  AppendFigure("auc_high", figures.auc_interval.high, out);
  AppendFigure("calibration", figures.calibration, out);
  AppendFigure("calibration_deviation", figures.calibration_deviation, out);
  AppendFigure("events", figures.events, out);
  AppendFigure("clicks", figures.clicks, out);
  AppendFigure("noise_deviation", std::sqrt(counts.variance), out);
  AppendNumbers("misses_by_bin", counts.misses, out);
  AppendNumbers("clicks_by_bin", counts.clicks, out);
  *out += '}';
}

}  // namespace

void AnswerQuality(const store::Snapshot& snapshot, const std::vector<ServedQuality>& qualities,
                   http::Reply* reply) {
  std::string out = R"({"learners":[)";
  for (const ServedQuality& quality : qualities) {
    const auto scores = ReleasedOf(snapshot, quality);
    if (!scores) return http::SetServerFailure(scores.error(), reply);
    if (&quality != &qualities.front()) out += ',';
    out += R"({"learner":)";
    http::AppendJsonString(quality.learner, &out);
    out += R"(,"account":)";
    http::AppendJsonString(quality.promise.learner, &out);
    out += ',';
    AppendLoss(TotalOf(snapshot, quality.promise), &out);
    if (*scores) {
      out += fmt::format(R"(,"steps":[{},{}],"last":)", (*scores)->step_begin, (*scores)->step_end);
      AppendCounts((*scores)->last, &out);
      out += R"(,"all":)";
      AppendCounts((*scores)->all, &out);
    }
    out += '}';
  }
  reply->body = out + fmt::format("],\"version\":{}}}\n", snapshot.version().value);
}

QualityMetrics::QualityMetrics(metrics::Registry& registry, std::vector<ServedQuality> qualities)
    : qualities_(std::move(qualities)) {
  for (const ServedQuality& quality : qualities_) {
    const auto gauge = [&](metrics::GaugeName name) {
      const auto made = registry.AddGauge(name, {{"learner", quality.learner}});
      made.Set(NAN);
      return made;
    };
    gauges_.push_back({.auc = gauge("tacit_private_auc"),
                       .auc_deviation = gauge("tacit_private_auc_deviation"),
                       .calibration = gauge("tacit_private_calibration"),
                       .calibration_deviation = gauge("tacit_private_calibration_deviation"),
                       .windows = gauge("tacit_private_quality_windows")});
    gauges_.back().windows.Set(0);
  }
}

void QualityMetrics::Show(const store::Snapshot& snapshot) const {
  for (size_t i = 0; i < qualities_.size(); ++i) {
    const auto scores = ReleasedOf(snapshot, qualities_[i]);
    if (!scores || !*scores) continue;
    const ScoreFigures figures = (*scores)->all.Figures();
    gauges_[i].auc.Set(figures.auc);
    gauges_[i].auc_deviation.Set(figures.auc_deviation);
    gauges_[i].calibration.Set(figures.calibration);
    gauges_[i].calibration_deviation.Set(figures.calibration_deviation);
    gauges_[i].windows.Set(static_cast<double>((*scores)->all.windows));
  }
}

}  // namespace tacit::serve
