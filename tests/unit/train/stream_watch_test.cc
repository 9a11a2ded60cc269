// The operator is told of accidents of producers within ten seconds, and of days like any other not
// at all: twenty streams of random shape for each, with accidents of random size.
#include "train/watch/stream_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>
#include <utility>

#include "support/held_clock.h"
#include "unit/train/made_stream.h"

namespace tacit::train {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using Draw = std::function<MadeStream::Event(double uniform, const MadeStream& stream)>;

constexpr int kStreams = 20;
constexpr int kSecondsBefore = 12, kSecondsAfter = 10;

// A stream that is watched as its seconds pass.
class Watched {
 public:
  explicit Watched(uint64_t seed) : stream_(seed), watch_(stream_.schema(), clock_, registry_) {}

  // Lets a second pass with its records, in ten runs. Returns whether the operator was told.
  bool Second(const MadeStream::Event& event, size_t records = 10'000) {
    bool told = false;
    for (int run = 0; run < 10; ++run) {
      clock_.Pass(milliseconds(100));
      stream_.Next(records / 10, event);
      watch_.See(stream_.batch());
      told |= !watch_.trouble().empty();
    }
    return told;
  }
  // Has many runs of one record come in one moment.
  void Burst(size_t runs) {
    for (size_t run = 0; run < runs; ++run) {
      stream_.Next(1, {});
      watch_.See(stream_.batch());
    }
  }
  MadeStream& stream() { return stream_; }
  std::string trouble() const { return watch_.trouble(); }
  std::string metrics() const { return registry_.Scrape(metrics::Audience::kOperator); }
  std::string public_metrics() const { return registry_.Scrape(metrics::Audience::kPublic); }

 private:
  test::HeldClock clock_;
  metrics::Registry registry_;
  MadeStream stream_;
  StreamWatch watch_;
};

// Counts the streams of which the operator was told within ten seconds of what `draw` says.
// `at_first`: records of the first second.
int Told(uint64_t seed, const Draw& draw, int seconds_before = kSecondsBefore,
         size_t at_first = 10'000) {
  std::mt19937_64 random(seed);
  int told = 0;
  for (int i = 0; i < kStreams; ++i) {
    Watched watched(random());
    const double uniform = std::uniform_real_distribution<double>()(random);
    const MadeStream::Event event = draw(uniform, watched.stream());
    bool early = false, late = false;
    for (int second = 0; second < seconds_before; ++second)
      early |= watched.Second({}, second == 0 ? at_first : 10'000);
    for (int second = 0; second < kSecondsAfter; ++second) late |= watched.Second(event);
    told += !early && late ? 1 : 0;
    EXPECT_FALSE(early) << "stream " << i << " of seed " << seed
                        << " before anything happened: " << watched.trouble();
  }
  return told;
}

MadeStream::Event Of(double share) {
  MadeStream::Event event;
  event.share = share;
  return event;
}

TEST(StreamWatchTest, AFeatureThatIsNoLongerFilledInIsTold) {
  EXPECT_GE(Told(1,
                 [](double uniform, const MadeStream& stream) {
                   auto event = Of(.4 + .6 * uniform);
                   event.missing_feature = static_cast<int>(stream.columns()) - 1;
                   return event;
                 }),
            19);
}

TEST(StreamWatchTest, LabelsThatAreAllOneAreTold) {
  EXPECT_GE(Told(2,
                 [](double uniform, const MadeStream&) {
                   auto event = Of(.6 + .4 * uniform);
                   event.all_positive = true;
                   return event;
                 }),
            19);
}

TEST(StreamWatchTest, RecordsThatComeTwiceAreTold) {
  EXPECT_GE(Told(3,
                 [](double uniform, const MadeStream&) {
                   auto event = Of(.5 + .5 * uniform);
                   event.twice = true;
                   return event;
                 }),
            19);
}

TEST(StreamWatchTest, SecondsInPlaceOfMillisecondsAreTold) {
  EXPECT_GE(Told(4,
                 [](double uniform, const MadeStream&) {
                   auto event = Of(.2 + .8 * uniform);
                   event.seconds = true;
                   return event;
                 }),
            19);
}

// The distance of two times is up to 2^64.
TEST(StreamWatchTest, TimesAtBothEndsOfTheirRangeAreFarApart) {
  constexpr int64_t kFirst = std::numeric_limits<int64_t>::min(), kHalf = int64_t{1} << 62;
  const std::pair<int64_t, int64_t> kJumps[] = {{kFirst, std::numeric_limits<int64_t>::max()},
                                                {std::numeric_limits<int64_t>::max(), kFirst},
                                                {-kHalf, kHalf},
                                                {1'600'000'000'000, kFirst}};
  for (const auto& [before, after] : kJumps) {
    Watched watched(12);
    MadeStream::Event event;
    event.times_ms = before;
    for (int second = 0; second < kSecondsBefore; ++second) EXPECT_FALSE(watched.Second(event));
    event.times_ms = after;
    bool told = false;
    for (int second = 0; second < kSecondsAfter; ++second) told |= watched.Second(event);
    EXPECT_TRUE(told) << before << " then " << after;
  }
}

// Users are known only after several records of each, which takes longer.
TEST(StreamWatchTest, HalfOfTheUsersStayingAwayIsTold) {
  const auto draw = [](double uniform, const MadeStream&) {
    auto event = Of(.4 + .2 * uniform);
    event.users_gone = true;
    return event;
  };
  EXPECT_GE(Told(5, draw, 3 * kSecondsBefore), 19);
  // A daemon that begins with its topic sees a second of few records first.
  EXPECT_GE(Told(7, draw, 3 * kSecondsBefore, /*at_first=*/2000), 19);
}

// Values are known only after most have come.
TEST(StreamWatchTest, AnotherTopicsValuesAreTold) {
  const auto draw = [](double uniform, const MadeStream&) {
    auto event = Of(.5 + .5 * uniform);
    event.other_values = true;
    return event;
  };
  EXPECT_GE(Told(6, draw, 3 * kSecondsBefore), 19);
  EXPECT_GE(Told(8, draw, 3 * kSecondsBefore, /*at_first=*/3000), 19);
}

// While the clock stands a window does not end, however many runs come. The watch looks at fewer
// and fewer of them, and goes on when time does.
TEST(StreamWatchTest, ABurstOfSmallRunsBlindsNobody) {
  Watched watched(11);
  watched.Burst(100'000);
  for (int second = 0; second < kSecondsBefore; ++second) EXPECT_FALSE(watched.Second({}));
  MadeStream::Event event = Of(1);
  event.all_positive = true;
  bool told = false;
  for (int second = 0; second < kSecondsAfter; ++second) told |= watched.Second(event);
  EXPECT_TRUE(told);
}

// The innocent twins.
TEST(StreamWatchTest, ASaleIsNotTold) {
  EXPECT_LE(Told(7,
                 [](double uniform, const MadeStream&) {
                   auto event = Of(0);
                   event.label_factor = 1 + .5 * uniform;
                   return event;
                 }),
            1);
}

TEST(StreamWatchTest, ANewCategoryIsNotTold) {
  EXPECT_LE(Told(8,
                 [](double uniform, const MadeStream& stream) {
                   auto event = Of(.5 * uniform);
                   event.new_category = static_cast<int>(stream.schema().categorical.size()) - 1;
                   return event;
                 }),
            1);
}

// Fewer records each second, and fewer clicks, for a minute.
TEST(StreamWatchTest, NightIsNotTold) {
  std::mt19937_64 random(9);
  int told = 0;
  for (int i = 0; i < kStreams; ++i) {
    Watched watched(random());
    MadeStream::Event event;
    bool at_night = false;
    for (int second = 0; second < kSecondsBefore; ++second) at_night |= watched.Second(event);
    for (int second = 0; second < 60; ++second) {
      event.label_factor = 1 - .4 * second / 60;
      at_night |= watched.Second(event, static_cast<size_t>(10'000 * std::exp(-second / 20.)));
    }
    told += at_night ? 1 : 0;
  }
  EXPECT_LE(told, 1);
}

TEST(StreamWatchTest, TroubleNamesTheFeatureAndEndsWhenItIsMended) {
  Watched watched(10);
  for (int second = 0; second < kSecondsBefore; ++second) watched.Second({});
  auto event = Of(1);
  event.missing_feature = 0;
  for (int second = 0; second < 3; ++second) watched.Second(event);
  const std::string name = watched.stream().schema().dense.empty()
                               ? watched.stream().schema().categorical[0].name
                               : watched.stream().schema().dense[0].name;
  EXPECT_THAT(watched.trouble(), HasSubstr("without '" + name + "' is 100.0 %, and was"));
  EXPECT_THAT(watched.metrics(), HasSubstr("tacit_stream_unusual{of=\"missing\"} 1"));
  EXPECT_EQ(watched.public_metrics().find("tacit_stream"), std::string::npos);
  for (int second = 0; second < 2; ++second) watched.Second({});
  EXPECT_EQ(watched.trouble(), "");
}

// A producer that has changed for good is usual after some minutes.
TEST(StreamWatchTest, AChangeThatStaysBecomesUsual) {
  Watched watched(11);
  for (int second = 0; second < kSecondsBefore; ++second) watched.Second({}, 1000);
  auto event = Of(1);
  event.all_positive = true;
  bool told = false;
  for (int second = 0; second < 70; ++second) told |= watched.Second(event, 1000);
  EXPECT_TRUE(told);
  EXPECT_EQ(watched.trouble(), "");
}

// A slow stream has windows of many seconds, and few figures.
TEST(StreamWatchTest, ASlowStreamIsJudgedBySomeHundredRecords) {
  Watched watched(12);
  for (int second = 0; second < 200; ++second) ASSERT_FALSE(watched.Second({}, 50)) << second;
  auto event = Of(1);
  event.missing_feature = 0;
  bool told = false;
  for (int second = 0; second < 30; ++second) told |= watched.Second(event, 50);
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace tacit::train
