#include <cmath>

#include "base/check.h"
#include "mechanism/mechanism.h"

namespace tacit::mechanism {
namespace {

class NonPrivate final : public Mechanism {
 public:
  explicit NonPrivate(double expected_batch) : expected_batch_(expected_batch) {
    TACIT_CHECK(expected_batch > 0 && std::isfinite(expected_batch));
  }

  void Select(const StepRows& rows, noise::NoiseSource&, model::RowSelection* selection) override {
    selection->kept.assign(rows.activations.rows.size(), 1);
    selection->extra.clear();
  }

  const model::ScaleRule& scale_rule() const override { return no_clip_; }

  void Finalize(noise::NoiseSource&, const model::GroupNorms&, model::StepGradient* sum) override {
    const auto scale = static_cast<float>(1 / expected_batch_);
    for (float& value : sum->dense) value *= scale;
    for (float& value : sum->row_values) value *= scale;
  }

  std::optional<Recipe> recipe() const override {
    Recipe recipe;
    recipe.is_private = false;
    recipe.factor = 1 / expected_batch_;
    return recipe;
  }

  const privacy::Charge& charge() const override { return charge_; }
  double ExpectedExtraRows() const override { return 0; }

 private:
  const double expected_batch_;
  const model::Unscaled no_clip_;
  const privacy::Charge charge_;
};

}  // namespace

std::unique_ptr<Mechanism> MakeNonPrivate(double expected_batch) {
  return std::make_unique<NonPrivate>(expected_batch);
}

}  // namespace tacit::mechanism
