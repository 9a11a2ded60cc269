
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "daemon/day_table.h"

namespace tacit::daemon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string TableOf(privacy::Unit unit, double epsilon) {
  privacy::Promise promise;
  promise.unit = unit;
  promise.delta = 1e-7;
  promise.bounds.allowance = 5;
  train::DayRow day;
  day.name = "day-00";
  day.events = 1234;
  day.steps = 7;
  day.epsilon = epsilon;
  return DayTable({day}, {}, epsilon, promise);
}

TEST(DayTableTest, TellsWhatTheLearnersUnitIsCharged) {
  EXPECT_THAT(TableOf(privacy::Unit::kEvent, 8),
              AllOf(HasSubstr("1,234"), HasSubstr("epsilon 8.0000 at delta 1e-07"),
                    HasSubstr("every event took part in its steps only"), Not(HasSubstr("user"))));
  EXPECT_THAT(TableOf(privacy::Unit::kUser, 8),
              AllOf(HasSubstr("no user is ever in more than 5 steps"),
                    HasSubstr("costs no user more"), Not(HasSubstr("every event"))));
}

TEST(DayTableTest, SaysSoWhereNothingIsPrivate) {
  EXPECT_THAT(TableOf(privacy::Unit::kUser, std::numeric_limits<double>::infinity()),
              AllOf(HasSubstr("was not private"), Not(HasSubstr("delta"))));
}

}  // namespace
}  // namespace tacit::daemon
