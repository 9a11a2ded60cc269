#include "audit/engine_setting.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "base/check.h"
#include "mechanism/private_step.h"
#include "mechanism/row_selector.h"
#include "mechanism/sigma_split.h"

namespace tacit::audit {
namespace {

using Rows = mechanism::Recipe::Rows;
using Clip = mechanism::Recipe::Clip;
using Heavy = EngineCase::Heavy;

// The third table's rows take two places of noise. The last one is what a vocabulary leaves out.
constexpr uint32_t kDims[] = {2, 2, 20, 1};
constexpr size_t kTables = std::size(kDims);
constexpr uint32_t kHiddenUnits = 2;
constexpr uint64_t kSharedRows = 8;  // of a table, for the others
constexpr float kRowWeight = 64;
constexpr double kClipGradient = 0.5, kClipSelection = 0.75;
// The shares of a clip per layer: the second layer's few weights are every unit's, and are to say
// little.
const std::vector<double> kShares = {1, 0.00004, 1};

EngineRecord EmptyRecord(size_t numbers) {
  return {.rows = std::vector<std::vector<uint64_t>>(kTables),
          .numbers = std::vector<float>(numbers),
          .label = 0};
}

std::unique_ptr<mechanism::Clipper> ClipperOf(Clip clip, double sigma) {
  if (clip == Clip::kAutomatic) return mechanism::MakeAutomaticClipper(kClipGradient, sigma);
  if (clip == Clip::kPerLayer) return mechanism::MakePerLayerClipper(kClipGradient, kShares, sigma);
  return mechanism::MakeFlatClipper(kClipGradient, sigma);
}

std::unique_ptr<mechanism::Mechanism> MechanismOf(const EngineCase& audited,
                                                  const EngineSetting& setting, double sigma,
                                                  double sigma_selection) {
  const RowSpace& space = setting.model.space;
  std::unique_ptr<mechanism::Vocabulary> vocabulary;
  if (audited.has_vocabulary) {
    mechanism::VocabularyOptions options;
    options.source = mechanism::VocabularyOptions::Source::kPublic;
    options.rows = setting.vocabulary;
    vocabulary = mechanism::MakeVocabulary(space, options);
  }
  std::unique_ptr<mechanism::RowSelector> selector;
  if (audited.rows == Rows::kEvery) {
    selector = mechanism::MakeAllRows();
  } else if (audited.rows == Rows::kInside) {
    selector = mechanism::MakeVocabularyRows(std::move(vocabulary));
  } else {
    const mechanism::ThresholdOptions options{
        .sigma = sigma_selection, .clip = kClipSelection, .threshold = setting.threshold};
    selector = mechanism::MakeThresholdRows(space, options, std::move(vocabulary));
  }
  return mechanism::MakePrivateStep(
      space, std::move(selector), ClipperOf(audited.clip, sigma),
      {.sigma_gradient = sigma, .expected_batch = setting.expected_batch});
}

std::vector<float> Parameters(size_t numbers) {
  std::vector<float> dense;
  for (size_t t = 0; t < kTables; ++t) {
    const float weight = t % 2 == 0 ? kRowWeight : -kRowWeight;
    for (uint32_t i = 0; i < kDims[t]; ++i) dense.insert(dense.end(), {weight, -weight});
  }
  dense.insert(dense.end(), kHiddenUnits * numbers, 0.0f);
  dense.insert(dense.end(), {1, 1});  // biases: both units are above 0
  dense.insert(dense.end(), {1, -1, 0});
  return dense;
}

}  // namespace

EngineSetting::EngineSetting(const EngineCase& audited, const EngineAuditOptions& options) {
  const size_t n = options.canaries, numbers = n + 1;
  for (size_t t = 0; t < kTables; ++t)
    model.space.AddTable("t" + std::to_string(t), n + kSharedRows, kDims[t]);
  model.dense_width = static_cast<uint32_t>(numbers);
  model.hidden = {kHiddenUnits};
  model.precision = audited.precision;
  dense = Parameters(numbers);
  embedding = 0x1p-12f;
  const auto tables = model.space.tables();
  // A number of this size has a gradient as long as that of a canary's rows.
  const float usual = 7 * kRowWeight;
  for (size_t i = 0; i < n; ++i) {
    EngineRecord record = EmptyRecord(numbers);
    for (size_t t = 0; t < kTables; ++t) record.rows[t] = {tables[t].first + i};
    if (audited.heavy == Heavy::kBoth) record.numbers[i] = usual;
    if (audited.heavy == Heavy::kNumbers) record.numbers[i] = 1000 * usual;
    record.label = 1;
    canaries.push_back(EngineUnit(audited.records, record));
  }
  // They share rows, and some have a row twice.
  for (size_t u = 0; u < 3; ++u) {
    EngineUnit& unit = others.emplace_back();
    for (size_t r = 0; r < 2; ++r) {
      EngineRecord record = EmptyRecord(numbers);
      for (size_t t = 0; t < kTables; ++t) {
        const uint64_t row = tables[t].first + n + u + r * t;
        record.rows[t] = {row, row + 1, row};
      }
      record.numbers[n] = 3;
      unit.push_back(std::move(record));
    }
  }
  for (uint64_t row = 0; row < tables[kTables - 1].first; ++row) vocabulary.push_back(row);
  expected_batch = static_cast<double>(std::bit_ceil(n));

  const bool has_map = audited.rows == Rows::kThreshold;
  const double total = 1 / options.mu;
  const mechanism::SigmaSplit split = has_map ? mechanism::SplitSigma(total, audited.split)
                                              : mechanism::SigmaSplit{.gradient = total};
  if (has_map) {
    const size_t active = kTables - (audited.has_vocabulary ? 1 : 0);
    contribution = std::min(1.0, kClipSelection / std::sqrt(static_cast<double>(active)));
    stddev_selection = split.selection * kClipSelection;
    threshold = audited.density == Density::kHalf ? contribution / 2
                                                  : -NormalQuantile(0.1) * stddev_selection;
  }
  stddev_gradient = split.gradient * kClipGradient;
  honest = MechanismOf(audited, *this, split.gradient, split.selection);
  const double used = audited.fault == EngineFault::kHalfSigma ? 2 : 1;
  given = MechanismOf(audited, *this, split.gradient / used, split.selection);
}

stream::StepBatch EngineSetting::StepOf(std::span<const EngineUnit* const> units,
                                        EngineFault fault) const {
  stream::StepBatch step;
  event::Batch& batch = step.examples;
  batch.dense_width = model.dense_width;
  batch.slots = kTables;
  for (const EngineUnit* unit : units) {
    if (unit->empty()) ++step.units;
    for (size_t r = 0; r < unit->size(); ++r) {
      const EngineRecord& record = (*unit)[r];
      if (r == 0 || fault == EngineFault::kRecordsAsUnits) ++step.units;
      step.unit_of.push_back(step.units - 1);
      batch.offset.push_back(batch.offset.size());
      batch.label.push_back(record.label);
      batch.dense.insert(batch.dense.end(), record.numbers.begin(), record.numbers.end());
      for (const std::vector<uint64_t>& rows : record.rows) {
        batch.row.insert(batch.row.end(), rows.begin(), rows.end());
        batch.slot_end.push_back(static_cast<uint32_t>(batch.row.size()));
      }
    }
  }
  return step;
}

UnitSums::UnitSums(const EngineSetting& setting)
    : setting_(setting), backend_(ops::MakeReferenceBackend()), model_(setting.model, *backend_) {}

const std::vector<uint64_t>& UnitSums::RowsOf(const EngineUnit& unit) {
  std::vector<uint64_t>& known = rows_[&unit];
  if (!known.empty()) return known;
  std::set<uint64_t> rows;
  for (const EngineRecord& record : unit)
    for (const auto& of_table : record.rows) rows.insert(of_table.begin(), of_table.end());
  known.assign(rows.begin(), rows.end());
  return known;
}

const UnitSum& UnitSums::Of(const EngineUnit& unit, std::span<const uint8_t> written) {
  const std::vector<uint64_t>& rows = RowsOf(unit);
  TACIT_CHECK(rows.size() <= 64);
  std::vector<uint8_t> kept;
  uint64_t pattern = 0;
  for (const uint64_t row : rows) {
    kept.push_back(written[row]);
    pattern = pattern << 1 | written[row];
  }
  const auto [at, is_new] = known_.try_emplace({&unit, pattern});
  if (is_new) at->second = Form(unit, kept);
  return at->second;
}

UnitSum UnitSums::Form(const EngineUnit& unit, std::span<const uint8_t> kept) {
  const EngineUnit* const alone[] = {&unit};
  const stream::StepBatch step = setting_.StepOf(alone, EngineFault::kNone);
  const event::Batch& batch = step.examples;
  model::Activations activations;
  model::ActivationIndexer().Index(batch.row, batch.slot_end, batch.slots, step.unit_of, step.units,
                                   &activations);
  const model::Examples examples{.size = batch.size(),
                                 .units = step.units,
                                 .unit_of = step.unit_of,
                                 .label = batch.label,
                                 .dense = batch.dense,
                                 .slot_end = batch.slot_end,
                                 .slot_row = activations.slot_row};
  std::vector<float> row(setting_.model.space.max_dim(), setting_.embedding);
  const std::vector<float*> at(activations.rows.size(), row.data());
  std::vector<float> logits(batch.size()), loss(batch.size());
  const auto must = [](const Status& status) { TACIT_CHECK(status.has_value(), "a step failed"); };
  must(model_.Forward(examples, setting_.dense, at, logits));
  must(model_.Backward(examples, setting_.dense, loss));
  const model::RowSelection selection{.kept = {kept.begin(), kept.end()}, .extra = {}};
  const model::ScaleRule& rule = setting_.honest->scale_rule();
  model::StepGradient sum;
  model::GroupNorms norms;
  must(model_.ClippedSum(examples, activations, selection, rule, &sum, &norms));
  UnitSum result;
  for (const int64_t steps : sum.dense_sums)
    result.dense.push_back(static_cast<double>(steps) * rule.grid_step());
  for (const double x : result.dense) result.squared += x * x;
  for (size_t i = 0; i < sum.rows.size(); ++i) {
    auto& values = result.rows.emplace_back(sum.rows[i], std::vector<double>()).second;
    for (const int64_t steps : sum.RowSum(i)) {
      values.push_back(static_cast<double>(steps) * rule.grid_step());
      result.squared += values.back() * values.back();
    }
  }
  return result;
}

}  // namespace tacit::audit
