#include <fmt/format.h>

#include <cmath>
#include <random>

#include "audit/cases.h"
#include "mechanism/choice/choice.h"
#include "mechanism/row_selector.h"
#include "mechanism/sigma_split.h"

namespace tacit::audit {
namespace {

class Chance {
 public:
  explicit Chance(uint64_t seed) : random_(seed) {}
  uint64_t Whole(uint64_t least, uint64_t most) {
    return std::uniform_int_distribution<uint64_t>(least, most)(random_);
  }
  double Real(double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random_);
  }
  bool Coin() { return Whole(0, 1) == 1; }

 private:
  std::mt19937_64 random_;
};

Setting RandomSetting(Chance* chance, uint64_t* foreign) {
  SettingOptions options;
  options.canary = chance->Coin() ? Canary::kHeavyRow : Canary::kDense;
  options.tables = static_cast<uint32_t>(chance->Whole(1, 12));
  options.rows_per_table = chance->Whole(4, 9);
  options.canary_rows_per_table = chance->Whole(1, options.rows_per_table - 3);
  options.foreign_rows = *foreign = chance->Whole(0, options.tables);
  options.plain = chance->Whole(0, 20);
  options.rowed = chance->Whole(0, 6);
  Setting setting = MakeSetting(options);
  setting.clip_gradient = chance->Real(0.1, 3);
  // Gradients were made for another clip.
  for (double& value : setting.canary.dense) value *= 30;
  setting.clip_selection = chance->Real(0.2, 1.5);
  return setting;
}

ClipperMaker RandomClipper(Chance* chance, std::string* name, Evidence* evidence) {
  switch (chance->Whole(0, 2)) {
    case 0:
      *name += ", flat";
      return Flat;
    case 1:
      *name += ", automatic";
      return Automatic;
    default:
      *name += ", per layer";
      evidence->per_layer = true;
      return PerLayer;
  }
}

using SelectorMaker = std::function<std::unique_ptr<mechanism::RowSelector>(const Setting&)>;

// Chooses the rows that are written: sets the case's evidence and name, and divides mu.
struct Choice {
  SelectorMaker make;
  double sigma_gradient = 0;
};

Choice RandomThreshold(double mu, uint64_t foreign, Chance* chance, Case* audited) {
  const bool plus = chance->Coin();
  const Setting& setting = audited->setting;
  const auto split = mechanism::SplitSigma(1 / mu, chance->Real(0.4, 4));
  const double in_sds = chance->Real(-0.5, 2);
  const Selection selection =
      MakeSelection(setting, split.selection, in_sds * split.selection * setting.clip_selection,
                    setting.canary.rows.size() - (plus ? foreign : 0));
  audited->evidence = selection.evidence;
  if (plus) KeepVocabulary(setting, &audited->evidence.rows);
  audited->name += fmt::format("{}, threshold {:.2f} sd", plus ? "adafest+" : "adafest", in_sds);
  return {.make =
              [=](const Setting& of) {
                return mechanism::MakeThresholdRows(of.space, selection.options,
                                                    plus ? PublicVocabulary(of) : nullptr);
              },
          .sigma_gradient = split.gradient};
}

// At least eight rows, and at most half of mu^2: there sqrt(2 rho) is mu (README.md).
Choice RandomExponential(double mu, Chance* chance, Case* audited) {
  const uint64_t rows = chance->Whole(8, 16);
  const auto split = mechanism::SplitSigma(1 / mu, chance->Real(1, 3));
  const mechanism::ExponentialOptions options{
      .rows = rows,
      .epsilon = 2 / split.selection / std::sqrt(static_cast<double>(rows)),
      .clip = audited->setting.clip_gradient / 2000};
  audited->evidence.written = options.epsilon;
  for (const auto& [row, gradient] : audited->setting.canary.rows)
    audited->evidence.rows.push_back(row);
  audited->name += fmt::format("exponential, {} rows", rows);
  return {
      .make = [=](const Setting& of) { return mechanism::MakeExponentialRows(of.space, options); },
      .sigma_gradient = split.gradient};
}

Choice RandomChoice(double mu, uint64_t foreign, Chance* chance, Case* audited) {
  switch (chance->Whole(0, 5)) {
    case 0:
      audited->name += "dp-sgd";
      return {.make = [](const Setting&) { return mechanism::MakeAllRows(); },
              .sigma_gradient = 1 / mu};
    case 1:
      audited->name += "fest";
      return {
          .make =
              [](const Setting& of) { return mechanism::MakeVocabularyRows(PublicVocabulary(of)); },
          .sigma_gradient = 1 / mu};
    case 2:
      return RandomExponential(mu, chance, audited);
    default:
      return RandomThreshold(mu, foreign, chance, audited);
  }
}

}  // namespace

Case RandomCase(uint64_t seed) {
  Chance chance(seed);
  uint64_t foreign = 0;
  Case audited{.name = fmt::format("random {}: ", seed)};
  audited.setting = RandomSetting(&chance, &foreign);
  const double mu = chance.Real(0.5, 1) * MakeBudget().mu;
  const Choice choice = RandomChoice(mu, foreign, &chance, &audited);
  audited.evidence.sigma_gradient = choice.sigma_gradient;
  const ClipperMaker clipper = RandomClipper(&chance, &audited.name, &audited.evidence);
  audited.null_unit = chance.Coin();
  audited.two_steps = chance.Coin();
  audited.make = [=](const Setting& setting) {
    return Assemble(setting, choice.make(setting), clipper(setting, choice.sigma_gradient),
                    choice.sigma_gradient);
  };
  return audited;
}

}  // namespace tacit::audit
