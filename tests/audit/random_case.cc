#include <fmt/format.h>

#include <cmath>
#include <random>

#include "audit/cases.h"
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
      *name += "flat";
      return Flat;
    case 1:
      *name += "automatic";
      return Automatic;
    default:
      *name += "per layer";
      evidence->per_layer = true;
      return PerLayer;
  }
}

}  // namespace

Case RandomCase(uint64_t seed) {
  Chance chance(seed);
  uint64_t foreign = 0;
  Case audited{.setting = RandomSetting(&chance, &foreign)};
  const double mu = chance.Real(0.5, 1) * MakeBudget().mu;
  const auto [sigma_selection, sigma] = mechanism::SplitSigma(1 / mu, chance.Real(0.4, 4));
  const bool plus = chance.Coin();
  const size_t active = audited.setting.canary.rows.size() - (plus ? foreign : 0);
  const double stddev = sigma_selection * audited.setting.clip_selection;
  const double threshold = chance.Real(-0.5, 2) * stddev;
  const Selection selection = MakeSelection(audited.setting, sigma_selection, threshold, active);
  audited.evidence = selection.evidence;
  audited.evidence.sigma_gradient = sigma;
  if (plus) KeepVocabulary(audited.setting, &audited.evidence.rows);
  audited.name = fmt::format("random {}: {}, threshold {:.2f} sd, ", seed,
                             plus ? "adafest+" : "adafest", threshold / stddev);
  const ClipperMaker clipper = RandomClipper(&chance, &audited.name, &audited.evidence);
  audited.null_unit = chance.Coin();
  audited.two_steps = chance.Coin();
  audited.make = [=, sigma = sigma](const Setting& setting) {
    return Assemble(setting,
                    mechanism::MakeThresholdRows(setting.space, selection.options,
                                                 plus ? PublicVocabulary(setting) : nullptr),
                    clipper(setting, sigma), sigma);
  };
  return audited;
}

}  // namespace tacit::audit
