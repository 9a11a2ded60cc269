// The rule of the soak (tests/campaign/soak): what leaks is seen, in figures made up and in real
// processes, and what is as it should be is not accused.
#include "system/soak/flatness.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>

#include "support/process.h"
#include "system/soak/process_figures.h"

namespace tacit::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// 15 minutes, a sample each 5 s.
std::vector<Sample> MadeUp(const std::function<double(double seconds)>& value) {
  std::vector<Sample> samples;
  for (double t = 0; t <= 900; t += 5) samples.push_back({t, value(t)});
  return samples;
}

TEST(FlatnessTest, ATrendIsTheLineThroughTheSecondHalf) {
  const Trend trend = TrendOf(MadeUp([](double t) { return t < 450 ? 7 * t : 100 + t / 10; }));
  EXPECT_NEAR(trend.mean, 100 + 67.5, 1e-9);
  EXPECT_NEAR(trend.growth, 45, 1e-9);
}

TEST(FlatnessTest, NoiseWavesAndAWarmCacheAreFlat) {
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0, 3);
  const Bound bound{.share = 0.03, .amount = 4};
  EXPECT_THAT(WhyNotFlat("x", MadeUp([&](double) { return 200 + noise(random); }), bound),
              IsEmpty());
  // Filled by the middle; files that come one by one and go eight at a time.
  EXPECT_THAT(WhyNotFlat("x", MadeUp([](double t) { return std::min(t, 450.0); }), bound),
              IsEmpty());
  EXPECT_THAT(WhyNotFlat("x", MadeUp([](double t) { return 30 + std::fmod(t / 9, 8); }), bound),
              IsEmpty());
  EXPECT_THAT(WhyNotFlat("x", MadeUp([](double t) { return 300 - t / 10; }), bound), IsEmpty());
  // Something larger than before, once.
  EXPECT_THAT(WhyNotFlat("x", MadeUp([](double t) { return t < 800 ? 110 : 125; }), bound),
              IsEmpty());
}

TEST(FlatnessTest, ASlowLeakIsNot) {
  std::mt19937 random(2);
  std::normal_distribution<double> noise(0, 3);
  // A descriptor a minute; 2 MB a minute under noise of 3 MB.
  EXPECT_THAT(WhyNotFlat("descriptors", MadeUp([](double t) { return 60 + std::floor(t / 60); }),
                         {.share = 0, .amount = 3}),
              HasSubstr("descriptors: grows by "));
  EXPECT_THAT(WhyNotFlat("memory", MadeUp([&](double t) { return 200 + t / 30 + noise(random); }),
                         {.share = 0.03, .amount = 4}),
              HasSubstr("memory: grows by "));
}

TEST(FlatnessTest, TooLittleIsNoEvidence) {
  std::vector<Sample> samples = MadeUp([](double) { return 1; });
  samples.resize(15);
  EXPECT_THAT(WhyNotFlat("x", samples, {.share = 1, .amount = 1}), HasSubstr("too few"));
}

// A child that does something over and over, looked at as the soak looks at a daemon.
class LeakTest : public testing::Test {
 protected:
  struct Seen {
    std::vector<Sample> memory, descriptors, files;
  };

  // The rounds between two samples. A byte asks for them and a byte says that they are done, so
  // that the machine's speed does not matter.
  static constexpr int kRounds = 5;

  Seen Watch(const std::function<void(int round)>& leak) {
    int ask[2], done[2];
    EXPECT_TRUE(::pipe(ask) == 0 && ::pipe(done) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(ask[1]);
      char byte;
      for (int round = 0; ::read(ask[0], &byte, 1) == 1;) {
        for (int i = 0; i < kRounds; ++i) leak(round++);
        if (::write(done[1], &byte, 1) != 1) break;
      }
      ::_exit(0);
    }
    ::close(ask[0]);
    ::close(done[1]);
    Seen seen;
    for (int i = 0; i < 40; ++i) {
      char byte = 'x';
      if (::write(ask[1], &byte, 1) != 1 || ::read(done[0], &byte, 1) != 1) {
        ADD_FAILURE() << "the child is gone";
        break;
      }
      const auto figures = FiguresOf(child);
      if (!figures) {
        ADD_FAILURE() << "the child is gone";
        break;
      }
      const double t = i;
      seen.memory.push_back({t, figures->resident_mb});
      seen.descriptors.push_back({t, figures->descriptors});
      seen.files.push_back({t, FiguresOf(dir_.path()).files});
    }
    ::close(ask[1]);  // the child ends
    ::waitpid(child, nullptr, 0);
    ::close(done[0]);
    return seen;
  }
  static constexpr Bound kFew{.share = 0, .amount = 2};

  TempDir dir_;
};

TEST_F(LeakTest, AChildThatLeaksNothingIsFlat) {
  const Seen seen = Watch([&](int round) {
    const int fd = ::open("/dev/null", O_RDONLY);
    WriteFile(dir_ / "same", std::to_string(round));
    ::close(fd);
  });
  EXPECT_THAT(WhyNotFlat("memory", seen.memory, kFew), IsEmpty());
  EXPECT_THAT(WhyNotFlat("descriptors", seen.descriptors, kFew), IsEmpty());
  EXPECT_THAT(WhyNotFlat("files", seen.files, kFew), IsEmpty());
}

TEST_F(LeakTest, LeakedDescriptorsAreSeen) {
  const Seen seen = Watch([](int) { static_cast<void>(::open("/dev/null", O_RDONLY)); });
  EXPECT_THAT(WhyNotFlat("descriptors", seen.descriptors, kFew), HasSubstr("grows"));
  EXPECT_THAT(WhyNotFlat("memory", seen.memory, kFew), IsEmpty());
}

TEST_F(LeakTest, LeakedMemoryIsSeen) {
  const Seen seen = Watch([](int round) {
    // Touched, or it would not be there; kept, or it would be optimised away.
    static std::vector<std::vector<char>> kept;
    kept.emplace_back(256 << 10, static_cast<char>(round));
  });
  EXPECT_THAT(WhyNotFlat("memory", seen.memory, kFew), HasSubstr("grows"));
}

TEST_F(LeakTest, FilesThatStayAreSeen) {
  const Seen seen =
      Watch([&](int round) { WriteFile(dir_ / ("file-" + std::to_string(round)), "x"); });
  EXPECT_THAT(WhyNotFlat("files", seen.files, kFew), HasSubstr("grows"));
}

}  // namespace
}  // namespace tacit::test
