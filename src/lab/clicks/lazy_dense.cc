#include "lab/clicks/lazy_dense.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "train/click/row_map.h"

namespace tacit::lab {
namespace {

// The dense mechanism, except that it selects only activated rows for writing.
class LazyMechanism final : public mechanism::Mechanism {
 public:
  explicit LazyMechanism(std::shared_ptr<mechanism::Mechanism> dense)
      : dense_(std::move(dense)), version_(dense_->state_version()) {}

  void Select(const mechanism::StepRows& rows, noise::NoiseSource& noise,
              model::RowSelection* selection) override {
    dense_->Select(rows, noise, selection);
    TACIT_CHECK(selection->every_row && selection->extra.empty(),
                "only a mechanism that writes every row owes noise");
    selection->every_row = false;
  }
  const model::ScaleRule& scale_rule() const override { return dense_->scale_rule(); }
  void Finalize(noise::NoiseSource& noise, const model::GroupNorms& norms,
                model::StepGradient* sum) override {
    dense_->Finalize(noise, norms, sum);
    TACIT_CHECK(dense_->state_version() == version_, "what is owed must be alike in every step");
  }
  double update_stddev() const override { return dense_->update_stddev(); }
  const privacy::Charge& charge() const override { return dense_->charge(); }
  double ExpectedExtraRows() const override { return dense_->ExpectedExtraRows(); }

 private:
  const std::shared_ptr<mechanism::Mechanism> dense_;
  const uint64_t version_;
};

// Rows that get their owed noise when they are gathered. MarkChanged ends a step; its rows have had
// this step's noise with their gradient.
class LazyRows final : public store::WorkingRows {
 public:
  LazyRows(std::shared_ptr<mechanism::Mechanism> dense, std::unique_ptr<store::WorkingRows> rows,
           store::RowLayout layout, float rate, std::unique_ptr<noise::NoiseSource> noise)
      : dense_(std::move(dense)),
        rows_(std::move(rows)),
        layout_(std::move(layout)),
        rate_(rate),
        noise_(std::move(noise)),
        draw_(layout_.space.max_dim()) {}

  Status Gather(std::span<const uint64_t> rows, std::span<float*> out) override {
    TACIT_RETURN_IF_ERROR(rows_->Gather(rows, out));
    for (size_t i = 0; i < rows.size(); ++i) {
      const uint64_t owed = steps_ - std::exchange(settled_[rows[i]], steps_);
      if (owed > 0) Settle(rows[i], owed, out[i]);
    }
    return {};
  }

  void MarkChanged(std::span<const uint64_t> rows) override {
    ++steps_;
    for (const uint64_t row : rows) settled_[row] = steps_;
    rows_->MarkChanged(rows);
  }

  std::shared_ptr<const store::RowDelta> TakeDelta() override {
    TACIT_CHECK(false, "rows that owe noise are never committed");
    return nullptr;
  }
  Stats stats() const override { return rows_->stats(); }

 private:
  void Settle(uint64_t row, uint64_t owed, float* values) {
    const size_t dim = layout_.space.tables()[layout_.space.TableOf(row)].dim;
    dense_->FillUntouched(*noise_, std::span(draw_).first(dim));
    const float scale = rate_ * static_cast<float>(std::sqrt(static_cast<double>(owed)));
    for (size_t c = 0; c < dim; ++c) values[c] -= scale * draw_[c];
  }

  const std::shared_ptr<mechanism::Mechanism> dense_;
  const std::unique_ptr<store::WorkingRows> rows_;
  const store::RowLayout layout_;
  const float rate_;
  const std::unique_ptr<noise::NoiseSource> noise_;
  std::vector<float> draw_;
  uint64_t steps_ = 0;  // taken
  train::RowMap<uint64_t>
      settled_;  // steps whose noise the row has had; 0 where it was never gathered
};

}  // namespace

LazyDense MakeLazyDense(std::unique_ptr<mechanism::Mechanism> dense,
                        std::unique_ptr<store::WorkingRows> rows, store::RowLayout layout,
                        float row_learning_rate, std::unique_ptr<noise::NoiseSource> noise) {
  TACIT_CHECK(std::ranges::all_of(layout.state_floats, [](uint32_t floats) { return floats == 0; }),
              "only plain SGD adds noise up");
  const std::shared_ptr<mechanism::Mechanism> shared = std::move(dense);
  return {.mechanism = std::make_unique<LazyMechanism>(shared),
          .rows = std::make_unique<LazyRows>(shared, std::move(rows), std::move(layout),
                                             row_learning_rate, std::move(noise))};
}

}  // namespace tacit::lab
