#include "cuda/learn/click_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "cuda/kernels/finish.h"
#include "cuda/kernels/gather.h"
#include "cuda/kernels/noise_check.h"
#include "cuda/kernels/pointwise.h"
#include "cuda/kernels/scales.h"
#include "cuda/kernels/step_noise.h"
#include "cuda/learn/device_net.h"
#include "cuda/learn/device_optimizer.h"
#include "cuda/learn/step_chunks.h"
#include "cuda/learn/step_rows_index.h"
#include "cuda/rows/cached_rows.h"
#include "cuda/rows/whole_rows.h"
#include "mechanism/clip_law.h"
#include "train/loss_sum.h"

namespace tacit::cuda {
namespace {

using mechanism::Recipe;

std::vector<model::LinearLayer> LayersOf(const model::PctrOptions& options) {
  size_t in = options.dense_width, offset = 0;
  for (const RowSpace::Table& table : options.space.tables()) in += table.dim;
  std::vector<uint32_t> widths = options.hidden;
  widths.push_back(1);
  std::vector<model::LinearLayer> layers;
  for (const uint32_t out : widths) {
    layers.push_back({in, out, offset});
    offset += layers.back().size();
    in = out;
  }
  return layers;
}

ClipLaw LawOf(Recipe::Clip clip) {
  switch (clip) {
    case Recipe::Clip::kFlat:
      return ClipLaw::kFlat;
    case Recipe::Clip::kAutomatic:
      return ClipLaw::kAutomatic;
    case Recipe::Clip::kPerLayer:
      return ClipLaw::kPerLayer;
  }
  return ClipLaw::kFlat;
}

class Engine final : public train::ClickEngine {
 public:
  Engine(Stream stream, DeviceClickOptions options, mechanism::Mechanism& mechanism,
         noise::NoiseSource& noise, store::WorkingRows& rows, const store::DenseState& dense)
      : stream_(std::move(stream)),
        options_(std::move(options)),
        mechanism_(mechanism),
        noise_(noise),
        host_rows_(rows),
        dense_(dense),
        layers_(LayersOf(options_.click.model)),
        groups_(static_cast<uint32_t>(layers_.size() + 1)) {
    for (const RowSpace::Table& table : space().tables()) embedding_width_ += table.dim;
    stride_ = std::max(1u, space().max_dim());
  }

  Status Open();

  Status Predict(const stream::StepBatch& step, train::StepReport* report) override;
  Status Begin(const stream::StepBatch& step) override {
    return Start(step, DeviceRows::Purpose::kStep);
  }
  Status Release(train::StepReport* report) override;
  Status Settle() override {
    TACIT_RETURN_IF_ERROR(stream_.device().BindThread());
    TACIT_RETURN_IF_ERROR(optimizer_->Settle(&dense_));
    return rows_->Settle();
  }
  void Announce(const stream::StepBatch& next) override {
    if (space().rows() > 0) rows_->Announce(next.examples.row);
  }
  const store::DenseState& dense() const override { return dense_; }

 private:
  const RowSpace& space() const { return options_.click.model.space; }
  size_t dense_size() const { return layers_.back().offset + layers_.back().size(); }
  template <class T>
  static DeviceSpan<T> First(const Buffer<T>& buffer, size_t n) {
    return buffer.span().Sub(0, n);
  }

  Status OpenRows(const std::vector<uint32_t>& state_floats);
  Status Start(const stream::StepBatch& step, DeviceRows::Purpose purpose);
  Status Upload(const stream::StepBatch& step);
  Status Forward(const StepChunk& chunk);
  Status Backward(const StepChunk& chunk);
  Status Scales(const StepChunk& chunk, const ClipRule& rule);
  Status AddSums(const StepChunk& chunk, const Recipe& recipe, const ClipRule& rule, bool first);
  Result<ClipRule> MakeRule(const Recipe& recipe);
  Status Finish(const Recipe& recipe);
  Status Report(const Recipe& recipe, train::StepReport* report);
  Status ReportLosses(train::StepReport* report);
  StepRows RowsOf(const StepChunk& chunk) const;

  Stream stream_;
  const DeviceClickOptions options_;
  mechanism::Mechanism& mechanism_;
  noise::NoiseSource& noise_;
  store::WorkingRows& host_rows_;
  store::DenseState dense_;
  const std::vector<model::LinearLayer> layers_;
  const uint32_t groups_;
  uint32_t embedding_width_ = 0, stride_ = 1;

  // Made by Open.
  std::unique_ptr<DeviceNet> net_;
  std::optional<DeviceOptimizer> optimizer_;
  std::unique_ptr<DeviceRows> rows_;
  std::optional<StepRowsIndex> index_;
  std::optional<StepNoise> step_noise_;

  // The step under way. What is uploaded from lives as long.
  const stream::StepBatch* step_ = nullptr;
  std::vector<StepChunk> chunks_;
  const StepChunk* in_net_ = nullptr;  // whose activations and gradients the net holds
  std::vector<uint64_t> extra_;
  std::vector<double> root_shares_;
  std::vector<float> logits_host_, loss_host_;
  std::vector<uint32_t> counts_host_, written_host_;

  Buffer<float> numbers_, label_, logits_, loss_, dlogit_;  // of the step
  // The memory of one chunk at a time.
  Buffer<float> input_gradient_, squared_, unit_scale_, example_scale_;
  Buffer<uint32_t> unit_of_, example_end_, coordinates_;
  Buffer<uint8_t> bounded_;
  // Sums without noise.
  Buffer<float> dense_sums_;
  Buffer<int64_t> row_sums_;
  Buffer<uint32_t> clipped_;
  Buffer<double> shares_;
};

Status Engine::Open() {
  Device& device = stream_.device();
  const uint32_t most = options_.chunk_examples;
  TACIT_CHECK(most > 0 && dense_.parameters.size() == dense_size(), "a state of another model");
  TACIT_RETURN_IF_ERROR(CheckNoise(stream_));
  TACIT_ASSIGN(net_, MakeDeviceNet(stream_, options_.click.model.precision, layers_, most));
  TACIT_ASSIGN(optimizer_, DeviceOptimizer::Make(stream_, options_.click.optimizer, dense_));
  const train::Optimizer optimizer(options_.click.optimizer);
  std::vector<uint32_t> state_floats;
  for (const RowSpace::Table& table : space().tables())
    state_floats.push_back(static_cast<uint32_t>(optimizer.RowStateFloats(table.dim)));
  TACIT_RETURN_IF_ERROR(OpenRows(state_floats));
  TACIT_ASSIGN(index_, StepRowsIndex::Make(stream_, space().rows()));
  TACIT_RETURN_IF_ERROR(index_->Cover(rows_->names()));
  TACIT_ASSIGN(StepNoise step_noise, StepNoise::Make(stream_));
  step_noise_.emplace(std::move(step_noise));
  TACIT_ASSIGN(input_gradient_, Buffer<float>::Make(device, size_t{most} * embedding_width_));
  TACIT_ASSIGN(dense_sums_, Buffer<float>::Make(device, dense_size()));
  TACIT_ASSIGN(clipped_, Buffer<uint32_t>::Make(device, 1));
  TACIT_ASSIGN(shares_, Buffer<double>::Make(device, groups_));
  return {};
}

Status Engine::OpenRows(const std::vector<uint32_t>& state_floats) {
  using Kind = train::GpuRowOptions::Kind;
  TACIT_ASSIGN(const uint64_t free, stream_.device().FreeBytes());
  const uint64_t most = free / 4 * 3;
  // Beside a row lies its number's owner.
  const uint64_t wanted = WholeRows::Bytes(space(), state_floats) + space().rows() * 4;
  Kind kind = options_.rows.kind;
  if (kind == Kind::kAuto) kind = wanted <= most ? Kind::kWhole : Kind::kCache;
  if (kind == Kind::kWhole || space().rows() == 0) {
    TACIT_ASSIGN(rows_, WholeRows::Make(stream_, space(), state_floats, host_rows_));
    return {};
  }
  if (mechanism_.recipe()->rows == Recipe::Rows::kEvery)
    return Fail(ErrorCode::kRefused,
                fmt::format("its mechanism writes every row in every step, and a cache cannot hold "
                            "them: whole tables take {} MiB of the {} that are free; set gpu.rows "
                            "to whole, or gpu.use to never, or take another mechanism",
                            wanted >> 20, free >> 20));
  const uint64_t bytes = options_.rows.cache_bytes > 0 ? options_.rows.cache_bytes : most;
  TACIT_ASSIGN(rows_,
               CachedRows::Make(stream_, space(), state_floats, {.bytes = bytes}, host_rows_));
  return {};
}

Status Engine::Upload(const stream::StepBatch& step) {
  const event::Batch& batch = step.examples;
  const size_t n = batch.size();
  TACIT_CHECK(batch.dense.size() == n * options_.click.model.dense_width, "dense width differs");
  Device& device = stream_.device();
  TACIT_RETURN_IF_ERROR(Reserve(device, batch.dense.size(), &numbers_));
  for (Buffer<float>* buffer : {&label_, &logits_, &loss_, &dlogit_})
    TACIT_RETURN_IF_ERROR(Reserve(device, n, buffer));
  TACIT_RETURN_IF_ERROR(stream_.Upload<float>(batch.dense, First(numbers_, batch.dense.size())));
  TACIT_RETURN_IF_ERROR(stream_.Upload<float>(batch.label, First(label_, n)));
  TACIT_ASSIGN(chunks_, CutIntoChunks(step, index_->slots(), options_.chunk_examples));
  size_t examples = 0, units = 0;
  for (const StepChunk& chunk : chunks_) {
    examples = std::max(examples, chunk.unit_of.size());
    units = std::max(units, chunk.example_end.size());
  }
  TACIT_RETURN_IF_ERROR(Reserve(device, groups_ * units, &squared_));
  TACIT_RETURN_IF_ERROR(Reserve(device, groups_ * units, &unit_scale_));
  TACIT_RETURN_IF_ERROR(Reserve(device, groups_ * examples, &example_scale_));
  TACIT_RETURN_IF_ERROR(Reserve(device, examples, &unit_of_));
  TACIT_RETURN_IF_ERROR(Reserve(device, units, &example_end_));
  TACIT_RETURN_IF_ERROR(Reserve(device, units, &coordinates_));
  return Reserve(device, units, &bounded_);
}

Status Engine::Forward(const StepChunk& chunk) {
  in_net_ = &chunk;
  const uint32_t rows = chunk.examples(), width = options_.click.model.dense_width;
  const DeviceMatrix<float> input = net_->Input(rows);
  const StepEntries entries = index_->rows().entries;
  const DeviceRows::View view = rows_->view();
  TACIT_RETURN_IF_ERROR(GatherSum(stream_, view.slots, view.places.guests, view.slot_of,
                                  entries.cell_end, index_->names(), chunk.first_example, input));
  if (width > 0) {
    const DeviceMatrix<const float> numbers(
        numbers_.span().data + uint64_t{chunk.first_example} * width, rows, width, width);
    TACIT_RETURN_IF_ERROR(AddBias<float>(
        stream_, numbers, {}, false,
        DeviceMatrix<float>(input.data + embedding_width_, rows, width, input.stride)));
  }
  return net_->Forward(optimizer_->weights(), logits_.span().Sub(chunk.first_example, rows));
}

Status Engine::Backward(const StepChunk& chunk) {
  const auto part = [&](const Buffer<float>& buffer) {
    return buffer.span().Sub(chunk.first_example, chunk.examples());
  };
  TACIT_RETURN_IF_ERROR(
      LogisticLoss(stream_, part(logits_), part(label_), part(loss_), part(dlogit_)));
  return net_->Backward(part(dlogit_), {input_gradient_.span().data, chunk.examples(),
                                        embedding_width_, embedding_width_});
}

Status Engine::Predict(const stream::StepBatch& step, train::StepReport* report) {
  TACIT_RETURN_IF_ERROR(Start(step, DeviceRows::Purpose::kPreview));
  TACIT_RETURN_IF_ERROR(index_->End());
  step_ = nullptr;
  counts_host_.resize(1);
  TACIT_RETURN_IF_ERROR(
      stream_.Download(index_->touched_count(), std::span<uint32_t>(counts_host_)));
  *report = {};
  TACIT_RETURN_IF_ERROR(ReportLosses(report));
  report->rows_touched = counts_host_[0];
  return {};
}

Status Engine::Start(const stream::StepBatch& step, DeviceRows::Purpose purpose) {
  TACIT_RETURN_IF_ERROR(stream_.device().BindThread());
  // A step that was begun and not released is abandoned.
  if (step_ != nullptr) TACIT_RETURN_IF_ERROR(index_->End());
  TACIT_RETURN_IF_ERROR(stream_.Synchronize());
  step_ = &step;
  const size_t entries = space().rows() > 0 ? step.examples.row.size() : 0;
  TACIT_ASSIGN(const auto names,
               rows_->Begin(std::span(step.examples.row).first(entries), purpose));
  TACIT_RETURN_IF_ERROR(index_->Cover(rows_->names()));
  TACIT_RETURN_IF_ERROR(index_->Begin(step, names));
  TACIT_RETURN_IF_ERROR(Upload(step));
  for (const StepChunk& chunk : chunks_) {
    TACIT_RETURN_IF_ERROR(Forward(chunk));
    TACIT_RETURN_IF_ERROR(Backward(chunk));
  }
  return {};
}

StepRows Engine::RowsOf(const StepChunk& chunk) const {
  StepRows rows = index_->rows();
  rows.slots = rows_->view().slots.Sub(0, rows.entries.slots);
  rows.first_unit = chunk.first_unit;
  rows.first_example = chunk.first_example;
  rows.first_entry = chunk.first_entry;
  rows.entries_count = chunk.entries;
  rows.input_gradient = {input_gradient_.span().data, chunk.examples(), embedding_width_,
                         embedding_width_};
  return rows;
}

// Norms, scales, and units without a norm wiped.
Status Engine::Scales(const StepChunk& chunk, const ClipRule& rule) {
  const uint32_t examples = chunk.examples(), units = chunk.units();
  const auto unit_of = First(unit_of_, examples), end = First(example_end_, units);
  TACIT_RETURN_IF_ERROR(stream_.Upload<uint32_t>(chunk.unit_of, unit_of));
  TACIT_RETURN_IF_ERROR(stream_.Upload<uint32_t>(chunk.example_end, end));
  for (size_t l = 0; l < layers_.size(); ++l)
    TACIT_RETURN_IF_ERROR(
        net_->SquaredNorms(l, end, chunk.one_row_each, squared_.span().Sub(l * units, units)));
  TACIT_RETURN_IF_ERROR(RowNorms(stream_, RowsOf(chunk),
                                 squared_.span().Sub(layers_.size() * units, units),
                                 First(coordinates_, units)));
  TACIT_RETURN_IF_ERROR(UnitScales(stream_, rule, groups_, First(squared_, groups_ * units),
                                   First(coordinates_, units), First(unit_scale_, groups_ * units),
                                   First(bounded_, units), clipped_.span()));
  TACIT_RETURN_IF_ERROR(net_->Clear(First(bounded_, units), unit_of));
  TACIT_RETURN_IF_ERROR(ClearUnbounded<float>(
      stream_, First(bounded_, units), unit_of,
      {input_gradient_.span().data, examples, embedding_width_, embedding_width_}));
  // The factor by which model::Pctr shrinks bf16's scales.
  const float shrink =
      options_.click.model.precision == ops::Precision::kBf16 ? 1 / (1 + 0x1p-8f) : 1.0f;
  return SpreadScales(stream_, groups_, units, shrink, First(unit_scale_, groups_ * units), unit_of,
                      First(example_scale_, groups_ * examples));
}

Status Engine::AddSums(const StepChunk& chunk, const Recipe& recipe, const ClipRule& rule,
                       bool first) {
  if (in_net_ != &chunk) {
    TACIT_RETURN_IF_ERROR(Forward(chunk));
    TACIT_RETURN_IF_ERROR(Backward(chunk));
  }
  TACIT_RETURN_IF_ERROR(Scales(chunk, rule));
  const size_t examples = chunk.examples(), at_rows = layers_.size() * examples;
  TACIT_RETURN_IF_ERROR(
      net_->Sum(First(example_scale_, at_rows), first ? 0.0f : 1.0f, dense_sums_.span()));
  return AddRowSums(stream_, RowsOf(chunk), example_scale_.span().Sub(at_rows, examples),
                    recipe.grid.step, stride_, row_sums_.span());
}

Result<ClipRule> Engine::MakeRule(const Recipe& recipe) {
  root_shares_ = recipe.root_shares;
  if (root_shares_.empty())
    root_shares_.assign(groups_,
                        1 / std::sqrt(static_cast<double>(groups_)) / mechanism::kNormSlack);
  TACIT_CHECK(root_shares_.size() == groups_, "one share of the clip per layer, and one for rows");
  TACIT_RETURN_IF_ERROR(stream_.Upload<double>(root_shares_, shares_.span()));
  return ClipRule{.law = LawOf(recipe.clip),
                  .bound = recipe.bound,
                  .grid_step = recipe.grid.step,
                  .dense_root = std::sqrt(static_cast<double>(dense_size())),
                  .root_share = shares_.span()};
}

Status Engine::Release(train::StepReport* report) {
  TACIT_RETURN_IF_ERROR(stream_.device().BindThread());
  TACIT_CHECK(step_ != nullptr, "Release follows Begin");
  const std::optional<Recipe> recipe = mechanism_.recipe();
  TACIT_CHECK(recipe.has_value(), "a mechanism that was one for a GPU");
  mechanism_.DrawExtra(noise_, &extra_);
  TACIT_RETURN_IF_ERROR(step_noise_->Begin(noise_));
  TACIT_RETURN_IF_ERROR(
      optimizer_->BeginStep(recipe->grid.stddev * recipe->grid.step * recipe->factor));
  TACIT_ASSIGN(const auto extra_names, rows_->NameExtra(extra_));
  TACIT_RETURN_IF_ERROR(index_->Cover(rows_->names()));
  TACIT_RETURN_IF_ERROR(index_->Select(*recipe, step_noise_->key(), extra_, extra_names));
  TACIT_RETURN_IF_ERROR(Reserve(stream_.device(), index_->entries() * stride_, &row_sums_));
  TACIT_RETURN_IF_ERROR(stream_.Fill(row_sums_.span(), 0));
  TACIT_RETURN_IF_ERROR(stream_.Fill(clipped_.span(), 0));
  TACIT_ASSIGN(const ClipRule rule, MakeRule(*recipe));
  for (const StepChunk& chunk : chunks_)
    TACIT_RETURN_IF_ERROR(AddSums(chunk, *recipe, rule, &chunk == chunks_.data()));
  TACIT_RETURN_IF_ERROR(Finish(*recipe));
  TACIT_RETURN_IF_ERROR(index_->End());
  TACIT_RETURN_IF_ERROR(step_noise_->End());
  // The step runs meanwhile.
  TACIT_RETURN_IF_ERROR(rows_->FetchAnnounced());
  TACIT_RETURN_IF_ERROR(Report(*recipe, report));
  TACIT_RETURN_IF_ERROR(rows_->End(written_host_));
  step_ = nullptr;
  in_net_ = nullptr;
  return {};
}

Status Engine::Finish(const Recipe& recipe) {
  const GridRelease release{
      .step = recipe.grid.step, .stddev = recipe.grid.stddev, .factor = recipe.factor};
  const auto key = step_noise_->key();
  const OptimizerRule& rule = optimizer_->rule();
  TACIT_RETURN_IF_ERROR(
      FinishDense(stream_, key, release, rule, dense_sums_.span(), optimizer_->parameters()));
  const RowSums sums{.sums = row_sums_.span(), .stride = stride_, .places = (stride_ + 15) / 16};
  const DeviceRows::View view = rows_->view();
  if (recipe.rows == Recipe::Rows::kEvery)
    return FinishEveryRow(stream_, key, release, rule, view.places, index_->owner(),
                          index_->owner_rank(), sums);
  WrittenRows written = index_->written();
  written.changed = view.changed;
  return FinishRows(stream_, key, release, rule, view.places, written, sums);
}

Status Engine::ReportLosses(train::StepReport* report) {
  const size_t n = chunks_.empty() ? 0 : chunks_.back().first_example + chunks_.back().examples();
  logits_host_.resize(n);
  loss_host_.resize(n);
  TACIT_RETURN_IF_ERROR(stream_.Download(First(logits_, n), std::span<float>(logits_host_)));
  TACIT_RETURN_IF_ERROR(stream_.Download(First(loss_, n), std::span<float>(loss_host_)));
  TACIT_RETURN_IF_ERROR(stream_.Synchronize());
  report->logits = logits_host_;
  report->examples = report->losses = n;
  report->loss_sum = train::SumOfLosses(loss_host_);
  return {};
}

Status Engine::Report(const Recipe& recipe, train::StepReport* report) {
  *report = {};
  counts_host_.resize(4);
  const std::span<uint32_t> counts = counts_host_;
  TACIT_RETURN_IF_ERROR(stream_.Download(index_->touched_count(), counts.subspan(0, 1)));
  TACIT_RETURN_IF_ERROR(stream_.Download(index_->written_count(), counts.subspan(1, 1)));
  TACIT_RETURN_IF_ERROR(
      stream_.Download(DeviceSpan<const uint32_t>(clipped_.span()), counts.subspan(2, 1)));
  TACIT_RETURN_IF_ERROR(ReportLosses(report));
  report->rows_touched = counts[0];
  report->units_clipped = counts[2];
  const auto tables = space().tables();
  written_host_.clear();
  if (recipe.rows == Recipe::Rows::kEvery) {
    report->rows_written = space().rows();
    for (const RowSpace::Table& table : tables)
      report->row_floats_written += table.rows * table.dim;
    return {};
  }
  report->rows_written = counts[1];
  written_host_.resize(counts[1]);
  TACIT_RETURN_IF_ERROR(stream_.Download(index_->written().row.Sub(0, counts[1]),
                                         std::span<uint32_t>(written_host_)));
  TACIT_RETURN_IF_ERROR(stream_.Synchronize());
  for (const uint32_t row : written_host_)
    report->row_floats_written += tables[space().TableOf(row)].dim;
  return {};
}

}  // namespace

Result<std::unique_ptr<train::ClickEngine>> MakeDeviceClickEngine(
    Device& device, DeviceClickOptions options, mechanism::Mechanism& mechanism,
    noise::NoiseSource& noise, store::WorkingRows& rows, const store::DenseState& dense) {
  if (!mechanism.recipe())
    return Fail(ErrorCode::kRefused,
                "this mechanism has no form for a GPU (an exponential selection, an adaptive clip, "
                "or none at all): set gpu.use to never, or take another mechanism or clip");
  TACIT_ASSIGN(Stream stream, Stream::Make(device));
  auto engine = std::make_unique<Engine>(std::move(stream), std::move(options), mechanism, noise,
                                         rows, dense);
  TACIT_RETURN_IF_ERROR(engine->Open());
  return std::unique_ptr<train::ClickEngine>(std::move(engine));
}

}  // namespace tacit::cuda
