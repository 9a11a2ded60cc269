// DP-SGD with exponential selection, the baseline of paper 003 (its reference 57): every step keeps
// the k rows whose summed clipped gradient norms, with Gumbel noise, are the largest. The Gumbels
// are over the WHOLE id space: rows that no unit activated score 0, compete, and are written with
// noise alone where they win. Scores are sums of norms, which one unit moves in one direction, by
// at most the clip each: gumbel_top.h has the cost. Sampling lowers no bound of it, so it is
// charged in full at every step that a unit is eligible for.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "mechanism/choice/choice.h"
#include "mechanism/choice/gumbel_top.h"
#include "noise/declared.h"

namespace tacit::mechanism {
namespace {

class ExponentialRows final : public RowSelector {
 public:
  ExponentialRows(const RowSpace& space, const ExponentialOptions& options)
      : space_(space), options_(options) {
    TACIT_CHECK(options.rows > 0, "exponential selection keeps some rows");
    for (double positive : {options.epsilon, options.clip})
      TACIT_CHECK(positive > 0 && std::isfinite(positive),
                  "exponential selection needs noise and a clip");
  }

  double row_score_clip() const override { return options_.clip; }
  void Select(const StepRows& rows, noise::NoiseSource& noise,
              model::RowSelection* selection) override {
    const noise::Declaration declared(
        noise, {"row choice", options_.clip, rows.scores, rows.activations.rows});
    top_.Choose(rows.activations.rows, rows.scores, space_.rows(), options_.rows,
                options_.clip / options_.epsilon, noise, &selection->kept, &selection->extra);
  }

  void AddTo(privacy::Charge* charge) const override {
    charge->mechanism = privacy::MechanismKind::kExponential;
    charge->clip_selection = options_.clip;
    charge->zcdp_rho = GumbelTop::Rho(options_.rows, options_.epsilon);
  }
  double ExpectedExtraRows() const override { return static_cast<double>(options_.rows); }

 private:
  const RowSpace& space_;
  const ExponentialOptions options_;
  GumbelTop top_;
};

}  // namespace

std::unique_ptr<RowSelector> MakeExponentialRows(const RowSpace& space,
                                                 const ExponentialOptions& options) {
  return std::make_unique<ExponentialRows>(space, options);
}

}  // namespace tacit::mechanism
