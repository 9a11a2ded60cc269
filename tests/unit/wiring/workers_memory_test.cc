#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "wiring/assembly.h"
#include "wiring/memory_plan.h"

namespace tacit::wiring {
namespace {

using config::Config;

MemoryPlan MemoryOf(const Config& config) {
  const auto assembly = Assemble(config);
  EXPECT_TRUE(assembly) << assembly.error().message;
  return assembly ? assembly->memory : MemoryPlan();
}

// Sums that workers send take memory beside the trainer's own, by the rows that they may have; a
// worker holds its own alone.
TEST(PlanWorkers, SumsOfWorkersCount) {
  const auto with = [](const std::string& buckets, const std::string& workers,
                       const std::string& total = "64GiB") {
    auto config = config::Parse(
        fmt::format("source: {{kind: kafka, topic: t, periods: topic, format: json}}\n"
                    "kafka: {{bootstrap.servers: x}}\nfeed: {{topic: f}}\n"
                    "schema: {{features: [{{name: c, kind: categorical, buckets: 16}},\n"
                    "  {{name: d, kind: categorical, buckets: {}}}]}}\n"
                    "learners: [{{id: one, model: {{kind: linear}}, mechanism: {{kind: sums}},\n"
                    "  participation: {{mode: once, batch: 1000}},\n"
                    "  privacy: {{unit: event, epsilon: 1, delta: 1.0e-9}}}}]\n"
                    "training: {{workers: 3}}\nstore: {{path: s}}\nmemory: {{total_bytes: {}}}\n{}",
                    buckets, total, workers),
        "c.yaml", {});
    EXPECT_TRUE(config) << config.error().message;
    return config ? *config : Config();
  };
  const std::string checked = "workers: {topic: w, key_file: k, check: 0.1}\n";
  const std::string unchecked = "workers: {topic: w, key_file: k, check: 0}\n";
  const auto queue = [&](const std::string& buckets, const std::string& workers) {
    return MemoryOf(with(buckets, workers)).queue_bytes;
  };
  // Small tables are summed whole by each thread; a slice touches at most 1000 rows of each.
  const auto of_workers = [&](const std::string& buckets, const std::string& workers) {
    return queue(buckets, workers) - queue(buckets, "");
  };
  EXPECT_EQ(of_workers("900", checked) - of_workers("900", unchecked), 3u * (16 + 900) * 32);
  // The feed has three floats a row for workers and a number of its mark, and one float without.
  EXPECT_EQ(of_workers("900", unchecked) - of_workers("500", unchecked),
            6u * 400 * 24 + 2 * 400 * 4 + 400 * 8);
  const auto plan = [](const Config& config) {
    auto assembly = Assemble(config);
    EXPECT_TRUE(assembly) << assembly.error().message;
    return PlanWorker(*assembly);
  };
  const auto small = plan(with("500", checked)), large = plan(with("900", checked));
  ASSERT_TRUE(small && large);
  EXPECT_EQ(*large - *small, 3u * 400 * 32 + 2 * 400 * 24);
  Config tight = with("900", checked);
  auto assembly = Assemble(tight);
  ASSERT_TRUE(assembly);
  assembly->config.memory_total_bytes = *large - 1;
  const auto refused = PlanWorker(*assembly);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message.find("memory.total_bytes: a worker takes "), 0u);
}

}  // namespace
}  // namespace tacit::wiring
