// DP-FEST (paper 003): the rows of a vocabulary and no others. Every one of them is written with
// noise in every step, activated or not; the vocabulary itself was paid for when it was released
// (vocabulary.cc), so a step costs nothing more.
#include <utility>

#include "base/check.h"
#include "mechanism/ascending.h"
#include "mechanism/row_selector.h"

namespace tacit::mechanism {
namespace {

class VocabularyRows final : public RowSelector {
 public:
  explicit VocabularyRows(std::unique_ptr<Vocabulary> vocabulary)
      : vocabulary_(std::move(vocabulary)) {
    TACIT_CHECK(vocabulary_ != nullptr);
  }

  bool observes_periods() const override { return vocabulary_->observes_periods(); }
  void Observe(const model::Activations& activations) override {
    vocabulary_->Observe(activations);
  }
  std::optional<privacy::Charge> opening_charge() const override {
    return vocabulary_->opening_charge();
  }
  void OpenPeriod(noise::NoiseSource& noise) override { vocabulary_->OpenPeriod(noise); }

  void Select(const StepRows& rows, noise::NoiseSource&, model::RowSelection* selection) override {
    const std::span<const uint64_t> activated = rows.activations.rows;
    selection->kept.assign(activated.size(), 0);
    selection->extra.clear();
    AscendingLookup touched(activated);
    for (uint64_t row : vocabulary_->rows()) {
      if (touched.Contains(row)) {
        selection->kept[touched.place()] = 1;
      } else {
        selection->extra.push_back(row);
      }
    }
  }

  bool Describe(Recipe* recipe) const override {
    recipe->rows = Recipe::Rows::kInside;
    recipe->has_vocabulary = true;
    recipe->vocabulary = vocabulary_->rows();
    return true;
  }
  void DrawExtra(noise::NoiseSource&, std::vector<uint64_t>* rows) override {
    const auto all = vocabulary_->rows();
    rows->assign(all.begin(), all.end());
  }

  void AddTo(privacy::Charge* charge) const override {
    charge->mechanism = privacy::MechanismKind::kFest;
  }
  double ExpectedExtraRows() const override { return static_cast<double>(vocabulary_->keep()); }

  uint64_t state_version() const override { return vocabulary_->state_version(); }
  std::string SaveState() const override { return vocabulary_->SaveState(); }
  Status LoadState(std::string_view bytes) override { return vocabulary_->LoadState(bytes); }

 private:
  const std::unique_ptr<Vocabulary> vocabulary_;
};

}  // namespace

std::unique_ptr<RowSelector> MakeVocabularyRows(std::unique_ptr<Vocabulary> vocabulary) {
  return std::make_unique<VocabularyRows>(std::move(vocabulary));
}

}  // namespace tacit::mechanism
