// The releases beside learners on tapes: the breaker, private quality and inspections. Each stays
// within what it declares and is charged for. A record that counts twice is seen, and so is a
// release that is not paid for.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "inspect/private_findings.h"
#include "support/fixed_noise.h"
#include "support/process.h"
#include "tape/cases.h"
#include "tape/pair_learner.h"
#include "train/quality/breaker.h"
#include "train/quality/private_quality.h"
#include "wiring/restore/inspection.h"

namespace tacit::tape {
namespace {

using lab::TwinNoise;
using privacy::Query;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr double kSigma = 4;

// The two tapes of one release, of which the second follows the first.
class Tapes {
 public:
  Tapes() {
    with.Lead(&source_);
    without.Follow(with);
  }
  Reading Read(double charged) const {
    Reading reading;
    ReadStep(with, without, charged, "", &reading);
    return reading;
  }

  TwinNoise with, without;

 private:
  noise::FixedNoise source_{3};
};

// Lends a tape to a release that takes its source along.
class Lent final : public noise::ForwardedNoise {
 public:
  explicit Lent(TwinNoise& tape) : tape_(tape) {}

 private:
  noise::NoiseSource& to() override { return tape_; }
  TwinNoise& tape_;
};

// The breaker's window with this many unreadable records; returns what is charged.
double DecideWindow(TwinNoise& tape, uint64_t unreadable) {
  train::Breaker breaker({.index = LearnerIndex(0),
                          .topic = "log",
                          .share = 0.5,
                          .window = 64,
                          .noise_multiplier = kSigma,
                          .epsilon = 1,
                          .delta = 1e-6},
                         std::make_unique<Lent>(tape));
  breaker.Decide({{{0, 0, 64}}, unreadable});
  return breaker.pending().at(0).charge.MuSquared();
}

// A window of predictions, of which the canary's come first; returns what is charged.
double ShowScores(TwinNoise& tape, size_t canaries) {
  train::PrivateQuality quality({.learner = "it",
                                 .index = LearnerIndex(0),
                                 .topic = "log",
                                 .steps = 1,
                                 .noise_multiplier = kSigma,
                                 .epsilon = 1,
                                 .delta = 1e-6},
                                std::make_unique<Lent>(tape));
  std::vector<float> logits(canaries, 3), labels(canaries, 1);
  for (int i = 0; i < 20; ++i) {
    logits.push_back(static_cast<float>(i - 10));
    labels.push_back(static_cast<float>(i % 2));
  }
  const OffsetRange range{0, 0, 64};
  quality.See(0, {&range, 1}, logits, labels);
  quality.Release({});
  return quality.pending().at(0).charge.MuSquared();
}

// An inspection of records, of which the canary has this number; returns what is charged.
double Inspect(TwinNoise& tape, privacy::Unit unit, uint32_t read, size_t canaries) {
  const test::TempDir dir;
  std::string text;
  for (int i = 0; i < 20; ++i)
    text += fmt::format("{{\"u\":\"u{}\",\"y\":{},\"z\":\"a b\"}}\n", i, i % 2);
  for (size_t i = 0; i < 5; ++i)
    text += i < canaries ? fmt::format("{{\"u\":\"canary\",\"y\":7,\"z\":\"{} c d\"}}\n", i) : "\n";
  test::WriteFile(dir / "log", text);
  const auto findings =
      inspect::PrivateFindings::Make({.records = inspect::RecordsOfFiles({dir / "log"}),
                                      .named = {"/u", "/y", "/z"},
                                      .unit = unit,
                                      .user = unit == privacy::Unit::kUser ? "/u" : "",
                                      .user_records = read},
                                     kSigma, tape);
  EXPECT_TRUE(findings) << findings.error().message;
  return wiring::InspectionCharge(kSigma).MuSquared();
}

void ExpectRight(const Reading& reading, Query query) {
  EXPECT_THAT(reading.wrong, IsEmpty());
  EXPECT_THAT(reading.reach, ElementsAre(Pair(DeclaredAs(query), testing::Gt(0.0))));
}
void ExpectWrong(const Reading& reading, const std::string& words) {
  EXPECT_THAT(reading.wrong, Contains(HasSubstr(words)));
}

TEST(TapedReleases, AWindowOfTheBreakerMovesByOneRecord) {
  const auto read = [](uint64_t with, uint64_t without, double paid) {
    Tapes tapes;
    const double charged = DecideWindow(tapes.with, with);
    DecideWindow(tapes.without, without);
    return tapes.Read(paid * charged);
  };
  ExpectRight(read(31, 30, 1), Query::kUnreadableCount);
  ExpectRight(read(30, 31, 1), Query::kUnreadableCount);
  ExpectWrong(read(32, 30, 1), "window: a unit moves it by 2");
  ExpectWrong(read(31, 30, 0.9), "what is declared costs");
}

TEST(TapedReleases, AWindowOfPredictionsMovesByOneRecord) {
  const auto read = [](size_t with, size_t without, double paid) {
    Tapes tapes;
    const double charged = ShowScores(tapes.with, with);
    ShowScores(tapes.without, without);
    return tapes.Read(paid * charged);
  };
  ExpectRight(read(1, 0, 1), Query::kScoreCounts);
  ExpectWrong(read(2, 0, 1), "window: a unit moves it by 2");
  ExpectWrong(read(1, 0, 0.9), "what is declared costs");
}

TEST(TapedReleases, AnInspectionMovesByOneUnit) {
  const auto read = [](privacy::Unit unit, uint32_t looked_at, size_t canaries, double paid) {
    Tapes tapes;
    const double charged = Inspect(tapes.with, unit, looked_at, canaries);
    Inspect(tapes.without, unit, looked_at, 0);
    return tapes.Read(paid * charged);
  };
  ExpectRight(read(privacy::Unit::kEvent, 0, 1, 1), Query::kInspectedCounts);
  ExpectRight(read(privacy::Unit::kUser, 2, 5, 1), Query::kInspectedCounts);
  ExpectWrong(read(privacy::Unit::kEvent, 0, 5, 1), "inspection: a unit moves it by");
  ExpectWrong(read(privacy::Unit::kUser, 2, 5, 0.3), "what is declared costs");
}

}  // namespace
}  // namespace tacit::tape
