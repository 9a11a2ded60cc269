#include "daemon/sample_rings.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "train/quality/quality_history.h"

namespace tacit::daemon {
namespace {

using serve::LookBack;

// Against a list of all samples: a ring has the last of them at its stride, and the newest.
TEST(SampleRingsTest, RingsHoldTheLastSamplesAtTheirStride) {
  SampleRings rings;
  std::vector<serve::StreamSample> all;
  for (uint64_t i = 0; i < 100'000; ++i) {
    all.push_back({.time_ms = static_cast<int64_t>(2000 * i), .read = 7 * i});
    rings.Add(all.back());
    if (i % 9973 != 0 && i > 700) continue;
    for (size_t back = 0; back < serve::kLookBacks; ++back) {
      std::vector<uint64_t> wanted, got;
      const uint64_t stride = SampleRings::kStrides[back];
      for (uint64_t at = 0; at <= i; at += stride) wanted.push_back(all[at].read);
      if (wanted.size() > SampleRings::kSamples)
        wanted.erase(wanted.begin(), wanted.end() - SampleRings::kSamples);
      if (i % stride != 0) wanted.push_back(all[i].read);
      for (const serve::StreamSample& s : rings.Of(static_cast<LookBack>(back)))
        got.push_back(s.read);
      ASSERT_EQ(got, wanted) << "ring " << back << " after " << i;
    }
  }
}

// Sums are those of all predictions, after any merge, and memory stays as it is.
TEST(QualityHistoryTest, PointsAddUpAndStayFew) {
  train::QualityHistory history;
  uint64_t events = 0, clicks = 0;
  for (uint64_t i = 1; i <= 20'000; ++i) {
    history.Add(
        {.events = 100 + i % 7, .clicks = i % 3, .first_ms = int64_t(i), .last_ms = int64_t(i)});
    events += 100 + i % 7;
    clicks += i % 3;
    if (i % 997 != 0) continue;
    uint64_t seen = 0, clicked = 0;
    int64_t before = 0;
    const auto points = history.points();
    for (const train::QualityPoint& point : points) {
      seen += point.events;
      clicked += point.clicks;
      ASSERT_EQ(point.first_ms, before + 1);
      before = point.last_ms;
    }
    ASSERT_EQ(seen, events);
    ASSERT_EQ(clicked, clicks);
    ASSERT_EQ(before, int64_t(i));
    ASSERT_LE(points.size(), train::QualityHistory::kPoints);
    ASSERT_GE(points.size(), std::min<size_t>(20, i / 20));
  }
}

}  // namespace
}  // namespace tacit::daemon
