// Mechanisms with one thing wrong, built on the seam that the right ones are built on. Most are a
// right mechanism whose calls go through another, which spoils one of them.
#include <algorithm>
#include <cmath>

#include "audit/cases.h"
#include "audit/forwarding.h"
#include "mechanism/grid.h"

namespace tacit::audit {
namespace {

using mechanism::Mechanism;
using noise::NoiseSource;

// Rows that no unit touched are written as they are: no noise.
class SilentOnUntouched final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  void Select(const mechanism::StepRows& rows, NoiseSource& noise,
              model::RowSelection* selection) override {
    Forwarding::Select(rows, noise, selection);
    untouched_ = selection->extra;
  }
  void Finalize(NoiseSource& noise, const model::GroupNorms& norms,
                model::StepGradient* sum) override {
    Forwarding::Finalize(noise, norms, sum);
    for (size_t i = 0; i < sum->rows.size(); ++i)
      if (std::ranges::binary_search(untouched_, sum->rows[i]))
        std::ranges::fill(sum->Row(i), 0.0f);
  }
  void FillUntouched(NoiseSource&, std::span<float> out) override { std::ranges::fill(out, 0.0f); }

 private:
  std::vector<uint64_t> untouched_;
};

// Divides by how many units there were.
class RealisedBatch final : public Forwarding {
 public:
  RealisedBatch(std::unique_ptr<Mechanism> inner, double expected_batch)
      : Forwarding(std::move(inner)), expected_batch_(expected_batch) {}
  void Finalize(NoiseSource& noise, const model::GroupNorms& norms,
                model::StepGradient* sum) override {
    Forwarding::Finalize(noise, norms, sum);
    const double units = std::max<double>(1, static_cast<double>(norms.units));
    const auto factor = static_cast<float>(expected_batch_ / units);
    for (float& value : sum->dense) value *= factor;
    for (float& value : sum->row_values) value *= factor;
  }

 private:
  const double expected_batch_;
};

// Takes the first units of a batch only, so that one more at its beginning pushes out another.
class TruncatedBatch final : public Forwarding, private model::ScaleRule {
 public:
  TruncatedBatch(std::unique_ptr<Mechanism> inner, size_t units_max)
      : Forwarding(std::move(inner)), units_max_(units_max) {}
  const model::ScaleRule& scale_rule() const override { return *this; }

 private:
  double grid_step() const override { return inner_->scale_rule().grid_step(); }
  void Scales(const model::GroupNorms& norms, std::span<float> scales) const override {
    inner_->scale_rule().Scales(norms, scales);
    for (size_t i = 0; i < scales.size(); ++i)
      if (i % norms.units >= units_max_) scales[i] = 0;
  }

  const size_t units_max_;
};

// Every group of a unit to the whole clip, and not to its share of it.
class WholeClipPerGroup final : public Forwarding, private model::ScaleRule {
 public:
  WholeClipPerGroup(std::unique_ptr<Mechanism> inner, double clip)
      : Forwarding(std::move(inner)), clip_(clip) {}
  const model::ScaleRule& scale_rule() const override { return *this; }

 private:
  double grid_step() const override { return inner_->scale_rule().grid_step(); }
  void Scales(const model::GroupNorms& norms, std::span<float> scales) const override {
    for (size_t i = 0; i < scales.size(); ++i)
      scales[i] = std::min(1.0f, static_cast<float>(clip_) / std::sqrt(norms.squared[i]));
  }

  const double clip_;
};

// Says that it costs something else.
class OtherCharge final : public Forwarding {
 public:
  OtherCharge(std::unique_ptr<Mechanism> inner, double noise_multiplier)
      : Forwarding(std::move(inner)), charge_(Forwarding::charge()) {
    charge_.noise_multiplier = noise_multiplier;
  }
  const privacy::Charge& charge() const override { return charge_; }

 private:
  privacy::Charge charge_;
};

// Gaussian noise in floats: what the sum's rounding leaves of its last bits reveals what was there
// (Mironov 2012).
class FloatNoise final : public Forwarding {
 public:
  FloatNoise(std::unique_ptr<Mechanism> inner, double stddev, double batch)
      : Forwarding(std::move(inner)), stddev_(stddev), batch_(static_cast<float>(batch)) {}
  void Finalize(NoiseSource& noise, const model::GroupNorms&, model::StepGradient* sum) override {
    const auto step = static_cast<float>(scale_rule().grid_step());
    for (size_t i = 0; i < sum->row_values.size(); ++i)
      sum->row_values[i] = static_cast<float>(sum->row_sums[i]) * step;
    for (auto* values : {&sum->dense, &sum->row_values}) {
      std::vector<float> draws(values->size());
      noise.AddGaussian(stddev_, draws);
      for (size_t i = 0; i < draws.size(); ++i) (*values)[i] = ((*values)[i] + draws[i]) / batch_;
    }
  }

 private:
  const double stddev_;
  const float batch_;
};

// A source whose grid noise is spoiled by what comes of Spoil; the rest is the true source's.
class SpoiledSource : public NoiseSource {
 public:
  void Use(NoiseSource& source) { source_ = &source; }
  void AddGaussian(double stddev, std::span<float> values) override {
    source_->AddGaussian(stddev, values);
  }
  void FillGaussian(std::span<double> out) override { source_->FillGaussian(out); }
  double Uniform() override { return source_->Uniform(); }
  bool Bernoulli(double p) override { return source_->Bernoulli(p); }
  void FillKey(std::span<uint8_t, 32> key) override { source_->FillKey(key); }
  uint64_t GeometricSkip(double p) override { return source_->GeometricSkip(p); }
  double GaussianTail(double lower) override { return source_->GaussianTail(lower); }
  void Rekey() override {}

 protected:
  NoiseSource* source_ = nullptr;
};

// Each fill adds one draw to all of its numbers.
class OneDrawForAll final : public SpoiledSource {
 public:
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    int64_t draw = 0;
    source_->AddGridGaussian(stddev, {&draw, 1});
    for (int64_t& value : values) value += draw;
  }
};

// The first fill's noise is every fill's.
class DrawnOnce final : public SpoiledSource {
 public:
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    if (tape_.size() < values.size()) {
      std::vector<int64_t> more(values.size() - tape_.size());
      source_->AddGridGaussian(stddev, more);
      tape_.insert(tape_.end(), more.begin(), more.end());
    }
    for (size_t i = 0; i < values.size(); ++i) values[i] += tape_[i];
  }

 private:
  std::vector<int64_t> tape_;
};

// The gradient's noise comes from a spoiled source.
template <class Source>
class SpoiledNoise final : public Forwarding {
 public:
  using Forwarding::Forwarding;
  void Finalize(NoiseSource& noise, const model::GroupNorms& norms,
                model::StepGradient* sum) override {
    source_.Use(noise);
    Forwarding::Finalize(source_, norms, sum);
  }

 private:
  Source source_;
};

// AdaFEST's selection row by row over the whole space, in floating point; right except for what it
// is told to do wrong.
class NaiveThresholdRows final : public mechanism::RowSelector {
 public:
  enum class Fault { kNone, kClipPerTable, kNoNoise };
  NaiveThresholdRows(const RowSpace& space, const mechanism::ThresholdOptions& options, Fault fault)
      : space_(space), options_(options), fault_(fault) {}

  void Select(const mechanism::StepRows& rows, NoiseSource& noise,
              model::RowSelection* selection) override {
    const auto& activations = rows.activations;
    std::vector<double> map(space_.rows());
    noise.FillGaussian(map);
    const double stddev = options_.sigma * options_.clip;
    for (double& value : map) value *= fault_ == Fault::kNoNoise ? 0 : stddev;
    for (size_t unit = 0; unit < activations.units(); ++unit) Add(activations, unit, &map);
    selection->kept.clear();
    selection->extra.clear();
    for (uint64_t row : activations.rows) selection->kept.push_back(map[row] >= options_.threshold);
    for (uint64_t row = 0; row < map.size(); ++row)
      if (map[row] >= options_.threshold && !std::ranges::binary_search(activations.rows, row))
        selection->extra.push_back(row);
  }

  void AddTo(privacy::Charge* charge) const override {
    charge->mechanism = privacy::MechanismKind::kAdaFest;
    charge->sigma_selection = options_.sigma;
    charge->clip_selection = options_.clip;
  }
  double ExpectedExtraRows() const override { return 0; }

 private:
  void Add(const model::Activations& activations, size_t unit, std::vector<double>* map) const {
    const auto places = activations.UnitRows(unit);
    for (uint32_t place : places) {
      const uint64_t row = activations.rows[place];
      const auto beside = std::ranges::count_if(places, [&](uint32_t other) {
        return fault_ != Fault::kClipPerTable ||
               space_.TableOf(activations.rows[other]) == space_.TableOf(row);
      });
      (*map)[row] += std::min(1.0, options_.clip / std::sqrt(static_cast<double>(beside)));
    }
  }

  const RowSpace& space_;
  const mechanism::ThresholdOptions options_;
  const Fault fault_;
};

// The case with its mechanism put into another.
template <class Wrapper, class... Args>
Case Wrapped(Case audited, Args... args) {
  audited.make = [make = std::move(audited.make), args...](const Setting& setting) {
    Subject subject = make(setting);
    subject.mechanism = std::make_unique<Wrapper>(std::move(subject.mechanism), args...);
    return subject;
  };
  return audited;
}

Case NaiveSelection(std::string name, NaiveThresholdRows::Fault fault) {
  Case audited = MakeAdaFest(std::move(name));
  const Budget budget = MakeBudget();
  const size_t active = audited.setting.canary.rows.size();
  const Selection selection = MakeSelection(
      audited.setting, budget.sigma_selection,
      ThresholdOf(audited.setting, budget.sigma_selection, Density::kHalf, active), active);
  audited.make = [=](const Setting& setting) {
    return Assemble(setting,
                    std::make_unique<NaiveThresholdRows>(setting.space, selection.options, fault),
                    Flat(setting, budget.sigma_gradient), budget.sigma_gradient);
  };
  return audited;
}

Case WithModelFault(Case audited, ModelFault fault, bool two_steps = false) {
  audited.model_fault = fault;
  audited.two_steps = two_steps;
  return audited;
}

Case InTwoSteps(Case audited) {
  audited.two_steps = true;
  return audited;
}

}  // namespace

Case MakeNaiveAdaFest() {
  return NaiveSelection("adafest, naive selection", NaiveThresholdRows::Fault::kNone);
}

std::vector<PlantedFault> PlantedFaults() {
  const Budget budget = MakeBudget();
  const SettingOptions dense_canary{.canary = Canary::kDense};
  const Setting setting = MakeSetting(dense_canary);
  const double batch = setting.expected_batch, clip = setting.clip_gradient;
  const size_t units = setting.background.size();
  const auto variance_sum = [](double a, double b) { return 1 / (a * a) + 1 / (b * b); };
  constexpr double kAlone = 4;  // expected batch of three units
  std::vector<PlantedFault> faults;
  const auto plant = [&](Case audited, bool exceeds = true) {
    faults.push_back({.audited = std::move(audited), .exceeds = exceeds});
  };
  plant(
      NaiveSelection("contributions clipped per table", NaiveThresholdRows::Fault::kClipPerTable));
  plant(NaiveSelection("selection without noise", NaiveThresholdRows::Fault::kNoNoise));
  plant(Wrapped<SpoiledNoise<OneDrawForAll>>(MakeAdaFest("one draw for all coordinates")));
  plant(Wrapped<SpoiledNoise<DrawnOnce>>(InTwoSteps(MakeDpSgd("one draw for all steps", {}))));
  plant(Wrapped<RealisedBatch>(MakeDpSgd("divided by the realised batch", dense_canary), batch));
  plant(Wrapped<OtherCharge>(MakeDpSgdQuantile("quantile query not charged"), budget.sigma_half));
  plant(WithModelFault(MakeAdaFest("clip before mask", {}, Density::kTenth),
                       ModelFault::kClipBeforeMask),
        /*exceeds=*/false);
  plant(WithModelFault(MakeAdaFest("clip to the mask of the step before"),
                       ModelFault::kMaskOfLastStep, /*two_steps=*/true));
  plant(Wrapped<SilentOnUntouched>(MakeAdaFest("untouched rows without noise")));
  plant(Wrapped<SilentOnUntouched>(MakeDpSgd("untouched rows without noise, dense", {})));
  plant(Wrapped<OtherCharge>(
      MakeAdaFest("sigmas combined by the exponent -2"),
      std::pow(variance_sum(budget.sigma_selection, budget.sigma_gradient), -2)));
  plant(Wrapped<TruncatedBatch>(MakeDpSgd("batch truncated", dense_canary), units));
  plant(Wrapped<WholeClipPerGroup>(MakeDpSgd("each group to the whole clip", {}), clip));
  faults.back().audited.evidence.per_layer = true;  // the canary is as long in each group
  // Without others the sum is 0 or the canary's.
  plant(Wrapped<FloatNoise>(MakeDpSgd("noise in floats", {.canary = Canary::kDense, .plain = 0}),
                            budget.sigma_total * clip, kAlone));
  plant(WithModelFault(MakeExponential("row scores not clipped"), ModelFault::kScoresUnclipped));
  return faults;
}

}  // namespace tacit::audit
