#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <type_traits>
#include <vector>

#include "cuda/device/buffer_taker.h"
#include "cuda/kernels/sequence/attention.h"
#include "cuda/kernels/sequence/unit_tiles.h"
#include "cuda/learn/sequence_parts.h"
#include "cuda/learn/sequence_wave.h"
#include "model/sequence/layout.h"

namespace tacit::cuda {

// A transformer's layers and the memory of its waves, of which each matrix grows to the largest.
template <class T>
class WaveMemory {
 public:
  // `layout` must outlive it. `logit_rows` as in DeviceSequenceOptions.
  WaveMemory(const model::SequenceLayout& layout, uint32_t logit_rows)
      : layout_(layout),
        logit_rows_(logit_rows > 0 ? logit_rows : LogitRowsInCache(layout.output().rows)),
        pre_(layout.options().norm == model::SequenceOptions::Norm::kPre) {
    for (const model::SequenceLayout::Block& block : layout.blocks()) {
      Block<T>& made = blocks_.emplace_back();
      made.index = blocks_.size() - 1;
      made.last = blocks_.size() == layout.blocks().size();
      made.SetLayers(block);
      linears_.insert(linears_.end(), {&made.qkv, &made.projection, &made.inner, &made.outer});
      norms_.insert(norms_.end(), {&made.first, &made.second});
    }
    if (layout.last_norm().width > 0) {
      last_.layer = &layout.last_norm();
      norms_.push_back(&last_);
    }
  }
  WaveMemory(const WaveMemory&) = delete;
  WaveMemory& operator=(const WaveMemory&) = delete;

  // Takes the memory of the largest planned wave, or adds it up: all that the passes take in a step
  // of such waves, each matrix once.
  Status TakePlanned(const WavePlan& wave, BufferTaker taker) {
    for (Norm* norm : norms_) {
      TACIT_RETURN_IF_ERROR(norm->normal.Plan(taker, wave.sizes.rows, width()));
      TACIT_RETURN_IF_ERROR(taker.Take(wave.sizes.rows, &norm->inverse));
      TACIT_RETURN_IF_ERROR(norm->of_units.Plan(taker, wave.sizes.units, 2 * width()));
    }
    for (Block<T>& block : blocks_) TACIT_RETURN_IF_ERROR(TakeBlock(wave, block, taker));
    for (Grown<float>* matrix : {&hidden_, &spare_, &grad_})
      TACIT_RETURN_IF_ERROR(matrix->Plan(taker, wave.sizes.rows, width()));
    if (layout_.options().dropout > 0)
      TACIT_RETURN_IF_ERROR(branch_grad_.Plan(taker, wave.sizes.rows, width()));
    TACIT_RETURN_IF_ERROR(TakeAttention(wave, taker));
    if (wave.corrected) TACIT_RETURN_IF_ERROR(TakeVariances(wave, taker));
    TACIT_RETURN_IF_ERROR(TakeOutput(wave, taker));
    return taker.Take(UnitTableWork<T>(TableShapes(), wave.sizes.units), &work_);
  }

 protected:
  static constexpr bool kRounds = !std::is_same_v<T, float>;

  // Says whether an inner layer ends in factors, with nothing of it in f32.
  static bool RoundsInner(const Block<T>& block, bool corrected) {
    return kRounds && (block.last || !corrected);
  }
  // Says whether the attention's passes are given factors.
  static bool RoundsAttention(const AttentionShape& shape, uint32_t width) {
    return !shape.corrected && GoesThroughTiles(shape, width);
  }
  // The rows whose logits are formed at a time: all, where the prior and the mask go by crops.
  size_t LogitRows(size_t rows, bool has_prior) const {
    return has_prior || layout_.options().mask_seen ? rows : std::min(rows, logit_rows_);
  }

  const model::SequenceLayout& layout_;
  const size_t logit_rows_;
  const bool pre_;

  std::deque<Block<T>> blocks_;
  Norm last_;
  std::vector<Linear<T>*> linears_;
  std::vector<Norm*> norms_;
  Grown<T> table_, state_factor_, exponentials_, scaled_, factor_column_, attended_grad_;
  Grown<float> hidden_, spare_, grad_, states_, state_grad_, logits_;
  Grown<float> inner_grad_, qkv_grad_, attention_work_, branch_grad_;
  // Variances of hidden_, and of what a block makes of it.
  Grown<T> variance_factor_;
  Grown<float> variance_, branch_in_, branch_out_, key_value_variance_, attended_variance_;
  Grown<float> inner_variance_;
  Buffer<double> work_;

 private:
  uint32_t width() const { return layout_.options().width; }
  AttentionShape Shape(const WavePlan& wave) const {
    return {.crop_end = {},
            .longest = layout_.options().length,
            .heads = layout_.options().heads,
            .rounds = kRounds,
            .corrected = wave.corrected};
  }

  // Takes what a block keeps.
  Status TakeBlock(const WavePlan& wave, Block<T>& block, BufferTaker taker) {
    for (Linear<T>* linear : {&block.qkv, &block.projection, &block.inner, &block.outer}) {
      const model::LinearLayer& layer = *linear->layer;
      TACIT_RETURN_IF_ERROR(linear->in.Plan(taker, wave.sizes.rows, layer.in));
      TACIT_RETURN_IF_ERROR(linear->grad.Plan(taker, wave.sizes.rows, layer.out));
      TACIT_RETURN_IF_ERROR(linear->weights.Plan(taker, layer.in, layer.out));
      // Queries need no variance, and nothing behind the last block's keys does.
      const bool is_first = linear == &block.qkv;
      if (wave.corrected && (is_first || !block.last))
        TACIT_RETURN_IF_ERROR(
            linear->squares.Plan(taker, layer.in, layer.out - (is_first ? width() : 0)));
    }
    TACIT_RETURN_IF_ERROR(block.middle.Plan(taker, wave.sizes.rows, width()));
    TACIT_RETURN_IF_ERROR(block.kept.Plan(taker, layout_.options().heads * wave.sizes.rows,
                                          KeptNumbers(Shape(wave), width())));
    TACIT_RETURN_IF_ERROR(RoundsAttention(Shape(wave), width())
                              ? block.factors.Plan(taker, wave.sizes.rows, 3 * width())
                              : block.out_qkv.Plan(taker, wave.sizes.rows, 3 * width()));
    if (RoundsInner(block, wave.corrected)) return {};
    return block.activation.Plan(taker, wave.sizes.rows, block.inner.layer->out);
  }
  // Takes what the blocks' backward passes work in, one after the other.
  Status TakeAttention(const WavePlan& wave, BufferTaker taker) {
    if (blocks_.empty()) return {};
    TACIT_RETURN_IF_ERROR(attention_work_.Plan(taker, layout_.options().heads * wave.sizes.rows,
                                               WorkNumbers(Shape(wave), width())));
    TACIT_RETURN_IF_ERROR(RoundsAttention(Shape(wave), width())
                              ? attended_grad_.Plan(taker, wave.sizes.rows, width())
                              : qkv_grad_.Plan(taker, wave.sizes.rows, 3 * width()));
    if (RoundsInner(blocks_.front(), wave.corrected)) return {};
    return inner_grad_.Plan(taker, wave.sizes.rows, blocks_.front().inner.layer->out);
  }
  Status TakeVariances(const WavePlan& wave, BufferTaker taker) {
    TACIT_RETURN_IF_ERROR(variance_.Plan(taker, wave.sizes.rows, width()));
    if (blocks_.empty()) return {};
    // Variances end before the last block's values.
    const bool spreads = blocks_.size() > 1;
    const size_t inner = spreads ? blocks_.front().inner.layer->out : 0;
    TACIT_RETURN_IF_ERROR(branch_out_.Plan(taker, wave.sizes.rows, width()));
    if (pre_) TACIT_RETURN_IF_ERROR(branch_in_.Plan(taker, wave.sizes.rows, width()));
    TACIT_RETURN_IF_ERROR(
        key_value_variance_.Plan(taker, wave.sizes.rows, spreads ? 2 * width() : width()));
    TACIT_RETURN_IF_ERROR(
        variance_factor_.Plan(taker, wave.sizes.rows, std::max<size_t>(width(), inner)));
    if (!spreads) return {};
    TACIT_RETURN_IF_ERROR(attended_variance_.Plan(taker, wave.sizes.rows, width()));
    return inner_variance_.Plan(taker, wave.sizes.rows, inner);
  }
  // Takes what the catalogue's softmax works in.
  Status TakeOutput(const WavePlan& wave, BufferTaker taker) {
    const model::ParameterTable& output = layout_.output();
    TACIT_RETURN_IF_ERROR(table_.Plan(taker, output.rows, output.cols));
    for (Grown<float>* matrix : {&states_, &state_grad_})
      TACIT_RETURN_IF_ERROR(matrix->Plan(taker, wave.sizes.counted, width()));
    for (Grown<T>* matrix : {&scaled_, &state_factor_})
      TACIT_RETURN_IF_ERROR(matrix->Plan(taker, wave.sizes.counted, width()));
    TACIT_RETURN_IF_ERROR(exponentials_.Plan(taker, wave.sizes.counted, output.rows));
    if (layout_.item_bias().size() > 0)
      TACIT_RETURN_IF_ERROR(factor_column_.Plan(taker, wave.sizes.counted, 1));
    return logits_.Plan(taker, LogitRows(wave.sizes.counted, wave.has_prior), output.rows);
  }
  // The tables whose gradients units form, without what is in them.
  std::vector<UnitTable<T>> TableShapes() const {
    std::vector<UnitTable<T>> shapes;
    const auto add = [&](size_t rows, size_t cols) {
      shapes.push_back({.rows = static_cast<uint32_t>(rows), .cols = static_cast<uint32_t>(cols)});
    };
    for (const Linear<T>* linear : linears_) add(linear->layer->in + 1, linear->layer->out);
    add(layout_.positions().rows, layout_.positions().cols);
    if (layout_.item_bias().size() > 0) add(layout_.output().rows, 1);
    if (!layout_.options().tied) add(layout_.items().rows, layout_.items().cols);
    add(layout_.output().rows, layout_.output().cols);
    return shapes;
  }
};

}  // namespace tacit::cuda
