#include <algorithm>
#include <cmath>
#include <numbers>

#include "audit/cases.h"
#include "mechanism/choice/choice.h"
#include "mechanism/private_step.h"
#include "mechanism/row_selector.h"
#include "mechanism/sigma_split.h"
#include "privacy/gaussian.h"
#include "support/statistics.h"

namespace tacit::audit {
namespace {

using mechanism::Clipper;
using mechanism::RowSelector;
using mechanism::Vocabulary;
using mechanism::VocabularyOptions;
using testing::NormalCdf;

constexpr SettingOptions kHeavy = {};
constexpr SettingOptions kDenseCanary = {.canary = Canary::kDense};
// The canary has eight rows of the vocabulary, and four that are outside.
constexpr SettingOptions kForeign = {.foreign_rows = 4};
// A canary on half of the rows, of which few are chosen: what one choice takes from the next does
// not matter then.
constexpr SettingOptions kWide = {.rows_per_table = 16, .canary_rows_per_table = 8};
constexpr uint64_t kChosen = 8;

std::vector<uint64_t> RowsOf(const UnitGradient& unit) {
  std::vector<uint64_t> rows;
  for (const auto& [row, gradient] : unit.rows) rows.push_back(row);
  return rows;
}

// The canary's addition to each of its rows in the map.
double Contribution(const Setting& setting, size_t active) {
  return std::min(1.0, setting.clip_selection / std::sqrt(static_cast<double>(active)));
}

// The canary is longer than the clip and takes 1/2 off the count; ln C moves by -rate / batch of
// it.
constexpr double kQuantileRate = 0.2;
ClipperMaker Quantile(double sigma_query) {
  return [=](const Setting& setting, double sigma) {
    return mechanism::MakeQuantileClipper({.initial_clip = setting.clip_gradient,
                                           .learning_rate = kQuantileRate,
                                           .sigma_query = sigma_query,
                                           .expected_batch = setting.expected_batch},
                                          sigma);
  };
}
double PerLogClip(const Setting& setting, double sigma_query) {
  const double stddev = sigma_query / 2;
  return setting.expected_batch / kQuantileRate * 0.5 / (stddev * stddev);
}

// All queries of AdaFEST with a quantile clip: half of mu^2 for selection and gradient, half for
// the count.
Case AdaFestQuantile() {
  const double query = MakeBudget().sigma_half;
  const auto [sigma_selection, sigma] = mechanism::SplitSigma(query, 2);
  Case audited{.name = "adafest, quantile clip", .setting = MakeSetting(kHeavy)};
  const size_t active = audited.setting.canary.rows.size();
  const Selection selection =
      MakeSelection(audited.setting, sigma_selection,
                    ThresholdOf(audited.setting, sigma_selection, Density::kHalf, active), active);
  audited.evidence = selection.evidence;
  audited.evidence.sigma_gradient = sigma;
  audited.evidence.per_log_clip = PerLogClip(audited.setting, query);
  audited.make = [=, sigma = sigma](const Setting& setting) {
    return Assemble(setting, mechanism::MakeThresholdRows(setting.space, selection.options),
                    Quantile(query)(setting, sigma), sigma);
  };
  return audited;
}

Case FestPublic() {
  const double sigma = MakeBudget().sigma_total;
  return {.name = "fest, public vocabulary",
          .setting = MakeSetting(kForeign),
          .make =
              [=](const Setting& setting) {
                return Assemble(setting, mechanism::MakeVocabularyRows(PublicVocabulary(setting)),
                                Flat(setting, sigma), sigma);
              },
          .evidence = {.sigma_gradient = sigma}};
}

// The canary is in the period that the vocabulary is made from, and in a step: two charges.
Case FestReleased(std::string name, VocabularyOptions::Source source, bool plus) {
  const Budget budget = MakeBudget();
  Case audited{.name = std::move(name), .setting = MakeSetting(kHeavy)};
  const VocabularyOptions options{.source = source,
                                  .keep = 16,
                                  .noise_multiplier = budget.sigma_half,
                                  .clip = 0.75,
                                  .rows = {}};
  const auto [sigma_selection, sigma_gradient] = mechanism::SplitSigma(budget.sigma_half, 2);
  const double sigma = plus ? sigma_gradient : budget.sigma_half;
  const double stddev = options.clip * options.noise_multiplier;
  const auto rows = RowsOf(audited.setting.canary);
  audited.evidence = {.sigma_gradient = sigma,
                      .per_count = options.clip / std::sqrt(double(rows.size())) / stddev / stddev,
                      .rows = rows};
  // The choice of rows inside a vocabulary that was drawn a moment ago is left to the gradient: at
  // ratio 2 the choice holds a tenth of mu^2.
  const mechanism::ThresholdOptions threshold{
      .sigma = sigma_selection, .clip = audited.setting.clip_selection, .threshold = 0.1};
  audited.make = [=](const Setting& setting) {
    auto vocabulary = mechanism::MakeVocabulary(setting.space, options);
    const Vocabulary* seen = vocabulary.get();
    auto selector =
        plus ? mechanism::MakeThresholdRows(setting.space, threshold, std::move(vocabulary))
             : mechanism::MakeVocabularyRows(std::move(vocabulary));
    return Assemble(setting, std::move(selector), Flat(setting, sigma), sigma, seen);
  };
  return audited;
}

// A choice by Gumbel noise costs rho = mu^2 / 2, like a Gaussian of mu: k exponential mechanisms
// whose losses are two values epsilon apart, each equally likely here, are that Gaussian in the
// limit of many and small ones.
Case FestGumbel() {
  const Budget budget = MakeBudget();
  Case audited{.name = "fest, Gumbel vocabulary", .setting = MakeSetting(kWide)};
  const double epsilon = 2 / budget.sigma_half / std::sqrt(double{kChosen});
  audited.evidence = {.sigma_gradient = budget.sigma_half,
                      .written = epsilon,
                      .rows = RowsOf(audited.setting.canary)};
  const VocabularyOptions options{.source = VocabularyOptions::Source::kFirstPeriod,
                                  .keep = kChosen,
                                  .noise_multiplier = budget.sigma_half,
                                  .rows = {}};
  audited.make = [=](const Setting& setting) {
    auto vocabulary = mechanism::MakeTopRows(setting.space, options);
    const Vocabulary* seen = vocabulary.get();
    return Assemble(setting, mechanism::MakeVocabularyRows(std::move(vocabulary)),
                    Flat(setting, budget.sigma_half), budget.sigma_half, seen);
  };
  return audited;
}

}  // namespace

Budget MakeBudget() {
  Budget budget;
  budget.mu = privacy::GaussianMu(Epsilon{1}, Delta{1e-5});
  budget.sigma_total = 1 / budget.mu;
  const auto split = mechanism::SplitSigma(budget.sigma_total, 2);
  budget.sigma_selection = split.selection;
  budget.sigma_gradient = split.gradient;
  budget.sigma_half = budget.sigma_total * std::numbers::sqrt2;
  return budget;
}

Subject Assemble(const Setting& setting, std::unique_ptr<RowSelector> selector,
                 std::unique_ptr<Clipper> clipper, double sigma_gradient,
                 const Vocabulary* vocabulary) {
  const Clipper* seen = clipper.get();
  return {.mechanism = mechanism::MakePrivateStep(
              setting.space, std::move(selector), std::move(clipper),
              {.sigma_gradient = sigma_gradient, .expected_batch = setting.expected_batch}),
          .vocabulary = vocabulary,
          .clipper = seen};
}

std::unique_ptr<Vocabulary> PublicVocabulary(const Setting& setting) {
  VocabularyOptions options;
  options.source = VocabularyOptions::Source::kPublic;
  options.rows = setting.vocabulary;
  return mechanism::MakeVocabulary(setting.space, options);
}

std::unique_ptr<Clipper> Automatic(const Setting& setting, double sigma) {
  return mechanism::MakeAutomaticClipper(setting.clip_gradient, sigma);
}

std::unique_ptr<Clipper> PerLayer(const Setting& setting, double sigma) {
  return mechanism::MakePerLayerClipper(setting.clip_gradient, {}, sigma);
}

std::unique_ptr<Clipper> Flat(const Setting& setting, double sigma) {
  return mechanism::MakeFlatClipper(setting.clip_gradient, sigma);
}

double ThresholdOf(const Setting& setting, double sigma, Density density, size_t active) {
  constexpr double kTenth = 1.2815515655446004;  // Psi of it is 0.1
  if (density == Density::kTenth) return kTenth * sigma * setting.clip_selection;
  return Contribution(setting, active) / 2;
}

Selection MakeSelection(const Setting& setting, double sigma, double threshold, size_t active) {
  const double stddev = sigma * setting.clip_selection;
  const double p0 = NormalCdf(-threshold / stddev);
  const double p1 = NormalCdf((Contribution(setting, active) - threshold) / stddev);
  std::vector<uint64_t> rows = RowsOf(setting.canary);
  return {.options = {.sigma = sigma, .clip = setting.clip_selection, .threshold = threshold},
          .evidence = {.written = std::log(p1 / p0),
                       .unwritten = std::log((1 - p1) / (1 - p0)),
                       .rows = std::move(rows)}};
}

void KeepVocabulary(const Setting& setting, std::vector<uint64_t>* rows) {
  std::erase_if(*rows,
                [&](uint64_t row) { return !std::ranges::binary_search(setting.vocabulary, row); });
}

Case MakeDpSgd(std::string name, const SettingOptions& options, ClipperMaker clipper) {
  const double sigma = MakeBudget().sigma_total;
  return {.name = std::move(name),
          .setting = MakeSetting(options),
          .make =
              [=](const Setting& setting) {
                return Assemble(setting, mechanism::MakeAllRows(), clipper(setting, sigma), sigma);
              },
          .evidence = {.sigma_gradient = sigma}};
}

Case MakeDpSgdQuantile(std::string name) {
  const Budget budget = MakeBudget();
  const double sigma = budget.sigma_half;
  Case audited = MakeDpSgd(std::move(name), kHeavy);
  audited.make = [=](const Setting& setting) {
    return Assemble(setting, mechanism::MakeAllRows(), Quantile(sigma)(setting, sigma), sigma);
  };
  audited.evidence = {.sigma_gradient = sigma, .per_log_clip = PerLogClip(audited.setting, sigma)};
  return audited;
}

Case MakeAdaFest(std::string name, const SettingOptions& options, Density density,
                 ClipperMaker clipper, bool plus) {
  Case audited{.name = std::move(name), .setting = MakeSetting(options)};
  const size_t active =
      audited.setting.canary.rows.size() - (plus ? size_t{options.foreign_rows} : 0);
  const Budget budget = MakeBudget();
  const Selection selection =
      MakeSelection(audited.setting, budget.sigma_selection,
                    ThresholdOf(audited.setting, budget.sigma_selection, density, active), active);
  const double sigma = budget.sigma_gradient;
  audited.evidence = selection.evidence;
  audited.evidence.sigma_gradient = sigma;
  if (plus) KeepVocabulary(audited.setting, &audited.evidence.rows);
  audited.make = [=](const Setting& setting) {
    std::unique_ptr<Vocabulary> vocabulary;
    if (plus) vocabulary = PublicVocabulary(setting);
    return Assemble(
        setting,
        mechanism::MakeThresholdRows(setting.space, selection.options, std::move(vocabulary)),
        clipper(setting, sigma), sigma);
  };
  return audited;
}

Case MakeExponential(std::string name) {
  const Budget budget = MakeBudget();
  Case audited{.name = std::move(name), .setting = MakeSetting(kWide)};
  const double epsilon = 2 / budget.sigma_half / std::sqrt(double{kChosen});
  // Far below the rows' norms.
  const mechanism::ExponentialOptions options{.rows = kChosen, .epsilon = epsilon, .clip = 0.25};
  audited.evidence = {.sigma_gradient = budget.sigma_half,
                      .written = epsilon,
                      .rows = RowsOf(audited.setting.canary)};
  audited.make = [=](const Setting& setting) {
    return Assemble(setting, mechanism::MakeExponentialRows(setting.space, options),
                    Flat(setting, budget.sigma_half), budget.sigma_half);
  };
  return audited;
}

std::vector<Case> RightCases() {
  std::vector<Case> cases;
  cases.push_back(MakeDpSgd("dp-sgd", kHeavy, Flat));
  cases.push_back(MakeDpSgd("dp-sgd, dense canary", kDenseCanary, Flat));
  cases.push_back(MakeDpSgd("dp-sgd, automatic clip", kHeavy, Automatic));
  cases.push_back(MakeDpSgd("dp-sgd, clip per layer", kHeavy, PerLayer));
  cases.back().evidence.per_layer = true;
  cases.push_back(MakeDpSgdQuantile("dp-sgd, quantile clip"));
  cases.push_back(MakeAdaFest("adafest", kHeavy, Density::kHalf));
  cases.push_back(MakeAdaFest("adafest, few rows written", kHeavy, Density::kTenth));
  cases.push_back(MakeAdaFest("adafest, dense canary", kDenseCanary, Density::kHalf));
  cases.push_back(MakeNaiveAdaFest());
  cases.push_back(MakeAdaFest("adafest, a unit of nothing for the canary", kHeavy, Density::kHalf));
  cases.back().null_unit = true;
  cases.push_back(MakeAdaFest("adafest, two steps", kHeavy, Density::kHalf));
  cases.back().two_steps = true;
  cases.push_back(MakeAdaFest("adafest, automatic clip", kHeavy, Density::kHalf, Automatic));
  cases.push_back(MakeAdaFest("adafest, clip per layer", kHeavy, Density::kHalf, PerLayer));
  cases.back().evidence.per_layer = true;
  cases.push_back(AdaFestQuantile());
  cases.push_back(MakeAdaFest("adafest+, public vocabulary", kForeign, Density::kHalf, Flat, true));
  cases.push_back(FestPublic());
  cases.push_back(
      FestReleased("fest, first period", VocabularyOptions::Source::kFirstPeriod, false));
  cases.push_back(FestReleased("fest, running counts", VocabularyOptions::Source::kRunning, false));
  cases.push_back(
      FestReleased("adafest+, running counts", VocabularyOptions::Source::kRunning, true));
  cases.push_back(FestGumbel());
  cases.push_back(MakeExponential("exponential selection"));
  return cases;
}

}  // namespace tacit::audit
