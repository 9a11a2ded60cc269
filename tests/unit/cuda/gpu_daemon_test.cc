// The daemon with its click learner on a GPU, which is emulated: what it learns, what it leaves in
// the store, and what it says when the device is not there, is lost, or has no form for what is
// asked.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <numeric>
#include <random>
#include <regex>

#include "cuda/device/errors.h"
#include "http/client.h"
#include "store/store.h"
#include "support/eventually.h"
#include "support/process.h"
#include "system/crash/kills.h"
#include "wiring/assembly.h"
#include "wiring/restore/anchor_file.h"

namespace tacit::cuda::testing {
namespace {

using test::Ended;
using test::TempDir;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kGpuRecords = 256, kGpuBatch = 16;
constexpr uint64_t kGpuSteps = kGpuRecords / kGpuBatch;
constexpr char kAdaFest[] = "{kind: adafest, threshold: 1.0, sigma_ratio: 5}";
constexpr char kExponential[] = "{kind: exponential, rows: 4, row_epsilon: 0.05}";

// A learner that touches more rows than one bucket of the cache has places for.
constexpr size_t kManyBuckets = 1500;
constexpr char kOneBucket[] = "{use: require, rows: cache, cache_bytes: 1}";

void WriteFewClicks(const TempDir& dir, size_t d_values = 30) {
  std::mt19937_64 random(7);
  std::string text;
  for (size_t i = 0; i < kGpuRecords; ++i)
    text += fmt::format(
        R"({{"label":{},"timestamp_ms":{},"features":{{"x":{},"c":"{}","d":"{}"}}}})"
        "\n",
        random() % 2, 1000 * (i + 1), random() % 100, random() % 12, random() % d_values);
  test::WriteFile(dir / "clicks.jsonl", text);
}

struct GpuRun {
  std::string store = "store", gpu = "{use: require}", mechanism = kAdaFest;
  std::string listen = "\"\"";
  size_t d_buckets = 40;
  std::string compute = "f32";
  std::string more = "";  // of the store's keys
  std::string end = "";   // of the file

  std::string Write(const TempDir& dir) const {
    const std::string path = dir / (store + ".yaml");
    test::WriteFile(
        path,
        fmt::format("source: {{kind: log, files: [{}], format: json}}\n"
                    "schema: {{features: [{{name: x, kind: dense}}, {{name: c, kind: categorical, "
                    "buckets: 20}}, {{name: d, kind: categorical, buckets: {}}}]}}\n"
                    "learners:\n"
                    "  - id: ctr\n"
                    "    model: {{kind: pctr, hidden: [8], compute: {}}}\n"
                    "    mechanism: {}\n"
                    "    participation: {{mode: once, batch: {}}}\n"
                    "    privacy: {{unit: event, epsilon: 50, delta: 1.0e-6}}\n"
                    "    optimizer: {{kind: adam, learning_rate: 0.01}}\n"
                    "store: {{path: {}, commit_interval_ms: 1{}}}\n"
                    "serve: {{listen: {}}}\n"
                    "gpu: {}\n"
                    "training: {{idle_priority: false, workers: 1}}\n"
                    "memory: {{total_bytes: 400MiB}}\n{}",
                    dir / "clicks.jsonl", d_buckets, compute, mechanism, kGpuBatch, dir / store,
                    more, listen, gpu, end));
    return path;
  }
};

struct GpuOutcome {
  store::DenseState dense;
  std::map<uint64_t, std::vector<float>> rows;  // that were ever written
  std::vector<float> served;                    // all rows' embeddings
  uint64_t steps = 0;
  double epsilon = 0;
};

GpuOutcome ReadOutcome(const TempDir& dir, const std::string& name) {
  const auto config = config::Load(dir / (name + ".yaml"), {});
  EXPECT_TRUE(config) << config.error().message;
  const auto assembly = wiring::Assemble(*config);
  EXPECT_TRUE(assembly) << assembly.error().message;
  const auto store = store::Store::Open(wiring::MakeStoreOptions(*assembly));
  EXPECT_TRUE(store) << store.error().message;
  const auto snapshot = (*store)->Latest();
  GpuOutcome outcome;
  if (const auto dense = snapshot->Dense(LearnerIndex(0))) outcome.dense = *dense;
  for (uint32_t table = 0; table < assembly->learners.at(0).model->Rows().space.tables().size();
       ++table)
    EXPECT_TRUE(snapshot->ForWritten(
        LearnerIndex(0), table, [&](uint64_t row, std::span<const float> floats) {
          outcome.rows.emplace(row, std::vector(floats.begin(), floats.end()));
        }));
  const RowSpace space = assembly->learners.at(0).model->Rows().space;
  std::vector<uint64_t> all(space.rows());
  std::iota(all.begin(), all.end(), 0);
  outcome.served.resize(space.floats());
  EXPECT_TRUE(snapshot->Rows(LearnerIndex(0), all, outcome.served));
  outcome.steps = snapshot->learners().at(0).steps;
  outcome.epsilon = snapshot->learners().at(0).epsilon;
  return outcome;
}

// The call that fails is one of a step, of the way home behind one, or of the commit whose rows
// come home beside it: that commit is then the one behind the last. The message says which.
void ExpectLoss(const std::string& err, uint64_t steps_committed) {
  std::smatch ends, last;
  ASSERT_TRUE(std::regex_search(err, last, std::regex("it resumes from commit ([0-9]+)"))) << err;
  ASSERT_TRUE(std::regex_search(
      err, ends,
      std::regex("training ends: (commit ([0-9]+)|learner 'ctr', (after )?step ([0-9]+)): "
                 "GPU 0: [^\\n]*cudaErrorECCUncorrectable")))
      << err;
  if (ends[2].matched) {
    EXPECT_EQ(std::stoull(ends[2]), std::stoull(last[1]) + 1) << err;
  } else {
    EXPECT_GT(std::stoull(ends[4]), steps_committed) << err;
    EXPECT_LE(std::stoull(ends[4]), kGpuSteps) << err;
  }
}

class GpuDaemon : public ::testing::Test {
 protected:
  GpuDaemon() { WriteFewClicks(dir_); }

  // Learns to the end of the log.
  Ended Learn(const GpuRun& run, const std::string& machine = "") {
    std::vector<std::string> environment;
    if (!machine.empty()) environment.push_back("TACIT_TEST_GPU=" + machine);
    return test::Run({TACITD_CRASH, "--config", run.Write(dir_), "--until-end"}, environment);
  }

  // Kills daemons at random until two have learnt all, and compares them with one that nobody
  // killed.
  void ExpectKillsChangeNothing(GpuRun run) {
    const uint64_t seed = std::random_device{}();
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const auto begun = std::chrono::steady_clock::now();
    run.store = "whole";
    ASSERT_EQ(Learn(run).exit_code, 0);
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begun);
    const GpuOutcome whole = ReadOutcome(dir_, "whole");
    test::Kills kills;
    for (int life = 0; life < 2; ++life) {
      run.store = fmt::format("store-{}", life);
      run.Write(dir_);
      test::RunWithKills(dir_, run.store, took, random, &kills);
      ASSERT_FALSE(HasFatalFailure());
      const GpuOutcome outcome = ReadOutcome(dir_, run.store);
      EXPECT_EQ(outcome.dense.parameters, whole.dense.parameters);
      EXPECT_EQ(outcome.dense.optimizer, whole.dense.optimizer);
      EXPECT_EQ(outcome.rows, whole.rows);
      EXPECT_EQ(outcome.epsilon, whole.epsilon);
    }
  }

  const TempDir dir_;
};

TEST_F(GpuDaemon, LearnsThereAndCommitsWhatItLearnt) {
  const Ended ended = Learn({});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("learner 'ctr' learns on GPU 0 (emulated on the CPU, 1 GB)"));
  const Ended on_cpu = Learn({.store = "cpu", .gpu = "{use: never}"});
  ASSERT_EQ(on_cpu.exit_code, 0) << on_cpu.err;
  const GpuOutcome gpu = ReadOutcome(dir_, "store"), cpu = ReadOutcome(dir_, "cpu");
  EXPECT_EQ(gpu.steps, kGpuSteps);
  EXPECT_EQ(gpu.epsilon, cpu.epsilon) << "where a step is computed is no part of its charge";
  EXPECT_EQ(gpu.dense.parameters.size(), cpu.dense.parameters.size());
  EXPECT_NE(gpu.dense.parameters, cpu.dense.parameters) << "the device's noise is its own";
  EXPECT_FALSE(gpu.rows.empty());
}

TEST_F(GpuDaemon, AStoreIsTheSameWithAndWithoutOne) {
  // The process that learns on the device is killed after some commits; one without goes on.
  const GpuRun run;
  test::Process first({TACITD_CRASH, "--config", run.Write(dir_), "--until-end"},
                      {"TACIT_TEST_CRASH_AT=commit.published:3"});
  ASSERT_EQ(first.Wait()->signal, SIGKILL) << first.Err();
  const Ended second = Learn({.gpu = "{use: never}"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(ReadOutcome(dir_, "store").steps, kGpuSteps);
}

TEST_F(GpuDaemon, KilledAnywhereEndsWhereAnUninterruptedRunEnds) { ExpectKillsChangeNothing({}); }

TEST_F(GpuDaemon, CachedRowsLearnWhatWholeTablesLearn) {
  WriteFewClicks(dir_, kManyBuckets);
  ASSERT_EQ(Learn({.gpu = "{use: require, rows: whole}", .d_buckets = kManyBuckets}).exit_code, 0);
  const Ended ended = Learn({.store = "cached", .gpu = kOneBucket, .d_buckets = kManyBuckets});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const GpuOutcome whole = ReadOutcome(dir_, "store"), cached = ReadOutcome(dir_, "cached");
  EXPECT_EQ(cached.steps, kGpuSteps);
  EXPECT_EQ(cached.epsilon, whole.epsilon);
  EXPECT_EQ(cached.dense.parameters, whole.dense.parameters);
  EXPECT_EQ(cached.dense.optimizer, whole.dense.optimizer);
  EXPECT_EQ(cached.served, whole.served);
  // Both send home the rows that steps wrote, and no others.
  EXPECT_EQ(cached.rows, whole.rows);
  EXPECT_GT(whole.rows.size(), 20u);
  EXPECT_LT(whole.rows.size(), 20 + kManyBuckets);
}

TEST_F(GpuDaemon, KilledAnywhereWithCachedRowsEndsWhereAnUninterruptedRunEnds) {
  WriteFewClicks(dir_, kManyBuckets);
  ExpectKillsChangeNothing({.gpu = kOneBucket, .d_buckets = kManyBuckets});
}

TEST_F(GpuDaemon, ADeviceThatIsLostWithChangedRowsInItsCacheIsGoneOnWithout) {
  WriteFewClicks(dir_, kManyBuckets);
  const GpuRun run{.gpu = kOneBucket, .d_buckets = kManyBuckets};
  const Ended lost = Learn(run, fmt::format("fail=1200:{}", code::kEccUncorrectable));
  ASSERT_EQ(lost.exit_code, 1) << lost.err;
  const uint64_t steps = ReadOutcome(dir_, "store").steps;
  ExpectLoss(lost.err, steps);
  EXPECT_GT(steps, 0u);
  EXPECT_LT(steps, kGpuSteps);
  ASSERT_EQ(Learn(run).exit_code, 0);
  ASSERT_EQ(Learn({.store = "whole", .gpu = kOneBucket, .d_buckets = kManyBuckets}).exit_code, 0);
  const GpuOutcome after = ReadOutcome(dir_, "store"), whole = ReadOutcome(dir_, "whole");
  EXPECT_EQ(after.steps, kGpuSteps);
  EXPECT_EQ(after.dense.parameters, whole.dense.parameters);
  EXPECT_EQ(after.rows, whole.rows);
}

TEST_F(GpuDaemon, CacheForAMechanismThatWritesEveryRowIsRefused) {
  const Ended refused = Learn({.gpu = kOneBucket, .mechanism = "{kind: dp-sgd}"});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("set gpu.rows to whole"));
}

// The loader finds a file of the library's name that is none.
TEST_F(GpuDaemon, ALibraryThatCannotBeLoadedIsRefusedOrDoneWithout) {
  test::WriteFile(dir_ / "libcublas.so.13", "no library");
  const auto learn = [&](const char* store, const char* gpu) {
    const GpuRun run{.store = store, .gpu = gpu, .compute = "bf16"};
    return test::Run({TACITD_CRASH, "--config", run.Write(dir_), "--until-end"},
                     {"LD_LIBRARY_PATH=" + dir_.path()});
  };
  const Ended refused = learn("store", "{use: require, gemm: library}");
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("learner 'ctr': libcublas.so.13 cannot be loaded"));
  EXPECT_THAT(refused.err, HasSubstr("set gpu.gemm to own"));
  const Ended chosen = learn("auto", "{use: require, gemm: auto}");
  ASSERT_EQ(chosen.exit_code, 0) << chosen.err;
  EXPECT_THAT(chosen.err, HasSubstr("Tacit's own kernels multiply, because libcublas.so.13"));
  EXPECT_THAT(chosen.err, HasSubstr("learner 'ctr' learns on GPU 0"));
  const Ended own = learn("own", "{use: require}");
  ASSERT_EQ(own.exit_code, 0) << own.err;
  EXPECT_EQ(ReadOutcome(dir_, "auto").dense.parameters, ReadOutcome(dir_, "own").dense.parameters);
}

// A transformer over what few users took of a few items; every user is in each of its steps.
std::string WriteTransformer(const TempDir& dir, const std::string& name, const std::string& gpu,
                             const std::string& more = "") {
  std::mt19937_64 random(8);
  std::string items, text;
  for (int i = 0; i < 12; ++i) items += fmt::format("item-{}\n", i);
  for (int i = 0; i < 200; ++i)
    text += fmt::format(
        R"({{"label":1,"user":"u{}","item":"item-{}","timestamp_ms":{},"features":{{"x":1}}}})"
        "\n",
        random() % 10, random() % 12, 1000 * (i + 1));
  test::WriteFile(dir / "items.dat", items);
  test::WriteFile(dir / "taken.jsonl", text);
  const std::string path = dir / (name + ".yaml");
  test::WriteFile(path,
                  fmt::format("source: {{kind: log, files: [{}], format: json}}\n"
                              "catalogue: {{file: {}}}\n"
                              "schema: {{features: [{{name: x, kind: dense}}]}}\n"
                              "learners:\n"
                              "  - id: next\n"
                              "    model: {{kind: sequence, width: 8, length: 6, blocks: 1{}}}\n"
                              "    mechanism: {{kind: dp-sgd}}\n"
                              "    participation: {{mode: poisson, period: 100, sampling_rate: 1, "
                              "steps_per_period: 2, batch: 10, max_participations: 20}}\n"
                              "    optimizer: {{kind: adam, learning_rate: 0.01}}\n"
                              "    history: {{items: 12}}\n"
                              "    privacy: {{unit: user, epsilon: 50, delta: 1.0e-6}}\n"
                              "store: {{path: {}, commit_interval_ms: 5}}\n"
                              "serve: {{listen: \"\"}}\n"
                              "gpu: {{use: {}}}\n"
                              "training: {{idle_priority: false, workers: 1}}\n"
                              "memory: {{total_bytes: 400MiB}}\n",
                              dir / "taken.jsonl", dir / "items.dat", more, dir / name, gpu));
  return path;
}

TEST_F(GpuDaemon, ATransformerLearnsThere) {
  GpuOutcome outcomes[2];
  for (const bool on_gpu : {false, true}) {
    const std::string name = on_gpu ? "gpu" : "cpu";
    const std::string path = WriteTransformer(dir_, name, on_gpu ? "require" : "never");
    const Ended ended = test::Run({TACITD_CRASH, "--config", path, "--until-end"});
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_EQ(ended.err.find("learner 'next' learns on GPU 0") != std::string::npos, on_gpu);
    outcomes[on_gpu] = ReadOutcome(dir_, name);
  }
  const auto& [cpu, gpu] = outcomes;
  EXPECT_GT(gpu.steps, 0u);
  EXPECT_EQ(gpu.steps, cpu.steps);
  EXPECT_EQ(gpu.epsilon, cpu.epsilon) << "where a step is computed is no part of its charge";
  EXPECT_EQ(gpu.dense.parameters.size(), cpu.dense.parameters.size());
  EXPECT_NE(gpu.dense.parameters, cpu.dense.parameters) << "the device's noise is its own";
  // A store is the same with and without one: the CPU goes on.
  const std::string path = WriteTransformer(dir_, "gpu", "never");
  EXPECT_EQ(test::Run({TACITD_CRASH, "--config", path, "--until-end"}).exit_code, 0);
}

TEST_F(GpuDaemon, ATransformerWithoutAFormForItIsRefusedOrDoneWithout) {
  constexpr char kUnformed[] = ", negatives: 3, item_bias: false";
  const std::string path = WriteTransformer(dir_, "refused", "require", kUnformed);
  const Ended refused = test::Run({TACITD_CRASH, "--config", path, "--until-end"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("sampled negatives have no form for a GPU"));
  const Ended without =
      test::Run({TACITD_CRASH, "--config", WriteTransformer(dir_, "without", "prefer", kUnformed),
                 "--until-end"});
  ASSERT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.err, HasSubstr("learner 'next' learns on the CPU, because sampled"));
}

TEST_F(GpuDaemon, ADeviceThatIsMissingIsRefusedOrDoneWithout) {
  const Ended refused = Learn({}, "driver=0");
  EXPECT_EQ(refused.exit_code, 1) << "a driver may still come up";
  EXPECT_THAT(refused.err, HasSubstr("gpu.use is require, and no NVIDIA driver is installed"));
  const Ended old = Learn({}, "driver=12040");
  EXPECT_EQ(old.exit_code, 1);
  EXPECT_THAT(old.err, HasSubstr("too old for CUDA 13.0"));
  const Ended busy = Learn({}, fmt::format("open={}", code::kDevicesUnavailable));
  EXPECT_EQ(busy.exit_code, 1);
  EXPECT_THAT(busy.err, HasSubstr("GPU 0"));
  const Ended absent = Learn({.gpu = "{use: require, device: 3}"});
  EXPECT_EQ(absent.exit_code, 2);
  EXPECT_THAT(absent.err, HasSubstr("there is no GPU 3: this machine has one"));
  const Ended without = Learn({.gpu = "{use: prefer}"}, "driver=0");
  ASSERT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.err, HasSubstr("gpu.use is prefer: learning on the CPU, because no NVIDIA"));
  EXPECT_EQ(ReadOutcome(dir_, "store").steps, kGpuSteps);
}

#if defined(TACITD_ABSENT)
TEST_F(GpuDaemon, ABuildWithoutCudaSaysSo) {
  const auto learn = [&](const char* use) {
    const GpuRun run{.gpu = use};
    return test::Run({TACITD_ABSENT, "--config", run.Write(dir_), "--until-end"});
  };
  const Ended refused = learn("{use: require}");
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("gpu.use is require, and this Tacit was built without CUDA"));
  const Ended without = learn("{use: prefer}");
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.err, HasSubstr("learning on the CPU, because"));
}
#endif

// The memory that a start takes is known before the store is opened.
TEST_F(GpuDaemon, ADeviceWithTooLittleMemoryIsRefusedBeforeTheStoreIsMadeOrDoneWithout) {
  const char* const little = "memory=20000";
  const Ended refused = Learn({.gpu = "{use: require, rows: whole}"}, little);
  EXPECT_EQ(refused.exit_code, 1) << "another process may give memory back";
  std::smatch sizes;
  ASSERT_TRUE(std::regex_search(
      refused.err, sizes,
      std::regex("learner 'ctr': gpu.use is require, and its start takes ([0-9]+) bytes of the "
                 "memory of GPU 0 \\([^)]*\\), and 20000 are free: ([0-9]+) for whole tables")))
      << refused.err;
  EXPECT_GT(std::stoull(sizes[1]), 20000u);
  EXPECT_GT(std::stoull(sizes[2]), 0u);
  EXPECT_THAT(refused.err, HasSubstr("lower model.hidden"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "store"));
  const Ended without = Learn({.gpu = "{use: prefer, rows: whole}"}, little);
  ASSERT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.err, HasSubstr("learner 'ctr' learns on the CPU, because its start takes"));
  EXPECT_EQ(ReadOutcome(dir_, "store").steps, kGpuSteps);
  // A device that has as much as was asked for is enough, and a byte less is not.
  const auto exactly = [&](const std::string& store, uint64_t bytes) {
    return Learn({.store = store, .gpu = "{use: require, rows: whole}"},
                 fmt::format("memory={}", bytes));
  };
  const uint64_t asked = std::stoull(sizes[1]);
  EXPECT_THAT(exactly("enough", asked).err, HasSubstr("learner 'ctr' learns on GPU 0"));
  EXPECT_EQ(exactly("less", asked - 1).exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "less"));
}

TEST_F(GpuDaemon, TablesThatHaveNoRoomBesideTheRestNameTheKeyThatTakesLess) {
  constexpr char kMany[] = "memory=20000000";
  const GpuRun whole{.gpu = "{use: require, rows: whole}", .d_buckets = 200'000};
  const Ended refused = Learn(whole, kMany);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("set gpu.rows to cache"));
  const Ended large = Learn(
      {.gpu = "{use: require, rows: cache, cache_bytes: 20MiB}", .d_buckets = 200'000}, kMany);
  EXPECT_EQ(large.exit_code, 1);
  EXPECT_THAT(large.err, HasSubstr("for cached rows"));
  EXPECT_THAT(large.err, HasSubstr("lower gpu.cache_bytes"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "store"));
}

// The daemon that has the store has the device as well: a second one is told of the store.
TEST_F(GpuDaemon, AStoreThatIsHeldIsNamedBeforeTheDevice) {
  const GpuRun run{.listen = "\"unix:" + (dir_ / "socket") + "\""};
  test::Process first({TACITD_CRASH, "--config", run.Write(dir_)});
  ASSERT_TRUE(test::Eventually("the first daemon serves", [&] {
    return http::Fetch("unix:" + (dir_ / "socket") + ":/readyz", "GET", "", test::kPatience)
        .has_value();
  })) << first.Err();
  const Ended second = Learn({}, "memory=20000");
  EXPECT_EQ(second.exit_code, 3) << second.err;
  EXPECT_EQ(second.err.find("GPU 0"), std::string::npos) << second.err;
}

TEST_F(GpuDaemon, WhatHasNoFormForADeviceIsRefusedByNameOrLearntOnTheCpu) {
  const Ended refused = Learn({.mechanism = kExponential});
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("learner 'ctr': gpu.use is require, and its mechanism has no "
                                     "form for a GPU"));
  const Ended other = Learn({.gpu = "{use: prefer}", .mechanism = kExponential});
  ASSERT_EQ(other.exit_code, 0) << other.err;
  EXPECT_THAT(other.err, HasSubstr("learner 'ctr' learns on the CPU, because its mechanism"));
}

TEST_F(GpuDaemon, ADeviceThatIsLostEndsTrainingAtTheLastCommitAndARestartGoesOn) {
  const Ended lost = Learn({}, fmt::format("fail=700:{}", code::kEccUncorrectable));
  ASSERT_EQ(lost.exit_code, 1) << lost.err;
  const GpuOutcome before = ReadOutcome(dir_, "store");
  ExpectLoss(lost.err, before.steps);
  EXPECT_GT(before.steps, 0u);
  EXPECT_LT(before.steps, kGpuSteps);
  const Ended again = Learn({});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const GpuOutcome after = ReadOutcome(dir_, "store");
  EXPECT_EQ(after.steps, kGpuSteps);
  ASSERT_EQ(Learn({.store = "whole"}).exit_code, 0);
  EXPECT_EQ(after.dense.parameters, ReadOutcome(dir_, "whole").dense.parameters);
}

// Rows that do not arrive fail a commit, and every later one. What was committed before has its
// anchor all the same, and its last try to reach the feed's topic, where no broker answers here.
TEST_F(GpuDaemon, ADeviceThatIsLostLeavesNoCommitWithoutAnchorAndFeed) {
  // The calls that are a commit's differ from run to run. A run to the end waits for a feed's
  // broker for a minute, so the first alone has one.
  constexpr int kFirst = 700;
  uint64_t commits_lost = 0;
  for (int call = kFirst; call < kFirst + 60 && commits_lost == 0; ++call) {
    const std::string name = fmt::format("store-{}", call);
    const bool feeds = call == kFirst;
    const GpuRun run{
        .store = name,
        .more = fmt::format(", anchors: {{path: {}, every: 1h}}", dir_ / (name + ".anchors")),
        .end = feeds ? "kafka: {bootstrap.servers: \"127.0.0.1:1\"}\n"
                       "feed: {topic: model, interval_ms: 20, max_age_ms: 3600000}\n"
                     : ""};
    const Ended lost = Learn(run, fmt::format("fail={}:{}", call, code::kEccUncorrectable));
    ASSERT_EQ(lost.exit_code, 1) << lost.err;
    commits_lost += lost.err.find("commit failed: commit ") != std::string::npos;
    std::smatch last;
    ASSERT_TRUE(std::regex_search(lost.err, last, std::regex("stopped at commit ([0-9]+)")));
    const auto anchors = wiring::ReadWholeAnchorFile(dir_ / (name + ".anchors"));
    ASSERT_TRUE(anchors) << anchors.error().message;
    EXPECT_EQ(fmt::format("{}", anchors->back().commit), last[1].str()) << lost.err;
    if (feeds) {
      EXPECT_THAT(lost.err, HasSubstr(fmt::format("commit {} is not published: the next start",
                                                  last[1].str())));
    }
    ExpectLoss(lost.err, ReadOutcome(dir_, name).steps);
  }
  EXPECT_GT(commits_lost, 0u);
}

// The last commit is served on, and answers say that there is no more.
TEST_F(GpuDaemon, ADeviceThatIsLostLeavesAServerThatSaysSo) {
  const GpuRun run{.listen = "\"unix:" + (dir_ / "socket") + "\""};
  test::Process daemon(
      {TACITD_CRASH, "--config", run.Write(dir_), "--set", "store.on_failure=serve"},
      {fmt::format("TACIT_TEST_GPU=fail=700:{}", code::kEccUncorrectable)});
  std::string ready;
  ASSERT_TRUE(test::Eventually(
      "the server tells of the failure",
      [&] {
        const auto answer =
            http::Fetch("unix:" + (dir_ / "socket") + ":/readyz", "GET", "", test::kPatience);
        ready = answer ? fmt::format("{} {}", answer->status, answer->body) : "";
        return ready.find("training has failed") != std::string::npos;
      }))
      << ready << daemon.Err();
  EXPECT_THAT(ready, ::testing::StartsWith("503 "));
  const auto metrics =
      http::Fetch("unix:" + (dir_ / "socket") + ":/metrics", "GET", "", test::kPatience);
  ASSERT_TRUE(metrics);
  EXPECT_THAT(metrics->body, HasSubstr("tacit_training_failed 1"));
  EXPECT_THAT(daemon.Err(), HasSubstr("the last commit is served on"));
}

TEST_F(GpuDaemon, OperatorsSeeWhetherOneIsUsed) {
  const auto see = [&](const std::string& gpu, const std::string& machine,
                       const std::string& told) {
    const GpuRun run{.gpu = gpu, .listen = "\"unix:" + (dir_ / "socket") + "\""};
    test::Process daemon({TACITD_CRASH, "--config", run.Write(dir_), "--set",
                          "serve.operator_listen=unix:" + (dir_ / "operator")},
                         {"TACIT_TEST_GPU=" + machine});
    std::string metrics;
    EXPECT_TRUE(test::Eventually("the operator's metrics tell of the GPU", [&] {
      const auto answer =
          http::Fetch("unix:" + (dir_ / "operator") + ":/metrics", "GET", "", test::kPatience);
      metrics = answer ? answer->body : "";
      return metrics.find("tacit_gpu_used " + told) != std::string::npos;
    })) << metrics;
  };
  see("{use: prefer}", "driver=0", "0");
  see("{use: prefer}", "memory=20000", "0");
  see("{use: require}", "driver=13000", "1");
  const GpuRun run{.listen = "\"unix:" + (dir_ / "socket") + "\""};
  test::Process daemon({TACITD_CRASH, "--config", run.Write(dir_), "--set",
                        "serve.operator_listen=unix:" + (dir_ / "operator")});
  ASSERT_TRUE(test::Eventually("the server is there", [&] {
    return http::Fetch("unix:" + (dir_ / "socket") + ":/readyz", "GET", "", test::kPatience)
        .has_value();
  })) << daemon.Err();
  const auto open =
      http::Fetch("unix:" + (dir_ / "socket") + ":/metrics", "GET", "", test::kPatience);
  ASSERT_TRUE(open);
  EXPECT_THAT(open->body, Not(HasSubstr("tacit_gpu")));
}

}  // namespace
}  // namespace tacit::cuda::testing
