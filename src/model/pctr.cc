#include "model/pctr.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "model/dense_net.h"
#include "model/row_gradients.h"
#include "ops/matrix_buffer.h"

namespace tacit::model {
namespace {

// Embeddings start uniform in +-0.05, as in Keras, which paper 003 used. A row that was never
// written is noise to its readers, and under AdaFEST most rows never are: at 1/sqrt(dim) the AUC
// on Criteo's first 80,000 events was 0.0013 lower.
constexpr float kInitialRowScale = 0.05f;

constexpr uint32_t kFingerprintVersion = 1;
// Initial weights are drawn as rows of their own, far above any embedding row.
constexpr uint64_t kWeightRows = uint64_t{1} << 63;

std::vector<LinearLayer> Layers(const PctrOptions& options, size_t input) {
  std::vector<LinearLayer> layers;
  std::vector<uint32_t> widths = options.hidden;
  widths.push_back(1);
  size_t in = input, offset = 0;
  for (uint32_t out : widths) {
    TACIT_CHECK(out > 0, "a layer of no width");
    layers.push_back({in, out, offset});
    offset += layers.back().size();
    in = out;
  }
  return layers;
}

std::vector<uint32_t> Dims(const RowSpace& space) {
  std::vector<uint32_t> dims;
  for (const RowSpace::Table& table : space.tables()) dims.push_back(table.dim);
  return dims;
}

std::vector<uint32_t> Columns(std::span<const uint32_t> dims) {
  std::vector<uint32_t> columns;
  uint32_t column = 0;
  for (uint32_t dim : dims) columns.push_back(std::exchange(column, column + dim));
  return columns;
}

// Scales x down to the length `clip`, a little less: the scaled numbers are rounded. What is no
// number stays one.
void ClipInput(double clip, std::span<float> x) {
  double squared = 0;
  for (const float value : x) squared += double{value} * double{value};
  const double length = std::sqrt(squared);
  if (!(length > clip * (1 - 0x1p-20))) return;
  const auto scale = static_cast<float>(clip / length * (1 - 0x1p-20));
  for (float& value : x) value *= scale;
}

// The rows of products: the examples, and zeros behind them where no example may depend on how many
// there are.
size_t PaddedRows(const Examples& examples) {
  if (!examples.apart) return examples.size;
  return (examples.size + ops::kRowGrain - 1) / ops::kRowGrain * ops::kRowGrain;
}

size_t Total(std::span<const uint32_t> dims) {
  size_t total = 0;
  for (uint32_t dim : dims) total += dim;
  return total;
}

}  // namespace

struct Pctr::Impl {
  Impl(PctrOptions given, ops::Backend& b)
      : options(std::move(given)),
        backend(b),
        dim(Dims(options.space)),
        column(Columns(dim)),
        embedding_width(Total(dim)),
        layers(Layers(options, embedding_width + options.dense_width)),
        net(MakeDenseNet(options.precision, layers, backend)),
        row_gradients(column, dim, backend.workers()) {
    TACIT_CHECK(layers[0].in > 0, "a model without input");
  }

  const PctrOptions options;
  ops::Backend& backend;
  const std::vector<uint32_t> dim, column;  // per slot, in the model's input
  const size_t embedding_width;
  const std::vector<LinearLayer> layers;
  const std::unique_ptr<DenseNet> net;
  RowGradients row_gradients;

  // The state of the last Forward and Backward.
  ops::MatrixBuffer<float> input, input_gradient;
  std::vector<float> logits, dlogit, loss;
  bool has_gradients = false;

  // The state of one ClippedSum.
  std::vector<uint32_t> example_end;
  std::vector<uint32_t> unit_coordinates;
  std::vector<float> unit_scale, example_scale;
  ops::SumPieces pieces;

  size_t groups() const { return layers.size() + 1; }
  void BuildInput(const Examples& examples, std::span<float* const> rows, ops::Matrix out) const;
  void FindExampleEnds(const Examples& examples);
  void Norms(const Examples& examples, const Activations& activations,
             std::span<const uint32_t> kept_place, GroupNorms* norms);
  void BoundRounding(double grid_step, size_t dense_size, GroupNorms* norms) const;
  void DropUnboundedUnits(GroupNorms* norms);
  void SpreadScales(const Examples& examples);
};

Pctr::Pctr(PctrOptions options, ops::Backend& backend)
    : impl_(std::make_unique<Impl>(std::move(options), backend)) {}
Pctr::~Pctr() = default;

size_t Pctr::dense_size() const {
  return impl_->layers.back().offset + impl_->layers.back().size();
}

size_t Pctr::first_width() const { return impl_->layers[0].out; }

// He et al., 2015: variance 2 / in keeps the signal's size through ReLU layers.
std::vector<float> Pctr::InitialDense(uint64_t seed) const {
  std::vector<float> dense(dense_size(), 0.0f);
  for (size_t l = 0; l < impl_->layers.size(); ++l) {
    const LinearLayer& layer = impl_->layers[l];
    const float bound = std::sqrt(6.0f / static_cast<float>(layer.in));
    for (size_t i = 0; i < layer.in; ++i)
      InitialRow(seed, kWeightRows + (uint64_t{l} << 32) + i, bound,
                 std::span(dense).subspan(layer.offset + i * layer.out, layer.out));
  }
  return dense;
}

std::vector<SumMap::Weights> Pctr::Matrices() const {
  std::vector<SumMap::Weights> matrices;
  for (const LinearLayer& layer : impl_->layers)
    matrices.push_back({layer.in, layer.out, layer.offset});
  return matrices;
}

// A row's expected squared norm is 1/3, of the order of one number of the dense input, for any
// dimension.
float Pctr::InitialRowScale(uint32_t) const { return kInitialRowScale; }

// The SHA-256 of, in the notation of base/bytes.h:
//     model   := "tacit.pctr":string version:u32 tables:u32 table*tables dense_width:u32
//                layers:u32 width:u32*layers precision:u8
//     version := 1
//     table   := name:string rows:u64 dim:u32
// `layers` are the hidden ones; `precision` is 0 for f32, 1 for bf16. Where inputs are clipped,
// input_clip:f64 follows.
Digest Pctr::Fingerprint() const {
  const PctrOptions& options = impl_->options;
  ByteWriter bytes;
  bytes.PutString("tacit.pctr").Put(kFingerprintVersion);
  bytes.Put(static_cast<uint32_t>(options.space.tables().size()));
  for (const RowSpace::Table& table : options.space.tables())
    bytes.PutString(table.name).Put(table.rows).Put(table.dim);
  bytes.Put(options.dense_width).Put(static_cast<uint32_t>(options.hidden.size()));
  bytes.PutArray(std::span<const uint32_t>(options.hidden));
  bytes.Put(static_cast<uint8_t>(options.precision == ops::Precision::kBf16));
  if (options.input_clip > 0) bytes.Put(options.input_clip);
  return Sha256().Update(bytes.bytes()).Finish();
}

double Pctr::FlopsPerExample() const {
  double products = 0;
  for (const LinearLayer& layer : impl_->layers) products += 3.0 * layer.in * layer.out;
  // The numbers beside the embeddings need no gradient.
  products -= static_cast<double>(impl_->options.dense_width) * impl_->layers[0].out;
  return 2 * products;
}

Status Pctr::Forward(const Examples& examples, std::span<const float> dense,
                     std::span<float* const> rows, std::span<float> logits) {
  TACIT_CHECK(dense.size() == dense_size() && logits.size() == examples.size, "sizes differ");
  impl_->has_gradients = false;
  const size_t padded = PaddedRows(examples);
  impl_->input.Reset(padded, impl_->layers[0].in);
  impl_->BuildInput(examples, rows, impl_->input.view().Rows(0, examples.size));
  for (size_t r = examples.size; r < padded; ++r)
    std::fill_n(impl_->input.view().Row(r), impl_->layers[0].in, 0.0f);
  impl_->logits.resize(padded);
  TACIT_RETURN_IF_ERROR(impl_->net->Forward(dense, impl_->input.view(), impl_->logits));
  std::copy_n(impl_->logits.begin(), examples.size, logits.begin());
  return {};
}

void Pctr::Impl::BuildInput(const Examples& examples, std::span<float* const> rows,
                            ops::Matrix out) const {
  const size_t width = options.dense_width;
  TACIT_CHECK(examples.dense.size() == examples.size * width, "dense width differs");
  backend.GatherSum({examples.slot_end, examples.slot_row, column, dim}, rows, out);
  for (size_t i = 0; i < examples.size; ++i) {
    std::copy_n(examples.dense.data() + i * width, width, out.Row(i) + embedding_width);
    if (options.input_clip > 0) ClipInput(options.input_clip, {out.Row(i), layers[0].in});
  }
}

size_t Pctr::input_width() const { return impl_->layers[0].in; }

void Pctr::Represent(const Examples& examples, std::span<float* const> rows, ops::Matrix out) {
  TACIT_CHECK(out.rows == examples.size && out.cols == input_width(), "sizes differ");
  impl_->BuildInput(examples, rows, out);
  for (size_t i = 0; i < out.rows; ++i)
    if (!std::ranges::all_of(std::span(out.Row(i), out.cols),
                             [](float x) { return std::isfinite(x); }))
      std::fill_n(out.Row(i), out.cols, 0.0f);
}

Status Pctr::LearnFrom(ops::ConstMatrix input, std::span<const float> label,
                       std::span<const float> dense, std::span<float> gradient) {
  TACIT_CHECK(label.size() <= input.rows && input.cols == input_width() &&
                  dense.size() == dense_size() && gradient.size() == dense_size(),
              "sizes differ");
  impl_->has_gradients = false;
  impl_->logits.resize(input.rows);
  impl_->dlogit.assign(input.rows, 0.0f);
  impl_->loss.resize(label.size());
  TACIT_RETURN_IF_ERROR(impl_->net->Forward(dense, input, impl_->logits));
  impl_->backend.LogisticLoss(std::span(impl_->logits).first(label.size()), label, impl_->loss,
                              std::span(impl_->dlogit).first(label.size()));
  impl_->input_gradient.Reset(input.rows, 0);
  TACIT_RETURN_IF_ERROR(impl_->net->Backward(impl_->dlogit, impl_->input_gradient.view()));
  return impl_->net->Sum({}, gradient);
}

Status Pctr::Backward(const Examples& examples, std::span<const float> dense,
                      std::span<float> loss) {
  TACIT_CHECK(impl_->logits.size() == PaddedRows(examples) && dense.size() == dense_size(),
              "Backward follows Forward on the same examples");
  impl_->dlogit.assign(impl_->logits.size(), 0.0f);
  impl_->backend.LogisticLoss(std::span(impl_->logits).first(examples.size), examples.label, loss,
                              std::span(impl_->dlogit).first(examples.size));
  // Before anything is clipped, so that a weight of any size moves a unit's sum by the clip at
  // most.
  for (size_t i = 0; i < examples.weight.size(); ++i) impl_->dlogit[i] *= examples.weight[i];
  impl_->input_gradient.Reset(impl_->logits.size(), impl_->embedding_width);
  TACIT_RETURN_IF_ERROR(impl_->net->Backward(impl_->dlogit, impl_->input_gradient.view()));
  impl_->has_gradients = true;
  return {};
}

Status Pctr::ClippedSum(const Examples& examples, const Activations& activations,
                        const RowSelection& selection, const ScaleRule& rule, StepGradient* sum,
                        GroupNorms* norms, const SumMap& map) {
  TACIT_CHECK(impl_->has_gradients && impl_->dlogit.size() == PaddedRows(examples),
              "ClippedSum follows Backward on the same examples");
  TACIT_RETURN_IF_ERROR(impl_->net->SumBy(map));
  const size_t summed = map.PlaceOf(dense_size());
  sum->Reset(impl_->options.space, activations, selection, summed);
  norms->groups = impl_->groups();
  norms->units = examples.units;
  norms->squared.clear();
  norms->rounding.clear();
  norms->error = 0;
  impl_->example_scale.clear();
  const double grid_step = rule.grid_step();
  TACIT_CHECK(grid_step == 0 || rule.needs_norms(), "a grid is for what is bounded");
  if (rule.needs_norms()) {
    impl_->Norms(examples, activations, sum->kept_place, norms);
    if (grid_step > 0) {
      impl_->BoundRounding(grid_step, summed, norms);
      norms->error = kSumError;
    }
    impl_->unit_scale.resize(norms->squared.size());
    rule.Scales(*norms, impl_->unit_scale);
    impl_->SpreadScales(examples);
  }
  const size_t rows_at = impl_->layers.size() * examples.size;
  const std::span<const float> scale = impl_->example_scale;
  const auto dense_scale = scale.empty() ? scale : scale.first(rows_at);
  const auto row_scale = scale.empty() ? scale : scale.subspan(rows_at);
  const ops::Matrix input_gradient = impl_->input_gradient.view().Rows(0, examples.size);
  if (grid_step == 0) {
    TACIT_RETURN_IF_ERROR(impl_->net->Sum(dense_scale, sum->dense));
    impl_->row_gradients.AddTo(examples, input_gradient, row_scale, sum);
    return {};
  }
  const std::array<uint32_t, 1> all{static_cast<uint32_t>(examples.size)};
  CutSums(examples.block_end.empty() ? std::span<const uint32_t>(all) : examples.block_end,
          impl_->example_end, &impl_->pieces);
  sum->dense_sums.assign(summed, 0);
  TACIT_RETURN_IF_ERROR(
      impl_->net->SumOnGrid(dense_scale, impl_->pieces, grid_step, sum->dense_sums));
  impl_->row_gradients.SumOnGrid(examples, input_gradient, row_scale, grid_step, sum);
  return {};
}

void Pctr::RowScores(const Examples& examples, const Activations& activations, double clip,
                     std::span<double> out) {
  TACIT_CHECK(impl_->has_gradients && impl_->dlogit.size() == PaddedRows(examples),
              "RowScores follows Backward on the same examples");
  TACIT_CHECK(clip > 0 && out.size() == activations.rows.size(), "a score per activated row");
  impl_->row_gradients.Scores(examples, impl_->input_gradient.view().Rows(0, examples.size), clip,
                              out);
}

void Pctr::Impl::Norms(const Examples& examples, const Activations& activations,
                       std::span<const uint32_t> kept_place, GroupNorms* norms) {
  FindExampleEnds(examples);
  norms->squared.resize(norms->groups * norms->units);
  const auto group = [&](size_t g) {
    return std::span(norms->squared).subspan(g * norms->units, norms->units);
  };
  for (size_t l = 0; l < layers.size(); ++l) net->SquaredNorms(l, example_end, group(l));
  unit_coordinates.resize(norms->units);
  row_gradients.SquaredNorms(examples, activations, kept_place, example_end,
                             input_gradient.view().Rows(0, examples.size), group(layers.size()),
                             unit_coordinates);
  DropUnboundedUnits(norms);
}

// Each of a unit's n numbers in rows moves by at most half a step. The dense sum is rounded block
// by block, and the unit is in one block, so that it can shift each of d numbers by one step more
// than it adds: a - b and round(a) - round(b) differ by at most one. Together, by the triangle
// inequality, step * (sqrt(n) / 2 + sqrt(d)); a little more, because a float keeps it.
void Pctr::Impl::BoundRounding(double grid_step, size_t dense_size, GroupNorms* norms) const {
  const double dense = std::sqrt(static_cast<double>(dense_size));
  norms->rounding.resize(norms->units);
  for (size_t u = 0; u < norms->units; ++u)
    norms->rounding[u] = static_cast<float>(
        grid_step * (std::sqrt(static_cast<double>(unit_coordinates[u])) / 2 + dense) *
        (1 + 0x1p-20));
}

void Pctr::Impl::FindExampleEnds(const Examples& examples) {
  TACIT_CHECK(examples.unit_of.size() == examples.size, "one unit per example");
  example_end.assign(examples.units, 0);
  for (size_t i = 0; i < examples.size; ++i) {
    TACIT_CHECK(examples.unit_of[i] < examples.units &&
                    (i == 0 || examples.unit_of[i - 1] <= examples.unit_of[i]),
                "units ascend");
    example_end[examples.unit_of[i]] = static_cast<uint32_t>(i + 1);
  }
  // A unit without examples ends where the one before it does.
  for (size_t u = 1; u < example_end.size(); ++u)
    example_end[u] = std::max(example_end[u], example_end[u - 1]);
}

// A unit whose norm is infinite or not a number cannot be bounded by scaling: 0 times infinity is
// still not a number. Its gradient is replaced by zero, which any clip admits.
void Pctr::Impl::DropUnboundedUnits(GroupNorms* norms) {
  for (size_t u = 0; u < norms->units; ++u) {
    bool bounded = true;
    for (size_t g = 0; g < norms->groups; ++g)
      bounded &= std::isfinite(norms->squared[g * norms->units + u]);
    if (bounded) continue;
    for (size_t g = 0; g < norms->groups; ++g) norms->squared[g * norms->units + u] = 0;
    for (size_t i = u == 0 ? 0 : example_end[u - 1]; i < example_end[u]; ++i) {
      net->ClearRow(i);
      std::fill_n(input_gradient.view().Row(i), embedding_width, 0.0f);
    }
  }
}

// Copies scales from units to their examples. With bf16 the scaled factor is rounded once more,
// which can lengthen it by 2^-8 of itself; the shrinking keeps it below the clip.
void Pctr::Impl::SpreadScales(const Examples& examples) {
  const float shrink = options.precision == ops::Precision::kBf16 ? 1 / (1 + 0x1p-8f) : 1.0f;
  example_scale.resize(groups() * examples.size);
  for (size_t g = 0; g < groups(); ++g)
    for (size_t i = 0; i < examples.size; ++i)
      example_scale[g * examples.size + i] =
          shrink * unit_scale[g * examples.units + examples.unit_of[i]];
}

}  // namespace tacit::model
