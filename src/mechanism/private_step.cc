// G = (sum_i clip(mask(g_i)) + sigma2 C N(0, 1)) / B, on every written row and on all dense
// parameters, B public. Masking comes BEFORE clipping: a row that is not written must not use up a
// unit's norm. The noise is added to the sum, outside the clip, for any batch. The sum
// lies on the clipper's grid (grid.h), and the clipper takes off C what rounding can add to g_i.
//
// The released state, in the notation of base/bytes.h; empty if nothing was released.
//     state   := version:u32 mechanism:u8 selector:string clipper:string
//     version := 1
// `mechanism` is a privacy::MechanismKind. vocabulary.cc and clipper.cc have the grammars
// of the two strings; they are empty where the selector, or the clipper, has released nothing.
#include "mechanism/private_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "mechanism/sigma_split.h"
#include "noise/declared.h"

namespace tacit::mechanism {
namespace {

constexpr uint32_t kStateVersion = 1;
constexpr std::string_view kGradientQuery = "gradient";

class PrivateStep final : public Mechanism {
 public:
  PrivateStep(const RowSpace& space, std::unique_ptr<RowSelector> selector,
              std::unique_ptr<Clipper> clipper, const PrivateStepOptions& options)
      : space_(space),
        options_(options),
        selector_(std::move(selector)),
        clipper_(std::move(clipper)),
        step_grid_(clipper_->grid()) {
    TACIT_CHECK(options.sigma_gradient > 0 && std::isfinite(options.sigma_gradient),
                "a private step needs noise");
    TACIT_CHECK(options.expected_batch > 0 && std::isfinite(options.expected_batch),
                "a private step needs a public batch size");
    const double stddev = step_grid_.stddev * step_grid_.step;
    const double asked = options.sigma_gradient * clipper_->bound();
    TACIT_CHECK(std::abs(stddev - asked) <= 1e-9 * asked, "the clipper's noise is another one");
    charge_ = {.sigma_gradient = options.sigma_gradient,
               .clip_gradient = clipper_->bound(),
               .sampling_rate = options.sampling_rate,
               .block_steps = options.block_steps,
               .sigma_clip = clipper_->sigma_query()};
    selector_->AddTo(&charge_);
    charge_.noise_multiplier =
        CombineSigma({charge_.sigma_selection, charge_.sigma_gradient, charge_.sigma_clip});
  }

  bool observes_periods() const override { return selector_->observes_periods(); }
  void Observe(const model::Activations& activations) override { selector_->Observe(activations); }
  std::optional<privacy::Charge> opening_charge() const override {
    return selector_->opening_charge();
  }
  void OpenPeriod(noise::NoiseSource& noise) override { selector_->OpenPeriod(noise); }

  double row_score_clip() const override { return selector_->row_score_clip(); }
  void Select(const StepRows& rows, noise::NoiseSource& noise,
              model::RowSelection* selection) override {
    selection->every_row = false;
    selection->extra.clear();
    selector_->Select(rows, noise, selection);
  }
  const model::ScaleRule& scale_rule() const override { return clipper_->rule(); }

  void Finalize(noise::NoiseSource& noise, const model::GroupNorms& norms,
                model::StepGradient* sum) override {
    TACIT_CHECK(sum->row_sums.size() == sum->row_values.size() &&
                    sum->dense_sums.size() == sum->dense.size(),
                "sums are on the grid");
    step_grid_ = clipper_->grid();
    {
      const noise::Declaration declared(
          noise, {kGradientQuery, clipper_->bound() / step_grid_.step, {}, sum->rows});
      Release(step_grid_, factor(), noise, sum->dense_sums, sum->dense);
      Release(step_grid_, factor(), noise, sum->row_sums, sum->row_values);
    }
    clipper_->Adapt(norms, noise);
  }
  // Uses the grid of the step that was finalized: the clip may have moved since.
  void FillUntouched(noise::NoiseSource& noise, std::span<float> out) override {
    const noise::Declaration declared(noise, {kGradientQuery});
    ReleaseNoise(step_grid_, factor(), noise, out);
  }
  double update_stddev() const override { return step_grid_.stddev * step_grid_.step * factor(); }

  std::optional<Recipe> recipe() const override {
    Recipe recipe{.factor = factor()};
    if (!selector_->Describe(&recipe) || !clipper_->Describe(&recipe)) return {};
    return recipe;
  }
  void DrawExtra(noise::NoiseSource& noise, std::vector<uint64_t>* rows) override {
    selector_->DrawExtra(noise, rows);
  }

  const privacy::Charge& charge() const override { return charge_; }
  double ExpectedExtraRows() const override {
    return std::min(selector_->ExpectedExtraRows(), static_cast<double>(space_.rows()));
  }

  uint64_t state_version() const override {
    return selector_->state_version() + clipper_->state_version();
  }
  std::string SaveState() const override;
  Status LoadState(std::string_view bytes) override;

 private:
  double factor() const { return 1 / options_.expected_batch; }

  const RowSpace& space_;
  const PrivateStepOptions options_;
  const std::unique_ptr<RowSelector> selector_;
  const std::unique_ptr<Clipper> clipper_;
  Grid step_grid_;  // of the last step
  privacy::Charge charge_;
};

std::string PrivateStep::SaveState() const {
  const std::string selector = selector_->SaveState(), clipper = clipper_->SaveState();
  if (selector.empty() && clipper.empty()) return {};
  ByteWriter bytes;
  bytes.Reserve(selector.size() + clipper.size() + 16);
  bytes.Put(kStateVersion).Put(static_cast<uint8_t>(charge_.mechanism));
  bytes.PutString(selector).PutString(clipper);
  return std::move(bytes).Take();
}

Status PrivateStep::LoadState(std::string_view bytes) {
  if (bytes.empty()) return {};  // nothing was released
  ByteReader reader(bytes);
  const auto version = reader.Get<uint32_t>();
  const auto mechanism = reader.Get<uint8_t>();
  const std::string_view selector = reader.GetString(), clipper = reader.GetString();
  constexpr auto kLast = static_cast<uint8_t>(privacy::kLastMechanism);
  if (!reader.at_end() || version != kStateVersion || mechanism > kLast)
    return Fail(ErrorCode::kCorruption,
                "the stored mechanism state is corrupt or of an unknown version");
  const auto kind = static_cast<privacy::MechanismKind>(mechanism);
  if (kind != charge_.mechanism)
    return Fail(ErrorCode::kCorruption,
                fmt::format("the stored state is one of the mechanism '{}', not of '{}'",
                            privacy::Name(kind), privacy::Name(charge_.mechanism)));
  TACIT_RETURN_IF_ERROR(selector_->LoadState(selector));
  return clipper_->LoadState(clipper);
}

}  // namespace

std::unique_ptr<Mechanism> MakePrivateStep(const RowSpace& space,
                                           std::unique_ptr<RowSelector> selector,
                                           std::unique_ptr<Clipper> clipper,
                                           const PrivateStepOptions& options) {
  TACIT_CHECK(selector != nullptr && clipper != nullptr);
  return std::make_unique<PrivateStep>(space, std::move(selector), std::move(clipper), options);
}

std::unique_ptr<Mechanism> MakeAdaFest(const RowSpace& space, const AdaFestOptions& options) {
  return MakePrivateStep(space,
                         MakeThresholdRows(space, {.sigma = options.sigma_selection,
                                                   .clip = options.clip_selection,
                                                   .threshold = options.threshold}),
                         MakeFlatClipper(options.clip_gradient, options.sigma_gradient),
                         {.sigma_gradient = options.sigma_gradient,
                          .expected_batch = options.expected_batch,
                          .sampling_rate = options.sampling_rate});
}

}  // namespace tacit::mechanism
