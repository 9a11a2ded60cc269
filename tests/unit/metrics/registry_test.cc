#include "metrics/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace tacit::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RegistryTest, ScrapeHasThePrometheusTextForm) {
  Registry registry;
  registry.AddCounter(Audience::kPublic, "b_total", "Counted.", {{"learner", "ctr"}}).Add(3);
  registry.AddGauge(Audience::kPublic, "a_bytes", "Measured.").Set(1.5);
  EXPECT_EQ(registry.Scrape(Audience::kPublic),
            "# HELP a_bytes Measured.\n"
            "# TYPE a_bytes gauge\n"
            "a_bytes 1.5\n"
            "# HELP b_total Counted.\n"
            "# TYPE b_total counter\n"
            "b_total{learner=\"ctr\"} 3\n");
}

// A second owner of the same labels keeps the numbers when the first one leaves.
TEST(RegistryTest, NumbersGoWithTheirLastOwner) {
  Registry registry;
  const Labels labels = {{"version", "7"}};
  const Counter first = registry.AddCounter(Audience::kPublic, "a_total", "Counted.", labels);
  const Counter second = registry.AddCounter(Audience::kPublic, "a_total", "Counted.", labels);
  first.Add(3);
  registry.Remove("a_total", labels);
  second.Add();
  EXPECT_THAT(registry.Scrape(Audience::kPublic), HasSubstr("a_total{version=\"7\"} 4\n"));
  registry.Remove("a_total", labels);
  EXPECT_THAT(registry.Scrape(Audience::kPublic), Not(HasSubstr("version")));
  registry.AddCounter(Audience::kPublic, "a_total", "Counted.", labels);
  EXPECT_THAT(registry.Scrape(Audience::kPublic), HasSubstr("a_total{version=\"7\"} 0\n"));
}

// A scrape may hold the last owner, who removes while the registry is locked.
TEST(RegistryTest, AnOwnerMayLeaveDuringAScrape) {
  Registry registry;
  auto owner = std::shared_ptr<int>(new int(0), [&](int* held) {
    delete held;
    registry.Remove("a_total", {});
  });
  registry.AddCounter(Audience::kPublic, "a_total", "Counted.");
  registry.BeforeScrape([held = std::weak_ptr<int>(owner), &owner] {
    const auto last = held.lock();
    owner.reset();
  });
  EXPECT_THAT(registry.Scrape(Audience::kPublic), Not(HasSubstr("a_total 0")));
}

TEST(RegistryTest, OperatorMetricsAppearOnlyInTheOperatorsScrape) {
  Registry registry;
  registry.AddGauge(Audience::kPublic, "tacit_epsilon", "Spent.").Set(1);
  registry.AddGauge(Audience::kOperator, "tacit_training_loss", "Un-noised.").Set(0.75);
  const std::string seen = registry.Scrape(Audience::kPublic);
  EXPECT_THAT(seen, HasSubstr("tacit_epsilon 1"));
  EXPECT_THAT(seen, Not(HasSubstr("tacit_training_loss")));
  EXPECT_THAT(seen, Not(HasSubstr("0.75")));
  EXPECT_THAT(seen, Not(HasSubstr("Un-noised")));
  const std::string all = registry.Scrape(Audience::kOperator);
  EXPECT_THAT(all, HasSubstr("tacit_epsilon 1"));
  EXPECT_THAT(all, HasSubstr("tacit_training_loss 0.75"));
}

TEST(RegistryDeathTest, OneNameWithTwoAudiencesIsAProgrammerError) {
  Registry registry;
  registry.AddGauge(Audience::kOperator, "loss", "Loss.", {{"learner", "a"}});
  EXPECT_DEATH(registry.AddGauge(Audience::kPublic, "loss", "Loss.", {{"learner", "b"}}),
               "'loss' has two audiences");
}

TEST(RegistryDeathTest, OneNameOfTwoKindsOrTextsOrBucketsIsAProgrammerError) {
  Registry registry;
  const double bounds[] = {1, 2}, others[] = {1, 3};
  registry.AddGauge(Audience::kPublic, "a", "A.");
  registry.AddHistogram(Audience::kPublic, "h", "H.", bounds);
  EXPECT_DEATH(registry.AddCounter(Audience::kPublic, "a", "A."), "two kinds");
  EXPECT_DEATH(registry.AddGauge(Audience::kPublic, "a", "Other."), "two help texts");
  EXPECT_DEATH(registry.AddHistogram(Audience::kPublic, "h", "H.", others), "sets of buckets");
}

TEST(RegistryDeathTest, ANamePrometheusWouldNotTakeIsAProgrammerError) {
  Registry registry;
  EXPECT_DEATH(registry.AddGauge(Audience::kPublic, "a-b", "A."), "a-b");
  EXPECT_DEATH(registry.AddGauge(Audience::kPublic, "", "A."), "IsMetricName");
  EXPECT_DEATH(registry.AddGauge(Audience::kPublic, "a", "A.", {{"1x", "v"}}), "1x");
}

TEST(RegistryTest, TheSameNameAndLabelsInAnyOrderAreTheSameNumbers) {
  Registry registry;
  const auto a = registry.AddCounter(Audience::kPublic, "n_total", "N.", {{"x", "1"}, {"y", "2"}});
  const auto b = registry.AddCounter(Audience::kPublic, "n_total", "N.", {{"y", "2"}, {"x", "1"}});
  const auto c = registry.AddCounter(Audience::kPublic, "n_total", "N.", {{"x", "2"}});
  a.Add();
  b.Add();
  EXPECT_EQ(a.value(), 2);
  EXPECT_EQ(c.value(), 0);
}

TEST(RegistryTest, LabelValuesAreEscaped) {
  Registry registry;
  registry.AddGauge(Audience::kPublic, "g", "G.", {{"file", "a\"b\\c\nd"}}).Set(1);
  EXPECT_THAT(registry.Scrape(Audience::kPublic), HasSubstr("g{file=\"a\\\"b\\\\c\\nd\"} 1\n"));
}

TEST(RegistryTest, ABucketIncludesItsUpperBound) {
  Registry registry;
  const double bounds[] = {1, 2};
  const auto histogram = registry.AddHistogram(Audience::kPublic, "h", "H.", bounds);
  for (double value : {0.5, 1.0, 1.5, 2.0, 7.0}) histogram.Observe(value);
  const std::string text = registry.Scrape(Audience::kPublic);
  EXPECT_THAT(text, HasSubstr("h_count 5\n"));
  EXPECT_THAT(text, HasSubstr("h_sum 12\n"));
  EXPECT_THAT(text, HasSubstr("h_bucket{le=\"1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("h_bucket{le=\"2\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("h_bucket{le=\"+Inf\"} 5\n"));
}

TEST(RegistryTest, ConcurrentUpdatesAreAllCounted) {
  Registry registry;
  const auto counter = registry.AddCounter(Audience::kPublic, "c_total", "C.");
  const auto bounds = ExponentialBounds(1, 2, 4);
  const auto histogram = registry.AddHistogram(Audience::kPublic, "h", "H.", bounds);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 10000; ++i) {
        counter.Add();
        histogram.Observe(i % 10);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), 40000);
  EXPECT_THAT(registry.Scrape(Audience::kPublic), HasSubstr("h_count 40000\n"));
  EXPECT_THAT(registry.Scrape(Audience::kPublic), HasSubstr("h_sum 180000\n"));
}

TEST(RegistryTest, GaugesAreRefreshedBeforeEveryScrape) {
  Registry registry;
  const auto gauge = registry.AddGauge(Audience::kPublic, "g", "G.");
  int calls = 0;
  registry.BeforeScrape([&] { gauge.Set(++calls); });
  EXPECT_THAT(registry.Scrape(Audience::kPublic), HasSubstr("g 1\n"));
  EXPECT_THAT(registry.Scrape(Audience::kOperator), HasSubstr("g 2\n"));
}

TEST(RegistryTest, ADefaultMadeHandleCountsIntoNothing) {
  Counter().Add();
  Gauge().Set(1);
  Histogram().Observe(1);
  EXPECT_EQ(Counter().value(), 0);
}

}  // namespace
}  // namespace tacit::metrics
