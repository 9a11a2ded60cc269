#include <fmt/format.h>

#include <ctime>
#include <memory>
#include <utility>

#include "bench/bench_data.h"
#include "bench/step_rig.h"
#include "bench/suite.h"
#include "noise/noise.h"
#include "train/sequence/sequence_stepper.h"
#include "wiring/kinds/click.h"
#include "wiring/plans/mechanism_factory.h"

// A private step with low-rank carriers over the same step without (paper 004 against DP-SGD).
namespace tacit::bench {
namespace {

constexpr size_t kCarrierSteps = 4;
// The time with carriers over the time without that both models are held to.
constexpr double kMostCarrierTimes = 1.3;

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

// The numbers of a step's dense sum, and of the whole gradient.
std::pair<size_t, size_t> NumbersOf(StepRig& rig) {
  const train::ClickOptions& options = *wiring::ClickOptionsOf(rig.setup().assembly.learners[0]);
  const wiring::ShapeModel shape(options.model);
  const size_t all = shape.model.dense_size();
  const auto map = options.sum_map.Make(
      shape.model.Matrices(), shape.model.InitialDense(options.seed), options.seed, rig.backend());
  return {map->PlaceOf(all), all};
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

BenchRow CarrierRow(std::string_view of, uint32_t width, const config::Carriers& carriers,
                    double without, double seconds, size_t all, size_t numbers) {
  const bool random = carriers.from == config::Carriers::From::kRandom;
  return {.name = fmt::format("carriers-{}-width{}-{}-rank{}", of, width,
                              random ? "random" : "history", carriers.rank),
          .value = seconds / without,
          .unit = "times a step without",
          .limit = kMostCarrierTimes,
          .more = {{"width", width},
                   {"rank", carriers.rank},
                   {"seconds_without", without},
                   {"seconds", seconds},
                   {"numbers_without", all},
                   {"numbers", numbers}},
          .note = fmt::format("{:.1f} ms without, {} numbers noised of {}", 1e3 * without, numbers,
                              all)};
}

Status AddCarriers(const std::string& compute, uint32_t width, int rounds,
                   std::vector<BenchRow>* rows) {
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
    const auto [numbers, all] = NumbersOf(*rigs[i]);
    rows->push_back(
        CarrierRow(compute, width, settings[i], without, rigs[i]->SecondsPerStep(), all, numbers));
  }
  return {};
}

// A model and the users of a step. The first is MovieLens-1M's, most of whose work is the softmax
// over its catalogue; in the second nearly all work is in the encoder's matrices.
struct SequenceShape {
  uint32_t catalogue, length, width, users;
};
constexpr SequenceShape kSequenceShapes[] = {{3417, 200, 64, 32}, {500, 50, 256, 64}};

// A private learner and the times of its steps: the processor's, on one core, which a busy
// neighbour disturbs less than the clock's.
class SequenceRig {
 public:
  SequenceRig(const SequenceShape& shape, const config::Carriers& carriers,
              const model::Histories& histories, ops::Backend& backend)
      : backend_(backend),
        stepper_(Options(shape, carriers), {}, backend, noise::MakeNoiseSource()),
        histories_(histories),
        everybody_(histories.units()) {
    for (uint64_t u = 0; u < everybody_.size(); ++u) everybody_[u] = u;
  }

  Status Step() {
    train::SequenceStepReport report;
    const std::clock_t start = std::clock();
    TACIT_RETURN_IF_ERROR(stepper_.Step(
        model::HistoryUnits(stepper_.options().model, histories_, everybody_), &report));
    seconds_.push_back(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    return {};
  }
  void ForgetTimes() { seconds_.clear(); }
  double SecondsPerStep() const { return Median(seconds_); }
  // The numbers that a step sums and noises.
  size_t Numbers() {
    return stepper_.options()
        .sum_map.Make(stepper_.model().layout().Matrices(), stepper_.parameters(), 1, backend_)
        ->PlaceOf(stepper_.parameters().size());
  }
  size_t BytesBeside() {
    if (!stepper_.options().sum_map) return 0;
    return sizeof(float) *
           model::NumbersKept(stepper_.model().layout().Matrices(), stepper_.parameters().size());
  }

 private:
  static train::SequenceTrainingOptions Options(const SequenceShape& shape,
                                                const config::Carriers& carriers) {
    train::SequenceTrainingOptions options;
    options.model.catalogue = shape.catalogue;
    options.model.length = shape.length;
    options.model.width = shape.width;
    options.expected_batch = shape.users;
    options.privacy.sigma = 1;
    options.privacy.clip = train::SequenceGuard::Clip::kNormalised;
    config::Mechanism mechanism;
    mechanism.kind = config::MechanismKind::kDpSgd;
    mechanism.carriers = carriers;
    options.sum_map = wiring::MakeSumMap(mechanism);
    return options;
  }

  ops::Backend& backend_;
  train::SequenceStepper stepper_;
  const model::Histories& histories_;
  std::vector<uint64_t> everybody_;
  std::vector<double> seconds_;
};

// A worker has an integer and a float of each number that is summed.
constexpr size_t kBytesOfNumber = sizeof(int64_t) + sizeof(float);

BenchRow CarrierRow(const SequenceShape& shape, const config::Carriers& carriers, SequenceRig& rig,
                    SequenceRig& without) {
  const size_t numbers = rig.Numbers(), all = without.Numbers();
  BenchRow row = CarrierRow("sequence", shape.width, carriers, without.SecondsPerStep(),
                            rig.SecondsPerStep(), all, numbers);
  row.more["catalogue"] = shape.catalogue;
  row.more["users"] = shape.users;
  row.more["worker_bytes_without"] = all * kBytesOfNumber;
  row.more["worker_bytes"] = numbers * kBytesOfNumber;
  row.more["bytes_beside"] = rig.BytesBeside();
  return row;
}

// Private steps of the sequence model with each of these carriers over steps without, in turns on
// one core.
Status AddShape(const SequenceShape& shape, std::span<const config::Carriers> settings, int rounds,
                std::vector<BenchRow>* rows) {
  WorkerPool workers({.workers = 1});
  const auto backend = ops::MakeCpuBackend(workers);
  const model::Histories histories = FullWindows(shape.catalogue, shape.length, shape.users);
  std::vector<std::unique_ptr<SequenceRig>> rigs;
  rigs.push_back(std::make_unique<SequenceRig>(shape, config::Carriers(), histories, *backend));
  for (const config::Carriers& carriers : settings)
    rigs.push_back(std::make_unique<SequenceRig>(shape, carriers, histories, *backend));
  for (int round = 0; round <= rounds; ++round)
    for (const auto& rig : rigs) {
      if (round == 1) rig->ForgetTimes();
      TACIT_RETURN_IF_ERROR(rig->Step());
    }
  for (size_t i = 0; i < settings.size(); ++i)
    rows->push_back(CarrierRow(shape, settings[i], *rigs[i + 1], *rigs[0]));
  return {};
}

}  // namespace

Result<std::vector<BenchRow>> BenchCarriers(const BenchRequest& request) {
  const int rounds = request.quick ? 1 : 12;
  std::vector<BenchRow> rows;
  TACIT_RETURN_IF_ERROR(AddCarriers("f32", 598, rounds, &rows));
  for (const SequenceShape& shape : kSequenceShapes)
    TACIT_RETURN_IF_ERROR(AddShape(shape, CarrierSettings(), rounds, &rows));
  if (request.quick) return rows;
  TACIT_RETURN_IF_ERROR(AddCarriers("f32", 128, rounds, &rows));
  WorkerPool workers({.workers = 1});
  if (ops::MakeCpuBackend(workers)->has_fast_bf16())
    TACIT_RETURN_IF_ERROR(AddCarriers("bf16", 598, rounds, &rows));
  return rows;
}

}  // namespace tacit::bench
