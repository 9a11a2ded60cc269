#pragma once

#include <span>
#include <string>
#include <vector>

namespace tacit::test {

// A figure of a process over time.
struct Sample {
  double seconds = 0;
  double value = 0;
};

// The straight line through the second half of samples (in time), its slope the median of those
// between any two samples (Theil and Sen), so that what comes once, as a compaction does, tilts it
// little; the first half is for caches to fill.
struct Trend {
  double mean = 0;
  double growth = 0;  // of the line, from the second half's beginning to its end
};
Trend TrendOf(std::span<const Sample> samples);

// The most that a figure may grow over the second half and still be called flat: a share of its
// mean, and an amount. Things that come and go, as files do between compactions, leave a line that
// rises by less than its height, so a bound is a statement about that height too.
struct Bound {
  double share = 0;
  double amount = 0;
};

// "" where the figure is flat, else a sentence. Fewer than ten samples in the second half are no
// evidence, and said to be so.
std::string WhyNotFlat(const std::string& figure, std::span<const Sample> samples,
                       const Bound& bound);

}  // namespace tacit::test
