// Turns a unit's norms into its scales, so that no unit moves the noisy sum by more than C.
//
// A unit's scaled gradient v (dense and written rows as one vector) is rounded to the grid before
// noise; GroupNorms::rounding bounds by how much that can lengthen what the unit changes in the sum
// (docs/internals/mechanism.md, "The grid"), and GroupNorms::error, in units of C, what it changes
// in the errors of sums in floats. So every clip here leaves |v| <= room = C (1 - error) -
// rounding, and by the triangle inequality the unit changes the integers by at most C. The
// allowance need not be divided between the groups that caused it: noise is calibrated to the
// joint length and to nothing else. Clipping per layer therefore shrinks every C_g by the same
// factor room / C, which leaves sum C_g^2 = room^2.
//
// The state of an adaptive clip, inside that of private_step.cc, in the notation of base/bytes.h;
// other clips have none.
//     state   := version:u8 clip:f64
//     version := 1
#include "mechanism/clipper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/check.h"
#include "mechanism/clip_law.h"
#include "noise/declared.h"

namespace tacit::mechanism {
namespace {

double Norm(double squared) { return std::sqrt(squared) * kNormSlack; }

double JointNorm(const model::GroupNorms& norms, size_t unit) {
  double squared = 0;
  for (size_t group = 0; group < norms.groups; ++group)
    squared += norms.squared[group * norms.units + unit];
  return Norm(squared);
}

void CheckShape(const model::GroupNorms& norms, std::span<const float> scales) {
  TACIT_CHECK(norms.squared.size() == norms.groups * norms.units &&
              scales.size() == norms.squared.size());
  TACIT_CHECK(norms.rounding.size() == norms.units, "a grid's rounding is bounded");
}

// The base of every clip: it holds the bound and its grid, and is itself the rule that it returns.
class Clip : public Clipper, protected model::ScaleRule {
 public:
  Clip(double clip, double sigma_gradient) : sigma_gradient_(sigma_gradient) { SetBound(clip); }
  const model::ScaleRule& rule() const final { return *this; }
  double bound() const final { return bound_; }
  const Grid& grid() const final { return grid_; }

 protected:
  void SetBound(double clip) {
    TACIT_CHECK(clip > 0 && std::isfinite(clip), "a clip norm must be positive");
    bound_ = clip;
    grid_ = MakeGrid(clip, clip * sigma_gradient_);
  }
  bool DescribeAs(Recipe::Clip clip, Recipe* recipe) const {
    recipe->clip = clip;
    recipe->bound = bound_;
    recipe->grid = grid_;
    return true;
  }
  double Room(const model::GroupNorms& norms, size_t unit) const {
    return std::max(0.0, bound_ * (1 - norms.error) - norms.rounding[unit]);
  }

 private:
  double grid_step() const final { return grid_.step; }

  const double sigma_gradient_;
  double bound_ = 0;
  Grid grid_;
};

// Scales all groups of a unit by the same factor, from their joint norm.
template <class Law>
class JointClip : public Clip {
 public:
  using Clip::Clip;

 private:
  void Scales(const model::GroupNorms& norms, std::span<float> scales) const final {
    CheckShape(norms, scales);
    for (size_t unit = 0; unit < norms.units; ++unit) {
      const double norm = JointNorm(norms, unit);
      const float scale =
          std::isfinite(norm) ? RoundDown(Law::Scale(norm, Room(norms, unit))) : 0.0f;
      for (size_t group = 0; group < norms.groups; ++group)
        scales[group * norms.units + unit] = scale;
    }
  }
};

// A joint clip that does not adapt.
template <class Law, Recipe::Clip clip>
class FixedClip final : public JointClip<Law> {
 public:
  using JointClip<Law>::JointClip;
  bool Describe(Recipe* recipe) const override { return this->DescribeAs(clip, recipe); }
};

class PerLayerClip final : public Clip {
 public:
  PerLayerClip(double clip, std::vector<double> shares, double sigma_gradient)
      : Clip(clip, sigma_gradient), root_share_(std::move(shares)) {
    const double sum = std::accumulate(root_share_.begin(), root_share_.end(), 0.0);
    for (double& share : root_share_) {
      TACIT_CHECK(share > 0 && std::isfinite(sum), "every layer has a share of the clip");
      share = std::sqrt(share / sum) / kNormSlack;
    }
  }

  bool Describe(Recipe* recipe) const override {
    recipe->root_shares = root_share_;
    return DescribeAs(Recipe::Clip::kPerLayer, recipe);
  }

 private:
  void Scales(const model::GroupNorms& norms, std::span<float> scales) const override {
    CheckShape(norms, scales);
    TACIT_CHECK(root_share_.empty() || root_share_.size() == norms.groups,
                "one share of the clip per layer, and one for the rows");
    const double equal = 1 / std::sqrt(static_cast<double>(norms.groups)) / kNormSlack;
    for (size_t unit = 0; unit < norms.units; ++unit) {
      const bool bounded = std::isfinite(JointNorm(norms, unit));
      for (size_t group = 0; group < norms.groups; ++group) {
        const size_t at = group * norms.units + unit;
        const double room = Room(norms, unit) * (root_share_.empty() ? equal : root_share_[group]);
        scales[at] = bounded ? RoundDown(FlatLaw::Scale(Norm(norms.squared[at]), room)) : 0.0f;
      }
    }
  }

  std::vector<double> root_share_;  // C_g / C, a little less; if empty, all equal
};

const QuantileOptions& Checked(const QuantileOptions& options) {
  TACIT_CHECK(options.quantile > 0 && options.quantile < 1 && options.learning_rate > 0 &&
                  options.sigma_query > 0 && options.expected_batch > 0,
              "an adaptive clip needs a quantile, a rate, noise and a batch");
  TACIT_CHECK(options.clip_min > 0 && options.clip_min <= options.initial_clip &&
                  options.initial_clip <= options.clip_max,
              "an adaptive clip starts inside its range");
  return options;
}

// Each unit adds +1/2 to the count when it is no longer than C, else -1/2: taking it out, or its
// records, changes the count by 1/2 in both cases (counting 0 and 1 would make that 1). That is
// the query's sensitivity, so its noise has the standard deviation sigma_query / 2. With B the
// expected batch, count / B + 1/2 is the share of units that stay unclipped.
constexpr double kCountSensitivity = 0.5;

class QuantileClip final : public JointClip<FlatLaw> {
 public:
  QuantileClip(const QuantileOptions& options, double sigma_gradient)
      : JointClip(Checked(options).initial_clip, sigma_gradient),
        options_(options),
        count_grid_(MakeGrid(kCountSensitivity, kCountSensitivity * options.sigma_query)) {
    TACIT_CHECK(count_grid_.step <= kCountSensitivity, "the noise of the count is too large");
  }

  double sigma_query() const override { return options_.sigma_query; }

  void Adapt(const model::GroupNorms& norms, noise::NoiseSource& noise) override {
    int64_t twice_count = 0;
    for (size_t unit = 0; unit < norms.units; ++unit)
      twice_count += JointNorm(norms, unit) <= bound() ? 1 : -1;
    int64_t steps = twice_count * static_cast<int64_t>(kCountSensitivity / count_grid_.step);
    const noise::Declaration declared(noise, {"clip", kCountSensitivity / count_grid_.step});
    noise.AddGridGaussian(count_grid_.stddev, {&steps, 1});
    const double share =
        static_cast<double>(steps) * count_grid_.step / options_.expected_batch + 0.5;
    Move(bound() * std::exp(-options_.learning_rate * (share - options_.quantile)));
  }

  uint64_t state_version() const override { return version_; }
  std::string SaveState() const override {
    ByteWriter writer;
    writer.Put(kStateFormat).Put(bound());
    return std::move(writer).Take();
  }
  // Brings a clip outside the range that is configured now into it. A learner whose clip was fixed
  // before has no state and starts with the configured clip.
  Status LoadState(std::string_view bytes) override {
    if (bytes.empty()) return {};
    ByteReader reader(bytes);
    const auto format = reader.Get<uint8_t>();
    const auto clip = reader.Get<double>();
    if (!reader.at_end() || format != kStateFormat || !(clip > 0) || !std::isfinite(clip))
      return Fail(
          ErrorCode::kCorruption,
          fmt::format(
              "the stored state of an adaptive clip ({} bytes) is corrupt or of an unknown version",
              bytes.size()));
    Move(clip);
    return {};
  }

 private:
  static constexpr uint8_t kStateFormat = 1;

  void Move(double clip) {
    SetBound(std::clamp(clip, options_.clip_min, options_.clip_max));
    ++version_;
  }

  const QuantileOptions options_;
  const Grid count_grid_;
  uint64_t version_ = 0;
};

}  // namespace

std::unique_ptr<Clipper> MakeFlatClipper(double clip, double sigma_gradient) {
  return std::make_unique<FixedClip<FlatLaw, Recipe::Clip::kFlat>>(clip, sigma_gradient);
}

std::unique_ptr<Clipper> MakeAutomaticClipper(double clip, double sigma_gradient) {
  return std::make_unique<FixedClip<AutomaticLaw, Recipe::Clip::kAutomatic>>(clip, sigma_gradient);
}

std::unique_ptr<Clipper> MakePerLayerClipper(double clip, std::vector<double> shares,
                                             double sigma_gradient) {
  return std::make_unique<PerLayerClip>(clip, std::move(shares), sigma_gradient);
}

std::unique_ptr<Clipper> MakeQuantileClipper(const QuantileOptions& options,
                                             double sigma_gradient) {
  return std::make_unique<QuantileClip>(options, sigma_gradient);
}

}  // namespace tacit::mechanism
