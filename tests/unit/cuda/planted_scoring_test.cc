// A version's rows that answer another's requests are found by what the scorer's test compares.
#include "unit/cuda/planted_scoring.h"

#include <gtest/gtest.h>

#include "unit/cuda/scoring_rig.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

class PlantedScoring : public OnDevice {
 protected:
  ~PlantedScoring() override { PlantKeptRows(false); }
};

TEST_F(PlantedScoring, RowsThatStayWhenTheVersionChangesGiveWrongAnswers) {
  // A shelf has room for all rows, so that its list never fills up with what it keeps.
  constexpr uint64_t kPlenty = 1 << 20;
  EXPECT_EQ(AnswersOfOtherVersions(*device_, kPlenty, 1), 0u);
  PlantKeptRows(true);
  EXPECT_GT(AnswersOfOtherVersions(*device_, kPlenty, 1), 10u);
}

}  // namespace
}  // namespace tacit::cuda::testing
