#include "audit/product.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "audit/cases.h"
#include "base/check.h"
#include "base/threads/worker_pool.h"
#include "mechanism/private_step.h"
#include "mechanism/row_selector.h"
#include "model/pctr.h"
#include "noise/stream_noise.h"

namespace tacit::audit {
namespace {

constexpr double kClip = 0.5;
constexpr uint32_t kNumbers = 2, kHidden = 64;
constexpr float kHuge = 0x1p24f;

// Hidden units in pairs that cancel in the logit: every record is predicted with 1/2, however large
// its numbers are, and two records that differ in the label alone have opposite gradients. All
// weights are powers of two, so that no rounding decides about that.
std::vector<float> Parameters() {
  std::mt19937_64 random(7);
  const auto weight = [&] { return (random() % 2 ? 1.0f : -1.0f) * (random() % 2 ? 1.0f : 0.5f); };
  std::vector<float> dense((kNumbers + 1) * kHidden + kHidden + 1);
  const size_t output = (kNumbers + 1) * kHidden;
  for (size_t j = 0; j < kHidden / 2; ++j) {
    for (size_t i = 0; i < kNumbers; ++i)
      dense[i * kHidden + j] = dense[i * kHidden + j + kHidden / 2] = weight();
    dense[output + j] = weight();
    dense[output + j + kHidden / 2] = -dense[output + j];
  }
  return dense;
}

// A batch of units as the model takes it.
struct Batch {
  explicit Batch(const std::vector<UnitRecords>& of) {
    for (const UnitRecords& records : of) {
      for (const Record& record : records) {
        unit_of.push_back(static_cast<uint32_t>(units));
        label.push_back(record.label);
        dense.insert(dense.end(), record.numbers.begin(), record.numbers.end());
      }
      ++units;
    }
    activations.unit_end.assign(units, 0);
  }
  model::Examples View() const {
    return {.size = label.size(),
            .units = units,
            .unit_of = unit_of,
            .label = label,
            .dense = dense,
            .slot_end = {},
            .slot_row = {}};
  }

  size_t units = 0;
  std::vector<uint32_t> unit_of;
  std::vector<float> label, dense;
  model::Activations activations;
};

// Takes the mechanism's place where norms become scales.
class NormOfTheSum final : public model::ScaleRule {
 public:
  NormOfTheSum(double grid_step, std::vector<double> norms)
      : grid_step_(grid_step), norms_(std::move(norms)) {}
  double grid_step() const override { return grid_step_; }
  void Scales(const model::GroupNorms& norms, std::span<float> scales) const override {
    for (size_t u = 0; u < norms.units; ++u)
      for (size_t g = 0; g < norms.groups; ++g)
        scales[g * norms.units + u] = static_cast<float>(std::min(1.0, kClip / norms_[u]));
  }

 private:
  const double grid_step_;
  const std::vector<double> norms_;
};

class Product {
 public:
  explicit Product(const ProductCase& audited)
      : audited_(audited),
        backend_(ops::MakeCpuBackend(pool_)),
        model_({.space = space_,
                .dense_width = kNumbers,
                .hidden = {kHidden},
                .precision = audited.precision},
               *backend_),
        parameters_(Parameters()),
        sigma_(MakeBudget().sigma_total),
        mechanism_(mechanism::MakePrivateStep(space_, mechanism::MakeAllRows(),
                                              mechanism::MakeFlatClipper(kClip, sigma_),
                                              {.sigma_gradient = sigma_, .expected_batch = 1})) {}

  mechanism::Mechanism& mechanism() { return *mechanism_; }
  double stddev() const { return sigma_ * kClip; }

  // The step up to its noise. It is the same in every run.
  model::StepGradient Sum(bool with_canary) {
    std::vector<UnitRecords> units = audited_.others;
    // In the middle: sums run over it on their way.
    if (with_canary)
      units.insert(units.begin() + static_cast<ptrdiff_t>(units.size() / 2), audited_.canary);
    const double step = mechanism_->scale_rule().grid_step();
    if (audited_.fault == ClipFault::kNone) return Sum(units, mechanism_->scale_rule());
    std::vector<double> norms;
    for (const UnitRecords& unit : units) norms.push_back(NormOf(unit));
    return Sum(units, NormOfTheSum(step, std::move(norms)));
  }

 private:
  model::StepGradient Sum(const std::vector<UnitRecords>& units, const model::ScaleRule& rule) {
    const Batch batch(units);
    const model::Examples examples = batch.View();
    std::vector<float> logits(examples.size), loss(examples.size);
    Must(model_.Forward(examples, parameters_, {}, logits));
    Must(model_.Backward(examples, parameters_, loss));
    noise::StreamNoise unused(std::make_unique<noise::Keystream>(noise::Keystream::Key{},
                                                                 noise::Keystream::CounterBlock{}));
    model::RowSelection selection;
    mechanism_->Select({.activations = batch.activations}, unused, &selection);
    model::StepGradient sum;
    Must(model_.ClippedSum(examples, batch.activations, selection, rule, &sum, &norms_));
    return sum;
  }

  // The norm of the sum of the unit's records, each of whose gradients the model forms alone.
  // Scaling to a length of 1 keeps 2^-24 of the longest record, as the rounding of scaled rows
  // does.
  double NormOf(const UnitRecords& unit) {
    std::vector<double> sum(parameters_.size());
    double lengths = 0;
    for (const Record& record : unit) {
      const model::StepGradient one = Sum({{record}}, model::Unscaled());
      double squared = 0;
      for (size_t i = 0; i < sum.size(); ++i) {
        sum[i] += one.dense[i];
        squared += double{one.dense[i]} * one.dense[i];
      }
      lengths += std::sqrt(squared);
    }
    double squared = 0;
    for (double x : sum) squared += x * x;
    return std::sqrt(squared) + 0x1p-24 * lengths;
  }

  static void Must(const Status& status) { TACIT_CHECK(status.has_value(), "the step failed"); }

  const ProductCase& audited_;
  const RowSpace space_;
  WorkerPool pool_{WorkerPool::Options{}};
  const std::unique_ptr<ops::Backend> backend_;
  model::Pctr model_;
  const std::vector<float> parameters_;
  const double sigma_;
  const std::unique_ptr<mechanism::Mechanism> mechanism_;
  model::GroupNorms norms_;
};

// Two sums before noise, and all that is between them.
struct Worlds {
  std::array<model::StepGradient, 2> sums;
  std::vector<double> middle, between;
  double distance = 0;

  explicit Worlds(Product& product) : sums{product.Sum(false), product.Sum(true)} {
    const double step = product.mechanism().scale_rule().grid_step();
    for (size_t i = 0; i < sums[0].dense_sums.size(); ++i) {
      const double a = static_cast<double>(sums[0].dense_sums[i]) * step;
      const double b = static_cast<double>(sums[1].dense_sums[i]) * step;
      middle.push_back((a + b) / 2);
      between.push_back(b - a);
      distance += (b - a) * (b - a);
    }
    distance = std::sqrt(distance);
  }
  // ln of the likelihood ratio, except for a factor that no threshold notices.
  double Look(const std::vector<float>& update) const {
    double along = 0;
    for (size_t i = 0; i < update.size(); ++i) along += (update[i] - middle[i]) * between[i];
    return along;
  }
};

std::vector<UnitRecords> HonestUsers(size_t users, size_t records) {
  std::mt19937_64 random(11);
  std::normal_distribution<float> normal;
  std::vector<UnitRecords> units(users);
  for (UnitRecords& unit : units)
    for (size_t i = 0; i < records; ++i)
      unit.push_back(
          {.numbers = {normal(random), normal(random)}, .label = static_cast<float>(random() % 2)});
  return units;
}

// A user who clicks all that he sees: his records add up.
UnitRecords HonestCanary(size_t records) {
  UnitRecords unit = HonestUsers(1, records)[0];
  for (Record& record : unit) record.label = 1;
  return unit;
}

// Two huge records that cancel, one before and one after all others of the unit.
UnitRecords Between(const UnitRecords& rest) {
  UnitRecords unit = {{.numbers = {kHuge, 0}, .label = 1}};
  unit.insert(unit.end(), rest.begin(), rest.end());
  unit.push_back({.numbers = {kHuge, 0}, .label = 0});
  return unit;
}

// Records that all but cancel too. Beside a huge number a float holds three quarters of its last
// digit as a whole one, and a quarter as nothing.
UnitRecords QuartersOfADigit() {
  constexpr Record kThreeQuarters{.numbers = {1.48f, 0}, .label = 1};
  constexpr Record kQuarter{.numbers = {0.49f, 0}, .label = 0};
  constexpr Record kNothing{.numbers = {0x1p-20f, 0}, .label = 1};  // keeps labels in balance
  UnitRecords unit;
  for (size_t i = 0; i < 200; ++i)
    unit.insert(unit.end(), {kThreeQuarters, kQuarter, kQuarter, kQuarter, kNothing, kNothing});
  return unit;
}

std::vector<ProductCase> Cases(ops::Precision precision) {
  const std::string in = precision == ops::Precision::kBf16 ? ", bf16" : "";
  std::vector<ProductCase> cases;
  cases.push_back({.name = "honest users of many records" + in,
                   .others = HonestUsers(6, 200),
                   .canary = HonestCanary(200)});
  cases.push_back({.name = "one user's huge records cancel" + in,
                   .others = HonestUsers(6, 20),
                   .canary = Between(QuartersOfADigit()),
                   .reaches = false});
  ProductCase others{.name = "another user's huge records cancel" + in,
                     .others = HonestUsers(6, 1),
                     .canary = {{.numbers = {0.25f, 0}, .label = 1}}};
  others.others.push_back(Between({}));
  cases.push_back(std::move(others));
  for (ProductCase& each : cases) each.precision = precision;
  return cases;
}

}  // namespace

std::vector<ProductCase> RightProducts() {
  std::vector<ProductCase> cases = Cases(ops::Precision::kF32);
  for (ProductCase& more : Cases(ops::Precision::kBf16)) cases.push_back(std::move(more));
  return cases;
}

std::vector<ProductCase> FaultyProducts() {
  std::vector<ProductCase> cases = Cases(ops::Precision::kF32);
  cases.erase(cases.begin());
  // The other user's rounding moves an honest user's sum by an eighth of a clip. That is measured,
  // and too little to be proved by so few runs.
  cases.back().proves = false;
  for (ProductCase& each : cases) {
    each.name += ", clipped by what is left";
    each.fault = ClipFault::kNormOfTheSum;
  }
  return cases;
}

ProductFinding AuditProduct(const ProductCase& audited, const AuditOptions& options) {
  Product product(audited);
  const Worlds worlds(product);
  noise::Keystream::Key key{};
  key[0] = static_cast<uint8_t>(options.seed);
  noise::StreamNoise noise(
      std::make_unique<noise::Keystream>(key, noise::Keystream::CounterBlock{}));
  model::StepGradient update;
  const auto run = [&](size_t world) {
    update = worlds.sums[world];
    product.mechanism().Finalize(noise, {.groups = 0, .units = 0, .squared = {}}, &update);
    return worlds.Look(update.dense);
  };
  std::array<std::vector<double>, 2> sample;
  for (uint64_t i = 0; i < options.runs_of_choice; ++i)
    for (size_t world : {0, 1}) sample[world].push_back(run(world));
  const Threshold threshold = ChooseThreshold(std::move(sample[0]), std::move(sample[1]));
  std::array<Tally, 2> tally;
  for (uint64_t i = 0; i < options.runs; ++i)
    for (size_t world : {0, 1}) tally[world].Add(run(world), threshold);
  return {.charged_mu = ChargedMu(product.mechanism()),
          .mu = BoundMu(tally[0], tally[1], options.alpha),
          .moved = worlds.distance / kClip};
}

std::string Describe(const ProductCase& audited, const ProductFinding& finding) {
  return fmt::format(
      "{}: charged mu {:.4f}; likelihood: above {:.4f} (seen {:.4f}); the sum moves by {:.6f} "
      "clips",
      audited.name, finding.charged_mu, finding.mu.lower, finding.mu.estimate, finding.moved);
}

}  // namespace tacit::audit
