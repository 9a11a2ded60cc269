#include "daemon/gpu_choice.h"

#include <gtest/gtest.h>

#include "config/sample.h"

namespace tacit::daemon {
namespace {

class NamedGpu final : public train::Gpu {
 public:
  std::string name() const override { return "GPU 0 (named)"; }
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
};

struct Chosen {
  bool made = false;
  int on_gpu = 0, on_cpu = 0;  // tries
};

// Chooses for a learner whose making fails like this on a GPU.
Chosen ChooseWhere(const std::string& use, ErrorCode on_gpu) {
  const auto config = config::Parse(config::kSample, "c.yaml", {"gpu.use=" + use});
  EXPECT_TRUE(config);
  const auto assembly = wiring::Assemble(*config);
  EXPECT_TRUE(assembly);
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

// Somebody has to know of a device that computes wrongly.
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

}  // namespace
}  // namespace tacit::daemon
