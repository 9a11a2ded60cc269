#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/row_space.h"
#include "config/config.h"
#include "mechanism/row_selector.h"
#include "mechanism/vocabulary.h"
#include "privacy/query_table.h"

// The table of mechanisms that can guard a learner: how wiring makes each, and its words for it.
namespace tacit::wiring {

// The parts of a mechanism's half that chooses rows.
struct SelectorParts {
  const config::Mechanism& settings;
  const RowSpace& space;
  double sigma = 0;                                   // of its own Gaussian query, if it asks one
  std::unique_ptr<mechanism::Vocabulary> vocabulary;  // null for kinds without that key
};

// The rows that a step of a click model may write.
struct WrittenRows {
  uint64_t space = 0;    // all that there are
  double untouched = 0;  // expected, without a unit that activated them
};

struct MechanismMaker {
  config::MechanismKind kind;
  privacy::MechanismKind charged_as;
  // Null for kinds that choose no rows: they guard no click model, or add no noise.
  std::unique_ptr<mechanism::RowSelector> (*select)(SelectorParts parts) = nullptr;
  // The query by which it chooses rows in a step. A Gaussian one shares the step's noise, by
  // mechanism.sigma_ratio; one priced by zCDP is paid for beside the steps.
  std::optional<privacy::Query> asks = std::nullopt;
  // Says why the settings do not fit the rows; if empty, they do. If null, they always do.
  std::string (*misfit)(const config::Mechanism& settings, const RowSpace& space) = nullptr;
  // Names the key whose releases beside the steps cost too much, and how to lower the price.
  // `cost`: "epsilon ..., which leaves nothing ..."; `over`: the steps or participations paid for.
  // Null for kinds without such releases.
  std::string (*too_dear)(const config::Mechanism& settings, std::string_view over,
                          std::string_view cost) = nullptr;
  // Describes the rows that a step writes; if null, the touched ones alone.
  std::string (*rows)(const WrittenRows& rows) = nullptr;
};

std::span<const MechanismMaker> AllMechanisms();

// Describes the rows that a step of the mechanism with these charges writes.
std::string RowsText(privacy::MechanismKind charged_as, const WrittenRows& rows,
                     std::span<const MechanismMaker> kinds = AllMechanisms());

}  // namespace tacit::wiring
