// z_i = clip_C(f(x_i)) + sigma C N(0, 1) for each record i of a step (paper 001, "DP-FP"), and
// nothing else of its features. What is made of z, by any optimiser, is post-processing, and labels
// are used as they are. See docs/internals/mechanism.md, "Representations".
#include "mechanism/forward/forward.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "noise/declared.h"

namespace tacit::mechanism {
namespace {

class Forward final : public Mechanism {
 public:
  explicit Forward(const ForwardOptions& options) {
    TACIT_CHECK(options.clip > 0 && options.sigma > 0 && std::isfinite(options.sigma) &&
                    options.expected_batch > 0,
                "representations need a clip, noise and a public batch");
    noise_ = {.clip = options.clip,
              .grid = MakeGrid(options.clip, options.clip * options.sigma),
              .expected_batch = options.expected_batch};
    charge_ = {.mechanism = privacy::MechanismKind::kForward,
               .noise_multiplier = options.sigma,
               .clip_gradient = options.clip,
               .sampling_rate = options.sampling_rate};
  }

  const RepresentationNoise* representation() const override { return &noise_; }

  void Select(const StepRows& rows, noise::NoiseSource&, model::RowSelection* selection) override {
    selection->every_row = false;
    selection->kept.assign(rows.activations.rows.size(), 0);
    selection->extra.clear();
  }
  const model::ScaleRule& scale_rule() const override { return rule_; }
  void Finalize(noise::NoiseSource&, const model::GroupNorms&, model::StepGradient*) override {
    TACIT_CHECK(false, "no gradient is noised");
  }

  const privacy::Charge& charge() const override { return charge_; }
  double ExpectedExtraRows() const override { return 0; }

 private:
  RepresentationNoise noise_;
  privacy::Charge charge_;
  const model::Unscaled rule_;
};

}  // namespace

void RepresentationNoise::Add(noise::NoiseSource& source, size_t width,
                              std::span<float> slots) const {
  TACIT_CHECK(width > 0 && slots.size() % width == 0, "whole slots");
  const double rounding = grid.step * std::sqrt(static_cast<double>(width)) / 2;
  const double room = std::max(0.0, clip - rounding) * (1 - 0x1p-20);
  for (size_t at = 0; at < slots.size(); at += width) {
    const std::span<float> slot = slots.subspan(at, width);
    double squared = 0;
    for (const float x : slot) squared += double{x} * double{x};
    const double length = std::sqrt(squared);
    if (!std::isfinite(length)) std::ranges::fill(slot, 0.0f);
    if (!(length > room) || !std::isfinite(length)) continue;
    const auto scale = static_cast<float>(room / length);
    for (float& x : slot) x *= scale;
  }
  const noise::Declaration declared(source, {"representations", clip / grid.step});
  Release(grid, 1, source, slots);
}

std::unique_ptr<Mechanism> MakeForward(const ForwardOptions& options) {
  return std::make_unique<Forward>(options);
}

}  // namespace tacit::mechanism
