#include "wiring/memory_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/carriers/carriers.h"
#include "model/ranking/candidates.h"
#include "ops/backend.h"
#include "support/fixed_noise.h"
#include "support/process.h"
#include "train/sequence/sequence_stepper.h"
#include "unit/config/sample.h"
#include "wiring/assembly.h"
#include "wiring/kinds/click.h"
#include "wiring/plans/learner_shape.h"
#include "wiring/plans/next_item_plan.h"

namespace tacit::wiring {
namespace {

using config::Config;

Config ReadSample(const std::vector<std::string>& overrides) {
  Result<Config> config = config::Parse(config::kSample, "c.yaml", overrides);
  EXPECT_TRUE(config) << config.error().message;
  return config ? *config : Config();
}

Result<MemoryPlan> PlanOf(const Config& config) {
  TACIT_ASSIGN(const Assembly assembly, Assemble(config));
  return assembly.memory;
}

uint64_t Total(const MemoryPlan& plan, uint64_t learners) {
  return plan.row_cache_bytes * learners + plan.store_bytes + plan.queue_bytes + plan.model_bytes +
         plan.overlay_bytes + plan.request_bytes;
}

TEST(PlanMemory, PartsFitIntoTheTotal) {
  for (const char* total : {"160MiB", "512MiB", "2GiB", "64GiB"}) {
    const Config config = ReadSample({std::string("memory.total_bytes=") + total});
    const Result<MemoryPlan> plan = PlanOf(config);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_LE(Total(*plan, 1), config.memory_total_bytes) << total;
    EXPECT_GE(plan->store_bytes, 32u << 20) << total;
  }
}

// Bodies and answers, connections and threads are in the total, and room for one of the largest.
TEST(PlanMemory, RequestsAreCounted) {
  const auto plan = [](std::vector<std::string> more) {
    const auto made = PlanOf(ReadSample(more));
    EXPECT_TRUE(made) << made.error().message;
    return made ? *made : MemoryPlan();
  };
  const MemoryPlan usual = plan({});
  // The largest body of gzip is held packed and unpacked, with its header.
  EXPECT_GE(usual.held_bytes, 2 * (8u << 20) + (16u << 10));
  EXPECT_GE(usual.operator_held_bytes, 2 * (8u << 20) + (16u << 10));
  EXPECT_GE(usual.request_bytes, usual.held_bytes + 1024 * (16u << 10));
  EXPECT_EQ(plan({"serve.max_connections=2024"}).request_bytes - usual.request_bytes,
            1000 * (16u << 10));
  EXPECT_GE(plan({"serve.threads=3"}).request_bytes - usual.request_bytes, 8u << 20);
  EXPECT_GE(plan({"serve.operator_listen=127.0.0.1:1"}).request_bytes - usual.request_bytes,
            usual.operator_held_bytes);
  EXPECT_GE(plan({"serve.max_body_bytes=100000000"}).held_bytes, 200'016'384u);
}

// Each open checkpoint, and one more while they change, has its share of the total.
TEST(PlanReaders, VersionsShareWhatThereIs) {
  const auto plan = [](std::vector<std::string> more) -> Result<uint64_t> {
    TACIT_ASSIGN(const Assembly assembly, Assemble(ReadSample(more)));
    return PlanReaders(assembly);
  };
  EXPECT_EQ(plan({"memory.total_bytes=2GiB"}).value(), 64u << 20);
  const auto few = plan({"memory.total_bytes=256MiB", "serve.versions.open=2"});
  const auto many = plan({"memory.total_bytes=256MiB", "serve.versions.open=8"});
  ASSERT_TRUE(few && many);
  EXPECT_LT(*many, *few);
  EXPECT_GE(*many, 8u << 20);
  // With what requests may hold they are within the total: it is more than the least here.
  const auto held = Assemble(ReadSample({"memory.total_bytes=1GiB"}))->memory.held_bytes;
  EXPECT_GT(held, 20u << 20);
  const auto wide = plan({"memory.total_bytes=1GiB", "serve.versions.open=16"});
  ASSERT_TRUE(wide);
  EXPECT_LT(*wide, 64u << 20);
  EXPECT_LE(17 * *wide + held + (64u << 20), 1u << 30);
  EXPECT_LE(9 * *many, 256u << 20);
  const auto none = plan({"memory.total_bytes=160MiB", "serve.versions.open=16"});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("serve.versions.open: 16 open versions take at least"),
            std::string::npos)
      << none.error().message;
}

TEST(PlanMemory, LeastThatWouldDoDoes) {
  const std::vector<std::string> wide = {"learners.0.model.hidden=[4096, 4096]",
                                         "memory.total_bytes=64MiB"};
  const Result<MemoryPlan> refused = PlanOf(ReadSample(wide));
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
    return PlanOf(ReadSample({wide[0], "memory.total_bytes=" + std::to_string(mib) + "MiB"}));
  };
  EXPECT_TRUE(with(least));
  EXPECT_FALSE(with(least - 1));
}

// Both numbers of what has no room are named: the tables, and what there is for them.
TEST(PlanMemory, TablesThatEveryStepWritesAreNamed) {
  const std::vector<std::string> large = {"memory.total_bytes=160MiB",
                                          "learners.0.participation.batch=16",
                                          "schema.features.1.buckets=4000000"};
  std::vector<std::string> dense = large;
  dense.push_back("learners.0.mechanism.kind=dp-sgd");
  EXPECT_TRUE(PlanOf(ReadSample(large))) << "a few rows a step have room";
  const Result<MemoryPlan> refused = PlanOf(ReadSample(dense));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("memory.total_bytes: 160MiB"), std::string::npos);
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
  // Adam also counts its steps, in one float that is held twice.
  EXPECT_EQ(PlanOf(adam)->model_bytes, 11009u * 4 * 11 + 8 + activations);
  EXPECT_EQ(PlanOf(sgd)->model_bytes, 11009u * 4 * 7 + activations);
}

TEST(PlanMemory, CacheNeverExceedsAllRowsThereAre) {
  const Result<MemoryPlan> plan = PlanOf(ReadSample({"memory.total_bytes=64GiB"}));
  ASSERT_TRUE(plan);
  const uint64_t rows = 1000 * (4 * (11 * 3 + 1) + 64) + 500 * (4 * (8 * 3 + 1) + 64);
  EXPECT_EQ(plan->row_cache_bytes, rows + (1 << 20));
}

TEST(PlanMemory, ExtremeSettingsAreTooMuchRatherThanWrappedAround) {
  const Result<MemoryPlan> plan = PlanOf(ReadSample(
      {"schema.features.1.buckets=68719476736", "schema.features.1.dim=4096",
       "learners.0.participation.batch=16777216", "learners.0.model.hidden=[65536, 65536]"}));
  EXPECT_FALSE(plan);
}

TEST(PlanMemory, LearnersAddUp) {
  const Config one = ReadSample({});
  Config two = one;
  two.learners.push_back(two.learners[0]);
  two.learners[1].id = "other";
  EXPECT_EQ(PlanOf(two)->model_bytes, 2 * PlanOf(one)->model_bytes);
  EXPECT_EQ(PlanOf(two)->overlay_bytes, 2 * PlanOf(one)->overlay_bytes);
}

// 28 bytes for each of the 1,500 rows; nothing where the vocabulary comes from a file.
TEST(PlanMemory, AHistogramIsOfEveryRow) {
  const std::string poisson =
      "learners.0.participation={mode: poisson, batch: 100, sampling_rate: 0.01, "
      "steps_per_period: 7, period_files: 2}";
  const test::TempDir dir;
  test::WriteFile(dir / "v.tsv", "C1\tx\n");
  const auto model_bytes = [&](const std::string& vocabulary) {
    return PlanOf(ReadSample({"learners.0.mechanism={kind: fest, vocabulary: " + vocabulary + "}",
                              poisson}))
        ->model_bytes;
  };
  EXPECT_EQ(model_bytes("{source: running, keep: 5, noise_multiplier: 1}") -
                model_bytes("{source: file, file: " + (dir / "v.tsv") + "}"),
            1500u * 28);
}

// A period closed by files is as long as batch and sampling rate say.
TEST(PlanMemory, APeriodOfFilesIsHeld) {
  const auto queue_bytes = [&](const std::string& period) {
    return PlanOf(ReadSample({"learners.0.mechanism.kind=none", "learners.0.privacy.epsilon=.inf",
                              "learners.0.participation={mode: poisson, batch: 100, "
                              "sampling_rate: 0.001, steps_per_period: 7, " +
                                  period + "}"}))
        ->queue_bytes;
  };
  EXPECT_EQ(queue_bytes("period_files: 3"), queue_bytes("period: 100000"));
  EXPECT_GT(queue_bytes("period: 100000"), queue_bytes("period: 50000"));
}

Config ReadKafka(const std::string& source, const std::string& kafka,
                 const std::vector<std::string>& overrides = {}) {
  Result<Config> config =
      config::Parse(config::Sample("kind: generator\n", "kind: kafka\n  topic: t\n" + source) +
                        "kafka:\n  bootstrap.servers: localhost:9092\n" + kafka,
                    "c.yaml", overrides);
  EXPECT_TRUE(config) << config.error().message;
  return config ? *config : Config();
}

uint64_t QueueOf(const Config& config) {
  const Result<MemoryPlan> plan = PlanOf(config);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? plan->queue_bytes : 0;
}

// A linear model over files sums a step up as it is read: however long the step is, only a part of
// it waits in the queue. A user's records of a step come together, and so do steps without files.
TEST(PlanMemory, EventsThatAreSummedUpAreNotHeld) {
  const std::vector<std::string> linear = {"learners.0.model={kind: linear}",
                                           "learners.0.mechanism={kind: sums}",
                                           "memory.total_bytes=64GiB"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), linear.begin(), linear.end());
    return more;
  };
  const auto period = [](int offsets) {
    return "learners.0.participation={mode: once, batch: " + std::to_string(offsets) + "}";
  };
  // A number, and six values: of its bin, a category, and four of a set.
  const uint64_t example = 4 + 6 * 12 + 64;
  for (const auto& [workers, part] :
       {std::pair(1, 6144), std::pair(2, 12'288), std::pair(8, 36'864)}) {
    const auto queue = [&](int offsets) {
      return QueueOf(
          ReadSample(with({"training.workers=" + std::to_string(workers), period(offsets)})));
    };
    EXPECT_EQ(queue(1'000'000), queue(part)) << workers;
    EXPECT_EQ(queue(part) - queue(144), 4 * (part - 144) * example) << workers;
  }
  const auto growth = [&](const auto& queue) { return queue(1'000'000) - queue(500'000); };
  EXPECT_EQ(
      growth([&](int offsets) { return QueueOf(ReadKafka("", "", with({period(offsets)}))); }),
      4 * 500'000 * example);
  EXPECT_EQ(
      growth([&](int offsets) {
        std::vector<std::string> users = with({"learners.0.privacy.unit=user"});
        users.push_back("learners.0.participation={mode: once, max_participations: 1, batch: " +
                        std::to_string(offsets) + "}");
        return QueueOf(ReadKafka("  format: json\n", "", users));
      }),
      4 * 500'000 * example);
}

TEST(PlanMemory, DpSgdKeepsEveryRow) {
  const auto cache = [&](const std::string& kind) {
    return PlanOf(ReadSample({"learners.0.mechanism=" + kind, "learners.0.participation.batch=1",
                              "schema.features.1.buckets=1000000", "memory.total_bytes=64GiB"}))
        ->overlay_bytes;
  };
  EXPECT_GT(cache("{kind: dp-sgd}"), 2u * 1'000'000 * 63 * 3 * 4);
  EXPECT_LT(cache("{kind: adafest, threshold: 9}"), 10u << 20);
}

// A publisher holds the small rows of a learner, and no others.
TEST(PlanMemory, SmallRowsThatArePublishedCount) {
  const auto queue = [](const std::string& model, const std::string& buckets, bool publishes) {
    std::vector<std::string> more = {"kafka.bootstrap.servers=x"};
    if (publishes) more.emplace_back("feed.topic=t");
    auto config = config::Parse(
        fmt::format("source: {{kind: generator}}\n"
                    "schema: {{features: [{{name: c, kind: categorical, buckets: {}}}]}}\n"
                    "learners: [{{id: one, {}, participation: {{mode: once, batch: 100}},\n"
                    "  privacy: {{unit: event, epsilon: 1, delta: 1.0e-9}}}}]\n"
                    "store: {{path: s}}\nmemory: {{total_bytes: 4GiB}}\n",
                    buckets, model),
        "c.yaml", more);
    EXPECT_TRUE(config) << config.error().message;
    const auto plan = PlanOf(*config);
    EXPECT_TRUE(plan) << plan.error().message;
    return plan ? plan->queue_bytes : 0;
  };
  const auto feed_bytes = [&](const std::string& model, const std::string& buckets) {
    return queue(model, buckets, true) - queue(model, buckets, false);
  };
  const std::string linear = "model: {kind: linear}, mechanism: {kind: sums}";
  const std::string network = "model: {kind: pctr}, mechanism: {kind: adafest, threshold: 9}";
  // A float and a quarter of a byte for each of the half million more.
  EXPECT_EQ(feed_bytes(linear, "524544") - feed_bytes(linear, "256"), (2u << 20) + (1u << 17));
  EXPECT_EQ(feed_bytes(network, "524544"), feed_bytes(network, "256"));
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
  const std::vector<std::string> users = {"learners.0.privacy.unit=user",
                                          "learners.0.participation.max_participations=1"};
  const auto window = [&](const std::string& more) {
    return ReadKafka("  format: json\n  dedupe: {window: 1048576" + more + "}\n", "", users);
  };
  const uint64_t none = QueueOf(ReadKafka("  format: json\n", "", users));
  EXPECT_EQ(QueueOf(window(", partitions: 1")), none + 32 * kMiB);
  EXPECT_EQ(QueueOf(window("")), none + 8 * 32 * kMiB);
  Config config = window(", partitions: 64");
  config.memory_total_bytes = 1ull << 30;
  const auto refused = PlanOf(config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  for (const char* part : {"memory.total_bytes: 1024MiB", "source.dedupe.window takes 2048MiB",
                           "source.dedupe.partitions, 64"})
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
}

// An assembly whose layouts are compared with its plan.
Assembly Assembled(const Config& config) {
  Result<Assembly> assembly = Assemble(config);
  EXPECT_TRUE(assembly) << assembly.error().message;
  return assembly ? std::move(*assembly) : Assembly();
}

// Dense parameters and the optimiser's state twice, the gradient and its noise.
uint64_t DenseBytes(uint64_t parameters, uint64_t state) {
  return 4 * (2 * (parameters + state) + 5 * parameters);
}

// Every optimiser's state is counted as the optimiser and the store lay it out.
TEST(PlanMemory, ClickModelsCostWhatTheirLayoutsSay) {
  for (const char* optimizer :
       {"{kind: sgd}", "{kind: sgd, momentum: 0.9}", "{kind: adagrad}", "{kind: adam}",
        "{kind: adam, moments: lazy}", "{kind: adam-bc}", "{kind: adam, ema: 0.99}",
        "{kind: adam, moments: lazy, ema: 0.99}", "{kind: adagrad, ema: 0.9}"}) {
    SCOPED_TRACE(optimizer);
    const Assembly assembly = Assembled(
        ReadSample({std::string("learners.0.optimizer=") + optimizer, "memory.total_bytes=64GiB"}));
    ASSERT_EQ(assembly.learners.size(), 1u);
    const train::ClickOptions& options = *ClickOptionsOf(assembly.learners[0]);
    const auto backend = ops::MakeReferenceBackend();
    const size_t dense = model::Pctr(options.model, *backend).InitialDense(1).size();
    const size_t state = train::Optimizer(options.optimizer).DenseStateFloats(dense);
    const uint64_t activations = 4096u * 4 * 3 * (20 + 128 + 64 + 1);
    EXPECT_EQ(assembly.memory.model_bytes, DenseBytes(dense, state) + activations);

    const std::vector<store::LearnerLayout> layouts = MakeLayouts(assembly);
    uint64_t rows = 0;
    for (uint32_t t = 0; t < 2; ++t)
      rows += layouts[0].rows.space.tables()[t].rows * (4 * layouts[0].rows.RowFloats(t) + 64);
    EXPECT_EQ(assembly.memory.row_cache_bytes, rows + (1 << 20));
    EXPECT_EQ(assembly.memory.overlay_bytes,
              std::max<uint64_t>(1 << 20, 8 * 4 * (dense + state) + 2 * rows));
  }
}

class NextItemMemory : public testing::Test {
 protected:
  // A learner over this many items, with the histories of 100 users of 200 items in a step.
  Assembly Over(
      uint32_t items, const std::string& model, const std::string& mechanism,
      const std::string& optimizer = "{kind: adam}",
      const std::string& participation = "{mode: once, batch: 100, max_participations: 5}") {
    std::string names;
    for (uint32_t i = 0; i < items; ++i) names += fmt::format("i{}{}\n", i, description_);
    test::WriteFile(dir_ / "items.dat", names);
    const Result<Config> config = config::Parse(
        fmt::format("source: {{kind: log, files: /dev/null, format: json}}\n"
                    "catalogue: {{file: {}}}\n"
                    "schema: {{features: [{{name: C1, kind: categorical, buckets: 1000}}]}}\n"
                    "learners:\n"
                    "  - id: next\n"
                    "    model: {}\n"
                    "    mechanism: {}\n"
                    "    optimizer: {}\n"
                    "    participation: {}\n"
                    "    privacy: {{unit: user, epsilon: 8, delta: 1e-7}}\n"
                    "training: {{workers: 3}}\n"
                    "store: {{path: /tmp/tacit/store}}\n",
                    dir_ / "items.dat", model, mechanism, optimizer, participation),
        "c.yaml", {"memory.total_bytes=4GiB"});
    EXPECT_TRUE(config) << config.error().message;
    return config ? Assembled(*config) : Assembly();
  }

  std::string description_;  // of every item
  // An item costs its place in the catalogue, two baselines' counts and sixteen successors.
  static constexpr uint64_t kHistories = 100 * 200 * 28, kItem = 250 + 2 * 4 + 16 * 8;
  const test::TempDir dir_;
};

// The numbers are those of a learner that is made.
TEST_F(NextItemMemory, SequenceModelsCostWhatTheirLayoutSays) {
  for (const char* model :
       {"encoder: transformer", "encoder: transformer, feed_forward: 100, item_bias: true",
        "encoder: gru", "encoder: lstm, tied: false", "encoder: transformer, length: 50"}) {
    for (const char* optimizer : {"{kind: adam}", "{kind: adam-bc, ema: 0.9}", "{kind: sgd}"}) {
      SCOPED_TRACE(fmt::format("{} {}", model, optimizer));
      const Assembly assembly = Over(300, fmt::format("{{kind: sequence, width: 64, {}}}", model),
                                     "{kind: dp-sgd}", optimizer);
      ASSERT_EQ(assembly.learners.size(), 1u);
      WorkerPool workers(WorkerPool::Options{.workers = 1});
      const auto backend = ops::MakeCpuBackend(workers);
      const train::SequenceStepper stepper(
          PlanSequence({.config = assembly.config, .items = assembly.items})->training, {},
          *backend, std::make_unique<noise::FixedNoise>(1));
      const uint64_t dense = stepper.parameters().size(), state = stepper.optimizer_state().size();
      // Per worker an integer and a float; four floats that workers and readers share.
      EXPECT_EQ(assembly.memory.model_bytes,
                DenseBytes(dense, state) + dense * (12 * 3 + 16) + kHistories + 300 * kItem);
      EXPECT_EQ(assembly.memory.overlay_bytes, 8 * 4 * (dense + state));
    }
  }
}

// Embeddings begin as the catalogue describes its items, by the share that is configured.
TEST_F(NextItemMemory, EmbeddingsBeginAsTheirItemsAreDescribed) {
  const auto begun = [&](bool described, const std::string& more) {
    description_ = described ? "::A Title::genre" : "";
    const Assembly assembly =
        Over(30, fmt::format("{{kind: sequence, width: 8{}}}", more), "{kind: dp-sgd}");
    const auto plan = PlanSequence({.config = assembly.config, .items = assembly.items});
    return train::InitialParameters(plan->training, model::SequenceLayout(plan->training.model));
  };
  const std::vector<float> drawn = begun(false, "");
  EXPECT_EQ(begun(true, ", described_share: 0"), drawn);
  EXPECT_EQ(begun(false, ", described_share: 1"), drawn);
  EXPECT_NE(begun(true, ""), drawn);
  const std::vector<float> alike = begun(true, ", described_share: 1");
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(alike[i], alike[29 * 8 + i]);
}

// The update of all parameters, the encoder's matrices as they began, and the largest of them once
// more; the same of any rank.
TEST_F(NextItemMemory, CarriersCostAnUpdateAndWhatTheMatricesBeganWith) {
  const auto bytes = [&](const char* carriers) {
    return Over(300, "{kind: sequence, width: 64, blocks: 2, length: 50}",
                fmt::format("{{kind: dp-sgd{}}}", carriers))
        .memory.model_bytes;
  };
  const uint64_t matrices = 2 * 6 * 64 * 64, biases = 2 * 6 * 64, norms = 2 * 2 * 2 * 64,
                 rows = (300 + 50) * 64 + 300;
  EXPECT_EQ(bytes(", carriers: {from: history, rank: 4}") - bytes(""),
            4 * (rows + 2 * matrices + 3 * 64 * 64 + biases + norms));
  EXPECT_EQ(bytes(", carriers: {from: random, rank: 8}"),
            bytes(", carriers: {from: history, rank: 4}"));
}

// A stored model goes on with other carriers, or without, at the same charge; another width is
// another model.
TEST_F(NextItemMemory, CarriersAreReadAndChangeNeitherTheChargeNorWhatIsStored) {
  const auto assembled = [&](const char* carriers, const char* width = "64") {
    return Over(300, fmt::format("{{kind: sequence, width: {}}}", width),
                fmt::format("{{kind: dp-sgd{}}}", carriers));
  };
  const Assembly whole = assembled("");
  EXPECT_FALSE(PlanSequence({.config = whole.config, .items = whole.items})->training.sum_map);
  const Assembly with =
      assembled(", carriers: {from: history, rank: 4, power_steps: 2, warm_up_steps: 9}");
  const auto sum_map = PlanSequence({.config = with.config, .items = with.items})->training.sum_map;
  const auto* const maker = sum_map.make.target<model::CarrierMaker>();
  ASSERT_NE(maker, nullptr);
  EXPECT_EQ(maker->options.source, model::CarrierOptions::Source::kHistorical);
  EXPECT_EQ(maker->options.rank, 4u);
  EXPECT_EQ(maker->options.power_steps, 2u);
  EXPECT_EQ(maker->options.warm_up_steps, 9u);
  const ModelPlan &a = *whole.learners[0].model, &b = *with.learners[0].model;
  EXPECT_EQ(a.Fingerprint(), b.Fingerprint());
  EXPECT_EQ(a.charge().mechanism, b.charge().mechanism);
  EXPECT_EQ(a.charge().noise_multiplier, b.charge().noise_multiplier);
  EXPECT_EQ(a.charge().clip_gradient, b.charge().clip_gradient);
  EXPECT_NE(a.Fingerprint(), assembled("", "32").learners[0].model->Fingerprint());
  EXPECT_NE(b.WhyNotOnGpu(), "");
}

// A stage measures no more cells than there are pairs of different items, or than are configured.
TEST_F(NextItemMemory, CountsCostWhatTheirCellsDo) {
  const auto bytes = [&](uint32_t items, const std::string& more) {
    return Over(items, "{kind: transitions" + more + "}", "{kind: counts}").memory.model_bytes;
  };
  constexpr uint64_t kCell = 80 + 3 * 28;
  EXPECT_EQ(bytes(300, ""), 300 * 299 * kCell + 5 * 4 * 300 * 300 + kHistories + 300 * kItem);
  EXPECT_EQ(bytes(300, ", cells: 1000"),
            1000 * kCell + 5 * 4 * 300 * 300 + kHistories + 300 * kItem);
  EXPECT_EQ(bytes(6000, ", cells: 1000"),
            1000 * kCell + kHistories + 6000 * kItem + 3 * (40 * 6000 + (64 << 20)))
      << "there is no table of this many pairs, but one of groups";
}

// A ranker has two tables of all pairs in the learner, in the served state and in the next one, and
// a question of 100 candidates for each record at most.
TEST_F(NextItemMemory, ARankerCostsItsTablesAndQuestions) {
  const auto bytes = [&](uint32_t items, const std::string& more) {
    return Over(items, "{kind: transitions" + more + "}", "{kind: counts}").memory.model_bytes;
  };
  // One for each record at most, with the candidates of items that are not described.
  constexpr uint64_t kQuestions = 100 * 20 * model::ranking::kFeatures;
  EXPECT_EQ(bytes(300, ", ranker: true, ranker_users: 50") - bytes(300, ""),
            6 * 4 * 300 * 300 + kQuestions);
  EXPECT_EQ(
      bytes(6000, ", cells: 1000, ranker: true, ranker_users: 50") - bytes(6000, ", cells: 1000"),
      kQuestions + 2 * 3 * (40 * 6000 + (64 << 20)) + 3 * 24 * (1000 + 1000))
      << "without room for tables, lists of the cells and of as many likely kin";
}

TEST_F(NextItemMemory, AStartCostsItsReleaseAndItsLogits) {
  const auto bytes = [&](const std::string& more) {
    return Over(300, "{kind: sequence, width: 16" + more + "}", "{kind: dp-sgd}", "{kind: adam}",
                "{mode: poisson, batch: 100, sampling_rate: 1, steps_per_period: 2, period: 100, "
                "max_participations: 10}")
        .memory.model_bytes;
  };
  EXPECT_EQ(bytes(", start: popularity") - bytes(""), 9 * 4 * 300);
  EXPECT_EQ(bytes(", start: counts, cells: 1000") - bytes(", mask_seen: true"),
            3 * 4 * 300 * 300 + 1000 * (80 + 3 * 28) + 5 * 4 * 300 * 300);
}

// Memory follows from the catalogue's size, and a total that is too small is refused.
TEST_F(NextItemMemory, IsPlannedByTheCatalogue) {
  for (const auto& [model, mechanism] : {std::pair("{kind: sequence, width: 16}", "{kind: dp-sgd}"),
                                         std::pair("{kind: transitions}", "{kind: counts}")})
    EXPECT_GT(Over(3000, model, mechanism).memory.model_bytes,
              Over(100, model, mechanism).memory.model_bytes);
  Config config = Over(3000, "{kind: sequence, width: 512}", "{kind: dp-sgd}").config;
  config.memory_total_bytes = 200 << 20;
  const Result<MemoryPlan> refused = PlanOf(config);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("memory.total_bytes: 200MiB"), std::string::npos)
      << refused.error().message;
}

// The mean and eight deviations, by hand: 10,000 + 8 * 100, and ten times the variance where a user
// may bring ten records.
TEST(LargestStep, FollowsFromTheParticipation) {
  using Mode = config::Participation::Mode;
  config::Participation once{.batch = 10'000};
  EXPECT_EQ(LargestStepOf(once, false).examples, 10'000);
  EXPECT_EQ(LargestStepOf(once, false).of_unit, 1);
  EXPECT_EQ(LargestStepOf(once, true).of_unit, 0);
  config::Participation poisson{.mode = Mode::kPoisson, .batch = 10'000, .sampling_rate = 0.01};
  EXPECT_EQ(LargestStepOf(poisson, false).examples, 10'800);
  // A user may bring all records of a period.
  EXPECT_EQ(LargestStepOf(poisson, true).examples, 21'600);
  poisson.user_records_max = 10;
  EXPECT_EQ(LargestStepOf(poisson, true).examples, std::ceil(10'000 + 800 * std::sqrt(10)));
  EXPECT_EQ(LargestStepOf(poisson, true).of_unit, 10);
  poisson.period = 9'000;
  EXPECT_EQ(LargestStepOf(poisson, true).examples, 9'000);
  // Previews come in parts of 4,096 and the rest of a user.
  poisson = {.mode = Mode::kPoisson, .batch = 10, .sampling_rate = 0.01};
  EXPECT_EQ(LargestStepOf(poisson, false).examples, 4'096);
  poisson.user_records_max = 10;
  EXPECT_EQ(LargestStepOf(poisson, true).examples, 4'105);
}

}  // namespace
}  // namespace tacit::wiring
