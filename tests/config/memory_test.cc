#include <gtest/gtest.h>

#include "config/config.h"
#include "sample.h"

namespace tacit::config {
namespace {

Config ReadSample(const std::vector<std::string>& overrides) {
  Result<Config> config = Parse(kSample, "c.yaml", overrides);
  EXPECT_TRUE(config) << config.error().message;
  return config ? *config : Config();
}

uint64_t Total(const MemoryPlan& plan, uint64_t learners) {
  return plan.row_cache_bytes * learners + plan.store_bytes + plan.queue_bytes + plan.model_bytes +
         plan.overlay_bytes;
}

TEST(PlanMemory, PartsFitIntoTheTotal) {
  for (const char* total : {"128MiB", "512MiB", "2GiB", "64GiB"}) {
    const Config config = ReadSample({std::string("memory.total_bytes=") + total});
    const Result<MemoryPlan> plan = PlanMemory(config);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_LE(Total(*plan, 1), config.memory_total_bytes) << total;
    EXPECT_GE(plan->store_bytes, 32u << 20) << total;
  }
}

TEST(PlanMemory, LeastThatWouldDoDoes) {
  const std::vector<std::string> wide = {"learners.0.model.hidden=[4096, 4096]",
                                         "memory.total_bytes=64MiB"};
  const Result<MemoryPlan> refused = PlanMemory(ReadSample(wide));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  const std::string& message = refused.error().message;
  EXPECT_TRUE(
      message.starts_with("memory.total_bytes: 64MiB are too few for these learners; the "
                          "least that would do is "))
      << message;
  const size_t begin = message.rfind(' ') + 1;
  const uint64_t least = std::stoull(message.substr(begin));
  // Two layers of 4096 x 4096 and 4096 x 31 floats with adam are 200 MiB each time they are held.
  EXPECT_GT(least, 400u);
  auto with = [&](uint64_t mib) {
    return PlanMemory(ReadSample({wide[0], "memory.total_bytes=" + std::to_string(mib) + "MiB"}));
  };
  EXPECT_TRUE(with(least));
  EXPECT_FALSE(with(least - 1));
}

// Both numbers of what has no room are named: the tables, and what there is for them.
TEST(PlanMemory, TablesThatEveryStepWritesAreNamed) {
  const std::vector<std::string> large = {"memory.total_bytes=128MiB",
                                          "learners.0.participation.batch=16",
                                          "schema.features.1.buckets=4000000"};
  std::vector<std::string> dense = large;
  dense.push_back("learners.0.mechanism.kind=dp-sgd");
  EXPECT_TRUE(PlanMemory(ReadSample(large))) << "a few rows a step have room";
  const Result<MemoryPlan> refused = PlanMemory(ReadSample(dense));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("memory.total_bytes: 128MiB"), std::string::npos);
  // dim int(2 * 4e6^.25) = 89; with adam 3 * 89 + 1 floats, and 64 bytes.
  const double mib = 4e6 * (4 * (3 * 89 + 1) + 64) / (1 << 20);
  EXPECT_NE(refused.error().message.find("learner 'ctr' has mechanism dp-sgd"), std::string::npos)
      << refused.error().message;
  EXPECT_NE(refused.error().message.find("tables of " + std::to_string(int(mib) + 1) + "MiB"),
            std::string::npos)
      << refused.error().message;
}

TEST(PlanMemory, DenseParametersAreCounted) {
  // Inputs: 1 number, int(2 * 1000^.25) = 11, and 8. (20+1)*128 + 129*64 + 65*1 = 11009.
  const Config adam = ReadSample({"learners.0.participation.batch=1"});
  const Config sgd =
      ReadSample({"learners.0.participation.batch=1", "learners.0.optimizer.kind=sgd"});
  const uint64_t activations = 4 * 3 * (20 + 128 + 64 + 1);
  EXPECT_EQ(PlanMemory(adam)->model_bytes, 11009u * 4 * 8 + activations);
  EXPECT_EQ(PlanMemory(sgd)->model_bytes, 11009u * 4 * 4 + activations);
}

TEST(PlanMemory, CacheNeverExceedsAllRowsThereAre) {
  const Result<MemoryPlan> plan = PlanMemory(ReadSample({"memory.total_bytes=64GiB"}));
  ASSERT_TRUE(plan);
  const uint64_t rows = 1000 * (4 * (11 * 3 + 1) + 64) + 500 * (4 * (8 * 3 + 1) + 64);
  EXPECT_EQ(plan->row_cache_bytes, rows + (1 << 20));
}

TEST(PlanMemory, ExtremeSettingsAreTooMuchRatherThanWrappedAround) {
  const Result<MemoryPlan> plan = PlanMemory(ReadSample(
      {"schema.features.1.buckets=68719476736", "schema.features.1.dim=4096",
       "learners.0.participation.batch=16777216", "learners.0.model.hidden=[65536, 65536]"}));
  EXPECT_FALSE(plan);
}

TEST(PlanMemory, LearnersAddUp) {
  const Config one = ReadSample({});
  Config two = one;
  two.learners.push_back(two.learners[0]);
  EXPECT_EQ(PlanMemory(two)->model_bytes, 2 * PlanMemory(one)->model_bytes);
  EXPECT_EQ(PlanMemory(two)->overlay_bytes, 2 * PlanMemory(one)->overlay_bytes);
}

// 28 bytes for each of the 1,500 rows; nothing where the vocabulary comes from a file.
TEST(PlanMemory, AHistogramIsOfEveryRow) {
  const std::string poisson =
      "learners.0.participation={mode: poisson, batch: 100, sampling_rate: 0.01, "
      "steps_per_period: 7, period_files: 2}";
  const auto model_bytes = [&](const std::string& vocabulary) {
    return PlanMemory(
               ReadSample(
                   {"learners.0.mechanism={kind: fest, vocabulary: " + vocabulary + "}", poisson}))
        ->model_bytes;
  };
  EXPECT_EQ(model_bytes("{source: running, keep: 5, noise_multiplier: 1}") -
                model_bytes("{source: file, file: x}"),
            1500u * 28);
}

// A period closed by files is as long as batch and sampling rate say.
TEST(PlanMemory, APeriodOfFilesIsHeld) {
  const auto queue_bytes = [&](const std::string& period) {
    return PlanMemory(ReadSample({"learners.0.participation={mode: poisson, batch: 100, "
                                  "sampling_rate: 0.001, steps_per_period: 7, " +
                                  period + "}"}))
        ->queue_bytes;
  };
  EXPECT_EQ(queue_bytes("period_files: 3"), queue_bytes("period: 100000"));
  EXPECT_GT(queue_bytes("period: 100000"), queue_bytes("period: 50000"));
}

TEST(PlanMemory, DpSgdKeepsEveryRow) {
  const auto cache = [&](const std::string& kind) {
    return PlanMemory(
               ReadSample({"learners.0.mechanism=" + kind, "learners.0.participation.batch=1",
                           "schema.features.1.buckets=1000000", "memory.total_bytes=64GiB"}))
        ->overlay_bytes;
  };
  EXPECT_GT(cache("{kind: dp-sgd}"), 2u * 1'000'000 * 63 * 3 * 4);
  EXPECT_LT(cache("{kind: adafest, threshold: 9}"), 10u << 20);
}

Config ReadKafka(const std::string& source, const std::string& kafka) {
  Result<Config> config = Parse(Sample("kind: generator\n", "kind: kafka\n  topic: t\n" + source) +
                                    "kafka:\n  bootstrap.servers: localhost:9092\n" + kafka,
                                "c.yaml", {});
  EXPECT_TRUE(config) << config.error().message;
  return config ? *config : Config();
}

uint64_t QueueOf(const Config& config) {
  const Result<MemoryPlan> plan = PlanMemory(config);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? plan->queue_bytes : 0;
}

TEST(PlanMemory, WhatIsFetchedAheadFromKafkaCounts) {
  constexpr uint64_t kMiB = 1 << 20;
  const uint64_t log = QueueOf(ReadSample({}));
  const uint64_t usual = QueueOf(ReadKafka("", ""));
  EXPECT_GE(usual, log + 64 * kMiB);
  EXPECT_EQ(QueueOf(ReadKafka("", "  queued.max.messages.kbytes: 32768\n")), usual);
  EXPECT_EQ(QueueOf(ReadKafka("", "  queued.max.messages.kbytes: 131072\n")), usual + 192 * kMiB);
  EXPECT_LT(QueueOf(ReadKafka("", "  queued.max.messages.kbytes: 1024\n")), usual);
}

// 32 MiB a partition, of as many as are said; a log is one.
TEST(PlanMemory, WindowsOfThePartitionsCount) {
  constexpr uint64_t kMiB = 1 << 20;
  const auto window = [](const std::string& more) {
    return ReadKafka("  format: json\n  dedupe: {window: 1048576" + more + "}\n", "");
  };
  const uint64_t none = QueueOf(ReadKafka("  format: json\n", ""));
  EXPECT_EQ(QueueOf(window(", partitions: 1")), none + 32 * kMiB);
  EXPECT_EQ(QueueOf(window("")), none + 8 * 32 * kMiB);
  Config config = window(", partitions: 64");
  config.memory_total_bytes = 1ull << 30;
  const auto refused = PlanMemory(config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  for (const char* part : {"memory.total_bytes: 1024MiB", "source.dedupe.window takes 2048MiB",
                           "source.dedupe.partitions, 64"})
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace tacit::config
