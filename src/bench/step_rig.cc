#include "bench/step_rig.h"

#include <atomic>
#include <utility>

#include "base/clock.h"

namespace tacit::bench {

Result<std::unique_ptr<StepRig>> StepRig::Make(BenchSetup setup, train::Gpu* gpu) {
  auto rig = std::make_unique<StepRig>();
  rig->setup_ = std::move(setup);
  const wiring::ModelPlan& model = *rig->setup_.assembly.learners[0].model;
  rig->rows_ = std::make_unique<train::MemoryRows>(model.Rows());
  TACIT_ASSIGN(rig->learner_,
               model.Make({.noise = noise::MakeNoiseSource(rig->workers_),
                           .backend = [&rig = *rig]() -> ops::Backend& { return *rig.backend_; },
                           .workers = rig->workers_,
                           .rows = *rig->rows_,
                           .gpu = gpu}));
  return rig;
}

Status StepRig::Step() {
  const SystemClock clock;
  const std::atomic<bool> abandon = false;
  train::StepReport report;
  const stream::StepBatch& step = setup_.steps[next_++ % setup_.steps.size()];
  const auto start = clock.Now();
  learner_->Announce(setup_.steps[next_ % setup_.steps.size()]);
  const Result<bool> taken = learner_->TakeStep(step, abandon, &report);
  learner_->Withdraw();
  TACIT_RETURN_IF_ERROR(taken);
  if (!*taken) return Fail(ErrorCode::kInternal, "a step was abandoned");
  seconds_.push_back(Seconds(clock.Now() - start));
  return {};
}

double StepRig::SecondsPerStep() const { return Median(seconds_); }

Status TakeTurns(const std::vector<StepRig*>& rigs, int rounds) {
  for (int round = 0; round <= rounds; ++round) {
    if (round == 1)
      for (StepRig* rig : rigs) rig->ForgetTimes();
    for (StepRig* rig : rigs) TACIT_RETURN_IF_ERROR(rig->Step());
  }
  return {};
}

}  // namespace tacit::bench
