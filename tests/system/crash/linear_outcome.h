#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "store/store.h"
#include "wiring/assembly.h"

namespace tacit::test {

// Everything that a linear learner has left in its store.
struct LinearOutcome {
  std::map<uint64_t, std::vector<float>> rows;
  std::string released, position;
  uint64_t steps = 0;
  double epsilon = 0;
};

// Reads the store of a configuration with linear learners; a failure is one of the test.
inline LinearOutcome ReadLinear(const std::string& config_path, uint16_t learner = 0) {
  auto config = config::Load(config_path, {});
  EXPECT_TRUE(config) << config.error().message;
  auto assembly = wiring::Assemble(*config);
  EXPECT_TRUE(assembly) << assembly.error().message;
  auto store = store::Store::Open(wiring::MakeStoreOptions(*assembly));
  EXPECT_TRUE(store) << store.error().message;
  const auto snapshot = (*store)->Latest();
  LinearOutcome outcome;
  for (uint32_t table = 0; table < config->features.size(); ++table)
    EXPECT_TRUE(snapshot->ForWritten(
        LearnerIndex(learner), table, [&](uint64_t row, std::span<const float> floats) {
          EXPECT_TRUE(outcome.rows.emplace(row, std::vector(floats.begin(), floats.end())).second)
              << "row " << row << " is listed twice";
        }));
  const auto released = snapshot->Released(LearnerIndex(learner));
  EXPECT_NE(released, nullptr);
  outcome.released = *released;
  outcome.position = (*store)->State(LearnerIndex(learner)).position;
  for (const privacy::LedgerTotal& total : snapshot->learners()) {
    if (total.learner != config->learners[learner].id) continue;
    outcome.steps = total.steps;
    outcome.epsilon = total.epsilon;
  }
  return outcome;
}

}  // namespace tacit::test
