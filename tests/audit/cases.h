#pragma once

#include <string>
#include <vector>

#include "audit/audit.h"
#include "mechanism/row_selector.h"

// The audited cases: mechanisms as they are, and mechanisms with one thing wrong.
namespace tacit::audit {

// The noise of a case, chosen so that epsilon = 1 at delta = 1e-5 pays for one run of it.
struct Budget {
  double mu = 0;
  double sigma_total = 0;      // of all queries together: 1 / mu
  double sigma_selection = 0;  // of a selection and a gradient, ratio 2 : 1, within sigma_total
  double sigma_gradient = 0;
  double sigma_half = 0;  // each of two queries that share sigma_total equally
};
Budget MakeBudget();

// Chance that a row no unit touched is written by AdaFEST, about.
enum class Density { kHalf, kTenth };
double ThresholdOf(const Setting& setting, double sigma, Density density, size_t active);

// AdaFEST's selection, and what it reveals about a canary of `active` rows.
struct Selection {
  mechanism::ThresholdOptions options;
  Evidence evidence;
};
Selection MakeSelection(const Setting& setting, double sigma, double threshold, size_t active);

// A mechanism of two halves, with what the adversary looks at.
Subject Assemble(const Setting& setting, std::unique_ptr<mechanism::RowSelector> selector,
                 std::unique_ptr<mechanism::Clipper> clipper, double sigma_gradient,
                 const mechanism::Vocabulary* vocabulary = nullptr);

using ClipperMaker =
    std::function<std::unique_ptr<mechanism::Clipper>(const Setting&, double sigma_gradient)>;
std::unique_ptr<mechanism::Clipper> Flat(const Setting& setting, double sigma);
std::unique_ptr<mechanism::Clipper> Automatic(const Setting& setting, double sigma);
std::unique_ptr<mechanism::Clipper> PerLayer(const Setting& setting, double sigma);
std::unique_ptr<mechanism::Vocabulary> PublicVocabulary(const Setting& setting);

// Takes out the rows that the public vocabulary does not have.
void KeepVocabulary(const Setting& setting, std::vector<uint64_t>* rows);

Case MakeDpSgd(std::string name, const SettingOptions& options, ClipperMaker clipper = Flat);
// Half of mu^2 for the gradient, half for the count that moves the clip.
Case MakeDpSgdQuantile(std::string name);
// With `plus`, AdaFEST+ inside a public vocabulary, which has all of the canary's rows but the
// foreign ones.
Case MakeAdaFest(std::string name, const SettingOptions& options = {},
                 Density density = Density::kHalf, ClipperMaker clipper = Flat, bool plus = false);
Case MakeExponential(std::string name);

// Every right mechanism. Thresholding the noisy map and choosing by Gumbel noise lose a part of
// what is charged; the instances are such that more than nine tenths of mu are left.
std::vector<Case> RightCases();

struct PlantedFault {
  Case audited;
  // True if the case costs more than it says. If not, it must be found by what is then missing: the
  // canary's signal stays below 80 % of what is charged.
  bool exceeds = true;
};
// AdaFEST written down once more, row by row: what faults of its selection are planted in.
Case MakeNaiveAdaFest();
// Right mechanisms with one fault planted in each.
std::vector<PlantedFault> PlantedFaults();

// A right mechanism on an instance drawn by chance: other tables, rows, clips, thresholds and
// splits. Nothing is known about how much of its charge it reaches.
Case RandomCase(uint64_t seed);

}  // namespace tacit::audit
