// DP-AdaFEST (paper 003) with a fixed threshold. Where the paper's text errs, this is what is
// computed:
//   v_i[j] = 1 if unit i activates row j, scaled as a vector by min(1, C1 / sqrt(rows active in
//   i)); V = sum_i v_i + C1 sigma1 N(0, 1), over the WHOLE id space; row j is written iff V[j] >=
//   tau; g_i is masked to those rows and THEN clipped to C2, together with the dense parameters; G
//   = (sum_i g_i + C2 sigma2 N(0, 1)) / B, on every written row and on dense, B public.
// A row that nobody activated is written with probability p0 = Psi(tau / (C1 sigma1)) (appendix B.2
// prints squares) and MUST then receive noise: a row without noise would say that nobody was there.
// Both queries see the same batch, so a step costs one Gaussian of (sigma1^-2 + sigma2^-2)^(-1/2).
// All sums lie on grids (grid.h) when noise is added. Contributions v_i are rounded down to V's, so
// that none is longer than C1; what rounding can add to g_i is taken off C2 before the clip
// (FlatClip).
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "mechanism/clipping.h"
#include "mechanism/grid.h"
#include "mechanism/mechanism.h"
#include "mechanism/sigma_split.h"

namespace tacit::mechanism {
namespace {

// Of thresholds, in steps: far above any sum.
constexpr double kThresholdMax = 0x1p60;

const AdaFestOptions& Checked(const AdaFestOptions& options) {
  for (double positive : {options.sigma_selection, options.sigma_gradient, options.clip_selection,
                          options.clip_gradient, options.expected_batch})
    TACIT_CHECK(positive > 0 && std::isfinite(positive), "AdaFEST needs noise, clips and a batch");
  TACIT_CHECK(std::isfinite(options.threshold));
  return options;
}

class AdaFest final : public Mechanism {
 public:
  AdaFest(const RowSpace& space, const AdaFestOptions& options)
      : space_(space),
        options_(Checked(options)),
        map_grid_(
            MakeGrid(options.clip_selection, options.clip_selection * options.sigma_selection)),
        sum_grid_(MakeGrid(options.clip_gradient, options.clip_gradient * options.sigma_gradient)),
        threshold_(static_cast<int64_t>(std::ceil(
            std::clamp(options.threshold / map_grid_.step, -kThresholdMax, kThresholdMax)))),
        clip_(options.clip_gradient, sum_grid_.step) {
    charge_ = {.mechanism = privacy::MechanismKind::kAdaFest,
               .noise_multiplier = CombineSigma(
                   {.selection = options.sigma_selection, .gradient = options.sigma_gradient}),
               .sigma_selection = options.sigma_selection,
               .sigma_gradient = options.sigma_gradient,
               .clip_selection = options.clip_selection,
               .clip_gradient = options.clip_gradient,
               .sampling_rate = options.sampling_rate};
    extra_probability_ = noise::GridGaussianTail(map_grid_.stddev, threshold_);
  }

  void Select(const StepRows& rows, noise::NoiseSource& noise,
              model::RowSelection* selection) override {
    const model::Activations& activations = rows.activations;
    SumContributions(activations);
    noise.AddGridGaussian(map_grid_.stddev, contributions_);
    selection->kept.resize(contributions_.size());
    for (size_t i = 0; i < contributions_.size(); ++i)
      selection->kept[i] = contributions_[i] >= threshold_;
    // What stays here is one step's private data.
    std::fill(contributions_.begin(), contributions_.end(), 0);
    SelectExtra(activations.rows, noise, &selection->extra);
  }

  const model::ScaleRule& scale_rule() const override { return clip_; }

  void Finalize(noise::NoiseSource& noise, const model::GroupNorms&,
                model::StepGradient* sum) override {
    TACIT_CHECK(sum->row_sums.size() == sum->row_values.size(), "rows are summed on the grid");
    const double factor = 1 / options_.expected_batch;
    Release(sum_grid_, factor, noise, sum->dense);
    Release(sum_grid_, factor, noise, sum->row_sums, sum->row_values);
  }

  const privacy::Charge& charge() const override { return charge_; }
  double ExpectedExtraRows() const override {
    return static_cast<double>(space_.rows()) * extra_probability_;
  }

 private:
  // contributions_ = the clipped contribution vectors, in steps, summed on the rows somebody
  // activated.
  void SumContributions(const model::Activations& activations) {
    contributions_.assign(activations.rows.size(), 0);
    for (size_t unit = 0; unit < activations.units(); ++unit) {
      const auto rows = activations.UnitRows(unit);
      if (rows.empty()) continue;
      const int64_t contribution = Contribution(rows.size());
      for (uint32_t place : rows) contributions_[place] += contribution;
    }
  }

  // The most whole steps, at most 1 / step, of which `active` have a norm of at most C1. In
  // integers: active * steps^2 <= (C1 / step)^2, where C1 / step is below 2^31.
  int64_t Contribution(size_t active) const {
    const auto clip = static_cast<uint64_t>(options_.clip_selection / map_grid_.step);
    auto steps =
        static_cast<uint64_t>(static_cast<double>(clip) / std::sqrt(static_cast<double>(active)));
    while (active * steps * steps > clip * clip) --steps;
    return static_cast<int64_t>(
        std::min(static_cast<double>(steps), std::floor(1 / map_grid_.step)));
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
  const Grid map_grid_, sum_grid_;
  const int64_t threshold_;  // tau in steps of the map's grid
  const FlatClip clip_;
  privacy::Charge charge_;
  double extra_probability_ = 0;        // p0
  std::vector<int64_t> contributions_;  // V on activated rows, in steps
};

}  // namespace

std::unique_ptr<Mechanism> MakeAdaFest(const RowSpace& space, const AdaFestOptions& options) {
  return std::make_unique<AdaFest>(space, options);
}

}  // namespace tacit::mechanism
