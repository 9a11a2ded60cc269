// The breaker, audited: an adversary knows each record of a stream but one, the canary, and sees
// when training halted. From that nobody may tell more than what the ledger was charged. Breakers
// with a fault planted in them must be proved to cost more than they say.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "audit/mu_bound.h"
#include "privacy/ledger.h"
#include "support/fixed_noise.h"
#include "support/silent_noise.h"
#include "train/quality/breaker.h"
#include "train/quality/window_counter.h"

namespace tacit::audit {
namespace {

using train::Breaker;
using train::WindowEnd;

constexpr double kBreakerSigma = 1;
constexpr uint64_t kOffsets = 16;  // of a window
constexpr uint64_t kCanary = 5;
constexpr double kBreakerAlpha = 1e-9;
constexpr int kBreakerRuns = 20'000;

enum class Record : uint8_t { kReadable, kUnreadable, kNone };
using Records = std::vector<Record>;

// Four windows. The first has just as many unreadable records as its share allows, where the noise
// alone decides; the second begins with more of them than that.
Records RecordsWith(Record canary) {
  Records records(4 * kOffsets, Record::kReadable);
  for (uint64_t i = 0; i < kOffsets / 2; ++i) records[kCanary + 1 + i] = Record::kUnreadable;
  records[kCanary] = canary;
  return records;
}

// The product's windows of these records.
std::vector<WindowEnd> RightWindows(const Records& records) {
  std::vector<event::DeadLetter> dead;
  for (uint64_t i = 0; i < records.size(); ++i) {
    if (records[i] != Record::kUnreadable) continue;
    dead.emplace_back();
    dead.back().offset = i;
  }
  train::WindowCounter counter(kOffsets, {});
  std::vector<WindowEnd> windows;
  for (uint64_t from = 0; from < records.size();) {
    uint64_t to = records.size();
    if (const auto ended = counter.Take(0, from, &to, dead)) windows.push_back(*ended);
    from = to;
  }
  return windows;
}

// Planted: a window ends behind its tenth readable record, so that what records hold cuts it.
std::vector<WindowEnd> WindowsByWhatIsRead(const Records& records) {
  std::vector<WindowEnd> windows;
  WindowEnd open{{{0, 0, 0}}, 0};
  uint64_t readable = 0;
  for (uint64_t i = 0; i < records.size(); ++i) {
    open.unreadable += records[i] == Record::kUnreadable ? 1 : 0;
    readable += records[i] == Record::kReadable ? 1 : 0;
    open.ranges[0].end = i + 1;
    if (readable < kCanary + 1) continue;
    windows.push_back(open);
    open = {{{0, i + 1, i + 1}}, 0};
    readable = 0;
  }
  return windows;
}

// Many breakers draw from one source, as one breaker would over a long life.
class OneSource final : public noise::ForwardedNoise {
 public:
  explicit OneSource(noise::NoiseSource& source) : source_(source) {}
  void Rekey() override {}

 protected:
  noise::NoiseSource& to() override { return source_; }

 private:
  noise::NoiseSource& source_;
};

struct BreakerCase {
  Record canary = Record::kUnreadable;  // in the world that has it; in the other there is none
  std::function<std::vector<WindowEnd>(const Records&)> windows = RightWindows;
  bool noised = true, charged = true, drawn_again = false;
};

struct Outcome {
  double halts = 0;  // that were seen, and how early
  double mu = 0;     // by the ledger
};

Outcome RunBreaker(const BreakerCase& c, const std::vector<WindowEnd>& windows,
                   noise::NoiseSource& source) {
  privacy::Ledger ledger;
  EXPECT_TRUE(ledger.Declare(
      {.learner = std::string(train::kBreakerAccount), .epsilon = 100, .delta = 1e-6}));
  Outcome outcome;
  for (int life = 0; life < (c.drawn_again ? 2 : 1); ++life) {
    Breaker breaker({.index = LearnerIndex(0),
                     .topic = "log",
                     .share = .5,
                     .window = kOffsets,
                     .noise_multiplier = kBreakerSigma},
                    std::make_unique<OneSource>(source));
    for (size_t i = 0; i < windows.size() && !breaker.halted(); ++i)
      if (breaker.Decide(windows[i])) outcome.halts += static_cast<double>(windows.size() - i);
    // Planted: a life that was killed committed nothing, though it was seen to halt or not.
    const bool committed = c.charged && life == 0;
    if (committed) ledger.Append(CommitSeq(1), 1, breaker.TakePending()->charges, {}, "audit");
  }
  if (!ledger.entries().empty()) outcome.mu = std::sqrt(ledger.entries().back().worst.mu_squared);
  return outcome;
}

struct Found {
  double charged = 0;
  MuBound bound;
};

Found AuditBreaker(const BreakerCase& c) {
  const auto with = c.windows(RecordsWith(c.canary));
  const auto without = c.windows(RecordsWith(Record::kNone));
  noise::FixedNoise drawn(9);
  noise::SilentNoise silent;
  noise::NoiseSource& source = c.noised ? static_cast<noise::NoiseSource&>(drawn) : silent;
  Found found;
  std::vector<double> seen_with, seen_without;
  for (int run = 0; run < kBreakerRuns / 10; ++run) {
    seen_with.push_back(RunBreaker(c, with, source).halts);
    seen_without.push_back(RunBreaker(c, without, source).halts);
  }
  const Threshold threshold = ChooseThreshold(seen_without, seen_with);
  Tally tally_with, tally_without;
  for (int run = 0; run < kBreakerRuns; ++run) {
    const Outcome there = RunBreaker(c, with, source), absent = RunBreaker(c, without, source);
    tally_with.Add(there.halts, threshold);
    tally_without.Add(absent.halts, threshold);
    found.charged = std::max({found.charged, there.mu, absent.mu});
  }
  found.bound = BoundMu(tally_without, tally_with, kBreakerAlpha);
  return found;
}

// One bit at the share shows all that one Gaussian may show, and no more.
TEST(BreakerAuditTest, TheRightOneCostsWhatItSays) {
  const Found found = AuditBreaker({});
  EXPECT_NEAR(found.charged, 1 / kBreakerSigma, 1e-9);
  EXPECT_LE(found.bound.lower, found.charged);
  EXPECT_GE(found.bound.lower, .85 * found.charged) << "an audit that sees nothing finds nothing";
}

TEST(BreakerAuditTest, AReadableRecordShowsNothing) {
  const Found found = AuditBreaker({.canary = Record::kReadable});
  EXPECT_NEAR(found.charged, 1 / kBreakerSigma, 1e-9);
  EXPECT_LE(found.bound.lower, 0.05);
}

TEST(BreakerAuditTest, OneWithoutNoiseIsCaught) {
  const Found found = AuditBreaker({.noised = false});
  EXPECT_GT(found.bound.lower, found.charged);
}

TEST(BreakerAuditTest, OneThatIsNotChargedIsCaught) {
  const Found found = AuditBreaker({.charged = false});
  EXPECT_EQ(found.charged, 0);
  EXPECT_GT(found.bound.lower, found.charged);
}

TEST(BreakerAuditTest, OneWhoseWindowsFollowFromTheRecordsIsCaught) {
  const Found found = AuditBreaker({.canary = Record::kReadable, .windows = WindowsByWhatIsRead});
  EXPECT_GT(found.bound.lower, found.charged);
}

// A kill would do this to a breaker that shows what it drew before it is committed.
TEST(BreakerAuditTest, OneThatIsDrawnAnewAfterItWasSeenIsCaught) {
  const Found found = AuditBreaker({.drawn_again = true});
  EXPECT_GT(found.bound.lower, found.charged);
}

}  // namespace
}  // namespace tacit::audit
