#include <limits>

#include "mechanism/row_selector.h"

namespace tacit::mechanism {
namespace {

// Writes every row. The choice asks nothing of the data, so it costs nothing.
class AllRows final : public RowSelector {
 public:
  void Select(const StepRows& rows, noise::NoiseSource&, model::RowSelection* selection) override {
    selection->kept.assign(rows.activations.rows.size(), 1);
    selection->extra.clear();
    selection->every_row = true;
  }

  bool Describe(Recipe* recipe) const override {
    recipe->rows = Recipe::Rows::kEvery;
    return true;
  }

  void AddTo(privacy::Charge* charge) const override {
    charge->mechanism = privacy::MechanismKind::kDpSgd;
  }
  double ExpectedExtraRows() const override { return std::numeric_limits<double>::infinity(); }
};

}  // namespace

std::unique_ptr<RowSelector> MakeAllRows() { return std::make_unique<AllRows>(); }

}  // namespace tacit::mechanism
