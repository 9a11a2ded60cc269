#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "audit/engine.h"
#include "model/pctr.h"

namespace tacit::audit {

struct EngineRecord {
  std::vector<std::vector<uint64_t>> rows;  // per table
  std::vector<float> numbers;
  float label = 0;
};
using EngineUnit = std::vector<EngineRecord>;

// The model and the units of a step. Hidden units come in pairs of opposite signs, and the tables'
// weights are large beside all others, so that the gradient of a unit lies in its rows and in the
// weights of its number, which no other unit moves. No embedding and no weight ever moves.
struct EngineSetting {
  EngineSetting(const EngineCase& audited, const EngineAuditOptions& options);

  // With these units in that order.
  stream::StepBatch StepOf(std::span<const EngineUnit* const> units, EngineFault fault) const;

  model::PctrOptions model;
  std::vector<float> dense;
  float embedding = 0;  // each number of each row
  std::vector<EngineUnit> others;
  std::vector<EngineUnit> canaries;
  EngineUnit nothing;                // a unit without records
  std::vector<uint64_t> vocabulary;  // of the canaries' rows and all others; empty if there is none
  // The mechanism as it should be, and the one that the engine gets.
  std::unique_ptr<mechanism::Mechanism> honest, given;
  // A canary adds this to each of its rows in the map, under noise of that size; 0: there is no
  // map.
  double contribution = 0, threshold = 0, stddev_selection = 0;
  double stddev_gradient = 0;
  double expected_batch = 0;
};

// A unit's part of the sum, given which of its rows are written.
struct UnitSum {
  std::vector<double> dense;
  std::vector<std::pair<uint64_t, std::vector<double>>> rows;
  double squared = 0;
};

// The model's own answer, of each unit alone, on the processor.
class UnitSums {
 public:
  explicit UnitSums(const EngineSetting& setting);
  // `written`: per row of the space. Valid until this is destroyed.
  const UnitSum& Of(const EngineUnit& unit, std::span<const uint8_t> written);
  // The distinct rows of a unit, ascending.
  const std::vector<uint64_t>& RowsOf(const EngineUnit& unit);

 private:
  UnitSum Form(const EngineUnit& unit, std::span<const uint8_t> kept);

  const EngineSetting& setting_;
  const std::unique_ptr<ops::Backend> backend_;
  model::Pctr model_;
  std::map<const EngineUnit*, std::vector<uint64_t>> rows_;
  std::map<std::pair<const EngineUnit*, uint64_t>, UnitSum> known_;
};

}  // namespace tacit::audit
