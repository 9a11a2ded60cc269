#include "daemon/gpu_choice.h"

#include <gtest/gtest.h>

#include "unit/config/sample.h"

namespace tacit::daemon {
namespace {

constexpr train::GpuNeed kNeed = {.rows = 3000, .rest = 1000};
constexpr train::GpuNeed kScoringNeed = {.rows = 300, .rest = 100};

class NamedGpu final : public train::Gpu {
 public:
  explicit NamedGpu(uint64_t free = 1 << 20) : free_(free) {}

  std::string name() const override { return "GPU 0 (named)"; }
  Result<uint64_t> FreeBytes() override { return free_; }
  Result<train::GpuNeed> ClickEngineNeed(const train::ClickEngineOptions&, bool,
                                         uint64_t) override {
    return kNeed;
  }
  train::GpuNeed SequenceEngineNeed(const train::SequenceEngineOptions&) override { return kNeed; }
  Result<std::unique_ptr<train::ClickEngine>> MakeClickEngine(const train::ClickEngineOptions&,
                                                              mechanism::Mechanism&,
                                                              noise::NoiseSource&,
                                                              store::WorkingRows&,
                                                              const store::DenseState&) override {
    return Fail(ErrorCode::kInternal, "nobody asks for one here");
  }
  Result<std::unique_ptr<train::SequenceEngine>> MakeSequenceEngine(
      const train::SequenceEngineOptions&, noise::NoiseSource&) override {
    return Fail(ErrorCode::kInternal, "nobody asks for one here");
  }
  train::GpuNeed PctrDeviceNeed(const train::GpuScoreOptions&) override { return kScoringNeed; }
  Result<std::unique_ptr<model::PctrDevice>> MakePctrDevice(
      const train::GpuScoreOptions&) override {
    return Fail(ErrorCode::kUnavailable, "its memory has gone");
  }

 private:
  const uint64_t free_;
};

// The sample's assembly with this gpu.use.
Result<wiring::Assembly> SampleUsing(const std::string& use, uint32_t serve_rows = 0) {
  auto config = config::Parse(config::kSample, "c.yaml",
                              {"gpu.use=" + use, "gpu.serve_rows=" + std::to_string(serve_rows)});
  EXPECT_TRUE(config);
  auto assembly = wiring::Assemble(*std::move(config));
  EXPECT_TRUE(assembly);
  return assembly;
}

struct Chosen {
  bool made = false;
  int on_gpu = 0, on_cpu = 0;  // tries
};

// Chooses for a learner whose making fails like this on a GPU.
Chosen ChooseWhere(const std::string& use, ErrorCode on_gpu) {
  const auto assembly = SampleUsing(use);
  auto choice = GpuChoice::Make(
      *assembly, [](const train::GpuOptions&) { return std::make_unique<NamedGpu>(); });
  EXPECT_TRUE(choice);
  Chosen chosen;
  const auto learner = choice->Learner(
      assembly->learners.at(0), [&](train::Gpu* gpu) -> Result<std::unique_ptr<train::Learner>> {
        ++(gpu != nullptr ? chosen.on_gpu : chosen.on_cpu);
        if (gpu != nullptr) return Fail(on_gpu, "it does not compute what the CPU does");
        return std::unique_ptr<train::Learner>();
      });
  chosen.made = learner.has_value();
  return chosen;
}

// A device that computes wrongly is a thing to be told of.
TEST(GpuChoice, ADeviceThatFailsItsTestIsNeverDoneWithout) {
  for (const char* use : {"prefer", "require"}) {
    const Chosen chosen = ChooseWhere(use, ErrorCode::kCorruption);
    EXPECT_FALSE(chosen.made) << use;
    EXPECT_EQ(chosen.on_gpu, 1) << use;
    EXPECT_EQ(chosen.on_cpu, 0) << use;
  }
}

TEST(GpuChoice, OtherFailuresAreDoneWithoutWhereAGpuIsButPreferred) {
  for (const ErrorCode code : {ErrorCode::kRefused, ErrorCode::kUnavailable}) {
    const Chosen preferred = ChooseWhere("prefer", code), required = ChooseWhere("require", code);
    EXPECT_TRUE(preferred.made);
    EXPECT_EQ(preferred.on_cpu, 1);
    EXPECT_FALSE(required.made);
    EXPECT_EQ(required.on_cpu, 0);
  }
}

// The refusal of a choice for the sample's learner on a GPU with so much free memory; and whether
// the GPU is asked for an engine.
struct RoomFound {
  std::string refused;
  int on_gpu = 0, on_cpu = 0;
};
RoomFound ChooseWithFree(const std::string& use, uint64_t free) {
  const auto assembly = SampleUsing(use);
  auto choice = GpuChoice::Make(
      *assembly, [&](const train::GpuOptions&) { return std::make_unique<NamedGpu>(free); });
  RoomFound found;
  if (!choice) {
    EXPECT_EQ(choice.error().code, ErrorCode::kIo) << "another process may give memory back";
    found.refused = choice.error().message;
    return found;
  }
  const auto learner = choice->Learner(
      assembly->learners.at(0), [&](train::Gpu* gpu) -> Result<std::unique_ptr<train::Learner>> {
        ++(gpu != nullptr ? found.on_gpu : found.on_cpu);
        return std::unique_ptr<train::Learner>();
      });
  EXPECT_TRUE(learner);
  return found;
}

TEST(GpuChoice, TooLittleMemoryIsRefusedOrDoneWithoutBeforeAnEngineIsMade) {
  for (const uint64_t free : {kNeed.all(), kNeed.all() - 1}) {
    const bool enough = free == kNeed.all();
    const RoomFound required = ChooseWithFree("require", free);
    EXPECT_EQ(required.refused.empty(), enough) << required.refused;
    EXPECT_EQ(required.on_gpu, enough ? 1 : 0);
    const RoomFound preferred = ChooseWithFree("prefer", free);
    EXPECT_EQ(preferred.refused, "");
    EXPECT_EQ(preferred.on_gpu, enough ? 1 : 0);
    EXPECT_EQ(preferred.on_cpu, enough ? 0 : 1);
  }
}

TEST(GpuChoice, ARefusalSaysHowMuchIsAskedForWhatIsFreeAndWhichKeyToLower) {
  const std::string rows = ChooseWithFree("require", 3999).refused;
  EXPECT_NE(rows.find("its start takes 4000 bytes of the memory of GPU 0 (named), and 3999 are "
                      "free: 3000 for whole tables, and 1000 for"),
            std::string::npos)
      << rows;
  EXPECT_NE(rows.find("set gpu.rows to cache, or end"), std::string::npos) << rows;
  const std::string rest = ChooseWithFree("require", 1000).refused;
  EXPECT_NE(rest.find("lower model.hidden or participation.batch, or end"), std::string::npos)
      << rest;
}

GpuChoice::Open OpensWithFree(uint64_t free) {
  return [free](const train::GpuOptions&) { return std::make_unique<NamedGpu>(free); };
}

// Scoring has the room that learners leave, and is refused or done without as they are.
TEST(GpuChoice, ScoringHasRoomBehindTheLearnersOrIsRefusedOrDoneWithout) {
  const uint64_t all = kNeed.all() + kScoringNeed.all();
  for (const uint64_t free : {all, all - 1}) {
    const auto required = SampleUsing("require", 100), preferred = SampleUsing("prefer", 100);
    const auto choice = GpuChoice::Make(*required, OpensWithFree(free));
    EXPECT_EQ(choice.has_value(), free == all);
    if (!choice) {
      EXPECT_NE(choice.error().message.find(
                    "scoring its large requests takes 400 bytes of the memory of GPU 0 (named), "
                    "and 399 are free: 300 for cached rows, and 100 for"),
                std::string::npos)
          << choice.error().message;
    }
    auto done = GpuChoice::Make(*preferred, OpensWithFree(free));
    ASSERT_TRUE(done);
    int on_gpu = 0;
    EXPECT_TRUE(done->Learner(preferred->learners.at(0), [&](train::Gpu* gpu) {
      on_gpu += gpu != nullptr;
      return Result<std::unique_ptr<train::Learner>>();
    }));
    EXPECT_EQ(on_gpu, 1) << "it learns there all the same";
    // This GPU makes no scorer: the processor's is as good.
    metrics::Registry registry;
    EXPECT_EQ(done->ScoringModels(registry).size(), 1u);
  }
}

TEST(GpuChoice, AServerOpensAGpuForScoringAlone) {
  int opened = 0;
  const auto open = [&](const train::GpuOptions&) -> Result<std::unique_ptr<train::Gpu>> {
    if (++opened < 3) return std::make_unique<NamedGpu>(kScoringNeed.all());
    return Fail(ErrorCode::kUnavailable, "no driver");
  };
  const auto never = SampleUsing("require"), some = SampleUsing("require", 100),
             preferred = SampleUsing("prefer", 100);
  EXPECT_TRUE(GpuChoice::MakeToServe(*never, open));
  EXPECT_EQ(opened, 0) << "nothing is scored on it";
  EXPECT_TRUE(GpuChoice::MakeToServe(*some, open)) << "the learner's own need does not count";
  EXPECT_FALSE(GpuChoice::MakeToServe(*some, OpensWithFree(kScoringNeed.all() - 1)));
  EXPECT_TRUE(GpuChoice::MakeToServe(*preferred, OpensWithFree(0)));
  opened = 2;
  EXPECT_FALSE(GpuChoice::MakeToServe(*some, open));
  EXPECT_TRUE(GpuChoice::MakeToServe(*preferred, open));
  EXPECT_FALSE(GpuChoice::MakeToServe(*some, {}));
}

// The memory that scoring takes beside the device is in the plan.
TEST(GpuChoice, ThePlanOfMemoryHasWhatScoringTakes) {
  const auto without = SampleUsing("require"), with = SampleUsing("require", 100);
  const auto options = with->learners.at(0).model->GpuScoring();
  ASSERT_TRUE(options);
  EXPECT_FALSE(without->learners.at(0).model->GpuScoring());
  const train::GpuScoreSizes sizes = train::SizesOfGpuScoring(*options);
  EXPECT_GE(with->memory.request_bytes - with->memory.held_bytes,
            without->memory.request_bytes - without->memory.held_bytes +
                train::GpuScorePinnedBytes(sizes) + train::GpuScoreIndexBytes(sizes));
}

}  // namespace
}  // namespace tacit::daemon
