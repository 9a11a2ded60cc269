// DP-AdaFEST (paper 003) with a fixed threshold. Where the paper's text errs, this is what is
// computed:
//   v_i[j] = 1 if unit i activates row j, scaled as a vector by min(1, C1 / sqrt(rows active in
//   i)); V = sum_i v_i + C1 sigma1 N(0, 1), over the WHOLE id space; row j is written iff V[j] >=
//   tau; g_i is masked to those rows and THEN clipped to C2, together with the dense parameters; G
//   = (sum_i g_i + C2 sigma2 N(0, 1)) / B, on every written row and on dense, B public.
// A row that nobody activated is written with probability p0 = Psi(tau / (C1 sigma1)) (appendix B.2
// prints squares) and MUST then receive noise: a row without noise would say that nobody was there.
// Both queries see the same batch, so a step costs one Gaussian of (sigma1^-2 + sigma2^-2)^(-1/2).
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/check.h"
#include "mechanism/clipping.h"
#include "mechanism/mechanism.h"
#include "mechanism/sigma_split.h"

namespace tacit::mechanism {
namespace {

constexpr int kFloatBits = 24;

void CheckOptions(const AdaFestOptions& options) {
  for (double positive : {options.sigma_selection, options.sigma_gradient, options.clip_selection,
                          options.clip_gradient, options.expected_batch})
    TACIT_CHECK(positive > 0 && std::isfinite(positive), "AdaFEST needs noise, clips and a batch");
  TACIT_CHECK(std::isfinite(options.threshold));
}

class AdaFest final : public Mechanism {
 public:
  AdaFest(const RowSpace& space, const AdaFestOptions& options)
      : space_(space), options_(options), clip_(options.clip_gradient) {
    CheckOptions(options);
    charge_ = {.mechanism = privacy::MechanismKind::kAdaFest,
               .noise_multiplier = CombineSigma(
                   {.selection = options.sigma_selection, .gradient = options.sigma_gradient}),
               .sigma_selection = options.sigma_selection,
               .sigma_gradient = options.sigma_gradient,
               .clip_selection = options.clip_selection,
               .clip_gradient = options.clip_gradient};
    const double largest = std::min(1.0, options.clip_selection);
    grid_ = std::exp2(std::ceil(std::log2(largest * options.expected_batch)) - kFloatBits);
    grid_ = std::min(grid_, largest * 0x1p-10);  // beyond 2^14 units, not to round all away
    extra_probability_ =
        std::erfc(options.threshold / selection_stddev() / std::numbers::sqrt2) / 2;
  }

  void Select(const model::Activations& activations, noise::NoiseSource& noise,
              model::RowSelection* selection) override {
    SumContributions(activations);
    noise.AddGaussian(selection_stddev(), contributions_);
    selection->kept.resize(contributions_.size());
    for (size_t i = 0; i < contributions_.size(); ++i)
      selection->kept[i] = contributions_[i] >= options_.threshold;
    // What stays here is one step's private data.
    std::fill(contributions_.begin(), contributions_.end(), 0.0f);
    SelectExtra(activations.rows, noise, &selection->extra);
  }

  const model::ScaleRule& scale_rule() const override { return clip_; }

  void Finalize(noise::NoiseSource& noise, model::StepGradient* sum) override {
    const double stddev = options_.clip_gradient * options_.sigma_gradient;
    const auto scale = static_cast<float>(1 / options_.expected_batch);
    for (std::vector<float>* part : {&sum->dense, &sum->row_values}) {
      noise.AddGaussian(stddev, *part);
      for (float& value : *part) value *= scale;
    }
  }

  const privacy::Charge& charge() const override { return charge_; }
  double ExpectedExtraRows() const override {
    return static_cast<double>(space_.rows()) * extra_probability_;
  }

 private:
  double selection_stddev() const { return options_.clip_selection * options_.sigma_selection; }

  // contributions_ = the clipped contribution vectors, summed, on the rows somebody activated. Each
  // is rounded down to a grid on which the sum over a batch is exact in f32: rounded sums could
  // differ by more than the one unit in which two neighbours differ.
  void SumContributions(const model::Activations& activations) {
    contributions_.assign(activations.rows.size(), 0.0f);
    for (size_t unit = 0; unit < activations.units(); ++unit) {
      const auto rows = activations.UnitRows(unit);
      const double active = static_cast<double>(rows.size());
      const double clipped = std::min(1.0, options_.clip_selection / std::sqrt(active));
      const auto contribution = static_cast<float>(std::floor(clipped / grid_) * grid_);
      for (uint32_t place : rows) contributions_[place] += contribution;
    }
  }

  // Rows that pass by noise alone. Walking by geometric skips over the whole space costs what is
  // hit and not what there is; hits on activated rows are dropped, they have had their own draw.
  void SelectExtra(std::span<const uint64_t> activated, noise::NoiseSource& noise,
                   std::vector<uint64_t>* extra) const {
    extra->clear();
    if (extra_probability_ == 0) return;
    auto next_activated = activated.begin();
    for (uint64_t row = 0;; ++row) {
      const uint64_t skip = noise.GeometricSkip(extra_probability_);
      if (skip >= space_.rows() - row) return;
      row += skip;
      next_activated = std::lower_bound(next_activated, activated.end(), row);
      if (next_activated == activated.end() || *next_activated != row) extra->push_back(row);
      if (row + 1 == space_.rows()) return;
    }
  }

  const RowSpace& space_;
  const AdaFestOptions options_;
  const FlatClip clip_;
  privacy::Charge charge_;
  double grid_ = 0;                   // of contributions
  double extra_probability_ = 0;      // p0
  std::vector<float> contributions_;  // V on activated rows
};

}  // namespace

std::unique_ptr<Mechanism> MakeAdaFest(const RowSpace& space, const AdaFestOptions& options) {
  return std::make_unique<AdaFest>(space, options);
}

}  // namespace tacit::mechanism
