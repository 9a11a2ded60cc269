// Private quality, audited: an adversary knows every prediction of a stream but one, the canary's,
// and sees what is released. From that nobody may tell more than what the ledger was charged. With
// a fault planted, more must be proved than is charged.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "audit/mu_bound.h"
#include "noise/forwarded_noise.h"
#include "privacy/ledger.h"
#include "support/fixed_noise.h"
#include "support/silent_noise.h"
#include "train/quality/private_quality.h"

namespace tacit::audit {
namespace {

constexpr double kQualityAlpha = 1e-9;
constexpr int kQualityRuns = 20'000;

class HeldSource final : public noise::ForwardedNoise {
 public:
  explicit HeldSource(noise::NoiseSource& source) : source_(source) {}
  void Rekey() override {}

 protected:
  noise::NoiseSource& to() override { return source_; }

 private:
  noise::NoiseSource& source_;
};

struct QualityCase {
  bool noised = true, charged = true, drawn_again = false;
  // Planted: a window ends behind its third record that was clicked, not behind its second step.
  bool windows_by_clicks = false;
};

struct Released {
  double seen = 0;  // the best guess at the canary: the count of its bin, over all that is shown
  double mu = 0;    // by the ledger
};

// Four records, a step each, all clicked, in one bin; the canary is the second, and in the world
// without it there is nothing in its place.
Released RunQuality(const QualityCase& c, bool with_canary, noise::NoiseSource& source) {
  privacy::Ledger ledger;
  EXPECT_TRUE(ledger.Declare({.learner = "ctr.quality", .epsilon = 100, .delta = 1e-6}));
  Released outcome;
  const int lives = c.drawn_again ? 2 : 1;
  for (int life = 0; life < lives; ++life) {
    train::PrivateQuality quality({.learner = "ctr",
                                   .index = LearnerIndex(0),
                                   .topic = "log",
                                   .steps = 2,
                                   .bins = 2,
                                   .noise_multiplier = 1},
                                  std::make_unique<HeldSource>(source));
    uint64_t step = 0, clicked = 0;
    for (uint64_t record = 0; record < 4; ++record) {
      const bool there = record != 1 || with_canary;
      const OffsetRange range{0, record, record + 1};
      const std::vector<float> logits(there ? 1 : 0, 3.f), labels(there ? 1 : 0, 1.f);
      clicked += there ? 1 : 0;
      // Planted: what is clicked decides whether the window goes on, so that it ends a record
      // earlier with the canary than without.
      if (c.windows_by_clicks && step % 2 == 1 && clicked < 2) {
        quality.SeePart(logits, labels);
        continue;
      }
      quality.See(step++, std::span(&range, 1), logits, labels);
      if (!quality.due()) continue;
      quality.Release({});
      const auto commit = quality.TakePending();
      const auto scores = *ReleasedScores::Decode(*commit->released);
      // Only the first window may have the canary; where windows move, so does each after it.
      if (scores.step_begin == 0) outcome.seen += scores.last.clicks[1];
      if (c.windows_by_clicks)
        outcome.seen += 100 * static_cast<double>(commit->charges[0].ranges.back().end < 3);
      // Planted: a life that was killed had shown what it drew, and committed nothing.
      if (c.charged && life == 0)
        ledger.Append(CommitSeq(record + 1), 1, commit->charges, {}, "audit");
    }
  }
  if (!ledger.entries().empty()) outcome.mu = std::sqrt(ledger.entries().back().worst.mu_squared);
  return outcome;
}

struct QualityFound {
  double charged = 0;
  MuBound bound;
};

QualityFound AuditQuality(const QualityCase& c) {
  noise::FixedNoise drawn(11);
  noise::SilentNoise silent;
  noise::NoiseSource& source = c.noised ? static_cast<noise::NoiseSource&>(drawn) : silent;
  std::vector<double> with, without;
  for (int run = 0; run < kQualityRuns / 10; ++run) {
    with.push_back(RunQuality(c, true, source).seen);
    without.push_back(RunQuality(c, false, source).seen);
  }
  const Threshold threshold = ChooseThreshold(without, with);
  QualityFound found;
  Tally tally_with, tally_without;
  for (int run = 0; run < kQualityRuns; ++run) {
    const Released there = RunQuality(c, true, source), absent = RunQuality(c, false, source);
    tally_with.Add(there.seen, threshold);
    tally_without.Add(absent.seen, threshold);
    found.charged = std::max({found.charged, there.mu, absent.mu});
  }
  found.bound = BoundMu(tally_without, tally_with, kQualityAlpha);
  return found;
}

TEST(QualityAuditTest, TheRightOneCostsWhatItSays) {
  const QualityFound found = AuditQuality({});
  EXPECT_NEAR(found.charged, 1, 1e-9);
  EXPECT_LE(found.bound.lower, found.charged);
  EXPECT_GE(found.bound.lower, .85 * found.charged) << "an audit that sees nothing finds nothing";
}

TEST(QualityAuditTest, OneWithoutNoiseIsCaught) {
  const QualityFound found = AuditQuality({.noised = false});
  EXPECT_GT(found.bound.lower, found.charged);
}

TEST(QualityAuditTest, OneThatIsNotChargedIsCaught) {
  const QualityFound found = AuditQuality({.charged = false});
  EXPECT_EQ(found.charged, 0);
  EXPECT_GT(found.bound.lower, found.charged);
}

TEST(QualityAuditTest, OneWhoseWindowsFollowFromTheRecordsIsCaught) {
  const QualityFound found = AuditQuality({.windows_by_clicks = true});
  EXPECT_GT(found.bound.lower, found.charged);
}

TEST(QualityAuditTest, OneThatIsDrawnAnewAfterItWasSeenIsCaught) {
  const QualityFound found = AuditQuality({.drawn_again = true});
  EXPECT_GT(found.bound.lower, found.charged);
}

}  // namespace
}  // namespace tacit::audit
