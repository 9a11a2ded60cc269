#include "stream/generator/criteo_generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "base/auc.h"
#include "event/codec.h"
#include "log_files.h"
#include "support/criteo_schema.h"

namespace tacit::stream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const CriteoGenerator& Shared() {
  static const CriteoGenerator generator({.days = 24, .rows_per_day = 100000, .seed = 11});
  return generator;
}

std::vector<std::vector<std::string>> Columns(const std::string& lines) {
  std::vector<std::vector<std::string>> rows;
  size_t begin = 0;
  for (size_t end; (end = lines.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::vector<std::string>& row = rows.emplace_back();
    for (size_t at = begin;;) {
      const size_t tab = std::min(lines.find('\t', at), end);
      row.push_back(lines.substr(at, tab - at));
      if (tab == end) break;
      at = tab + 1;
    }
  }
  return rows;
}

std::string LinesOf(const CriteoGenerator& generator, uint32_t day, uint64_t first, uint64_t n) {
  std::string lines;
  generator.Generate(day, first, n, &lines, nullptr);
  return lines;
}

TEST(CriteoGeneratorTest, AnySliceIsTheSameBytes) {
  const std::string whole = LinesOf(Shared(), 5, 0, 300);
  const CriteoGenerator again(Shared().options());
  std::string pieces;
  for (uint64_t row = 0; row < 300; row += 50) {
    again.Generate((5 + 7 * row) % 24, row, 3, nullptr, nullptr);  // other days in between
    pieces += LinesOf(again, 5, row, 50);
  }
  EXPECT_EQ(pieces, whole);
  auto other = Shared().options();
  other.seed = 12;
  EXPECT_NE(LinesOf(CriteoGenerator(other), 5, 0, 300), whole);
  EXPECT_NE(LinesOf(Shared(), 6, 0, 300), whole);
}

TEST(CriteoGeneratorTest, ThreadsGetTheSameBytes) {
  std::vector<std::string> lines(12);
  std::vector<std::thread> threads;
  const CriteoGenerator fresh(Shared().options());
  for (uint32_t t = 0; t < 12; ++t)
    threads.emplace_back([&, t] { lines[t] = LinesOf(fresh, t % 6, 0, 200); });
  for (std::thread& thread : threads) thread.join();
  for (uint32_t t = 0; t < 12; ++t) EXPECT_EQ(lines[t], LinesOf(Shared(), t % 6, 0, 200)) << t;
}

TEST(CriteoGeneratorTest, ColumnsLookLikeCriteos) {
  std::vector<std::set<std::string>> values(26);
  size_t missing_integers = 0, missing_categories = 0, negative = 0, clicks = 0, rows = 0;
  for (uint32_t day = 0; day < 24; day += 4) {
    for (const auto& row : Columns(LinesOf(Shared(), day, 0, 15000))) {
      ASSERT_EQ(row.size(), 40u);
      ++rows;
      clicks += row[0] == "1" ? 1 : 0;
      for (size_t i = 0; i < 13; ++i) {
        missing_integers += row[1 + i].empty() ? 1 : 0;
        const bool minus = row[1 + i].starts_with('-');
        ASSERT_TRUE(!minus || i == 1) << "only I2 may be negative";
        negative += minus ? 1 : 0;
      }
      for (size_t i = 0; i < 26; ++i) {
        const std::string& value = row[14 + i];
        missing_categories += value.empty() ? 1 : 0;
        if (value.empty()) continue;
        ASSERT_EQ(value.size(), 8u);
        ASSERT_EQ(value.find_first_not_of("0123456789abcdef"), std::string::npos);
        values[i].insert(value);
      }
    }
  }
  const double n = static_cast<double>(rows);
  EXPECT_NEAR(static_cast<double>(clicks) / n, 0.25, 0.02);
  EXPECT_GT(static_cast<double>(missing_integers) / n, 1.0);
  EXPECT_GT(static_cast<double>(missing_categories) / n, 1.0);
  EXPECT_GT(static_cast<double>(negative) / n, 0.05);
  for (size_t i = 0; i < 26; ++i) {
    const uint32_t vocabulary = CriteoVocabulary()[i];
    EXPECT_LE(values[i].size(), vocabulary) << "C" << i + 1;
    if (vocabulary < 100) {
      EXPECT_EQ(values[i].size(), vocabulary) << "C" << i + 1;
    }
    EXPECT_GT(values[i].size(), vocabulary / 20) << "C" << i + 1;
  }
}

TEST(CriteoGeneratorTest, TheTruthIsAsPredictableAsCriteo) {
  for (const uint64_t seed : {1, 2, 3, 4}) {
    const CriteoGenerator generator({.days = 24, .rows_per_day = 40000, .seed = seed});
    for (const uint32_t day : {0u, 11u, 23u}) {
      const double best = generator.BestAuc(day, 40000);
      EXPECT_GT(best, 0.75) << "seed " << seed << " day " << day;
      EXPECT_LT(best, 0.82) << "seed " << seed << " day " << day;
    }
  }
}

TEST(CriteoGeneratorTest, TheStatedProbabilityIsThatOfTheClicks) {
  std::string lines;
  std::vector<float> truth;
  Shared().Generate(9, 0, 60000, &lines, &truth);
  const auto rows = Columns(lines);
  for (double low = 0; low < 0.9; low += 0.1) {
    double expected = 0, clicks = 0, n = 0;
    for (size_t i = 0; i < truth.size(); ++i) {
      if (truth[i] < low || truth[i] >= low + 0.1) continue;
      expected += truth[i];
      clicks += rows[i][0] == "1" ? 1 : 0;
      ++n;
    }
    // Five standard deviations of a sum of coins.
    EXPECT_NEAR(clicks, expected, 5 * std::sqrt(n / 4)) << low;
  }
}

// A model that stopped learning on day 0 knows less and less.
TEST(CriteoGeneratorTest, TheTruthDrifts) {
  std::string lines;
  std::vector<float> truth, stale, label;
  Shared().Generate(23, 0, 40000, &lines, &truth);
  Shared().Predict(0, 23, 0, 40000, &stale);
  for (const auto& row : Columns(lines)) label.push_back(row[0] == "1" ? 1.0f : 0.0f);
  const double best = ExactAuc(truth, label), old = ExactAuc(stale, label);
  EXPECT_DOUBLE_EQ(best, Shared().BestAuc(23, 40000));
  EXPECT_GT(best - old, 0.03);
  EXPECT_GT(old, 0.65) << "the old truth has become worthless";
  std::vector<float> yesterday;
  Shared().Predict(22, 23, 0, 40000, &yesterday);
  EXPECT_LT(best - ExactAuc(yesterday, label), 0.01);
}

TEST(CriteoGeneratorTest, NewValuesAppear) {
  const auto values_of = [](uint32_t day) {
    std::set<std::string> values;
    for (const auto& row : Columns(LinesOf(Shared(), day, 0, 30000))) values.insert(row[14 + 4]);
    return values;
  };
  const auto first = values_of(0), last = values_of(23);
  const auto fresh = std::count_if(last.begin(), last.end(),
                                   [&](const std::string& v) { return !first.contains(v); });
  EXPECT_GT(fresh, 5);
}

TEST(CriteoGeneratorTest, BriefValuesComeAndGo) {
  // The share of a column's last day that was there on the first.
  const auto old_share = [](double churn) {
    const CriteoGenerator generator(
        {.days = 24, .rows_per_day = 100000, .seed = 11, .churn = churn});
    std::set<std::string> first;
    for (const auto& row : Columns(LinesOf(generator, 0, 0, 30000))) first.insert(row[14 + 2]);
    size_t old = 0, rows = 0;
    for (const auto& row : Columns(LinesOf(generator, 23, 0, 30000))) {
      old += first.contains(row[14 + 2]);
      ++rows;
    }
    return static_cast<double>(old) / static_cast<double>(rows);
  };
  EXPECT_GT(old_share(0), 0.6);
  EXPECT_LT(old_share(0.9), old_share(0) - 0.2);
}

TEST(CriteoGeneratorTest, EveryRowDecodes) {
  std::vector<uint64_t> buckets;
  for (const uint32_t v : CriteoVocabulary()) buckets.push_back(v + 1);
  const event::FeatureTransform transform(event::CriteoSchema(13, buckets));
  const auto codec = event::MakeCriteoTsvCodec(transform);
  const auto source = MakeGeneratorSource({.days = 2, .rows_per_day = 10000, .seed = 5});
  event::RawRecords frame;
  event::Batch batch;
  std::vector<event::DeadLetter> dead;
  size_t decoded = 0;
  while (*source->Poll(std::chrono::milliseconds(0), &frame) == PollOutcome::kRecords) {
    transform.StartBatch(&batch);
    codec->Decode(frame, &batch, &dead);
    decoded += batch.size();
    ASSERT_EQ(batch.offset.back(), frame.end_offset() - 1);
  }
  EXPECT_EQ(decoded, 20000u);
  EXPECT_TRUE(dead.empty());
}

TEST(GeneratorSourceTest, DaysAreFilesWithCutsAtTheirEnds) {
  const CriteoGeneratorOptions options{.days = 3, .rows_per_day = 5000, .seed = 5};
  const auto source = MakeGeneratorSource(options);
  const Delivered all = ReadAll(*source);
  EXPECT_THAT(all.cuts, ElementsAre("day 0@5000", "day 1@10000", "day 2@15000"));
  std::string joined;
  for (const std::string& record : all.records) joined += record + "\n";
  const CriteoGenerator generator(options);
  EXPECT_EQ(joined, LinesOf(generator, 0, 0, 5000) + LinesOf(generator, 1, 0, 5000) +
                        LinesOf(generator, 2, 0, 5000));
  for (const uint64_t from : {0u, 1u, 4999u, 5000u, 12345u, 15000u}) {
    ASSERT_TRUE(SeekTo(*source, from));
    const Delivered rest = ReadAll(*source);
    EXPECT_EQ(rest.records,
              std::vector<std::string>(all.records.begin() + static_cast<ptrdiff_t>(from),
                                       all.records.end()));
  }
  EXPECT_FALSE(SeekTo(*source, 15001));
}

TEST(GeneratorSourceTest, ADifferentGeneratorIsRefused) {
  const auto source = MakeGeneratorSource({.days = 3, .rows_per_day = 50, .seed = 5});
  const auto other = MakeGeneratorSource({.days = 3, .rows_per_day = 50, .seed = 6});
  EXPECT_TRUE(source->VerifyIdentity(source->Identity()));
  EXPECT_TRUE(source->VerifyIdentity(""));
  const Status status = source->VerifyIdentity(other->Identity());
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("seed"));
}

}  // namespace
}  // namespace tacit::stream
