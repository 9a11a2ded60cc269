// DP-AdaFEST's rows (paper 003). The formulas correct the paper's text where it errs:
//   v_i[j] = 1 if unit i activates row j, scaled as a vector by min(1, C1 / sqrt(rows active in
//   i)); V = sum_i v_i + C1 sigma1 N(0, 1), over the WHOLE id space; row j is written iff V[j] >=
//   tau.
// A row that no unit activated is written with probability p0 = Psi(tau / (C1 sigma1)) (appendix
// B.2 prints squares) and MUST then receive noise: a row without noise would reveal that no unit
// activated it. The map lies on a grid (grid.h) when noise is added; contributions are rounded down
// to it, so that none is longer than C1.
//
// AdaFEST+ is the same with a vocabulary for the id space: a unit's rows outside it count neither
// in its contributions nor in their number, and nothing outside is ever written.
#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "mechanism/ascending.h"
#include "mechanism/contribution.h"
#include "mechanism/grid.h"
#include "mechanism/row_selector.h"
#include "noise/declared.h"

namespace tacit::mechanism {
namespace {

constexpr std::string_view kThresholdQuery = "threshold";

// The largest threshold in steps: far above any sum.
constexpr double kThresholdMax = 0x1p60;

const ThresholdOptions& Checked(const ThresholdOptions& options) {
  for (double positive : {options.sigma, options.clip})
    TACIT_CHECK(positive > 0 && std::isfinite(positive), "AdaFEST needs noise and a clip");
  TACIT_CHECK(!std::isnan(options.threshold));
  return options;
}

class ThresholdRows final : public RowSelector {
 public:
  ThresholdRows(const RowSpace& space, const ThresholdOptions& options,
                std::unique_ptr<Vocabulary> vocabulary)
      : space_(space),
        options_(Checked(options)),
        vocabulary_(std::move(vocabulary)),
        grid_(MakeGrid(options.clip, options.clip * options.sigma)),
        threshold_(static_cast<int64_t>(
            std::ceil(std::clamp(options.threshold / grid_.step, -kThresholdMax, kThresholdMax)))),
        extra_probability_(std::isinf(options.threshold)
                               ? static_cast<double>(options.threshold < 0)
                               : noise::GridGaussianTail(grid_.stddev, threshold_)) {}

  bool observes_periods() const override { return vocabulary_ && vocabulary_->observes_periods(); }
  void Observe(const model::Activations& activations) override {
    if (vocabulary_) vocabulary_->Observe(activations);
  }
  std::optional<privacy::Charge> opening_charge() const override {
    return vocabulary_ ? vocabulary_->opening_charge() : std::nullopt;
  }
  void OpenPeriod(noise::NoiseSource& noise) override {
    if (vocabulary_) vocabulary_->OpenPeriod(noise);
  }

  void Select(const StepRows& rows, noise::NoiseSource& noise,
              model::RowSelection* selection) override {
    const model::Activations& activations = rows.activations;
    FindInside(activations.rows);
    SumContributions(activations);
    const noise::Declaration declared(
        noise, {kThresholdQuery, options_.clip / grid_.step, {}, activations.rows});
    noise.AddGridGaussian(grid_.stddev, contributions_);
    selection->kept.resize(contributions_.size());
    for (size_t i = 0; i < contributions_.size(); ++i)
      selection->kept[i] = inside_[i] && contributions_[i] >= threshold_;
    // Wipes the contributions: they are one step's private data.
    std::fill(contributions_.begin(), contributions_.end(), 0);
    SelectExtra(activations.rows, noise, &selection->extra);
  }

  bool Describe(Recipe* recipe) const override {
    recipe->rows = Recipe::Rows::kThreshold;
    recipe->has_vocabulary = vocabulary_ != nullptr;
    if (vocabulary_) recipe->vocabulary = vocabulary_->rows();
    recipe->selection_clip = options_.clip;
    recipe->selection_grid = grid_;
    recipe->threshold = threshold_;
    return true;
  }
  void DrawExtra(noise::NoiseSource& noise, std::vector<uint64_t>* rows) override {
    const noise::Declaration declared(noise, {kThresholdQuery});
    rows->clear();
    ForExtra(noise, [&](uint64_t row) { rows->push_back(row); });
  }

  void AddTo(privacy::Charge* charge) const override {
    charge->mechanism =
        vocabulary_ ? privacy::MechanismKind::kAdaFestPlus : privacy::MechanismKind::kAdaFest;
    charge->sigma_selection = options_.sigma;
    charge->clip_selection = options_.clip;
  }
  double ExpectedExtraRows() const override {
    const uint64_t rows = vocabulary_ ? vocabulary_->keep() : space_.rows();
    return static_cast<double>(rows) * extra_probability_;
  }

  uint64_t state_version() const override { return vocabulary_ ? vocabulary_->state_version() : 0; }
  std::string SaveState() const override {
    return vocabulary_ ? vocabulary_->SaveState() : std::string();
  }
  Status LoadState(std::string_view bytes) override {
    return vocabulary_ ? vocabulary_->LoadState(bytes) : RowSelector::LoadState(bytes);
  }

 private:
  // inside_[i] = whether row i of the step is one that may be written at all.
  void FindInside(std::span<const uint64_t> activated) {
    inside_.assign(activated.size(), 1);
    if (!vocabulary_) return;
    AscendingLookup vocabulary(vocabulary_->rows());
    for (size_t i = 0; i < activated.size(); ++i) inside_[i] = vocabulary.Contains(activated[i]);
  }

  // contributions_ = the clipped contribution vectors, in steps, summed on the activated rows.
  void SumContributions(const model::Activations& activations) {
    contributions_.assign(activations.rows.size(), 0);
    for (size_t unit = 0; unit < activations.units(); ++unit) {
      const auto rows = activations.UnitRows(unit);
      size_t active = 0;
      for (uint32_t place : rows) active += inside_[place];
      if (active == 0) continue;
      const int64_t contribution = ContributionSteps(options_.clip, grid_, active);
      for (uint32_t place : rows) contributions_[place] += inside_[place] * contribution;
    }
  }

  // Hits on activated rows are dropped, because those rows had their own draw.
  void SelectExtra(std::span<const uint64_t> activated, noise::NoiseSource& noise,
                   std::vector<uint64_t>* extra) const {
    extra->clear();
    AscendingLookup touched(activated);
    ForExtra(noise, [&](uint64_t row) {
      if (!touched.Contains(row)) extra->push_back(row);
    });
  }

  // Calls hit(row) for rows that pass by noise alone, as if no unit activated any. Geometric skips
  // over the whole space take work per hit, not per row.
  template <class Hit>
  void ForExtra(noise::NoiseSource& noise, const Hit& hit) const {
    const uint64_t places = vocabulary_ ? vocabulary_->rows().size() : space_.rows();
    if (extra_probability_ == 0 || places == 0) return;
    for (uint64_t place = 0;; ++place) {
      const uint64_t skip = noise.GeometricSkip(extra_probability_);
      if (skip >= places - place) return;
      place += skip;
      hit(vocabulary_ ? vocabulary_->rows()[place] : place);
      if (place + 1 == places) return;
    }
  }

  const RowSpace& space_;
  const ThresholdOptions options_;
  const std::unique_ptr<Vocabulary> vocabulary_;  // if null, the whole space
  const Grid grid_;
  const int64_t threshold_;             // tau in steps of the grid
  const double extra_probability_;      // p0
  std::vector<int64_t> contributions_;  // V on activated rows, in steps
  std::vector<uint8_t> inside_;         // per activated row
};

}  // namespace

std::unique_ptr<RowSelector> MakeThresholdRows(const RowSpace& space,
                                               const ThresholdOptions& options,
                                               std::unique_ptr<Vocabulary> vocabulary) {
  return std::make_unique<ThresholdRows>(space, options, std::move(vocabulary));
}

}  // namespace tacit::mechanism
