#include "daemon/gpu_choice.h"

#include <gtest/gtest.h>

#include "config/sample.h"

namespace tacit::daemon {
namespace {

constexpr train::GpuNeed kNeed = {.rows = 3000, .rest = 1000};

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

 private:
  const uint64_t free_;
};

// The sample's assembly with this gpu.use.
Result<wiring::Assembly> SampleUsing(const std::string& use) {
  auto config = config::Parse(config::kSample, "c.yaml", {"gpu.use=" + use});
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

}  // namespace
}  // namespace tacit::daemon
