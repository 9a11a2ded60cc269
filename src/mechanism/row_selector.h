#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/row_space.h"
#include "mechanism/mechanism.h"
#include "mechanism/vocabulary.h"

namespace tacit::mechanism {

// The half of a private step that chooses the rows to write. The other half (clip, noise, divisor)
// is the same for all selectors. Mechanism describes the calls.
class RowSelector {
 public:
  virtual ~RowSelector() = default;

  virtual bool observes_periods() const { return false; }
  virtual void Observe(const model::Activations&) {}
  virtual std::optional<privacy::Charge> opening_charge() const { return {}; }
  virtual void OpenPeriod(noise::NoiseSource&) {}

  virtual double row_score_clip() const { return 0; }
  virtual void Select(const StepRows& rows, noise::NoiseSource& noise,
                      model::RowSelection* selection) = 0;

  // Fills in the recipe's part about rows; false where it cannot be told so.
  virtual bool Describe(Recipe*) const { return false; }
  virtual void DrawExtra(noise::NoiseSource&, std::vector<uint64_t>* rows) { rows->clear(); }

  // Sets in `charge` what the selector's own queries cost a step: mechanism, sigma_selection and
  // clip_selection, or zcdp_rho.
  virtual void AddTo(privacy::Charge* charge) const = 0;
  // As in Mechanism; an upper bound if the number depends on the data, infinite if every row is
  // written.
  virtual double ExpectedExtraRows() const = 0;

  virtual uint64_t state_version() const { return 0; }
  virtual std::string SaveState() const { return {}; }
  virtual Status LoadState(std::string_view bytes) {
    if (bytes.empty()) return {};
    return Fail(ErrorCode::kCorruption, "a state of a mechanism that keeps none");
  }
};

// `space` must outlive what is made here.

// Dense DP-SGD: every row of the space.
std::unique_ptr<RowSelector> MakeAllRows();

// DP-FEST: the rows of a vocabulary, every one of them in every step, activated or not.
std::unique_ptr<RowSelector> MakeVocabularyRows(std::unique_ptr<Vocabulary> vocabulary);

struct ThresholdOptions {
  double sigma = 0;      // sigma1: noise on the contribution map, in units of clip
  double clip = 1;       // C1
  double threshold = 0;  // tau; infinite: no row ever
};
// DP-AdaFEST: rows whose noisy count of contributions reaches the threshold. With a vocabulary,
// AdaFEST+: the same inside it, as if it were the whole id space.
std::unique_ptr<RowSelector> MakeThresholdRows(const RowSpace& space,
                                               const ThresholdOptions& options,
                                               std::unique_ptr<Vocabulary> vocabulary = nullptr);

}  // namespace tacit::mechanism
