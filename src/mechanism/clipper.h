#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "mechanism/grid.h"
#include "mechanism/recipe.h"
#include "model/gradient.h"
#include "noise/noise.h"

namespace tacit::mechanism {

// The half of a private step that scales units before they are summed, so that no unit moves the
// sum by more than bound() in L2 norm, over dense parameters and written rows jointly and after the
// mask. The bound includes what rounding to the grid adds.
class Clipper {
 public:
  virtual ~Clipper() = default;

  virtual const model::ScaleRule& rule() const = 0;
  // C of the step under way: noise has the standard deviation sigma * bound().
  virtual double bound() const = 0;
  // The grid of sums and noise of the step under way, public like the bound.
  virtual const Grid& grid() const = 0;

  // Fills in the recipe's part about the clip; false where it cannot be told so.
  virtual bool Describe(Recipe*) const { return false; }

  // Noise multiplier of the query that adapts the clip; 0: no such query, the clip is fixed.
  virtual double sigma_query() const { return 0; }
  // Queries the step's norms after the sum was noised, and moves the bound of later steps.
  virtual void Adapt(const model::GroupNorms&, noise::NoiseSource&) {}

  virtual uint64_t state_version() const { return 0; }
  virtual std::string SaveState() const { return {}; }
  virtual Status LoadState(std::string_view bytes) {
    if (bytes.empty()) return {};
    return Fail(ErrorCode::kCorruption, "a state of a clip that keeps none");
  }
};

// Scales by min(1, C / |g|), with |g| over all groups jointly.
std::unique_ptr<Clipper> MakeFlatClipper(double clip, double sigma_gradient);
// Scales by C / (|g| + 0.01): every unit pulls about equally.
std::unique_ptr<Clipper> MakeAutomaticClipper(double clip, double sigma_gradient);
// Scales each group g by min(1, C_g / |g_g|), with sum C_g^2 = C^2. `shares` are the groups' shares
// of C^2; if empty, equal. The last group is the embedding rows.
std::unique_ptr<Clipper> MakePerLayerClipper(double clip, std::vector<double> shares,
                                             double sigma_gradient);

struct QuantileOptions {
  double initial_clip = 1;
  double quantile = 0.5;       // share of units that shall stay unclipped
  double learning_rate = 0.2;  // of ln C
  double sigma_query = 0;      // noise of the count, in units of what one unit can change it by
  double expected_batch = 0;   // public divisor of the count
  double clip_min = 1e-6, clip_max = 1e6;
};
// Flat clipping whose C follows a quantile of the units' norms (Andrew et al. 2021): after each
// step C *= exp(-rate * (noised share of units with |g| <= C  -  quantile)). The count is a query
// on the same batch as the gradient and is charged with it.
std::unique_ptr<Clipper> MakeQuantileClipper(const QuantileOptions& options, double sigma_gradient);

}  // namespace tacit::mechanism
