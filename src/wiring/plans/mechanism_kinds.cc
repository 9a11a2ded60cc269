#include "wiring/plans/mechanism_kinds.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/kind_table.h"
#include "base/text.h"
#include "mechanism/choice/choice.h"

namespace tacit::wiring {
namespace {

std::string Whole(double rows) { return WithThousands(static_cast<uint64_t>(std::llround(rows))); }

std::unique_ptr<mechanism::RowSelector> SelectByThreshold(SelectorParts parts) {
  const config::Mechanism& m = parts.settings;
  return mechanism::MakeThresholdRows(
      parts.space, {.sigma = parts.sigma, .clip = m.selection_clip, .threshold = m.threshold},
      std::move(parts.vocabulary));
}

std::string ThresholdRowsText(const WrittenRows& rows) {
  // No more digits than are worth reading.
  const std::string extra =
      rows.untouched >= 10 ? Whole(rows.untouched) : fmt::format("{:.1f}", rows.untouched);
  return fmt::format(
      "{}; how many are touched is not known without the data",
      rows.untouched < 0.05
          ? "hardly any untouched one is written for noise alone"
          : fmt::format("about {} untouched ones are written for noise alone", extra));
}

std::string HistogramTooDear(const config::Mechanism& m, std::string_view, std::string_view cost) {
  return fmt::format(
      "mechanism.vocabulary.noise_multiplier: histograms of {} cost {}; it must be larger",
      m.vocabulary.noise_multiplier, cost);
}

std::unique_ptr<mechanism::RowSelector> SelectVocabulary(SelectorParts parts) {
  return mechanism::MakeVocabularyRows(std::move(parts.vocabulary));
}

std::string VocabularyRowsText(const WrittenRows& rows) {
  return fmt::format("the vocabulary's, up to {}, are written in every step, touched or not",
                     Whole(rows.untouched));
}

std::unique_ptr<mechanism::RowSelector> SelectAll(SelectorParts) {
  return mechanism::MakeAllRows();
}

std::string AllRowsText(const WrittenRows& rows) {
  return fmt::format("all {} are written in every step, touched or not", WithThousands(rows.space));
}

std::unique_ptr<mechanism::RowSelector> SelectExponentially(SelectorParts parts) {
  const config::Mechanism& m = parts.settings;
  return mechanism::MakeExponentialRows(
      parts.space, {.rows = m.rows, .epsilon = m.row_epsilon, .clip = m.row_clip});
}

std::string MoreRowsThanThereAre(const config::Mechanism& m, const RowSpace& space) {
  if (m.rows <= space.rows()) return "";
  return fmt::format("mechanism.rows: {} are more than the {} that there are", m.rows,
                     space.rows());
}

std::string ChoiceTooDear(const config::Mechanism& m, std::string_view over,
                          std::string_view cost) {
  const double rho = static_cast<double>(m.rows) * m.row_epsilon * m.row_epsilon / 8;
  return fmt::format(
      "mechanism.row_epsilon: choosing rows costs a zCDP of rows * row_epsilon^2 / 8 = {} * {}^2 / "
      "8 = {:.4g} a step, and over {} {}; lower row_epsilon, or mechanism.rows",
      m.rows, m.row_epsilon, rho, over, cost);
}

std::string ExponentialRowsText(const WrittenRows& rows) {
  return fmt::format("the {} that are chosen are written in every step, touched or not",
                     Whole(rows.untouched));
}

std::string FrozenRowsText(const WrittenRows&) {
  return "none is ever written: embeddings stay as they began";
}

constexpr MechanismMaker kKinds[] = {
    {.kind = config::MechanismKind::kNone, .charged_as = privacy::MechanismKind::kNonPrivate},
    {.kind = config::MechanismKind::kAdaFest,
     .charged_as = privacy::MechanismKind::kAdaFest,
     .select = SelectByThreshold,
     .asks = privacy::Query::kRowThreshold,
     .rows = ThresholdRowsText},
    {.kind = config::MechanismKind::kAdaFestPlus,
     .charged_as = privacy::MechanismKind::kAdaFestPlus,
     .select = SelectByThreshold,
     .asks = privacy::Query::kRowThreshold,
     .too_dear = HistogramTooDear,
     .rows = ThresholdRowsText},
    {.kind = config::MechanismKind::kFest,
     .charged_as = privacy::MechanismKind::kFest,
     .select = SelectVocabulary,
     .too_dear = HistogramTooDear,
     .rows = VocabularyRowsText},
    {.kind = config::MechanismKind::kDpSgd,
     .charged_as = privacy::MechanismKind::kDpSgd,
     .select = SelectAll,
     .rows = AllRowsText},
    {.kind = config::MechanismKind::kExponential,
     .charged_as = privacy::MechanismKind::kExponential,
     .select = SelectExponentially,
     .asks = privacy::Query::kRowChoice,
     .misfit = MoreRowsThanThereAre,
     .too_dear = ChoiceTooDear,
     .rows = ExponentialRowsText},
    {.kind = config::MechanismKind::kCounts, .charged_as = privacy::MechanismKind::kCounts},
    {.kind = config::MechanismKind::kSums, .charged_as = privacy::MechanismKind::kSums},
    {.kind = config::MechanismKind::kForward,
     .charged_as = privacy::MechanismKind::kForward,
     .rows = FrozenRowsText}};
static_assert(CoversKinds(kKinds, config::kLastMechanism));

}  // namespace

std::span<const MechanismMaker> AllMechanisms() { return kKinds; }

std::string RowsText(privacy::MechanismKind charged_as, const WrittenRows& rows,
                     std::span<const MechanismMaker> kinds) {
  if (rows.space == 0) return "there are none: the model has no tables";
  const auto kind = std::ranges::find(kinds, charged_as, &MechanismMaker::charged_as);
  if (kind == kinds.end() || kind->rows == nullptr)
    return "the touched ones alone; how many are touched is not known without the data";
  return kind->rows(rows);
}

}  // namespace tacit::wiring
