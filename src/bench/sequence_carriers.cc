#include "bench/sequence_carriers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <memory>

#include "base/hash.h"
#include "bench/bench_data.h"
#include "noise/noise.h"
#include "train/sequence/sequence_stepper.h"
#include "wiring/plans/mechanism_factory.h"

namespace tacit::bench {
namespace {

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
      : stepper_(Options(shape, carriers), {}, backend, noise::MakeNoiseSource()),
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
    const auto& carriers = stepper_.options().carriers;
    if (!carriers) return stepper_.parameters().size();
    return stepper_.model().MakeCarriers(*carriers, stepper_.parameters(), 1)->sum_size();
  }
  // The bytes that carriers keep beside the step's: the matrices as they began, the way of one of
  // them, and an update of all parameters.
  size_t BytesBeside() {
    if (!stepper_.options().carriers) return 0;
    size_t kept = 0, largest = 0;
    for (const model::Carriers::Weights& w : stepper_.model().layout().Matrices()) {
      kept += w.in * w.out;
      largest = std::max(largest, w.in * w.out);
    }
    return sizeof(float) * (stepper_.parameters().size() + kept + largest);
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
    options.carriers = wiring::MakeCarriers(mechanism);
    return options;
  }

  train::SequenceStepper stepper_;
  const model::Histories& histories_;
  std::vector<uint64_t> everybody_;
  std::vector<double> seconds_;
};

// A worker has an integer and a float of each number that is summed.
constexpr size_t kBytesOfNumber = sizeof(int64_t) + sizeof(float);

BenchRow RowOf(const SequenceShape& shape, const config::Carriers& carriers, SequenceRig& rig,
               SequenceRig& without) {
  const double times = rig.SecondsPerStep() / without.SecondsPerStep();
  const size_t numbers = rig.Numbers(), all = without.Numbers();
  const bool random = carriers.from == config::Carriers::From::kRandom;
  return {.name = fmt::format("carriers-sequence-width{}-{}-rank{}", shape.width,
                              random ? "random" : "history", carriers.rank),
          .value = times,
          .unit = "times a step without",
          .limit = kMostCarrierTimes,
          .more = {{"width", shape.width},
                   {"catalogue", shape.catalogue},
                   {"users", shape.users},
                   {"rank", carriers.rank},
                   {"seconds_without", without.SecondsPerStep()},
                   {"seconds", rig.SecondsPerStep()},
                   {"numbers_without", all},
                   {"numbers", numbers},
                   {"worker_bytes_without", all * kBytesOfNumber},
                   {"worker_bytes", numbers * kBytesOfNumber},
                   {"bytes_beside", rig.BytesBeside()}},
          .note = fmt::format("{:.1f} ms without, {} numbers noised of {}",
                              1e3 * without.SecondsPerStep(), numbers, all)};
}

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
    rows->push_back(RowOf(shape, settings[i], *rigs[i + 1], *rigs[0]));
  return {};
}

}  // namespace

Status AddSequenceCarriers(std::span<const config::Carriers> settings, bool quick,
                           std::vector<BenchRow>* rows) {
  for (const SequenceShape& shape : kSequenceShapes)
    TACIT_RETURN_IF_ERROR(AddShape(shape, settings, quick ? 1 : 12, rows));
  return {};
}

model::Histories FullWindows(uint32_t catalogue, uint32_t length, uint32_t users) {
  model::Histories histories;
  histories.catalogue = catalogue;
  for (uint32_t u = 0; u < users; ++u) {
    for (uint32_t i = 0; i <= length; ++i) {
      const double share = (Philox({i, u, 0, 0}, {7, 0})[0] + 0.5) * 0x1p-32;
      histories.items.push_back(
          std::min(catalogue - 1, static_cast<uint32_t>(std::pow(catalogue, share) - 1)));
    }
    histories.end.push_back(histories.items.size());
  }
  return histories;
}

}  // namespace tacit::bench
