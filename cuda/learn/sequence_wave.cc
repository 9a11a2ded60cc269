#include "cuda/learn/sequence_wave.h"

#include <algorithm>
#include <type_traits>

#include "base/check.h"
#include "cuda/device/device.h"
#include "cuda/kernels/dense/pointwise.h"
#include "cuda/kernels/gemm/gemm.h"
#include "cuda/kernels/reattention/variance.h"
#include "cuda/kernels/sequence/attention.h"
#include "cuda/kernels/sequence/attention_tiles.h"
#include "cuda/kernels/sequence/catalogue.h"
#include "cuda/kernels/sequence/dropout.h"
#include "cuda/kernels/sequence/layer_norm.h"
#include "cuda/kernels/sequence/logits.h"
#include "cuda/kernels/sequence/packed_rows.h"
#include "cuda/kernels/sequence/unit_tiles.h"
#include "cuda/learn/sequence_parts.h"
#include "cuda/learn/units_wave.h"
#include "cuda/learn/wave_memory.h"
#include "model/sequence/coins.h"

namespace tacit::cuda {
namespace {

using model::LinearLayer;
using model::NormLayer;
using model::SequenceLayout;

// As model/sequence/transformer.cc has them.
constexpr float kNormEpsilon = 1e-5f;
constexpr uint32_t kEmbeddingSite = 0;
uint32_t AttentionSite(size_t block) { return static_cast<uint32_t>(1 + 2 * block); }
uint32_t FeedForwardSite(size_t block) { return static_cast<uint32_t>(2 + 2 * block); }

template <class T>
class Wave final : public UnitsWave, private WaveMemory<T> {
  using Memory = WaveMemory<T>;
  using Memory::attended_grad_, Memory::attended_variance_, Memory::attention_work_,
      Memory::branch_grad_, Memory::branch_in_, Memory::branch_out_, Memory::exponentials_,
      Memory::factor_column_, Memory::grad_, Memory::hidden_, Memory::inner_grad_,
      Memory::inner_variance_, Memory::key_value_variance_, Memory::logits_, Memory::qkv_grad_,
      Memory::scaled_, Memory::spare_, Memory::state_factor_, Memory::state_grad_, Memory::states_,
      Memory::table_, Memory::variance_, Memory::variance_factor_, Memory::work_;
  using Memory::kRounds, Memory::layout_, Memory::pre_, Memory::blocks_, Memory::last_,
      Memory::linears_, Memory::norms_;

 public:
  Wave(Stream& stream, const SequenceLayout& layout, uint32_t logit_rows)
      : UnitsWave(stream), Memory(layout, logit_rows) {}

  Status TakePlanned(const WavePlan& plan) override {
    const BufferTaker taker(device_);
    TACIT_RETURN_IF_ERROR(memory_.TakePlanned(plan, taker));
    TACIT_RETURN_IF_ERROR(TakeTurns(plan.sizes));
    return Memory::TakePlanned(plan, taker);
  }

  Status BeginStep(const SequenceStepFacts& facts) override {
    facts_ = facts;
    parameters_ = facts.parameters;
    for (Linear<T>* linear : linears_)
      TACIT_RETURN_IF_ERROR(Factor(Weights(*linear->layer, 0), &linear->weights));
    for (Block<T>& block : blocks_) {
      if (!corrected()) break;
      // Queries need no variance.
      TACIT_RETURN_IF_ERROR(Square(layout_.options().width, &block.qkv));
      for (Linear<T>* linear : {&block.projection, &block.inner, &block.outer})
        if (!block.last) TACIT_RETURN_IF_ERROR(Square(0, linear));
    }
    return Factor(Table(layout_.output()), &table_);
  }

  Status Add(const PackedUnits& units, uint32_t turn, const ClipRule& rule,
             DeviceSpan<int64_t> sums) override {
    TACIT_RETURN_IF_ERROR(Upload(units, turn));
    if (units.rows() > 0) {
      TACIT_RETURN_IF_ERROR(Forward());
      TACIT_RETURN_IF_ERROR(Output());
      TACIT_RETURN_IF_ERROR(Backward());
    }
    const std::vector<UnitTable<T>> tables = Tables(sums);
    TACIT_RETURN_IF_ERROR(Norms(tables));
    TACIT_RETURN_IF_ERROR(NarrowNorms(stream_, Units(memory_.squared), Units(memory_.norm)));
    TACIT_RETURN_IF_ERROR(stream_.Fill(memory_.clipped.span(), 0));
    TACIT_RETURN_IF_ERROR(UnitScales(stream_, rule, 1, Units(memory_.norm), coordinates(), {},
                                     Units(memory_.scale), Units(memory_.bounded),
                                     memory_.clipped.span()));
    TACIT_RETURN_IF_ERROR(AskForOutcome(turn));
    return Sums(tables, rule.grid_step, sums);
  }

 private:
  DeviceMatrix<const float> Table(const model::ParameterTable& table) const {
    return {parameters_.data + table.offset, static_cast<uint32_t>(table.rows),
            static_cast<uint32_t>(table.cols), table.cols};
  }
  DeviceSpan<const float> Vector(size_t offset, size_t size) const {
    return parameters_.Sub(offset, size);
  }
  // A layer's weights from some column on.
  DeviceMatrix<const float> Weights(const LinearLayer& layer, size_t first) const {
    return {parameters_.data + layer.offset + first, static_cast<uint32_t>(layer.in),
            static_cast<uint32_t>(layer.out - first), layer.out};
  }
  Status Square(size_t first, Linear<T>* linear) {
    const DeviceMatrix<const float> weights = Weights(*linear->layer, first);
    TACIT_RETURN_IF_ERROR(linear->squares.Take(device_, weights.rows, weights.cols));
    return SquareAll<T>(stream_, weights, linear->squares.view());
  }
  bool corrected() const { return facts_.item_variance.size > 0; }
  bool drops() const { return layout_.options().dropout > 0; }
  // Drops numbers as the CPU does, twice where they are variances.
  Status Drop(uint32_t site, uint32_t times, DeviceMatrix<float> x) {
    if (!drops()) return {};
    const model::DropoutCoins coins{facts_.dropout_seed, 0, layout_.options().dropout};
    return DropNumbers(stream_,
                       {.seed = coins.seed,
                        .kept = coins.kept(),
                        .factor = coins.factor(),
                        .unit_end = unit_end(),
                        .id_low = Ints(PackedUnits::kIdLow),
                        .id_high = Ints(PackedUnits::kIdHigh)},
                       site, times, x);
  }
  Status Copy(DeviceMatrix<const float> from, DeviceMatrix<float> to) {
    return AddBias<float>(stream_, from, {}, false, to);
  }
  // Numbers as factors of products see them.
  Status Factor(DeviceMatrix<const float> from, Grown<T>* to) {
    TACIT_RETURN_IF_ERROR(to->Take(device_, from.rows, from.cols));
    return AddBias<T>(stream_, from, {}, false, to->view());
  }
  // One plan for all sizes: a row's products are summed in the same order beside any other rows.
  Status Multiply(DeviceMatrix<const T> a, Form form_b, DeviceMatrix<const T> b,
                  DeviceMatrix<float> c, float beta = 0) {
    if constexpr (kRounds)
      return Gemm16(stream_, Form::kAsIs, a, form_b, b, beta, c, Plan(c.cols), {});
    else
      return Gemm32(stream_, Form::kAsIs, a, form_b, b, beta, c, PlanRows(c.cols, GemmWay::kMma),
                    {});
  }
  GemmPlan Plan(uint32_t cols) const { return PlanRows(cols, OwnWay(device_.facts())); }
  // out = in W + b, or no less than 0. linear.in has the input.
  Status Apply(Linear<T>& linear, bool relu, DeviceMatrix<float> out) {
    if constexpr (kRounds) {
      if (!relu)
        return Gemm16AddBias(stream_, linear.in.view(), linear.weights.view(), Bias(linear), out,
                             Plan(out.cols));
    }
    TACIT_RETURN_IF_ERROR(Multiply(linear.in.view(), Form::kAsIs, linear.weights.view(), out));
    return AddBias<float>(stream_, out, Bias(linear), relu, out);
  }
  // The same as a factor of the next product.
  Status ApplyRounded(Linear<T>& linear, bool relu, Grown<T>* out) {
    const auto cols = static_cast<uint32_t>(linear.layer->out);
    TACIT_RETURN_IF_ERROR(out->Take(device_, rows_, cols));
    if constexpr (kRounds) {
      const auto in = linear.in.view(), weights = linear.weights.view();
      return relu ? Gemm16Activate(stream_, in, weights, Bias(linear), out->view(), Plan(cols))
                  : Gemm16AddBias(stream_, in, weights, Bias(linear), out->view(), Plan(cols));
    }
    TACIT_CHECK(false, "a model in bf16");
    return {};
  }
  DeviceSpan<const float> Bias(const Linear<T>& linear) const {
    const LinearLayer& layer = *linear.layer;
    return Vector(layer.offset + layer.in * layer.out, layer.out);
  }
  // below = grad W^T + beta below. linear.grad has the gradient.
  Status GoBack(Linear<T>& linear, DeviceMatrix<float> below, float beta) {
    return Multiply(linear.grad.view(), Form::kTransposed, linear.weights.view(), below, beta);
  }
  // out = the norm of x, or of x + plus; `factor` becomes the same, if there is one.
  Status Normalise(Norm& norm, DeviceMatrix<const float> x, DeviceMatrix<const float> plus,
                   DeviceMatrix<float> out, Grown<T>* factor) {
    const NormLayer& layer = *norm.layer;
    TACIT_RETURN_IF_ERROR(norm.normal.Take(device_, x.rows, x.cols));
    TACIT_RETURN_IF_ERROR(Reserve(device_, x.rows, &norm.inverse));
    AlongNorm along{.plus = plus, .rounded = {}};
    TACIT_ASSIGN(along.rounded, RoundedAlong(x.rows, x.cols, factor));
    TACIT_RETURN_IF_ERROR(LayerNorm(stream_, x, Vector(layer.offset, layer.width),
                                    Vector(layer.offset + layer.width, layer.width), kNormEpsilon,
                                    norm.normal.view(), norm.inverse.span().Sub(0, x.rows), out,
                                    along));
    return kRounds || factor == nullptr ? Status() : Factor(out, factor);
  }
  Status GoBack(Norm& norm, DeviceMatrix<float> grad, Grown<T>* factor) {
    const NormLayer& layer = *norm.layer;
    TACIT_RETURN_IF_ERROR(norm.of_units.Take(device_, units_, 2 * layer.width));
    TACIT_RETURN_IF_ERROR(LayerNormUnitGradients(stream_, unit_end(), norm.normal.view(), grad,
                                                 norm.of_units.view()));
    TACIT_ASSIGN(const auto rounded, RoundedAlong(grad.rows, grad.cols, factor));
    TACIT_RETURN_IF_ERROR(LayerNormBackward(stream_, norm.normal.view(),
                                            norm.inverse.span().Sub(0, grad.rows),
                                            Vector(layer.offset, layer.width), grad, rounded));
    return kRounds || factor == nullptr ? Status() : Factor(grad, factor);
  }
  Result<DeviceMatrix<uint16_t>> RoundedAlong(size_t rows, size_t cols, Grown<T>* factor) {
    DeviceMatrix<uint16_t> rounded;
    if constexpr (kRounds) {
      if (factor == nullptr) return rounded;
      TACIT_RETURN_IF_ERROR(factor->Take(device_, rows, cols));
      rounded = factor->view();
    }
    return rounded;
  }
  // The variance of the first columns of what a layer makes of `mean`, from that of `mean`.
  Status Spread(const Linear<T>& linear, DeviceMatrix<const float> mean,
                DeviceMatrix<const float> variance, DeviceMatrix<float> out) {
    TACIT_RETURN_IF_ERROR(Factor(variance, &variance_factor_));
    DeviceMatrix<const T> squares = linear.squares.view();
    squares.cols = out.cols;
    TACIT_RETURN_IF_ERROR(Multiply(variance_factor_.view(), Form::kAsIs, squares, out));
    return AddOwnVariance(stream_, mean, variance, facts_.weight_variance, facts_.weight_variance,
                          out);
  }
  Status SpreadNorm(const Norm& norm, DeviceMatrix<float> variance) {
    const NormLayer& layer = *norm.layer;
    return LayerNormVariance(stream_, norm.inverse.span().Sub(0, variance.rows),
                             Vector(layer.offset, layer.width), variance);
  }
  // The variance of a branch's input: variance_, normalised first where the branch's input is.
  Result<DeviceMatrix<float>> BranchVariance(const Norm& norm) {
    if (!pre_) return variance_.view();
    TACIT_RETURN_IF_ERROR(branch_in_.Take(device_, rows_, layout_.options().width));
    TACIT_RETURN_IF_ERROR(Copy(variance_.view(), branch_in_.view()));
    TACIT_RETURN_IF_ERROR(SpreadNorm(norm, branch_in_.view()));
    return branch_in_.view();
  }
  // Adds a branch's variance, which branch_out_ is before it is dropped from.
  Status AddBranchVariance(uint32_t site, const Norm& norm) {
    TACIT_RETURN_IF_ERROR(Drop(site, 2, branch_out_.view()));
    TACIT_RETURN_IF_ERROR(AddMatrix(stream_, branch_out_.view(), variance_.view()));
    return pre_ ? Status() : SpreadNorm(norm, variance_.view());
  }
  AttentionShape Shape() const {
    return {.crop_end = Ints(PackedUnits::kCropEnd),
            .longest = longest_,
            .heads = layout_.options().heads,
            .rounds = kRounds,
            .corrected = corrected()};
  }

  Status Forward() {
    const size_t width = layout_.options().width;
    TACIT_RETURN_IF_ERROR(hidden_.Take(device_, rows_, width));
    TACIT_RETURN_IF_ERROR(spare_.Take(device_, rows_, width));
    TACIT_RETURN_IF_ERROR(EmbedRows(stream_, item(), Table(layout_.items()),
                                    layout_.embedding_scale(), position(),
                                    Table(layout_.positions()), hidden_.view()));
    TACIT_RETURN_IF_ERROR(Drop(kEmbeddingSite, 1, hidden_.view()));
    if (corrected()) {
      TACIT_RETURN_IF_ERROR(variance_.Take(device_, rows_, width));
      TACIT_RETURN_IF_ERROR(EmbedVariance(stream_, item(), facts_.item_variance,
                                          layout_.embedding_scale(), facts_.weight_variance,
                                          variance_.view()));
      TACIT_RETURN_IF_ERROR(Drop(kEmbeddingSite, 2, variance_.view()));
    }
    // Behind a sum a norm gives the next block its factor.
    if (!pre_ && !blocks_.empty())
      TACIT_RETURN_IF_ERROR(Factor(hidden_.view(), &blocks_[0].qkv.in));
    for (Block<T>& block : blocks_) TACIT_RETURN_IF_ERROR(Forward(block));
    return last_.layer == nullptr ? Status()
                                  : Normalise(last_, hidden_.view(), {}, hidden_.view(), nullptr);
  }
  bool RoundsAttention() const { return Memory::RoundsAttention(Shape(), layout_.options().width); }
  bool Spreads(const Block<T>& block) const { return corrected() && !block.last; }
  bool RoundsInner(const Block<T>& block) const { return Memory::RoundsInner(block, corrected()); }

  // `spare` becomes what is attended to, without factors.
  Status Attend(Block<T>& block, DeviceMatrix<const float> in, DeviceMatrix<float> spare) {
    const size_t width = layout_.options().width;
    TACIT_RETURN_IF_ERROR(block.kept.Take(device_, layout_.options().heads * rows_,
                                          KeptNumbers(Shape(), static_cast<uint32_t>(width))));
    if constexpr (kRounds) {
      if (RoundsAttention()) {
        TACIT_RETURN_IF_ERROR(ApplyRounded(block.qkv, false, &block.factors));
        TACIT_RETURN_IF_ERROR(block.projection.in.Take(device_, rows_, width));
        return AttendRounded(stream_, Shape(), block.factors.view(), block.kept.view(),
                             block.projection.in.view());
      }
    }
    TACIT_RETURN_IF_ERROR(block.out_qkv.Take(device_, rows_, 3 * width));
    TACIT_RETURN_IF_ERROR(Apply(block.qkv, false, block.out_qkv.view()));
    AttentionCorrection correction;
    if (corrected()) {
      TACIT_ASSIGN(correction, Correction(block, in));
    }
    TACIT_RETURN_IF_ERROR(
        cuda::Attend(stream_, Shape(), block.out_qkv.view(), correction, block.kept.view(), spare));
    return Factor(spare, &block.projection.in);
  }
  // block.outer.in becomes the inner layer's activation.
  Status Activate(Block<T>& block, DeviceMatrix<const float> in) {
    if (RoundsInner(block)) return ApplyRounded(block.inner, true, &block.outer.in);
    TACIT_RETURN_IF_ERROR(block.activation.Take(device_, rows_, block.inner.layer->out));
    const DeviceMatrix<float> activation = block.activation.view();
    TACIT_RETURN_IF_ERROR(Apply(block.inner, !Spreads(block), activation));
    if (Spreads(block)) {
      TACIT_RETURN_IF_ERROR(SpreadInner(block, in));
      TACIT_RETURN_IF_ERROR(AddBias<float>(stream_, activation, {}, true, activation));
    }
    return Factor(activation, &block.outer.in);
  }
  // A branch's output, dropped from, and the sum of it and what goes beside it; the norm behind
  // that, if it is there.
  Status Join(uint32_t site, DeviceMatrix<const float> beside, Norm& norm,
              DeviceMatrix<float> branch, Grown<T>* factor) {
    TACIT_RETURN_IF_ERROR(Drop(site, 1, branch));
    if (pre_) return AddMatrix(stream_, beside, branch);
    return Normalise(norm, branch, beside, branch, factor);
  }
  // hidden_ becomes the block's output.
  Status Forward(Block<T>& block) {
    const DeviceMatrix<float> x = hidden_.view(), spare = spare_.view();
    TACIT_RETURN_IF_ERROR(block.middle.Take(device_, rows_, layout_.options().width));
    const DeviceMatrix<float> middle = block.middle.view();
    if (pre_) TACIT_RETURN_IF_ERROR(Normalise(block.first, x, {}, spare, &block.qkv.in));
    TACIT_RETURN_IF_ERROR(Attend(block, pre_ ? spare : x, spare));
    TACIT_RETURN_IF_ERROR(Apply(block.projection, false, middle));
    TACIT_RETURN_IF_ERROR(
        Join(AttentionSite(block.index), x, block.first, middle, &block.inner.in));
    if (Spreads(block)) TACIT_RETURN_IF_ERROR(SpreadAttention(block, spare));
    if (pre_) TACIT_RETURN_IF_ERROR(Normalise(block.second, middle, {}, spare, &block.inner.in));
    TACIT_RETURN_IF_ERROR(Activate(block, pre_ ? spare : middle));
    TACIT_RETURN_IF_ERROR(Apply(block.outer, false, x));
    Grown<T>* const next = block.last ? nullptr : &blocks_[block.index + 1].qkv.in;
    TACIT_RETURN_IF_ERROR(Join(FeedForwardSite(block.index), middle, block.second, x, next));
    if (!Spreads(block)) return {};
    TACIT_RETURN_IF_ERROR(
        Spread(block.outer, block.activation.view(), inner_variance_.view(), branch_out_.view()));
    return AddBranchVariance(FeedForwardSite(block.index), block.second);
  }
  // The variances of a block's keys, and of its values behind them; not for the last block.
  Result<AttentionCorrection> Correction(const Block<T>& block, DeviceMatrix<const float> in) {
    const size_t width = layout_.options().width;
    const model::ReAttentionOptions& options = layout_.options().re_attention;
    TACIT_RETURN_IF_ERROR(branch_out_.Take(device_, rows_, width));
    TACIT_RETURN_IF_ERROR(key_value_variance_.Take(device_, rows_, block.last ? width : 2 * width));
    const DeviceMatrix<float> both = key_value_variance_.view();
    TACIT_ASSIGN(const DeviceMatrix<float> variance, BranchVariance(block.first));
    TACIT_RETURN_IF_ERROR(Spread(block.qkv, in, variance, both));
    const auto cols = static_cast<uint32_t>(width);
    const size_t head_width = width / layout_.options().heads;
    return AttentionCorrection{.key_variance = {both.data, both.rows, cols, both.stride},
                               .factor = options.kappa / static_cast<float>(2 * head_width),
                               .most = options.most};
  }
  Status SpreadAttention(const Block<T>& block, DeviceMatrix<const float> attended) {
    const auto width = static_cast<uint32_t>(layout_.options().width);
    const DeviceMatrix<float> both = key_value_variance_.view();
    const DeviceMatrix<const float> of_values(both.data + width, both.rows, width, both.stride);
    TACIT_RETURN_IF_ERROR(attended_variance_.Take(device_, rows_, width));
    const DeviceMatrix<float> of_attended = attended_variance_.view();
    TACIT_RETURN_IF_ERROR(
        AttendVariance(stream_, Shape(), block.kept.view(), of_values, of_attended));
    TACIT_RETURN_IF_ERROR(Spread(block.projection, attended, of_attended, branch_out_.view()));
    return AddBranchVariance(AttentionSite(block.index), block.first);
  }
  // The variance of the inner layer's ReLUs, while block.activation is what goes into them.
  Status SpreadInner(const Block<T>& block, DeviceMatrix<const float> in) {
    const DeviceMatrix<const float> mean = block.activation.view();
    TACIT_RETURN_IF_ERROR(inner_variance_.Take(device_, mean.rows, mean.cols));
    TACIT_ASSIGN(const DeviceMatrix<float> variance, BranchVariance(block.second));
    TACIT_RETURN_IF_ERROR(Spread(block.inner, in, variance, inner_variance_.view()));
    return ReluVariance(stream_, mean, inner_variance_.view());
  }

  PredictedRows Predicted(size_t begin, size_t count) const {
    return {target().Sub(begin, count), weight().Sub(begin, count),
            layout_.options().label_smoothing};
  }
  Status Exponentials(size_t begin, size_t count) {
    const DeviceMatrix<float> logits = RowsOf(logits_.view(), 0, count);
    const auto states = RowsOf<const T>(state_factor_.view(), begin, count);
    if (facts_.has_prior)
      TACIT_RETURN_IF_ERROR(FillPrior(stream_, Predicting(), facts_.prior, logits));
    TACIT_RETURN_IF_ERROR(
        Multiply(states, Form::kTransposed, table_.view(), logits, facts_.has_prior ? 1.0f : 0.0f));
    if (layout_.options().mask_seen)
      TACIT_RETURN_IF_ERROR(MaskSeen(stream_, Predicting(), target(), logits));
    const model::ParameterTable& bias = layout_.item_bias();
    return ExpRows<T>(
        stream_, logits, Vector(bias.offset, bias.size()), Predicted(begin, count),
        RowsOf(exponentials_.view(), begin, count),
        {memory_.loss.span().Sub(begin, count), memory_.factor.span().Sub(begin, count),
         memory_.minus_sum.span().Sub(begin, count)});
  }

  // The catalogue's softmax; grad_ becomes the gradient of the hidden states.
  Status Output() {
    const size_t width = layout_.options().width, n = counted_count_;
    TACIT_RETURN_IF_ERROR(states_.Take(device_, n, width));
    TACIT_RETURN_IF_ERROR(state_grad_.Take(device_, n, width));
    TACIT_RETURN_IF_ERROR(scaled_.Take(device_, n, width));
    TACIT_RETURN_IF_ERROR(exponentials_.Take(device_, n, layout_.output().rows));
    TACIT_RETURN_IF_ERROR(TakeRows(stream_, hidden_.view(), counted(), states_.view()));
    TACIT_RETURN_IF_ERROR(Factor(states_.view(), &state_factor_));
    const size_t most = Memory::LogitRows(n, facts_.has_prior);
    TACIT_RETURN_IF_ERROR(logits_.Take(device_, most, layout_.output().rows));
    for (size_t begin = 0; begin < n; begin += most)
      TACIT_RETURN_IF_ERROR(Exponentials(begin, std::min(most, n - begin)));
    const PredictedRows predicted = Predicted(0, n);
    const DeviceSpan<float> factor = memory_.factor.span().Sub(0, n);
    TACIT_RETURN_IF_ERROR(
        Multiply(exponentials_.view(), Form::kAsIs, table_.view(), state_grad_.view()));
    TACIT_RETURN_IF_ERROR(
        StateGradients<T>(stream_, predicted, factor, table_.view(), state_grad_.view()));
    TACIT_RETURN_IF_ERROR(ScaleStates<T>(stream_, factor, states_.view(), scaled_.view()));
    if (layout_.item_bias().size() > 0)
      TACIT_RETURN_IF_ERROR(Factor({factor.data, static_cast<uint32_t>(n), 1, 1}, &factor_column_));
    TACIT_RETURN_IF_ERROR(grad_.Take(device_, rows_, width));
    const DeviceMatrix<float> grad = grad_.view();
    TACIT_RETURN_IF_ERROR(stream_.Fill(DeviceSpan<float>(grad.data, grad.rows * grad.stride), 0));
    return PutRows(stream_, state_grad_.view(), counted(), grad);
  }

  Status Backward() {
    if (last_.layer != nullptr) TACIT_RETURN_IF_ERROR(GoBack(last_, grad_.view(), nullptr));
    for (size_t b = blocks_.size(); b-- > 0;) TACIT_RETURN_IF_ERROR(Backward(blocks_[b]));
    return Drop(kEmbeddingSite, 1, grad_.view());
  }
  // Behind a block's sum: that of the branch's output, less what was dropped, as linear.grad.
  Status EnterBranch(uint32_t site, Norm& norm, Linear<T>& linear) {
    const DeviceMatrix<float> grad = grad_.view();
    if (!pre_) TACIT_RETURN_IF_ERROR(GoBack(norm, grad, drops() ? nullptr : &linear.grad));
    if (!drops()) return pre_ ? Factor(grad, &linear.grad) : Status();
    TACIT_RETURN_IF_ERROR(branch_grad_.Take(device_, rows_, layout_.options().width));
    TACIT_RETURN_IF_ERROR(Copy(grad, branch_grad_.view()));
    TACIT_RETURN_IF_ERROR(Drop(site, 1, branch_grad_.view()));
    return Factor(branch_grad_.view(), &linear.grad);
  }
  // Adds to grad_ what came through a branch, whose first layer this is.
  Status LeaveBranch(Norm& norm, Linear<T>& linear) {
    if (!pre_) return GoBack(linear, grad_.view(), 1);
    const DeviceMatrix<float> below = spare_.view();
    TACIT_RETURN_IF_ERROR(GoBack(linear, below, 0));
    TACIT_RETURN_IF_ERROR(GoBack(norm, below, nullptr));
    return AddMatrix(stream_, below, grad_.view());
  }
  // block.inner.grad, from block.outer.grad.
  Status Deactivate(Block<T>& block) {
    const size_t cols = block.inner.layer->out;
    if constexpr (kRounds) {
      if (RoundsInner(block)) {
        TACIT_RETURN_IF_ERROR(block.inner.grad.Take(device_, rows_, cols));
        return Gemm16ReluBackward(stream_, block.outer.grad.view(), block.outer.weights.view(),
                                  block.outer.in.view(), block.inner.grad.view(),
                                  Plan(static_cast<uint32_t>(cols)));
      }
    }
    TACIT_RETURN_IF_ERROR(inner_grad_.Take(device_, rows_, cols));
    const DeviceMatrix<float> inner = inner_grad_.view();
    TACIT_RETURN_IF_ERROR(GoBack(block.outer, inner, 0));
    TACIT_RETURN_IF_ERROR(ReluBackward<float>(stream_, block.activation.view(), inner, inner));
    return Factor(inner, &block.inner.grad);
  }
  // block.qkv.grad, from block.projection.grad.
  Status GoBackThroughAttention(Block<T>& block) {
    const size_t width = layout_.options().width;
    TACIT_RETURN_IF_ERROR(attention_work_.Take(device_, block.kept.view().rows,
                                               WorkNumbers(Shape(), static_cast<uint32_t>(width))));
    if constexpr (kRounds) {
      if (RoundsAttention()) {
        TACIT_RETURN_IF_ERROR(attended_grad_.Take(device_, rows_, width));
        TACIT_RETURN_IF_ERROR(block.qkv.grad.Take(device_, rows_, 3 * width));
        TACIT_RETURN_IF_ERROR(Gemm16Round(stream_, block.projection.grad.view(),
                                          block.projection.weights.view(), attended_grad_.view(),
                                          Plan(static_cast<uint32_t>(width))));
        return AttendBackwardRounded(stream_, Shape(), block.factors.view(), block.kept.view(),
                                     attended_grad_.view(), attention_work_.view(),
                                     block.qkv.grad.view());
      }
    }
    TACIT_RETURN_IF_ERROR(qkv_grad_.Take(device_, rows_, 3 * width));
    TACIT_RETURN_IF_ERROR(GoBack(block.projection, spare_.view(), 0));
    TACIT_RETURN_IF_ERROR(AttendBackward(stream_, Shape(), block.out_qkv.view(), block.kept.view(),
                                         spare_.view(), attention_work_.view(), qkv_grad_.view()));
    return Factor(qkv_grad_.view(), &block.qkv.grad);
  }
  // grad_ becomes the gradient of the block's input.
  Status Backward(Block<T>& block) {
    TACIT_RETURN_IF_ERROR(EnterBranch(FeedForwardSite(block.index), block.second, block.outer));
    TACIT_RETURN_IF_ERROR(Deactivate(block));
    TACIT_RETURN_IF_ERROR(LeaveBranch(block.second, block.inner));
    TACIT_RETURN_IF_ERROR(EnterBranch(AttentionSite(block.index), block.first, block.projection));
    TACIT_RETURN_IF_ERROR(GoBackThroughAttention(block));
    return LeaveBranch(block.first, block.qkv);
  }

  // Lists the tables whose gradients units form.
  std::vector<UnitTable<T>> Tables(DeviceSpan<int64_t> sums) const {
    std::vector<UnitTable<T>> tables;
    const auto add = [&](UnitTable<T> table, size_t offset) {
      table.sums = sums.Sub(offset, size_t{table.rows} * table.cols);
      tables.push_back(table);
    };
    for (const Linear<T>* linear : linears_) {
      const LinearLayer& layer = *linear->layer;
      add({.rows = static_cast<uint32_t>(layer.in + 1),
           .cols = static_cast<uint32_t>(layer.out),
           .unit_end = unit_end(),
           .a = linear->in.view(),
           .g = linear->grad.view(),
           .ones = true},
          layer.offset);
    }
    const auto placed = [&](DeviceSpan<const uint32_t> place, float each) {
      return PlacedRows<float>{
          .unit_end = unit_end(), .place = place, .from = grad_.view(), .factor = {}, .each = each};
    };
    const auto empty = [](const model::ParameterTable& of) {
      return UnitTable<T>{.rows = static_cast<uint32_t>(of.rows),
                          .cols = static_cast<uint32_t>(of.cols)};
    };
    UnitTable<T> positions = empty(layout_.positions());
    positions.input = placed(position(), 1);
    add(positions, layout_.positions().offset);
    // The softmax writes e^T g, and takes some of g off at the target.
    const auto predicted = [&](uint32_t cols, DeviceMatrix<const T> g) {
      return UnitTable<T>{.rows = static_cast<uint32_t>(layout_.output().rows),
                          .cols = cols,
                          .unit_end = counted_end(),
                          .a = exponentials_.view(),
                          .g = g,
                          .own = {.unit_end = counted_end(),
                                  .place = target(),
                                  .from = g,
                                  .factor = memory_.minus_sum.span().Sub(0, counted_count_)}};
    };
    if (layout_.item_bias().size() > 0)
      add(predicted(1, factor_column_.view()), layout_.item_bias().offset);
    UnitTable<T> output = predicted(static_cast<uint32_t>(layout_.output().cols), scaled_.view());
    const auto input = placed(item(), layout_.embedding_scale());
    if (layout_.options().tied) {
      output.input = input;
    } else {
      UnitTable<T> items = empty(layout_.items());
      items.input = input;
      add(items, layout_.items().offset);
    }
    add(output, layout_.output().offset);
    return tables;
  }

  Status Norms(std::span<const UnitTable<T>> tables) {
    TACIT_RETURN_IF_ERROR(stream_.Fill(Units(memory_.squared), 0));
    if (rows_ == 0) return {};
    for (const Norm* norm : norms_)
      TACIT_RETURN_IF_ERROR(
          AddUnitVectorNorms(stream_, norm->of_units.view(), Units(memory_.squared)));
    TACIT_RETURN_IF_ERROR(Reserve(device_, UnitTableWork(tables, units_), &work_));
    return AddUnitTableNorms(stream_, tables, work_.span(), Units(memory_.squared));
  }
  Status Sums(std::span<const UnitTable<T>> tables, double step, DeviceSpan<int64_t> sums) {
    if (rows_ == 0) return {};
    for (const Norm* norm : norms_)
      TACIT_RETURN_IF_ERROR(AddUnitVectors(stream_, norm->of_units.view(), Units(memory_.scale),
                                           step,
                                           sums.Sub(norm->layer->offset, 2 * norm->layer->width)));
    return AddUnitTables(stream_, tables, Units(memory_.scale), step);
  }

  SequenceStepFacts facts_;
  DeviceSpan<const float> parameters_;
};

}  // namespace

std::unique_ptr<SequenceWave> MakeSequenceWave(Stream& stream, const model::SequenceLayout& layout,
                                               uint32_t logit_rows) {
  if (layout.options().precision == ops::Precision::kBf16)
    return std::make_unique<Wave<uint16_t>>(stream, layout, logit_rows);
  return std::make_unique<Wave<float>>(stream, layout, logit_rows);
}

Status PlanSequenceWave(const model::SequenceLayout& layout, uint32_t logit_rows,
                        const WavePlan& plan, MemoryNeed* need) {
  const BufferTaker taker(*need);
  TACIT_RETURN_IF_ERROR(UnitsMemory().TakePlanned(plan, taker));
  if (layout.options().precision == ops::Precision::kBf16)
    return WaveMemory<uint16_t>(layout, logit_rows).TakePlanned(plan, taker);
  return WaveMemory<float>(layout, logit_rows).TakePlanned(plan, taker);
}

}  // namespace tacit::cuda
