#include "daemon/gpu_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/files/log.h"
#include "store/disk/folder.h"
#include "store/store.h"

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

// Says what is too little, and what would help: fewer rows, where they have no room beside the
// rest, or less of the rest.
std::string NoRoom(const wiring::GpuStart& start, const train::Gpu& gpu, uint64_t free) {
  const train::GpuNeed& need = start.need;
  return fmt::format(
      "its start takes {} bytes of the memory of {}, and {} are free: {} for {}, and {} for its "
      "dense parameters and what a step works in; {}, or end what else uses the GPU",
      need.all(), gpu.name(), free, need.rows, need.caches ? "cached rows" : "whole tables",
      need.rest, need.rest < free ? start.fewer_rows : start.less_rest);
}

}  // namespace

Result<GpuChoice> GpuChoice::Make(const wiring::Assembly& assembly, Open open) {
  GpuChoice choice;
  choice.assembly_ = &assembly;
  choice.open_ = std::move(open);
  choice.decided_ = false;
  // A store that cannot be looked at says so when it is opened.
  if (assembly.config.gpu.use != config::Gpu::Use::kNever &&
      store::IsHeldByAnother(assembly.config.store.path).value_or(true))
    return choice;
  TACIT_RETURN_IF_ERROR(choice.Decide());
  return choice;
}

Result<GpuChoice> GpuChoice::MakeToServe(const wiring::Assembly& assembly, Open open) {
  GpuChoice choice;
  choice.assembly_ = &assembly;
  choice.open_ = std::move(open);
  if (std::ranges::none_of(assembly.learners, [](const wiring::LearnerPlan& plan) {
        return plan.model->GpuScoring().has_value();
      }))
    return choice;
  const auto free = choice.OpenGpu("to score large requests");
  if (free) {
    TACIT_RETURN_IF_ERROR(choice.FindRoomToScore(*free));
    return choice;
  }
  if (choice.required())
    return Fail(AsStartFails(free.error().code), "gpu.use is require, and " + free.error().message);
  spdlog::warn("gpu.use is prefer: scoring on the CPU, because {}", free.error().message);
  return choice;
}

bool GpuChoice::required() const { return assembly_->config.gpu.use == config::Gpu::Use::kRequire; }

Status GpuChoice::Decide() {
  const config::Gpu& wanted = assembly_->config.gpu;
  decided_ = true;
  why_not_.clear();
  for (const wiring::LearnerPlan& plan : assembly_->learners)
    why_not_.push_back(plan.model->WhyNotOnGpu());
  if (wanted.use == config::Gpu::Use::kNever) return {};
  if (required()) {
    for (size_t i = 0; i < why_not_.size(); ++i)
      if (!why_not_[i].empty())
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("learner '{}': gpu.use is require, and {}. Set gpu.use to prefer, "
                                "and it learns on the CPU beside the others",
                                assembly_->learners[i].id, why_not_[i]));
  }
  const auto free = OpenGpu("for the learners");
  if (free) return FindRoom(*free);
  if (required())
    return Fail(AsStartFails(free.error().code), "gpu.use is require, and " + free.error().message);
  spdlog::warn("gpu.use is prefer: learning on the CPU, because {}", free.error().message);
  return {};
}

// Returns the bytes of its memory that are free.
Result<uint64_t> GpuChoice::OpenGpu(const char* why) {
  if (!open_) return Fail(ErrorCode::kInvalidArgument, "this program uses no GPU");
  TACIT_ASSIGN(auto gpu, open_(OptionsOf(assembly_->config.gpu)));
  TACIT_ASSIGN(const uint64_t free, gpu->FreeBytes());
  gpu_ = std::move(gpu);
  spdlog::info("{} is there {}", gpu_->name(), why);
  return free;
}

// Gives each learner room behind the ones before it, as they take it.
Status GpuChoice::FindRoom(uint64_t free) {
  for (size_t i = 0; i < why_not_.size(); ++i) {
    if (!why_not_[i].empty()) continue;
    const wiring::LearnerPlan& plan = assembly_->learners[i];
    const auto start = plan.model->StartOnGpu(*gpu_, free);
    if (start && start->need.all() <= free) {
      free -= start->need.all();
      continue;
    }
    why_not_[i] = start ? NoRoom(*start, *gpu_, free) : start.error().message;
    // Another process may give memory back.
    const ErrorCode code = start ? ErrorCode::kUnavailable : start.error().code;
    if (required())
      return Fail(AsStartFails(code),
                  fmt::format("learner '{}': gpu.use is require, and {}", plan.id, why_not_[i]));
  }
  return FindRoomToScore(free);
}

// Gives scoring the room that learners leave.
Status GpuChoice::FindRoomToScore(uint64_t free) {
  scores_.assign(assembly_->learners.size(), false);
  for (size_t i = 0; i < scores_.size(); ++i) {
    const wiring::LearnerPlan& plan = assembly_->learners[i];
    const auto options = plan.model->GpuScoring();
    if (!options) continue;
    const train::GpuNeed need = gpu_->PctrDeviceNeed(*options);
    scores_[i] = need.all() <= free;
    if (scores_[i]) {
      free -= need.all();
      continue;
    }
    const std::string why = fmt::format(
        "scoring its large requests takes {} bytes of the memory of {}, and {} are free: {} for "
        "cached rows, and {} for its parameters and what it works in; lower "
        "gpu.serve_cache_bytes, or set gpu.serve_rows to 0",
        need.all(), gpu_->name(), free, need.rows, need.rest);
    if (required())
      return Fail(ErrorCode::kIo,
                  fmt::format("learner '{}': gpu.use is require, and {}", plan.id, why));
    spdlog::warn("gpu.use is prefer: learner '{}' is scored on the CPU, because {}", plan.id, why);
  }
  return {};
}

std::vector<serve::ScoringModel> GpuChoice::ScoringModels(metrics::Registry& registry) {
  std::vector<serve::ScoringModel> models = wiring::MakeScoringModels(*assembly_);
  if (gpu_ == nullptr) return models;
  for (serve::ScoringModel& model : models) {
    if (!scores_[model.index.value]) continue;
    const wiring::LearnerPlan& plan = assembly_->learners[model.index.value];
    const uint32_t rows = assembly_->config.gpu.serve_rows;
    auto device = gpu_->MakePctrDevice(*plan.model->GpuScoring());
    if (!device) {
      spdlog::warn("learner '{}' is scored on the CPU, because {}", plan.id,
                   device.error().message);
      continue;
    }
    model.model = plan.model->ScoresOn(
        std::make_shared<serve::ScoringDevice>(*std::move(device), rows, plan.id, registry));
    spdlog::info("learner '{}': requests of {} rows and more are scored on {}", plan.id, rows,
                 gpu_->name());
  }
  return models;
}

Result<std::unique_ptr<train::Learner>> GpuChoice::Learner(const wiring::LearnerPlan& plan,
                                                           const MakeLearner& make) {
  if (!decided_) TACIT_RETURN_IF_ERROR(Decide());
  if (gpu_ == nullptr) return make(nullptr);
  std::string why = why_not_[plan.index.value];
  if (why.empty()) {
    auto learner = make(gpu_.get());
    if (learner) {
      spdlog::info("learner '{}' learns on {}", plan.id, gpu_->name());
      return learner;
    }
    // A device that computes wrongly is no reason to go on without it: somebody has to know.
    if (required() || learner.error().code == ErrorCode::kCorruption)
      return Fail(AsStartFails(learner.error().code),
                  fmt::format("learner '{}': {}", plan.id, learner.error().message));
    why = learner.error().message;
  }
  spdlog::warn("gpu.use is prefer: learner '{}' learns on the CPU, because {}", plan.id, why);
  return make(nullptr);
}

}  // namespace tacit::daemon
