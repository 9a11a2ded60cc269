// Times without a zone, over the whole calendar, against days that are counted one by one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "event/shape_rules.h"

namespace tacit::event {
namespace {

constexpr int64_t kMinute = 60'000, kDay = 1440 * kMinute;
// The days from 0001-01-01 to 1970-01-01, by `date -u -d 0001-01-01 +%s`: -62135596800 seconds.
constexpr int64_t kDaysBefore1970 = 719'162;

bool IsLeap(int year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

int DaysOf(int year, int month) {
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return kDays[month - 1] + (month == 2 && IsLeap(year) ? 1 : 0);
}

TEST(DatetimeTest, EveryDayFromTheYear1To9999IsTheNextOne) {
  int64_t midnight = -kDaysBefore1970 * kDay;
  for (int year = 1; year <= 9999; ++year)
    for (int month = 1; month <= 12; ++month) {
      for (int day = 1; day <= DaysOf(year, month); ++day, midnight += kDay) {
        const std::string date = fmt::format("{:04}-{:02}-{:02}", year, month, day);
        ASSERT_EQ(ReadDatetime(date, 0), midnight) << date;
        ASSERT_EQ(ReadDatetime(date + " 24:00:00", 0), midnight + kDay) << date;
      }
      const std::string none =
          fmt::format("{:04}-{:02}-{:02}", year, month, DaysOf(year, month) + 1);
      ASSERT_EQ(ReadDatetime(none, 0), std::nullopt) << none;
    }
  EXPECT_EQ(midnight, 2'932'897 * kDay);  // 10000-01-01, by `date`: 253402300800 seconds
}

TEST(DatetimeTest, EveryMinuteOfADayAndEveryOffsetCounts) {
  const int64_t midnight = *ReadDatetime("2024-02-29", 0);
  for (int minute = 0; minute < 1440; ++minute) {
    const std::string text = fmt::format("2024-02-29 {:02}:{:02}", minute / 60, minute % 60);
    ASSERT_EQ(ReadDatetime(text, 0), midnight + minute * kMinute) << text;
    ASSERT_EQ(ReadDatetime(text + ":07.25", minute), midnight + 7250) << text;
    ASSERT_EQ(ReadDatetime(text, -minute), midnight + 2 * minute * kMinute) << text;
  }
}

TEST(DatetimeTest, IsReadToTheMillisecond) {
  // By `date -u -d ... +%s%3N`.
  EXPECT_EQ(ReadDatetime("2019-11-01 17:59:13", 0), 1572631153000);
  EXPECT_EQ(ReadDatetime("2019-11-01T17:59:13.5", 0), 1572631153500);
  EXPECT_EQ(ReadDatetime("2019-11-01t17:59:13.123999", 0), 1572631153123);
  EXPECT_EQ(ReadDatetime("2019-11-01 17:59:13", 120), 1572623953000);  // +02:00
  EXPECT_EQ(ReadDatetime("1969-12-31 23:59:59.999", 0), -1);
  // A leap second is the next minute's first, as in RFC 3339.
  EXPECT_EQ(ReadDatetime("2016-12-31 23:59:60", 0), 1483228800000);
  EXPECT_EQ(ReadDatetime("2016-12-31 23:59:60", 0), ReadRfc3339("2016-12-31T23:59:60Z"));
  EXPECT_EQ(ReadDatetime("2016-12-31 24:00", 0), 1483228800000);
  EXPECT_EQ(ReadDatetime("2016-12-31 24:00:00.000", 0), 1483228800000);
}

TEST(DatetimeTest, OtherTextsAreNone) {
  for (const char* wrong : {"",
                            "0",
                            "20191101",
                            "2019-11",
                            "2019-11-1",
                            "2019-11-01 ",
                            "2019-11-01T",
                            "2019-11-01 17",
                            "2019-11-01 17:",
                            "2019-11-01 17:5",
                            "2019-11-01 17:60",
                            "2019-11-01 17:59:",
                            "2019-11-01 17:59:61",
                            "2019-11-01 17:59:13.",
                            "2019-11-01 17:59:13,5",
                            "2019-11-01 24:00:01",
                            "2019-11-01 24:01",
                            "2019-11-01 24:00:60",
                            "2019-11-01 25:00",
                            "2019-00-01",
                            "2019-13-01",
                            "2019-11-00",
                            "1900-02-29",
                            "0000-00-00 00:00:00",
                            "19-11-01",
                            "+019-11-01",
                            "2019-11-01 17:59:13Z",
                            "2019-11-01T17:59:13+02:00",
                            "2019-11-01 17:59:13 UTC",
                            "2019/11/01",
                            "2019-11-01x"})
    EXPECT_EQ(ReadDatetime(wrong, 0), std::nullopt) << wrong;
}

}  // namespace
}  // namespace tacit::event
