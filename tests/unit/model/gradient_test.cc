#include "model/gradient.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tacit::model {
namespace {

TEST(StepGradient, ResetMergesKeptAndExtraRows) {
  std::mt19937_64 random(5);
  RowSpace space;
  space.AddTable("a", 10, 3);
  space.AddTable("b", 1, 1);
  space.AddTable("c", 20, 8);
  StepGradient gradient;
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(round);
    Activations activations;
    RowSelection selection;
    std::map<uint64_t, uint32_t> want;  // row -> place in activations, or kNotKept
    for (uint64_t row = 0; row < space.rows(); ++row) {
      const auto what = random() % 4;
      if (what == 0) {
        selection.extra.push_back(row);
        want[row] = StepGradient::kNotKept;
      } else if (what < 3) {
        if (what == 1) want[row] = static_cast<uint32_t>(activations.rows.size());
        activations.rows.push_back(row);
        selection.kept.push_back(what == 1);
      }
    }
    gradient.Reset(space, activations, selection, 17);

    EXPECT_EQ(gradient.dense, std::vector<float>(17, 0.0f));
    ASSERT_EQ(gradient.rows.size(), want.size());
    std::vector<uint32_t> place(activations.rows.size(), StepGradient::kNotKept);
    size_t i = 0;
    for (const auto& [row, touched] : want) {
      EXPECT_EQ(gradient.rows[i], row);
      const auto values = gradient.Row(i);
      EXPECT_EQ(values.size(), space.tables()[space.TableOf(row)].dim);
      for (float& x : values) {
        EXPECT_EQ(x, 0.0f);
        x = 1;  // the next Reset must clear it
      }
      if (touched != StepGradient::kNotKept) place[touched] = static_cast<uint32_t>(i);
      ++i;
    }
    EXPECT_EQ(gradient.kept_place, place);
    gradient.dense[0] = 1;
  }
}

TEST(StepGradient, ResetRefusesARowThatIsBothTouchedAndExtra) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  RowSpace space;
  space.AddTable("a", 10, 3);
  Activations activations;
  activations.rows = {4};
  StepGradient gradient;
  EXPECT_DEATH(gradient.Reset(space, activations, {.kept = {1}, .extra = {4}}, 0), "ascend");
}

}  // namespace
}  // namespace tacit::model
