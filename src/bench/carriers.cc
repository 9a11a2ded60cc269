#include <fmt/format.h>

#include <utility>

#include "bench/sequence_carriers.h"
#include "bench/step_rig.h"
#include "bench/suite.h"
#include "wiring/kinds/click.h"

// A private step with low-rank carriers over the same step without (paper 004 against DP-SGD).
namespace tacit::bench {
namespace {

constexpr size_t kCarrierSteps = 4;

// The setup's learner with these layers and carriers.
Result<std::unique_ptr<StepRig>> MakeCarrierRig(const BenchSetup& from, uint32_t width,
                                                const config::Carriers& carriers) {
  BenchSetup setup{.assembly = {}, .steps = from.steps};
  config::Config config = from.assembly.config;
  config.learners[0].model.hidden.assign(4, width);
  config.learners[0].mechanism.carriers = carriers;
  TACIT_ASSIGN(setup.assembly, wiring::Assemble(config));
  return StepRig::Make(std::move(setup));
}

struct Noised {
  size_t all = 0, carried = 0;
};

// The numbers that a step's dense sum has.
Noised NumbersOf(const StepRig& rig) {
  const train::ClickOptions& options = *wiring::ClickOptionsOf(rig.setup().assembly.learners[0]);
  const wiring::ShapeModel shape(options.model);
  Noised noised{shape.model.dense_size(), shape.model.dense_size()};
  if (options.carriers)
    noised.carried = shape.model.MakeCarriers(*options.carriers, options.seed)->sum_size();
  return noised;
}

// The carriers that both models are measured with: by rank, and by source.
std::vector<config::Carriers> CarrierSettings() {
  std::vector<config::Carriers> settings;
  for (const uint32_t rank : {1, 4, 8, 16, 32}) {
    settings.emplace_back();
    settings.back().from = config::Carriers::From::kHistory;
    settings.back().rank = rank;
  }
  settings.emplace_back();
  settings.back().from = config::Carriers::From::kRandom;
  return settings;
}

Status AddCarriers(const std::string& compute, uint32_t width, int rounds,
                   std::vector<BenchRow>* rows) {
  using From = config::Carriers::From;
  TACIT_ASSIGN(const BenchSetup setup,
               MakeBenchSetup({.compute = compute, .steps = kCarrierSteps}));
  std::vector<config::Carriers> settings = CarrierSettings();
  settings.insert(settings.begin(), config::Carriers());
  std::vector<std::unique_ptr<StepRig>> rigs;
  std::vector<StepRig*> turns;
  for (const config::Carriers& carriers : settings) {
    TACIT_ASSIGN(auto rig, MakeCarrierRig(setup, width, carriers));
    rigs.push_back(std::move(rig));
    turns.push_back(rigs.back().get());
  }
  TACIT_RETURN_IF_ERROR(TakeTurns(turns, rounds));
  const double without = rigs[0]->SecondsPerStep();
  for (size_t i = 1; i < rigs.size(); ++i) {
    const Noised noised = NumbersOf(*rigs[i]);
    const std::string_view from = settings[i].from == From::kRandom ? "random" : "history";
    rows->push_back({.name = fmt::format("carriers-{}-width{}-{}-rank{}", compute, width, from,
                                         settings[i].rank),
                     .value = rigs[i]->SecondsPerStep() / without,
                     .unit = "times a step without",
                     .limit = kMostCarrierTimes,
                     .more = {{"width", width},
                              {"rank", settings[i].rank},
                              {"seconds_without", without},
                              {"seconds", rigs[i]->SecondsPerStep()},
                              {"numbers_without", noised.all},
                              {"numbers", noised.carried}},
                     .note = fmt::format("{:.1f} ms without, {} numbers noised of {}",
                                         1e3 * without, noised.carried, noised.all)});
  }
  return {};
}

}  // namespace

Result<std::vector<BenchRow>> BenchCarriers(const BenchRequest& request) {
  const int rounds = request.quick ? 1 : 12;
  std::vector<BenchRow> rows;
  TACIT_RETURN_IF_ERROR(AddCarriers("f32", 598, rounds, &rows));
  TACIT_RETURN_IF_ERROR(AddSequenceCarriers(CarrierSettings(), request.quick, &rows));
  if (request.quick) return rows;
  TACIT_RETURN_IF_ERROR(AddCarriers("f32", 128, rounds, &rows));
  WorkerPool workers({.workers = 1});
  if (ops::MakeCpuBackend(workers)->has_fast_bf16())
    TACIT_RETURN_IF_ERROR(AddCarriers("bf16", 598, rounds, &rows));
  return rows;
}

}  // namespace tacit::bench
