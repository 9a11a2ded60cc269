#include "model/sequence/unit_pass.h"

#include <algorithm>

#include "base/check.h"

namespace tacit::model {
namespace {

constexpr uint32_t kEmbeddingSite = 0;

std::unique_ptr<Encoder> MakeEncoder(const SequenceLayout& layout, ops::UnitOps& ops) {
  return layout.recurrent().empty() ? MakeTransformer(layout, ops)
                                    : MakeRecurrentEncoder(layout, ops);
}

}  // namespace

UnitPass::UnitPass(const SequenceLayout& layout, std::unique_ptr<ops::UnitOps> ops,
                   const LogitPrior* prior)
    : layout_(layout),
      ops_(std::move(ops)),
      prior_(prior),
      encoder_(MakeEncoder(layout, *ops_)),
      output_(layout, *ops_, prior),
      gradient_(layout, *ops_) {}

Status UnitPass::BeginStep(std::span<const float> parameters, const ParameterNoise& noise) {
  TACIT_CHECK(parameters.size() == layout_.size(), "a number per parameter");
  TACIT_CHECK(!noise.on() || noise.item_variance.size() == layout_.items().rows,
              "a variance per item");
  parameters_ = parameters;
  noise_ = noise;
  return encoder_->BeginStep(parameters, noise);
}

void UnitPass::Embed(const UnitRows& rows, const DropoutCoins& coins) {
  const ops::ConstMatrix items = layout_.items().Of(parameters_);
  const ops::ConstMatrix positions = layout_.positions().Of(parameters_);
  const float scale = layout_.embedding_scale();
  input_.Reset(rows.size(), items.cols);
  for (size_t r = 0; r < rows.size(); ++r) {
    TACIT_CHECK(rows.item[r] < items.rows, "items are of the catalogue");
    const float* item = items.Row(rows.item[r]);
    const float* position = positions.rows > 0 ? positions.Row(rows.position[r]) : nullptr;
    float* to = input_.view().Row(r);
    for (size_t c = 0; c < items.cols; ++c) to[c] = scale * item[c];
    for (size_t c = 0; position != nullptr && c < items.cols; ++c) to[c] += position[c];
  }
  if (coins.on()) {
    dropped_.Reset(rows.size(), items.cols);
    coins.Draw(kEmbeddingSite, dropped_.view());
    Multiply(dropped_.view(), input_.view());
  }
  if (!noise_.on()) return;
  variance_.Reset(rows.size(), items.cols);
  for (size_t r = 0; r < rows.size(); ++r) {
    const float own = noise_.item_variance[rows.item[r]];
    std::fill_n(variance_.view().Row(r), items.cols, scale * scale * own + noise_.weight_variance);
  }
  for (int twice = 0; coins.on() && twice < 2; ++twice) Multiply(dropped_.view(), variance_.view());
}

Status UnitPass::Forward(const UnitRows& rows, const DropoutCoins& coins,
                         ops::ConstMatrix* hidden) {
  Embed(rows, coins);
  return encoder_->Forward(rows, coins, input_.view(),
                           noise_.on() ? variance_.view() : ops::Matrix(), hidden);
}

Result<bool> UnitPass::Learn(const OutputStep& step, const UnitRows& rows,
                             const DropoutCoins& coins, double* loss) {
  ops::ConstMatrix hidden;
  if (rows.size() == 0) return false;
  TACIT_RETURN_IF_ERROR(Forward(rows, coins, &hidden));
  grad_.Reset(rows.size(), hidden.cols);
  gradient_.BeginUnit();
  TACIT_ASSIGN(const bool learnt, output_.Run(step, rows, hidden, grad_.view(), &gradient_, loss));
  if (!learnt) return false;
  TACIT_RETURN_IF_ERROR(encoder_->Backward(rows, grad_.view(), &gradient_));
  SpreadEmbeddingGradient(rows, coins, grad_.view());
  return true;
}

Status UnitPass::Score(std::span<const uint32_t> history, std::span<float> scores) {
  const ops::ConstMatrix table = layout_.output().Of(parameters_);
  TACIT_CHECK(scores.size() == table.rows, "a score per item");
  const auto window = history.last(std::min<size_t>(layout_.options().length, history.size()));
  scored_.Clear();
  scored_.Append(window, window, layout_.options().length);
  const ops::Matrix out(scores.data(), 1, scores.size());
  std::ranges::fill(scores, 0.0f);
  if (scored_.size() > 0) {
    ops::ConstMatrix hidden;
    TACIT_RETURN_IF_ERROR(Forward(scored_, {}, &hidden));
    const auto last = static_cast<uint32_t>(scored_.size() - 1);
    if (prior_ != nullptr) prior_->Fill(scored_, {&last, 1}, out);
    TACIT_RETURN_IF_ERROR(ops_->Gemm(ops::Transpose::kNo, hidden.Rows(last, last + 1),
                                     ops::Transpose::kYes, table, prior_ != nullptr ? 1.0f : 0.0f,
                                     out));
  } else if (prior_ != nullptr) {
    prior_->FillFirst(scores);
  }
  const ParameterTable& bias = layout_.item_bias();
  if (bias.size() > 0) ops_->AddBias(out, parameters_.subspan(bias.offset, bias.size()), false);
  return {};
}

// Adds the input side of the embeddings' gradient to what the output layer wrote.
void UnitPass::SpreadEmbeddingGradient(const UnitRows& rows, const DropoutCoins& coins,
                                       ops::Matrix grad) {
  if (coins.on()) Multiply(dropped_.view(), grad);
  const float scale = layout_.embedding_scale();
  const ops::Matrix positions = layout_.positions().Of(gradient_.values());
  for (size_t r = 0; r < rows.size(); ++r) {
    const float* from = grad.Row(r);
    float* item = gradient_.ItemRow(rows.item[r]);
    for (size_t c = 0; c < grad.cols; ++c) item[c] += scale * from[c];
    if (positions.rows == 0) continue;
    float* position = positions.Row(rows.position[r]);
    for (size_t c = 0; c < grad.cols; ++c) position[c] += from[c];
  }
}

}  // namespace tacit::model
