// The learner's release: residuals, sets, units and their clip are its own, steps are cut by the
// product's participation. Every column is released whole, so that all the noise that the learner
// draws is on numbers that are seen.
#include <algorithm>
#include <cmath>
#include <set>

#include "audit/sums.h"
#include "base/check.h"
#include "base/moving_average.h"
#include "model/linear/row.h"
#include "stream/steps/participation.h"
#include "train/click/memory_rows.h"
#include "train/linear/linear_columns.h"
#include "train/linear/linear_learner.h"

namespace tacit::audit {
namespace {

namespace linear = model::linear;
using testing::FlatSums;

constexpr linear::UpdateOptions kLearnerUpdate;

// Weights of columns that taught much until now, so that they move far.
constexpr linear::Prior kLearntPrior = {.sum = 3e8, .weight = 1e9};

struct ClickEvent {
  std::vector<std::vector<uint64_t>> values;  // rows, per column; the last column is a set
  float label = 0;
};

// An instance: a period's events in the order of their offsets, the canary among them. The
// adversary has chosen the model too.
struct LearnerSetting {
  size_t columns = 4;
  uint64_t column_rows = 6;
  std::vector<ClickEvent> events;
  std::set<size_t> canary;  // their offsets
  // Units are runs of this many offsets, as a cut of whole users makes them.
  size_t unit_size = 1;
  uint64_t period = 0;  // offsets
  double sigma = 1;
  double bias = 0;
  double last_move = 0;  // of each value
};

enum class LearnerFault {
  kNone,
  kSawThePeriod,  // residuals are of a model that learnt the period before, in secret
  kCutByContent,  // a period is this many events, and not this many offsets
};

class LearnerRelease final : public SumsSubject {
 public:
  LearnerRelease(const LearnerSetting& setting, LearnerFault fault)
      : columns_(ColumnsOf(setting)), rows_(train::LinearRowLayout(*columns_)) {
    auto tap = std::make_unique<TappedNoise>();
    tap_ = tap.get();
    learner_ = std::make_unique<train::LinearLearner>(
        train::LinearLearnerOptions{.id = "audited",
                                    .index = LearnerIndex(0),
                                    .columns = columns_,
                                    .update = kLearnerUpdate,
                                    .noise_multiplier = setting.sigma},
        std::move(tap), rows_, workers_);
    for (const RowSpace::Table& table : columns_->space().tables())
      frame_.tables.push_back({.first = table.first, .rows = table.rows});
    frame_.deviation = setting.sigma * linear::ContributionMost(columns_->size(), kLearnerUpdate);
    for (const bool with : {false, true}) {
      steps_[with] = FirstPeriod(setting, with, fault == LearnerFault::kCutByContent);
      models_[with] = ChosenModel(setting);
      if (fault != LearnerFault::kSawThePeriod) continue;
      (void)Exact(with);  // without noise
      models_[with] = {.state = *learner_->TakeReleased(), .rows = CopyRows()};
    }
  }

  const SumsFrame& frame() const override { return frame_; }
  double charged_mu() const override { return std::sqrt(learner_->charge().MuSquared()); }

  ExactSums Exact(bool with) override {
    tap_->From(nullptr);
    const FlatSums seen = TakeStep(with);
    return {.sums = seen.sums, .counts = seen.counts, .numbers = seen.numbers};
  }
  FlatSums Release(bool with, noise::NoiseSource& noise) override {
    tap_->From(&noise);
    return TakeStep(with);
  }

 private:
  // The model that was committed before the period.
  struct Model {
    std::string state;
    std::vector<float> rows;
  };

  static std::shared_ptr<const linear::Columns> ColumnsOf(const LearnerSetting& setting) {
    std::vector<linear::CategoryColumn> columns;
    for (size_t j = 0; j < setting.columns; ++j)
      columns.push_back({.name = std::string(1, static_cast<char>('a' + j)),
                         .rows = setting.column_rows,
                         .set = j + 1 == setting.columns});
    return std::make_shared<const linear::Columns>(std::move(columns),
                                                   std::vector<linear::NumberColumn>());
  }

  // Cuts the stream as the product does, and returns its first step. An event that is not there
  // leaves its offset, unless offsets are handed out by content.
  static stream::StepBatch FirstPeriod(const LearnerSetting& setting, bool with, bool by_content) {
    event::RawRecords frame;
    event::Batch batch;
    batch.slots = setting.columns;
    std::vector<uint32_t> unit_of;
    for (size_t i = 0; i < setting.events.size(); ++i) {
      const bool there = with || !setting.canary.contains(i);
      if (!there && by_content) continue;
      frame.end.push_back(0);
      if (!there) continue;
      batch.offset.push_back(frame.end.size() - 1);
      batch.timestamp_ms.push_back(0);
      batch.label.push_back(setting.events[i].label);
      for (const auto& values : setting.events[i].values) {
        batch.row.insert(batch.row.end(), values.begin(), values.end());
        batch.slot_end.push_back(static_cast<uint32_t>(batch.row.size()));
      }
    }
    stream::StepBatch first;
    const auto once = stream::MakeOnceParticipation(
        {.offsets_per_step = setting.period, .start = {}, .full_at_once = true});
    once->Cut(frame, batch, [&](stream::StepBatch&& step) {
      first = std::move(step);
      return false;
    });
    TACIT_CHECK(first.units > 0, "the period is not full");
    MakeUnits(setting.unit_size, &first);
    return first;
  }

  // Numbers the units that are there.
  static void MakeUnits(size_t unit_size, stream::StepBatch* step) {
    step->units = 0;
    uint64_t last = ~uint64_t{0};
    for (size_t i = 0; i < step->unit_of.size(); ++i) {
      const uint64_t unit = step->examples.offset[i] / unit_size;
      if (unit != last) ++step->units;
      last = unit;
      step->unit_of[i] = step->units - 1;
    }
  }

  Model ChosenModel(const LearnerSetting& setting) const {
    linear::State state{.periods = 1,
                        .bias = setting.bias,
                        .rate = kLearnerUpdate.rate,
                        .priors = std::vector<linear::Prior>(columns_->size(), kLearntPrior)};
    Model model{.state = state.Encode(*columns_),
                .rows = std::vector<float>(columns_->space().rows() * linear::kRowFloats)};
    for (size_t row = 0; row < columns_->space().rows(); ++row) {
      float* floats = model.rows.data() + row * linear::kRowFloats;
      floats[linear::kVariance] = static_cast<float>(kLearnerUpdate.prior);
      floats[linear::kMove] = static_cast<float>(setting.last_move);
      floats[linear::kPeriod] = CountAsFloat(1);
    }
    return model;
  }

  float* Row(uint64_t row) {
    float* floats = nullptr;
    TACIT_CHECK(rows_.Gather({&row, 1}, {&floats, 1}).has_value());
    return floats;
  }
  std::vector<float> CopyRows() {
    std::vector<float> copy;
    for (uint64_t row = 0; row < columns_->space().rows(); ++row)
      copy.insert(copy.end(), Row(row), Row(row) + linear::kRowFloats);
    return copy;
  }

  // Takes the step from the model before it, and puts together what was drawn for.
  FlatSums TakeStep(bool with) {
    const Model& model = models_[with];
    TACIT_CHECK(learner_->LoadReleased(model.state).has_value());
    for (uint64_t row = 0; row < columns_->space().rows(); ++row)
      std::copy_n(model.rows.data() + row * linear::kRowFloats, linear::kRowFloats, Row(row));
    tap_->draws().clear();
    const std::atomic<bool> go_on = false;
    train::StepReport report;
    const auto taken = learner_->TakeStep(steps_[with], go_on, &report);
    TACIT_CHECK(taken.has_value() && *taken, "the step failed");
    return Seen();
  }
  FlatSums Seen() const {
    FlatSums seen;
    const auto& draws = tap_->draws();
    for (size_t d = 0; d < draws.size(); ++d) {
      const double step = frame_.deviation / draws[d].stddev;
      const bool numbers = d + 1 == draws.size();
      for (size_t i = 0; i < draws[d].values.size(); ++i) {
        const double value = static_cast<double>(draws[d].values[i]) * step;
        (numbers ? seen.numbers : i % 2 == 0 ? seen.sums : seen.counts).push_back(value);
      }
    }
    for (uint64_t row = 0; row < seen.sums.size(); ++row) seen.rows.push_back(row);
    TACIT_CHECK(seen.rows.size() == columns_->space().rows(), "some numbers have no noise");
    return seen;
  }

  const std::shared_ptr<const linear::Columns> columns_;
  SumsFrame frame_;
  train::MemoryRows rows_;
  WorkerPool workers_{{.workers = 2}};
  TappedNoise* tap_ = nullptr;
  std::unique_ptr<train::LinearLearner> learner_;
  stream::StepBatch steps_[2];
  Model models_[2];
};

// The event has value v of each column, and m values of the set.
ClickEvent EventOf(const LearnerSetting& setting, uint64_t v, size_t m, float label) {
  ClickEvent event{.values = {}, .label = label};
  for (uint64_t j = 0; j < setting.columns; ++j) {
    event.values.push_back({j * setting.column_rows + v});
    for (uint64_t k = 1; j + 1 == setting.columns && k < m; ++k)
      event.values.back().push_back(j * setting.column_rows + (v + k) % setting.column_rows);
  }
  return event;
}

// A click that the model did not expect; its values moved by more than a cut in the last period.
LearnerSetting OneEvent() {
  LearnerSetting setting{.events = {}, .canary = {1}, .period = 6, .bias = -1.5, .last_move = 0.4};
  for (uint64_t i = 0; i < 6; ++i)
    setting.events.push_back(EventOf(setting, i % 6, 1 + i % 5, i % 2 ? 1.0f : 0.0f));
  setting.events[1] = EventOf(setting, 2, 4, 1);
  return setting;
}

// Users of ten records; the canary's differ, except for clicking.
LearnerSetting OneUser() {
  LearnerSetting setting{
      .events = {}, .canary = {}, .unit_size = 10, .period = 40, .bias = -0.5, .last_move = 0.1};
  for (uint64_t i = 0; i < 40; ++i) {
    const bool canary = i / 10 == 2;
    if (canary) setting.canary.insert(i);
    setting.events.push_back(
        EventOf(setting, canary ? i % 3 : i % 6, 1 + i % 4, canary || i % 3 == 0 ? 1.0f : 0.0f));
  }
  return setting;
}

// Two crowds that share all values; the canary is one of the first. A model that saw it moves the
// residuals of all.
LearnerSetting Crowds() {
  LearnerSetting setting{.columns = 16, .column_rows = 2, .events = {}, .canary = {0}};
  setting.sigma = 0.5;
  for (uint64_t i = 0; i < 80; ++i)
    setting.events.push_back(EventOf(setting, i % 2, 1, i % 4 < 2 ? 1.0f : 0.0f));
  setting.period = setting.events.size();
  return setting;
}

// As OneEvent, with one more event behind the period that shares nothing with the canary.
LearnerSetting Behind() {
  LearnerSetting setting = OneEvent();
  setting.events.push_back(EventOf(setting, 3, 1, 1));
  setting.events[1] = EventOf(setting, 2, 1, 1);
  return setting;
}

SumsCase LearnerCase(std::string name, const LearnerSetting& setting,
                     LearnerFault fault = LearnerFault::kNone, bool reaches = true) {
  return {.name = std::move(name),
          .make = [=] { return std::make_unique<LearnerRelease>(setting, fault); },
          .reaches = reaches};
}

}  // namespace

std::vector<SumsCase> RightLearners() {
  return {LearnerCase("learner, an event", OneEvent()),
          LearnerCase("learner, a user of many records", OneUser()),
          LearnerCase("learner, an event of a crowd", Crowds(), LearnerFault::kNone, false),
          LearnerCase("learner, a period cut by offsets", Behind())};
}

std::vector<FaultySums> PlantedLearners() {
  return {{LearnerCase("residuals of a model that saw the period", Crowds(),
                       LearnerFault::kSawThePeriod)},
          {LearnerCase("period cut by content", Behind(), LearnerFault::kCutByContent)}};
}

}  // namespace tacit::audit
