#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/result.h"
#include "base/siphash.h"
#include "base/threads/worker_pool.h"
#include "config/config.h"
#include "event/feature_transform.h"
#include "event/item_catalogue.h"
#include "noise/noise.h"
#include "ops/backend.h"
#include "privacy/charge.h"
#include "privacy/pld.h"
#include "privacy/query_table.h"
#include "serve/items/item_model.h"
#include "serve/scoring/device_scorer.h"
#include "serve/scoring/row_scorer.h"
#include "store/model_growth.h"
#include "store/rows/working_rows.h"
#include "store/types/delta.h"
#include "store/types/snapshot.h"
#include "train/counts/recent_histories.h"
#include "train/engines/gpu.h"
#include "train/learner/learner.h"
#include "train/learner/part_summer.h"
#include "wiring/plans/learner_shape.h"
#include "wiring/plans/mechanism_kinds.h"
#include "wiring/plans/noise_plan.h"
#include "wiring/plans/probability_form.h"

// The kinds of learner: one row each in a table, and one file each in kinds/. Nothing else in
// wiring, and nothing in daemon, lab or bench, knows a kind by name.
namespace tacit::wiring {

// The parts of a learner that exist once its store is open. Those that it refers to must outlive
// it.
struct LearnerParts {
  std::unique_ptr<noise::NoiseSource> noise;
  std::function<ops::Backend&()> backend;  // asked by networks alone: making it takes long
  WorkerPool& workers;
  store::WorkingRows& rows;                       // of this learner
  const store::DenseState* dense = nullptr;       // the last commit's; null if there is none
  train::Gpu* gpu = nullptr;                      // if null, its steps are computed here
  uint64_t steps_taken = 0;                       // until that commit
  train::RecentHistories::Reader histories = {};  // reads stored histories of users
  SipHash::Key user_key{};
  const Clock* clock = nullptr;
};

// The memory of a GPU that a learner's engine takes at its start, and what makes that less.
struct GpuStart {
  train::GpuNeed need;
  std::string_view fewer_rows = "";  // for a sentence: "lower ..."
  std::string_view less_rest = "";
};

// A part of a learner's flat dense parameters, for tools that read them.
struct DenseTensor {
  std::string name;
  std::vector<uint64_t> shape;  // row by row
  bool of_items = false;        // it has a row for each item of the catalogue

  uint64_t size() const {
    uint64_t product = 1;
    for (const uint64_t length : shape) product *= length;
    return product;
  }
};

// A learner's model as configured: all that the other rooms ask of its kind. Immutable.
class ModelPlan {
 public:
  virtual ~ModelPlan() = default;

  // The cost of one step; and of a period's release before its steps.
  virtual privacy::Charge charge() const = 0;
  virtual std::optional<privacy::Charge> opening_charge() const { return std::nullopt; }
  // A digest of everything that determines whether stored state is this learner's.
  virtual Digest Fingerprint() const = 0;

  // The note that the store keeps of it, so that it can grow; if empty, models of this kind do not.
  virtual std::string Form() const { return {}; }
  // Turns a trained model of this kind into this one. kRefused: it cannot be.
  virtual Result<store::GrownModel> Grow(const store::StoredModel&) const {
    return Fail(ErrorCode::kRefused, "models of this kind do not grow");
  }
  // The layout of its rows in the store; without tables if it has none.
  virtual store::RowLayout Rows() const { return store::RowLayout(); }
  // The parts of its dense parameters, in their order; if empty, they have no parts.
  virtual std::vector<DenseTensor> DenseTensors() const { return {}; }
  // The form of a click model as of a commit; nothing if it gives no probabilities. kUnavailable if
  // it has no commit yet.
  virtual Result<std::optional<ProbabilityForm>> Probability(const store::Snapshot&) const {
    return std::nullopt;
  }
  // The deviation of the noise on a released number, in what one unit can add to it. REQUIRES that
  // its charge is bounded.
  virtual double NoiseInUnits() const {
    const privacy::Charge of_step = charge();
    return of_step.sigma_gradient > 0 ? of_step.sigma_gradient : of_step.noise_multiplier;
  }
  // The expected number of rows that a step writes without any unit that activated them.
  virtual double UntouchedRows() const { return 0; }
  // Its learner sums a step up, and so may be given the step's examples in parts.
  virtual bool SumsUp() const { return false; }
  // The records of the learner's very first step, where that is shorter than the others; else 0.
  virtual uint64_t OpeningRecords() const { return 0; }
  // Adds the model's sizes to `shape`, whose batch and period are set.
  virtual void AddTo(LearnerShape* shape) const = 0;

  // The reason for which its steps cannot be computed on a GPU; empty if they can.
  virtual std::string WhyNotOnGpu() const { return "models of this kind have no form for a GPU"; }
  // The memory that Make takes of the GPU where so much is free. REQUIRES a form for a GPU. Fails
  // as Make does for tables without one.
  virtual Result<GpuStart> StartOnGpu(train::Gpu&, uint64_t /*free*/) const { return GpuStart(); }
  // The plan must outlive the learner, which may refer to its row space.
  virtual Result<std::unique_ptr<train::Learner>> Make(LearnerParts parts) const = 0;

  // A summer of parts for its learner (PartSummer); null for models that are not summed in parts.
  // Rows, pool and plan must outlive it.
  virtual std::unique_ptr<train::PartSummer> MakeSummer(store::WorkingRows& /*rows*/,
                                                        WorkerPool& /*workers*/) const {
    return nullptr;
  }

  // The events of a part that another process's summer has made. Says what is wrong with its bytes.
  virtual Result<uint64_t> EventsOfPart(std::string_view /*bytes*/) const {
    return Fail(ErrorCode::kInvalidArgument, "models of this kind are not summed in parts");
  }

  // The way it answers; one of the two is null.
  virtual std::shared_ptr<const serve::RowModel> Scores() const { return nullptr; }
  virtual std::shared_ptr<const serve::ItemModel> Recommends() const { return nullptr; }
  // The sizes of scoring its large requests on a GPU, where the configuration wants that and there
  // is a form for it; nothing if the processor scores them.
  virtual std::optional<train::GpuScoreOptions> GpuScoring() const { return std::nullopt; }
  // The model of Scores() with such a device. REQUIRES GpuScoring().
  virtual std::shared_ptr<const serve::RowModel> ScoresOn(
      std::shared_ptr<serve::ScoringDevice>) const {
    return Scores();
  }

  // Words for people. "340,846 rows in 26 tables".
  virtual std::string SizeText() const = 0;
  // The rows that a step writes.
  virtual std::string RowsText() const = 0;
  // The settings that a stored release depends on, for the refusal of another's.
  virtual std::string_view ReleaseKeys() const = 0;
};

// The inputs of a plan.
struct PlanParts {
  const config::Config& config;
  size_t index = 0;  // the learner's place in it
  std::shared_ptr<const event::FeatureTransform> transform = nullptr;
  std::shared_ptr<const event::ItemCatalogue> items = nullptr;  // null without a catalogue
  std::span<const MechanismMaker> mechanisms = AllMechanisms();
  privacy::Laws laws = nullptr;  // save time where several learners are planned; may be null
  Exposure exposure = ExposureOf(config.learners[index], config.source);

  const config::Learner& learner() const { return config.learners[index]; }
  LearnerIndex learner_index() const { return LearnerIndex(static_cast<uint16_t>(index)); }
};

// Offsets that the parts of a step have at least, for this many threads. A part of one thread stays
// in a core's cache on its way from the decode thread to the trainer; several threads wait for each
// other once a part, so that theirs are longer.
inline uint64_t OffsetsPerPart(uint64_t workers) { return workers > 1 ? 4096 * workers : 2048; }
// True if the learner's steps come in such parts, so that no step is held. Files are of one
// partition, and a topic's periods come one by one, so that the parts of a step follow each other;
// a user's records come together.
inline bool ComesInParts(const ModelPlan& model, const config::Learner& learner,
                         const config::Source& source) {
  const bool one_by_one =
      source.traits().has_files || source.periods == config::Source::Periods::kTopic;
  return one_by_one && !learner.privacy.of_users() && model.SumsUp();
}

struct LearnerKind {
  config::ModelKind kind;
  // The queries of a step that adds noise, as privacy::Query lists them.
  std::vector<privacy::Query> (*queries)(const config::Learner& learner,
                                         std::span<const MechanismMaker> mechanisms);
  // Checks what only several rooms together can check.
  Result<std::shared_ptr<const ModelPlan>> (*plan)(const PlanParts& parts);
};

std::span<const LearnerKind> AllLearnerKinds();

// All queries that a learner's steps and periods make to records, at least one. kInvalidArgument,
// naming learner and key, where the table of queries refuses one.
Result<std::vector<privacy::Query>> PlanQueries(
    const config::Learner& learner, std::span<const LearnerKind> kinds = AllLearnerKinds(),
    std::span<const MechanismMaker> mechanisms = AllMechanisms());

}  // namespace tacit::wiring
