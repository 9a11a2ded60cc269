#include "model/sequence/output_layer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"

namespace tacit::model {
namespace {

using ops::ConstMatrix;
using ops::Matrix;
using ops::Transpose;

// The most positions that are processed together.
constexpr size_t kPositions = 68;
// The logit of an item that is ruled out.
constexpr float kNever = -1e30f;

double Dot(const float* x, const float* y, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += double{x[i]} * y[i];
  return sum;
}

void AddScaled(float factor, const float* x, size_t n, float* to) {
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) to[i] += factor * x[i];
}

}  // namespace

void OutputStep::Begin(std::span<const float> parameters, uint64_t coins, ops::UnitOps& ops) {
  parameters_ = parameters;
  const ConstMatrix table = layout_.output().Of(parameters);
  if (layout_.options().negatives > 0) DrawNegatives(coins);
  const ConstMatrix rows = sampled() ? ConstMatrix(negative_rows_.view()) : table;
  ops.Prepare(Transpose::kYes, rows, &to_logits_);
  ops.Prepare(Transpose::kNo, rows, &to_states_);
  if (layout_.options().label_smoothing == 0) return;
  std::vector<double> mean(table.cols);
  for (size_t r = 0; r < table.rows; ++r)
    for (size_t c = 0; c < table.cols; ++c) mean[c] += table.Row(r)[c];
  mean_row_.resize(table.cols);
  for (size_t c = 0; c < table.cols; ++c)
    mean_row_[c] = static_cast<float>(mean[c] / static_cast<double>(table.rows));
  mean_bias_ = 0;
  const ParameterTable& bias = layout_.item_bias();
  for (size_t i = 0; i < bias.size(); ++i)
    mean_bias_ += parameters[bias.offset + i] / static_cast<double>(bias.size());
}

// Draws one item after the other and skips those that were drawn before.
void OutputStep::DrawNegatives(uint64_t coins) {
  const SequenceOptions& options = layout_.options();
  place_.resize(options.catalogue, -1);
  for (const uint32_t item : negatives_) place_[item] = -1;
  negatives_.clear();
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(coins),
                                       static_cast<uint32_t>(coins >> 32)};
  for (uint32_t call = 0; negatives_.size() < options.negatives; ++call) {
    const auto words = Philox({call, 0, 0, 2}, key);
    for (size_t w = 0; w < words.size() && negatives_.size() < options.negatives; ++w) {
      const auto item = static_cast<uint32_t>((uint64_t{words[w]} * options.catalogue) >> 32);
      if (place_[item] >= 0) continue;
      place_[item] = static_cast<int32_t>(negatives_.size());
      negatives_.push_back(item);
    }
  }
  const ConstMatrix table = layout_.output().Of(parameters_);
  negative_rows_.Reset(negatives_.size(), table.cols);
  for (size_t k = 0; k < negatives_.size(); ++k)
    std::memcpy(negative_rows_.view().Row(k), table.Row(negatives_[k]), table.cols * sizeof(float));
  shift_.assign(negatives_.size() + 1,
                static_cast<float>(std::log((options.catalogue - 1.0) / options.negatives)));
  shift_.back() = 0;
}

Result<bool> OutputLayer::Run(const OutputStep& step, const UnitRows& rows, ConstMatrix hidden,
                              Matrix hidden_grad, UnitGradient* gradient, double* loss) {
  counted_.clear();
  for (uint32_t r = 0; r < rows.size(); ++r)
    if (rows.weight[r] != 0 && rows.target[r] != kNoItem) counted_.push_back(r);
  *loss = loss_ = 0;
  if (counted_.empty()) return false;
  for (size_t r = 0; r < hidden_grad.rows; ++r)
    std::fill_n(hidden_grad.Row(r), hidden_grad.cols, 0.0f);

  const size_t width = hidden.cols, parts = (counted_.size() + kPositions - 1) / kPositions;
  const size_t most = (counted_.size() + parts - 1) / parts;
  states_.Reset(most, width);
  state_grad_.Reset(most, width);
  // With negatives, the target has one more column after theirs: see RunSampled.
  logits_.Reset(most, step.sampled() ? step.negatives().size() + 1 : layout_.output().rows);
  exp_.resize(most);
  factor_.resize(most);
  spread_.assign(width + 1, 0.0f);
  if (step.sampled()) negative_grad_.Reset(step.negatives().size(), width);
  for (size_t p = 0; p < parts; ++p) {
    const size_t begin = counted_.size() * p / parts, end = counted_.size() * (p + 1) / parts;
    const Chunk chunk{std::span(counted_).subspan(begin, end - begin), p == 0};
    for (size_t i = 0; i < chunk.row.size(); ++i)
      std::memcpy(states_.view().Row(i), hidden.Row(chunk.row[i]), width * sizeof(float));
    if (step.sampled()) {
      TACIT_RETURN_IF_ERROR(RunSampled(step, rows, chunk, hidden_grad, gradient));
    } else {
      TACIT_RETURN_IF_ERROR(RunAll(step, rows, chunk, hidden_grad, gradient));
    }
  }
  if (step.sampled()) AddNegatives(step, gradient);
  if (layout_.options().label_smoothing > 0) AddSpread(gradient);
  *loss = loss_;
  return true;
}

// With e = exp(logit - max) and s its sum over the catalogue, the logits' gradient is w e / s
// everywhere, less w (1 - a) at the target and w a / M everywhere when a share a of the target is
// spread. The products are with e alone: the normaliser is applied to the states, which are few,
// and the subtracted part is one row, or the same for all rows. The part subtracted at the target
// is rounded as the products rounded it: if the target is all but certain, both nearly cancel.
Status OutputLayer::RunAll(const OutputStep& step, const UnitRows& rows, const Chunk& chunk,
                           Matrix hidden_grad, UnitGradient* gradient) {
  TACIT_RETURN_IF_ERROR(Predict(step, rows, chunk));
  TACIT_RETURN_IF_ERROR(StateGradient(step, rows, chunk, hidden_grad));
  return TableGradient(rows, chunk, gradient);
}

// Computes e, and w / s per position.
Status OutputLayer::Predict(const OutputStep& step, const UnitRows& rows, const Chunk& chunk) {
  const std::span<const float> bias =
      step.parameters().subspan(layout_.item_bias().offset, layout_.item_bias().size());
  const float spread = layout_.options().label_smoothing;
  const size_t n = chunk.row.size();
  const Matrix states = states_.view().Rows(0, n), logits = logits_.view().Rows(0, n);
  if (prior_ != nullptr) prior_->Fill(rows, chunk.row, logits);
  TACIT_RETURN_IF_ERROR(
      ops_.Gemm(Transpose::kNo, states, step.to_logits(), prior_ != nullptr ? 1.0f : 0.0f, logits));
  if (layout_.options().mask_seen) MaskSeen(rows, chunk.row, logits);
  for (size_t i = 0; i < n; ++i) {
    const uint32_t target = rows.target[chunk.row[i]];
    const double logit = double{logits.Row(i)[target]} + (bias.empty() ? 0 : bias[target]);
    double predicted = (1 - spread) * logit;
    if (spread > 0)
      predicted +=
          spread * (Dot(states.Row(i), step.mean_row().data(), states.cols) + step.mean_bias());
    loss_ -= rows.weight[chunk.row[i]] * predicted;
  }
  ops_.ExpFactor(bias, logits, std::span(exp_).first(n), &exponentials_);
  for (size_t i = 0; i < n; ++i) {
    const float weight = rows.weight[chunk.row[i]];
    loss_ += weight * (double{exp_[i].max} + std::log(double{exp_[i].sum}));
    factor_[i] = weight / exp_[i].sum;
  }
  return {};
}

Status OutputLayer::StateGradient(const OutputStep& step, const UnitRows& rows, const Chunk& chunk,
                                  Matrix hidden_grad) {
  const ConstMatrix table = layout_.output().Of(step.parameters());
  const float spread = layout_.options().label_smoothing;
  const Matrix grad = state_grad_.view().Rows(0, chunk.row.size());
  TACIT_RETURN_IF_ERROR(ops_.Gemm(Transpose::kNo, exponentials_, step.to_states(), 0, grad));
  target_.resize(grad.cols);
  for (size_t i = 0; i < grad.rows; ++i) {
    const float weight = rows.weight[chunk.row[i]];
    float* const to = hidden_grad.Row(chunk.row[i]);
    std::copy_n(table.Row(rows.target[chunk.row[i]]), grad.cols, target_.data());
    ops_.RoundAsFactor(target_);
    AddScaled(factor_[i], grad.Row(i), grad.cols, to);
    AddScaled(-weight * (1 - spread), target_.data(), grad.cols, to);
    if (spread > 0) AddScaled(-weight * spread, step.mean_row().data(), grad.cols, to);
  }
  return {};
}

Status OutputLayer::TableGradient(const UnitRows& rows, const Chunk& chunk,
                                  UnitGradient* gradient) {
  const std::span<float> bias = BiasOf(gradient);
  const Matrix table = layout_.output().Of(gradient->values());
  const float spread = layout_.options().label_smoothing;
  const size_t n = chunk.row.size(), width = table.cols;
  scaled_.Reset(n, width);
  for (size_t i = 0; i < n; ++i) {
    float* const to = scaled_.view().Row(i);
    for (size_t c = 0; c < width; ++c) to[c] = factor_[i] * states_.view().Row(i)[c];
    ops_.RoundAsFactor({to, width});
  }
  ops_.Prepare(Transpose::kNo, scaled_.view(), &scaled_factor_);
  const float beta = chunk.first && !gradient->straight() ? 0.0f : 1.0f;
  TACIT_RETURN_IF_ERROR(ops_.Gemm(Transpose::kYes, exponentials_, scaled_factor_, beta, table));
  if (!bias.empty()) {
    ops_.RoundAsFactor(std::span(factor_).first(n));
    TACIT_RETURN_IF_ERROR(ops_.AddWeightedRows(std::span(factor_).first(n), exponentials_, bias));
  }
  for (size_t i = 0; i < n; ++i) {
    const uint32_t target = rows.target[chunk.row[i]];
    const float weight = rows.weight[chunk.row[i]], sum = exp_[i].sum * (1 - spread);
    AddScaled(-sum, scaled_.view().Row(i), width, table.Row(target));
    if (!bias.empty()) bias[target] -= sum * factor_[i];
    if (spread == 0) continue;
    AddScaled(weight, states_.view().Row(i), width, spread_.data());
    spread_[width] += weight;
  }
  return {};
}

// Adds what all rows have in common, after all positions are processed.
void OutputLayer::AddSpread(UnitGradient* gradient) {
  const Matrix table = layout_.output().Of(gradient->values());
  const float each = -layout_.options().label_smoothing / static_cast<float>(table.rows);
  for (size_t r = 0; r < table.rows; ++r) AddScaled(each, spread_.data(), table.cols, table.Row(r));
  for (float& b : BiasOf(gradient)) b += each * spread_[table.cols];
}

std::span<float> OutputLayer::BiasOf(UnitGradient* gradient) const {
  return gradient->values().subspan(layout_.item_bias().offset, layout_.item_bias().size());
}

// Sets the logits of seen items so low that their exponential is 0, and with it their gradient.
void OutputLayer::MaskSeen(const UnitRows& rows, std::span<const uint32_t> places,
                           Matrix logits) const {
  size_t crop = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    while (rows.crop_end[crop] <= places[i]) ++crop;
    const uint32_t target = rows.target[places[i]];
    for (size_t r = crop == 0 ? 0 : rows.crop_end[crop - 1]; r <= places[i]; ++r)
      if (rows.item[r] != target) logits.Row(i)[rows.item[r]] = kNever;
  }
}

// The target's own logit stands after the negatives'. A target that is one of the negatives is left
// out there.
Status OutputLayer::RunSampled(const OutputStep& step, const UnitRows& rows, const Chunk& chunk,
                               Matrix hidden_grad, UnitGradient* gradient) {
  const ConstMatrix table = layout_.output().Of(step.parameters());
  const size_t n = chunk.row.size(), width = table.cols, negatives = step.negatives().size();
  const Matrix states = states_.view().Rows(0, n), logits = logits_.view().Rows(0, n);
  const Matrix others(logits.data, n, negatives, logits.stride);
  TACIT_RETURN_IF_ERROR(ops_.Gemm(Transpose::kNo, states, step.to_logits(), 0, others));
  for (size_t i = 0; i < n; ++i) {
    const uint32_t target = rows.target[chunk.row[i]];
    const double logit = Dot(states.Row(i), table.Row(target), width);
    logits.Row(i)[negatives] = static_cast<float>(logit);
    if (step.PlaceOf(target) >= 0) logits.Row(i)[step.PlaceOf(target)] = kNever;
    loss_ -= rows.weight[chunk.row[i]] * logit;
  }
  ops_.ExpRows(step.shift(), logits, std::span(exp_).first(n));
  for (size_t i = 0; i < n; ++i) {
    const uint32_t target = rows.target[chunk.row[i]];
    const float weight = rows.weight[chunk.row[i]];
    loss_ += weight * (double{exp_[i].max} + std::log(double{exp_[i].sum}));
    logits.Row(i)[negatives] -= exp_[i].sum;
    if (step.PlaceOf(target) >= 0) logits.Row(i)[step.PlaceOf(target)] = 0;
    factor_[i] = weight / exp_[i].sum;
  }
  const Matrix state_grad = state_grad_.view().Rows(0, n);
  TACIT_RETURN_IF_ERROR(ops_.Gemm(Transpose::kNo, others, step.to_states(), 0, state_grad));
  for (size_t i = 0; i < n; ++i) {
    const uint32_t target = rows.target[chunk.row[i]];
    const float own = factor_[i] * logits.Row(i)[negatives];
    float* const to = hidden_grad.Row(chunk.row[i]);
    AddScaled(factor_[i], state_grad.Row(i), width, to);
    AddScaled(own, table.Row(target), width, to);
    AddScaled(own, states.Row(i), width, gradient->OutputRow(target));
    for (size_t c = 0; c < width; ++c) states.Row(i)[c] *= factor_[i];
  }
  return ops_.Gemm(Transpose::kYes, others, Transpose::kNo, states, chunk.first ? 0.0f : 1.0f,
                   negative_grad_.view());
}

void OutputLayer::AddNegatives(const OutputStep& step, UnitGradient* gradient) {
  const Matrix grad = negative_grad_.view();
  for (size_t k = 0; k < grad.rows; ++k)
    AddScaled(1, grad.Row(k), grad.cols, gradient->OutputRow(step.negatives()[k]));
}

}  // namespace tacit::model
