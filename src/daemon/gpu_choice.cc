#include "daemon/gpu_choice.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"

namespace tacit::daemon {
namespace {

// A GPU that is busy, or whose driver is not up yet, is not a configuration to be mended: a service
// manager tries again. Nor is it a store that refuses, which has its own exit code.
ErrorCode AsStartFails(ErrorCode code) {
  return code == ErrorCode::kInvalidArgument ? code : ErrorCode::kIo;
}

train::GpuOptions OptionsOf(const config::Gpu& gpu) {
  using Kind = train::GpuRowOptions::Kind;
  Kind kind = Kind::kAuto;
  if (gpu.rows == config::Gpu::Rows::kWhole) kind = Kind::kWhole;
  if (gpu.rows == config::Gpu::Rows::kCache) kind = Kind::kCache;
  using Products = train::GpuProducts;
  Products products = Products::kOwn;
  if (gpu.gemm == config::Gpu::Gemm::kLibrary) products = Products::kLibrary;
  if (gpu.gemm == config::Gpu::Gemm::kAuto) products = Products::kAuto;
  return {.ordinal = static_cast<int>(gpu.device),
          .rows = {.kind = kind, .cache_bytes = gpu.cache_bytes},
          .products = products};
}

}  // namespace

Result<GpuChoice> GpuChoice::Make(const wiring::Assembly& assembly, const Open& open) {
  using Use = config::Gpu::Use;
  const config::Gpu& wanted = assembly.config.gpu;
  GpuChoice choice;
  choice.required_ = wanted.use == Use::kRequire;
  if (wanted.use == Use::kNever) return choice;
  if (choice.required_) {
    for (const wiring::LearnerPlan& plan : assembly.learners)
      if (const std::string why = plan.model->WhyNotOnGpu(); !why.empty())
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("learner '{}': gpu.use is require, and {}. Set gpu.use to prefer, "
                                "and it learns on the CPU beside the others",
                                plan.id, why));
  }
  auto gpu = open(OptionsOf(wanted));
  if (gpu) {
    choice.gpu_ = std::move(*gpu);
    spdlog::info("{} is there for the learners", choice.gpu_->name());
    return choice;
  }
  if (choice.required_)
    return Fail(AsStartFails(gpu.error().code), "gpu.use is require, and " + gpu.error().message);
  spdlog::warn("gpu.use is prefer: learning on the CPU, because {}", gpu.error().message);
  return choice;
}

Result<std::unique_ptr<train::Learner>> GpuChoice::Learner(const wiring::LearnerPlan& plan,
                                                           const MakeLearner& make) {
  if (gpu_ == nullptr) return make(nullptr);
  std::string why = plan.model->WhyNotOnGpu();
  if (why.empty()) {
    auto learner = make(gpu_.get());
    if (learner) {
      spdlog::info("learner '{}' learns on {}", plan.id, gpu_->name());
      return learner;
    }
    // A device that computes wrongly is no reason to go on without it: somebody has to know.
    if (required_ || learner.error().code == ErrorCode::kCorruption)
      return Fail(AsStartFails(learner.error().code),
                  fmt::format("learner '{}': {}", plan.id, learner.error().message));
    why = learner.error().message;
  }
  spdlog::warn("gpu.use is prefer: learner '{}' learns on the CPU, because {}", plan.id, why);
  return make(nullptr);
}

}  // namespace tacit::daemon
