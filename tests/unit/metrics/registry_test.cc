#include "metrics/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "metrics/families.h"

namespace tacit::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RegistryTest, ScrapeHasThePrometheusTextForm) {
  Registry registry;
  registry.AddCounter("tacit_scored_rows_total", {{"learner", "ctr"}}).Add(3);
  registry.AddGauge("tacit_http_connections").Set(1.5);
  EXPECT_EQ(registry.Scrape(Audience::kPublic),
            "# HELP tacit_http_connections HTTP connections open\n"
            "# TYPE tacit_http_connections gauge\n"
            "tacit_http_connections 1.5\n"
            "# HELP tacit_scored_rows_total Rows scored\n"
            "# TYPE tacit_scored_rows_total counter\n"
            "tacit_scored_rows_total{learner=\"ctr\"} 3\n");
}

// A second owner of the same labels keeps the numbers when the first one leaves.
TEST(RegistryTest, NumbersGoWithTheirLastOwner) {
  Registry registry;
  constexpr CounterName kName = "tacit_scored_rows_total";
  const Labels labels = {{"learner", "7"}};
  const Counter first = registry.AddCounter(kName, labels);
  const Counter second = registry.AddCounter(kName, labels);
  first.Add(3);
  registry.Remove(kName, labels);
  second.Add();
  EXPECT_THAT(registry.Scrape(Audience::kPublic), HasSubstr("_total{learner=\"7\"} 4\n"));
  registry.Remove(kName, labels);
  EXPECT_THAT(registry.Scrape(Audience::kPublic), Not(HasSubstr("learner")));
  registry.AddCounter(kName, labels);
  EXPECT_THAT(registry.Scrape(Audience::kPublic), HasSubstr("_total{learner=\"7\"} 0\n"));
}

// A scrape may hold the last owner, who removes while the registry is locked.
TEST(RegistryTest, AnOwnerMayLeaveDuringAScrape) {
  Registry registry;
  constexpr CounterName kName = "tacit_http_refused_total";
  auto owner = std::shared_ptr<int>(new int(0), [&](int* held) {
    delete held;
    registry.Remove(kName, {});
  });
  registry.AddCounter(kName);
  registry.BeforeScrape([held = std::weak_ptr<int>(owner), &owner] {
    const auto last = held.lock();
    owner.reset();
  });
  EXPECT_THAT(registry.Scrape(Audience::kPublic), Not(HasSubstr("refused_total 0")));
}

TEST(RegistryTest, OperatorMetricsAppearOnlyInTheOperatorsScrape) {
  Registry registry;
  registry.AddGauge("tacit_privacy_total_epsilon").Set(1);
  registry.AddGauge("tacit_training_loss", {{"learner", "ctr"}}).Set(0.75);
  const std::string seen = registry.Scrape(Audience::kPublic);
  EXPECT_THAT(seen, HasSubstr("tacit_privacy_total_epsilon 1"));
  EXPECT_THAT(seen, Not(HasSubstr("tacit_training_loss")));
  EXPECT_THAT(seen, Not(HasSubstr("0.75")));
  EXPECT_THAT(seen, Not(HasSubstr("Mean loss")));
  const std::string all = registry.Scrape(Audience::kOperator);
  EXPECT_THAT(all, HasSubstr("tacit_privacy_total_epsilon 1"));
  EXPECT_THAT(all, HasSubstr("tacit_training_loss{learner=\"ctr\"} 0.75"));
}

TEST(RegistryDeathTest, LabelsThatWereNotDeclaredAreAProgrammerError) {
  Registry registry;
  EXPECT_DEATH(registry.AddGauge("tacit_auc"), "tacit_auc");
  EXPECT_DEATH(registry.AddGauge("tacit_auc", {{"model", "ctr"}}), "tacit_auc");
  EXPECT_DEATH(registry.AddGauge("tacit_ready", {{"learner", "ctr"}}), "tacit_ready");
}

TEST(RegistryDeathTest, OneHistogramWithTwoSetsOfBucketsIsAProgrammerError) {
  Registry registry;
  const double bounds[] = {1, 2}, others[] = {1, 3};
  registry.AddHistogram("tacit_commit_seconds", bounds);
  EXPECT_DEATH(registry.AddHistogram("tacit_commit_seconds", others), "sets of buckets");
}

TEST(RegistryTest, TheSameNameAndLabelsInAnyOrderAreTheSameNumbers) {
  Registry registry;
  constexpr CounterName kName = "tacit_version_answers_total";
  const auto a = registry.AddCounter(kName, {{"outcome", "1"}, {"version", "2"}});
  const auto b = registry.AddCounter(kName, {{"version", "2"}, {"outcome", "1"}});
  const auto c = registry.AddCounter(kName, {{"version", "2"}, {"outcome", "2"}});
  a.Add();
  b.Add();
  EXPECT_EQ(a.value(), 2);
  EXPECT_EQ(c.value(), 0);
}

TEST(RegistryTest, LabelValuesAreEscaped) {
  Registry registry;
  registry.AddGauge("tacit_disk_free_bytes", {{"of", "a\"b\\c\nd"}}).Set(1);
  EXPECT_THAT(registry.Scrape(Audience::kOperator),
              HasSubstr("free_bytes{of=\"a\\\"b\\\\c\\nd\"} 1\n"));
}

TEST(RegistryTest, ABucketIncludesItsUpperBound) {
  Registry registry;
  const double bounds[] = {1, 2};
  const auto histogram = registry.AddHistogram("tacit_commit_seconds", bounds);
  for (double value : {0.5, 1.0, 1.5, 2.0, 7.0}) histogram.Observe(value);
  const std::string text = registry.Scrape(Audience::kOperator);
  EXPECT_THAT(text, HasSubstr("seconds_count 5\n"));
  EXPECT_THAT(text, HasSubstr("seconds_sum 12\n"));
  EXPECT_THAT(text, HasSubstr("seconds_bucket{le=\"1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("seconds_bucket{le=\"2\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("seconds_bucket{le=\"+Inf\"} 5\n"));
}

TEST(RegistryTest, ConcurrentUpdatesAreAllCounted) {
  Registry registry;
  const auto counter = registry.AddCounter("tacit_commit_bytes_total");
  const auto bounds = ExponentialBounds(1, 2, 4);
  const auto histogram = registry.AddHistogram("tacit_commit_seconds", bounds);
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
  EXPECT_THAT(registry.Scrape(Audience::kOperator), HasSubstr("seconds_count 40000\n"));
  EXPECT_THAT(registry.Scrape(Audience::kOperator), HasSubstr("seconds_sum 180000\n"));
}

TEST(RegistryTest, GaugesAreRefreshedBeforeEveryScrape) {
  Registry registry;
  const auto gauge = registry.AddGauge("tacit_ready");
  int calls = 0;
  registry.BeforeScrape([&] { gauge.Set(++calls); });
  EXPECT_THAT(registry.Scrape(Audience::kPublic), HasSubstr("tacit_ready 1\n"));
  EXPECT_THAT(registry.Scrape(Audience::kOperator), HasSubstr("tacit_ready 2\n"));
}

TEST(RegistryTest, ADefaultMadeHandleCountsIntoNothing) {
  Counter().Add();
  Gauge().Set(1);
  Histogram().Observe(1);
  EXPECT_EQ(Counter().value(), 0);
}

}  // namespace
}  // namespace tacit::metrics
