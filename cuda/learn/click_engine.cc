#include "cuda/learn/click_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "cuda/device/kept_graphs.h"
#include "cuda/kernels/dense/gather.h"
#include "cuda/kernels/dense/pointwise.h"
#include "cuda/kernels/noise/noise_check.h"
#include "cuda/kernels/noise/step_noise.h"
#include "cuda/kernels/rows/finish.h"
#include "cuda/kernels/rows/finish_plain.h"
#include "cuda/kernels/rows/scales.h"
#include "cuda/learn/device_net.h"
#include "cuda/learn/device_optimizer.h"
#include "cuda/learn/engine_need.h"
#include "cuda/learn/engine_rows.h"
#include "cuda/learn/plan_watch.h"
#include "cuda/learn/recipe_law.h"
#include "cuda/learn/step_chunks.h"
#include "cuda/learn/step_memory.h"
#include "cuda/learn/step_reports.h"
#include "cuda/learn/step_rows_index.h"
#include "cuda/learn/step_staging.h"
#include "cuda/learn/step_streams.h"
#include "mechanism/clip_law.h"
#include "model/sum_blocks.h"

namespace tacit::cuda {
namespace {

using mechanism::Recipe;

// The grid on which rows' sums are added up. Without privacy a fine one, whose sums are the same in
// every order, too: 2^23 is the most that it holds.
double StepOf(const Recipe& recipe) { return recipe.is_private ? recipe.grid.step : 0x1p-40; }

// Describes the largest planned step for people.
std::string TextOf(const train::GpuStepSizes& planned) {
  if (planned.examples == 0) return {};
  return fmt::format("{} examples with {} rows", planned.examples, planned.entries);
}

// Parts of the dense vector that are finished beside products begin at places of noise, and have so
// many numbers at least: fewer wait for the next part.
constexpr uint64_t kFinishLeast = 32;

// The step after this one may be one that is refused: it is when its own turn comes.
Status UnlessRefused(const Status& done) {
  return !done && done.error().code == ErrorCode::kRefused ? Status() : done;
}

// The rows of a step whose units have one example each, and are as many as the mechanism expects.
uint32_t UsualRows(const Recipe& recipe, uint32_t most) {
  if (!(recipe.factor > 0)) return most;
  return static_cast<uint32_t>(std::min(std::ceil(1 / recipe.factor), 1.0 * most));
}

class Engine final : public train::ClickEngine {
 public:
  Engine(StepStreams streams, DeviceClickOptions options, mechanism::Mechanism& mechanism,
         noise::NoiseSource& noise, store::WorkingRows& rows, const store::DenseState& dense)
      : streams_(std::move(streams)),
        stream_(streams_.model()),
        graphs_(streams_.model(), streams_.beside()),
        options_(std::move(options)),
        mechanism_(mechanism),
        noise_(noise),
        host_rows_(rows),
        dense_(std::make_shared<const store::DenseState>(dense)),
        layers_(LayersOf(options_.click.model)),
        groups_(static_cast<uint32_t>(layers_.size() + 1)),
        watch_(stream_.device(), TextOf(options_.click.planned)) {
    for (const RowSpace::Table& table : space().tables()) embedding_width_ += table.dim;
    stride_ = std::max(1u, space().max_dim());
  }

  Status Open();

  Status Predict(const stream::StepBatch& step, train::StepReport* report) override;
  Status Begin(const stream::StepBatch& step) override;
  Status Release(train::StepReport* report) override;
  Status Settle() override {
    TACIT_RETURN_IF_ERROR(stream_.device().BindThread());
    TACIT_RETURN_IF_ERROR(optimizer_->SendHome());
    TACIT_RETURN_IF_ERROR(rows_->Settle());
    TACIT_RETURN_IF_ERROR(stream_.Synchronize());
    auto settled = std::make_shared<store::DenseState>();
    optimizer_->ReadHome(settled.get());
    dense_ = std::move(settled);
    return {};
  }
  bool settled_numbers() const override { return rows_->settled_numbers(); }
  void Announce(const stream::StepBatch& next) override {
    announced_ = &next;
    if (space().rows() > 0) rows_->Announce(next.examples.row);
  }
  void Withdraw() override {
    staging_->Forget();
    announced_ = nullptr;
  }
  const store::DenseState& dense() const override { return *dense_; }
  std::shared_ptr<const store::DenseState> CopyDense() const override { return dense_; }

 private:
  const RowSpace& space() const { return options_.click.model.space; }
  size_t dense_size() const { return layers_.back().offset + layers_.back().size(); }
  template <class T>
  static DeviceSpan<T> First(const Buffer<T>& buffer, size_t n) {
    return buffer.span().Sub(0, n);
  }
  DeviceSpan<int64_t> RowSumsOfStep() const {
    return First(memory_.row_sums, index_->entries() * stride_);
  }
  DeviceSpan<float> PlainSums() const {
    return {reinterpret_cast<float*>(dense_sums_.span().data), dense_size()};
  }
  DeviceMatrix<float> InputGradient(const StepChunk& chunk) const {
    return {input_gradient_.span().data, chunk.examples(), embedding_width_, embedding_width_};
  }

  Status OpenSteps();
  Status Start(const stream::StepBatch& step, DeviceRows::Purpose purpose);
  Status MakeReady(const stream::StepBatch& step, DeviceRows::Purpose purpose);
  Status TakeFor(const StagedStep& step);
  Status BringAhead(const stream::StepBatch& next);
  // Puts work of both streams in the step's order, as a graph where it comes again. A step in
  // chunks is put there as it is: its parts are many, and a host's flag tells which is in the net.
  Status Run(const std::function<Status()>& work) {
    return options_.overlap && staged_->chunks.size() == 1 ? graphs_.Run(work) : work();
  }
  Status Passes();
  Status Sums(const Recipe& recipe, const ClipRule& rule);
  Status Forward(const StepChunk& chunk);
  Status Backward(const StepChunk& chunk);
  Status Scales(const StepChunk& chunk, const ClipRule& rule);
  Status CountWhole(const StepChunk& chunk);
  DeviceSpan<const NoiseKey> KeyFor(const Recipe& recipe) const {
    return recipe.is_private ? step_noise_->key() : DeviceSpan<const NoiseKey>();
  }
  Status AddSums(const StepChunk& chunk, const Recipe& recipe, const ClipRule& rule);
  Status FinishLayers(const Recipe& recipe, size_t l);
  Result<ClipRule> MakeRule(const Recipe& recipe);
  Status FinishTables(const Recipe& recipe);
  StepRows RowsOf(const StepChunk& chunk) const;

  StepStreams streams_;
  Stream& stream_;  // the model's; what is put on it is outside of graphs
  KeptGraphs graphs_;
  const DeviceClickOptions options_;
  mechanism::Mechanism& mechanism_;
  noise::NoiseSource& noise_;
  store::WorkingRows& host_rows_;
  std::shared_ptr<const store::DenseState> dense_;  // as of the last Settle
  const std::vector<model::LinearLayer> layers_;
  const uint32_t groups_;
  uint32_t embedding_width_ = 0, stride_ = 1;

  // Made by Open.
  std::unique_ptr<DeviceNet> net_;
  std::optional<DeviceOptimizer> optimizer_;
  std::unique_ptr<DeviceRows> rows_;
  std::optional<StepRowsIndex> index_;
  std::optional<StepNoise> step_noise_;
  std::optional<StepStaging> staging_;

  const stream::StepBatch* announced_ = nullptr;
  // The step whose passes were put on the streams last. What is uploaded from lives as long.
  const StagedStep* staged_ = nullptr;
  bool begun_ = false;                 // and that is not released
  bool ahead_ = false;                 // the same, before Begin was called for it
  const StepChunk* in_net_ = nullptr;  // whose activations and gradients the net holds
  uint64_t unfinished_ = 0;            // dense parameters that the step has yet to reach
  PlanWatch watch_;
  std::vector<uint64_t> extra_;
  std::vector<double> root_shares_;  // on the device
  StepMemory memory_;
  std::optional<StepReports> reports_;
  Buffer<float> input_gradient_;  // of one chunk at a time
  Buffer<int64_t> dense_sums_;    // without noise; of steps without privacy, floats
  Buffer<uint32_t> clipped_;
  Buffer<double> shares_;
};

Status Engine::Open() {
  Device& device = stream_.device();
  const uint32_t most = options_.chunk_examples;
  TACIT_CHECK(most > 0 && dense_->parameters.size() == dense_size(), "a state of another model");
  TACIT_RETURN_IF_ERROR(CheckNoise(stream_));
  ProductOptions products = options_.products;
  if (products.usual_rows == 0) products.usual_rows = UsualRows(*mechanism_.recipe(), most);
  TACIT_ASSIGN(net_, MakeDeviceNet(stream_, {.precision = options_.click.model.precision,
                                             .layers = layers_,
                                             .rows_max = most,
                                             .use = mechanism_.recipe()->is_private
                                                        ? DeviceNetOptions::Use::kLearnPrivately
                                                        : DeviceNetOptions::Use::kLearn,
                                             .products = products}));
  TACIT_ASSIGN(optimizer_, DeviceOptimizer::Make(stream_, options_.click.optimizer, *dense_));
  TACIT_ASSIGN(StepNoise step_noise, StepNoise::Make(stream_));
  step_noise_.emplace(std::move(step_noise));
  TACIT_ASSIGN(StepReports reports, StepReports::Make(stream_, space(), memory_));
  reports_.emplace(std::move(reports));
  TACIT_ASSIGN(input_gradient_, Buffer<float>::Make(device, size_t{most} * embedding_width_));
  TACIT_ASSIGN(dense_sums_, Buffer<int64_t>::Make(device, dense_size()));
  TACIT_ASSIGN(clipped_, Buffer<uint32_t>::Make(device, 1));
  TACIT_ASSIGN(shares_, Buffer<double>::Make(device, groups_));
  return OpenSteps();
}

// Takes memory for the largest planned step; rows have what all else leaves.
Status Engine::OpenSteps() {
  const Recipe recipe = *mechanism_.recipe();
  const bool every = recipe.rows == Recipe::Rows::kEvery;
  const train::GpuStepLayout step = PlannedStep(options_);
  TACIT_ASSIGN(StepStaging staging,
               StepStaging::Make(stream_,
                                 {.slots = static_cast<uint32_t>(space().tables().size()),
                                  .dense_width = options_.click.model.dense_width,
                                  .space_rows = space().rows(),
                                  .chunk_examples = options_.chunk_examples,
                                  .round_examples = options_.round_examples},
                                 step.words));
  staging_.emplace(std::move(staging));
  TACIT_RETURN_IF_ERROR(
      memory_.TakePlanned(step, groups_, stride_, !every, BufferTaker(stream_.device())));
  TACIT_ASSIGN(index_, StepRowsIndex::Make(stream_, space().rows(), step));
  TACIT_ASSIGN(rows_, OpenRows(stream_, space(), StateFloatsOf(options_.click), every, step,
                               options_.rows, host_rows_));
  TACIT_RETURN_IF_ERROR(index_->Cover(rows_->names()));
  return rows_->has_names() ? index_->TakeNames(step) : Status();
}

Status Engine::TakeFor(const StagedStep& step) {
  StepMemory::Sizes sizes{.examples = step.label.size, .groups = groups_};
  for (const StepChunk& chunk : step.chunks) {
    sizes.chunk_examples = std::max<uint64_t>(sizes.chunk_examples, chunk.examples());
    sizes.chunk_units = std::max<uint64_t>(sizes.chunk_units, chunk.units());
  }
  return memory_.TakePasses(sizes, BufferTaker(stream_.device()));
}

Status Engine::Forward(const StepChunk& chunk) {
  in_net_ = &chunk;
  const uint32_t rows = chunk.examples();
  const DeviceRows::View view = rows_->view();
  TACIT_RETURN_IF_ERROR(net_->Input({.slots = view.slots,
                                     .guests = view.places.guests,
                                     .slot_of = view.slot_of,
                                     .cell_end = staged_->of.cell_end,
                                     .name = index_->names(),
                                     .numbers = staged_->numbers,
                                     .first_example = chunk.first_example,
                                     .has_fours = view.has_fours},
                                    rows));
  return net_->Forward(optimizer_->weights(), memory_.logits.span().Sub(chunk.first_example, rows));
}

Status Engine::Backward(const StepChunk& chunk) {
  const auto part = [&](const Buffer<float>& buffer) {
    return buffer.span().Sub(chunk.first_example, chunk.examples());
  };
  TACIT_RETURN_IF_ERROR(LogisticLoss(stream_, part(memory_.logits),
                                     staged_->label.Sub(chunk.first_example, chunk.examples()),
                                     part(memory_.loss), part(memory_.dlogit)));
  return net_->Backward(part(memory_.dlogit), InputGradient(chunk));
}

Status Engine::Predict(const stream::StepBatch& step, train::StepReport* report) {
  TACIT_RETURN_IF_ERROR(Start(step, DeviceRows::Purpose::kPreview));
  TACIT_RETURN_IF_ERROR(index_->End(stream_));
  begun_ = false;
  return reports_->Preview(*index_, staged_->examples, report);
}

Status Engine::Begin(const stream::StepBatch& step) {
  // Release has begun with it, if it was announced.
  if (ahead_ && staging_->BroughtLast(step)) {
    TACIT_RETURN_IF_ERROR(stream_.device().BindThread());
    ahead_ = false;
  } else {
    TACIT_RETURN_IF_ERROR(Start(step, DeviceRows::Purpose::kStep));
  }
  if (announced_ == nullptr) return {};
  watch_.Begin();
  TACIT_RETURN_IF_ERROR(UnlessRefused(staging_->PackAhead(*announced_)));
  watch_.End();
  return {};
}

Status Engine::Start(const stream::StepBatch& step, DeviceRows::Purpose purpose) {
  TACIT_RETURN_IF_ERROR(stream_.device().BindThread());
  // A step that was begun and not released is abandoned.
  if (begun_) TACIT_RETURN_IF_ERROR(index_->End(stream_));
  begun_ = ahead_ = false;
  TACIT_RETURN_IF_ERROR(stream_.Synchronize());
  watch_.Begin();
  TACIT_RETURN_IF_ERROR(MakeReady(step, purpose));
  watch_.End();
  begun_ = true;
  return Run([&] { return Passes(); });
}

Status Engine::MakeReady(const stream::StepBatch& step, DeviceRows::Purpose purpose) {
  const size_t entries = space().rows() > 0 ? step.examples.row.size() : 0;
  TACIT_ASSIGN(const auto names,
               rows_->Begin(std::span(step.examples.row).first(entries), purpose));
  TACIT_ASSIGN(staged_, staging_->Bring(step, purpose == DeviceRows::Purpose::kPreview));
  TACIT_RETURN_IF_ERROR(index_->Cover(rows_->names()));
  TACIT_RETURN_IF_ERROR(index_->Begin(*staged_, names));
  return TakeFor(*staged_);
}

// Brings the next step to the device, and puts its passes behind the step that is released. So the
// device works on while the host reads the report, charges, and comes back with Begin. The passes
// release nothing, and Begin with another step abandons them.
Status Engine::BringAhead(const stream::StepBatch& next) {
  const Status brought = staging_->BringAhead(next);
  if (!brought) return UnlessRefused(brought);
  // A larger step would take the memory to which this one's report is on its way.
  const bool has_room = train::GpuRoundedUp(next.examples.size(), options_.round_examples) <=
                        memory_.logits_host.span().size();
  if (!options_.overlap || !rows_->may_begin_ahead() || !has_room) return {};
  TACIT_RETURN_IF_ERROR(MakeReady(next, DeviceRows::Purpose::kStep));
  begun_ = ahead_ = true;
  return Run([&] { return Passes(); });
}

// The rows that the step touches are found beside the passes, which need but their names.
Status Engine::Passes() {
  TACIT_RETURN_IF_ERROR(streams_.Fork());
  TACIT_RETURN_IF_ERROR(index_->FindTouched(streams_.beside()));
  for (const StepChunk& chunk : staged_->chunks) {
    TACIT_RETURN_IF_ERROR(Forward(chunk));
    TACIT_RETURN_IF_ERROR(Backward(chunk));
  }
  return streams_.Join();
}

StepRows Engine::RowsOf(const StepChunk& chunk) const {
  StepRows rows = index_->rows();
  rows.slots = rows_->view().slots.Sub(0, rows.entries.slots);
  rows.first_unit = chunk.first_unit;
  rows.first_example = chunk.first_example;
  rows.first_entry = chunk.first_entry;
  rows.entries_count = chunk.entries;
  rows.input_gradient = InputGradient(chunk);
  return rows;
}

// Without privacy: every example counts whole, but those that are nobody's.
Status Engine::CountWhole(const StepChunk& chunk) {
  const uint32_t examples = chunk.examples(), units = chunk.units();
  const auto unit_of = staged_->unit_of.Sub(chunk.first_example, examples);
  const size_t at_rows = layers_.size() * examples;
  TACIT_RETURN_IF_ERROR(stream_.Fill(First(memory_.bounded, units), 1));
  TACIT_RETURN_IF_ERROR(net_->Clear(First(memory_.bounded, units), unit_of, InputGradient(chunk)));
  // A norm of 0 has the scale 1.
  TACIT_RETURN_IF_ERROR(stream_.Fill(First(memory_.squared, units), 0));
  TACIT_RETURN_IF_ERROR(stream_.Fill(First(memory_.coordinates, units), 0));
  TACIT_RETURN_IF_ERROR(UnitScales(
      stream_, {.bound = 1}, 1, First(memory_.squared, units), First(memory_.coordinates, units),
      {}, First(memory_.unit_scale, units), First(memory_.bounded, units), clipped_.span()));
  TACIT_RETURN_IF_ERROR(streams_.AwaitSelected());
  return SpreadScales(stream_, 1, units, 1, First(memory_.unit_scale, units), unit_of,
                      memory_.example_scale.span().Sub(at_rows, examples));
}

// Norms, scales, and units without a norm wiped.
Status Engine::Scales(const StepChunk& chunk, const ClipRule& rule) {
  const uint32_t examples = chunk.examples(), units = chunk.units();
  const auto unit_of = staged_->unit_of.Sub(chunk.first_example, examples);
  const auto end = staged_->example_end.Sub(chunk.first_unit, units);
  const size_t of_layers = layers_.size() * units;
  TACIT_RETURN_IF_ERROR(
      net_->SquaredNorms(end, chunk.one_row_each, First(memory_.squared, of_layers)));
  TACIT_RETURN_IF_ERROR(streams_.AwaitSelected());
  TACIT_RETURN_IF_ERROR(RowNorms(stream_, RowsOf(chunk),
                                 memory_.squared.span().Sub(of_layers, units),
                                 First(memory_.coordinates, units)));
  const bool is_filled_up = staged_->chunks.size() == 1;
  TACIT_RETURN_IF_ERROR(UnitScales(
      stream_, rule, groups_, First(memory_.squared, groups_ * units),
      First(memory_.coordinates, units), staged_->real_units.Sub(0, is_filled_up ? 1 : 0),
      First(memory_.unit_scale, groups_ * units), First(memory_.bounded, units), clipped_.span()));
  TACIT_RETURN_IF_ERROR(net_->Clear(First(memory_.bounded, units), unit_of, InputGradient(chunk)));
  // The factor by which model::Pctr shrinks bf16's scales.
  const float shrink =
      options_.click.model.precision == ops::Precision::kBf16 ? 1 / (1 + 0x1p-8f) : 1.0f;
  return SpreadScales(stream_, groups_, units, shrink, First(memory_.unit_scale, groups_ * units),
                      unit_of, First(memory_.example_scale, groups_ * examples));
}

// The rows' sums go beside those of the layers, and behind the last chunk's the step's end.
Status Engine::AddSums(const StepChunk& chunk, const Recipe& recipe, const ClipRule& rule) {
  if (in_net_ != &chunk) {
    TACIT_RETURN_IF_ERROR(Forward(chunk));
    TACIT_RETURN_IF_ERROR(Backward(chunk));
  }
  TACIT_RETURN_IF_ERROR(recipe.is_private ? Scales(chunk, rule) : CountWhole(chunk));
  TACIT_RETURN_IF_ERROR(streams_.AwaitScaled());
  const size_t examples = chunk.examples(), at_rows = layers_.size() * examples;
  TACIT_RETURN_IF_ERROR(AddRowSums(streams_.beside(), RowsOf(chunk),
                                   memory_.example_scale.span().Sub(at_rows, examples),
                                   StepOf(recipe), stride_, RowSumsOfStep()));
  const bool is_first = &chunk == &staged_->chunks.front();
  const bool is_last = &chunk == &staged_->chunks.back();
  if (is_last) {
    TACIT_RETURN_IF_ERROR(FinishTables(recipe));
    TACIT_RETURN_IF_ERROR(index_->End(streams_.beside()));
  }
  const auto summed = [&](size_t l) { return is_last ? FinishLayers(recipe, l) : Status(); };
  if (!recipe.is_private) return net_->Sum({}, is_first ? 0.0f : 1.0f, PlainSums(), summed);
  if (is_first) TACIT_RETURN_IF_ERROR(stream_.Fill(dense_sums_.span(), 0));
  const auto piece = [&](DeviceSpan<const uint32_t> of_all) {
    return of_all.Sub(chunk.first_piece, chunk.piece_end.size());
  };
  return net_->SumOnGrid(First(memory_.example_scale, at_rows),
                         {.end = piece(staged_->piece_end), .closes = piece(staged_->piece_closes)},
                         1 / recipe.grid.step, dense_sums_.span(), summed);
}

// Steps the parameters whose sums are there when layer l's are, while the layers before it are
// multiplied. A few wait for the next layer.
Status Engine::FinishLayers(const Recipe& recipe, size_t l) {
  const uint64_t begin =
      (layers_[l].offset + kNumbersPerPlace - 1) / kNumbersPerPlace * kNumbersPerPlace;
  if (l > 0 && begin + kFinishLeast > unfinished_) return {};
  const DensePart part{.begin = begin, .end = std::exchange(unfinished_, begin)};
  TACIT_RETURN_IF_ERROR(streams_.AwaitSummed());
  const GridRelease release{
      .step = recipe.grid.step, .stddev = recipe.grid.stddev, .factor = recipe.factor};
  Stream& beside = streams_.beside();
  return recipe.is_private ? FinishDense(beside, step_noise_->key(), release, optimizer_->rule(),
                                         part, dense_sums_.span(), optimizer_->parameters())
                           : FinishDensePlain(beside, recipe.factor, optimizer_->rule(), part,
                                              PlainSums(), optimizer_->parameters());
}

// Does all that follows the passes. Beside norms and products the step's rows are selected and
// listed, their sums formed, their noise drawn.
Status Engine::Sums(const Recipe& recipe, const ClipRule& rule) {
  Stream& beside = streams_.beside();
  unfinished_ = dense_size();
  TACIT_RETURN_IF_ERROR(stream_.Fill(clipped_.span(), 0));
  TACIT_RETURN_IF_ERROR(streams_.Fork());
  TACIT_RETURN_IF_ERROR(beside.Fill(RowSumsOfStep(), 0));
  TACIT_RETURN_IF_ERROR(index_->Select(beside, recipe, KeyFor(recipe)));
  TACIT_RETURN_IF_ERROR(streams_.MarkSelected());
  TACIT_RETURN_IF_ERROR(index_->ListWritten(beside));
  for (const StepChunk& chunk : staged_->chunks) {
    // The last chunk's rows' sums read what this one's passes write.
    if (&chunk != staged_->chunks.data()) {
      TACIT_RETURN_IF_ERROR(streams_.Join());
    }
    TACIT_RETURN_IF_ERROR(AddSums(chunk, recipe, rule));
  }
  return streams_.Join();
}

Result<ClipRule> Engine::MakeRule(const Recipe& recipe) {
  std::vector<double> shares = recipe.root_shares;
  if (shares.empty())
    shares.assign(groups_, 1 / std::sqrt(static_cast<double>(groups_)) / mechanism::kNormSlack);
  TACIT_CHECK(shares.size() == groups_, "one share of the clip per layer, and one for rows");
  if (shares != root_shares_) {
    root_shares_ = std::move(shares);
    TACIT_RETURN_IF_ERROR(stream_.Upload<double>(root_shares_, shares_.span()));
  }
  return ClipRule{.law = LawOf(recipe.clip),
                  .bound = recipe.bound,
                  .grid_step = recipe.grid.step,
                  .dense_root = std::sqrt(static_cast<double>(dense_size())),
                  .error = model::kSumError,
                  .root_share = shares_.span()};
}

Status Engine::Release(train::StepReport* report) {
  TACIT_RETURN_IF_ERROR(stream_.device().BindThread());
  TACIT_CHECK(begun_, "Release follows Begin");
  const std::optional<Recipe> recipe = mechanism_.recipe();
  TACIT_CHECK(recipe.has_value(), "a mechanism that was one for a GPU");
  watch_.Begin();
  mechanism_.DrawExtra(noise_, &extra_);
  if (recipe->is_private) TACIT_RETURN_IF_ERROR(step_noise_->Begin(noise_));
  TACIT_RETURN_IF_ERROR(
      optimizer_->BeginStep(recipe->grid.stddev * recipe->grid.step * recipe->factor));
  TACIT_ASSIGN(const auto extra_names, rows_->NameExtra(extra_));
  TACIT_RETURN_IF_ERROR(index_->Cover(rows_->names()));
  TACIT_RETURN_IF_ERROR(index_->Prepare(*recipe, extra_, extra_names, options_.round_examples));
  TACIT_RETURN_IF_ERROR(
      memory_.TakeSums(index_->entries(), stride_, BufferTaker(stream_.device())));
  TACIT_ASSIGN(const ClipRule rule, MakeRule(*recipe));
  begun_ = false;
  TACIT_RETURN_IF_ERROR(Run([&] { return Sums(*recipe, rule); }));
  if (recipe->is_private) TACIT_RETURN_IF_ERROR(step_noise_->End());
  in_net_ = nullptr;
  TACIT_RETURN_IF_ERROR(reports_->Ask(*index_, clipped_.span(), staged_->examples,
                                      recipe->rows == Recipe::Rows::kEvery));
  // The step runs meanwhile.
  TACIT_RETURN_IF_ERROR(rows_->FetchAnnounced());
  if (announced_ != nullptr) TACIT_RETURN_IF_ERROR(BringAhead(*std::exchange(announced_, nullptr)));
  TACIT_RETURN_IF_ERROR(reports_->Read(report));
  TACIT_RETURN_IF_ERROR(rows_->End(reports_->written()));
  watch_.End();
  return {};
}

Status Engine::FinishTables(const Recipe& recipe) {
  Stream& beside = streams_.beside();
  const GridRelease release{
      .step = recipe.grid.step, .stddev = recipe.grid.stddev, .factor = recipe.factor};
  const auto rule = optimizer_->rule();
  const RowSums sums{.sums = RowSumsOfStep(), .stride = stride_, .places = (stride_ + 15) / 16};
  const DeviceRows::View view = rows_->view();
  if (recipe.rows == Recipe::Rows::kEvery)
    return FinishEveryRow(beside, step_noise_->key(), release, rule, view.places, index_->owner(),
                          index_->owner_rank(), sums);
  WrittenRows written = index_->written();
  written.changed = view.changed;
  if (!recipe.is_private)
    return FinishRowsPlain(beside, recipe.factor * StepOf(recipe), rule, view.places, written,
                           sums);
  return FinishRows(beside, step_noise_->key(), release, rule, view.places, written, sums);
}

}  // namespace

Result<std::unique_ptr<train::ClickEngine>> MakeDeviceClickEngine(
    Device& device, DeviceClickOptions options, mechanism::Mechanism& mechanism,
    noise::NoiseSource& noise, store::WorkingRows& rows, const store::DenseState& dense) {
  if (!mechanism.recipe())
    return Fail(ErrorCode::kRefused,
                "this mechanism has no form for a GPU: set gpu.use to never, or take another "
                "mechanism or clip");
  if (!mechanism.recipe()->is_private && options.click.optimizer.kind->subtracts_noise)
    return Fail(ErrorCode::kRefused,
                "the optimiser subtracts noise, and this mechanism adds none: take another one");
  TACIT_ASSIGN(StepStreams streams, StepStreams::Make(device, options.overlap));
  auto engine = std::make_unique<Engine>(std::move(streams), std::move(options), mechanism, noise,
                                         rows, dense);
  TACIT_RETURN_IF_ERROR(engine->Open());
  return std::unique_ptr<train::ClickEngine>(std::move(engine));
}

}  // namespace tacit::cuda
