#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/sequence/unit_rows.h"
#include "ops/shapes.h"

namespace tacit::model {

// Knowledge of the next item beside a sequence model: logits that the model's own are added to, in
// training and in scoring, and that training does not change. It must be public or made of numbers
// that were released and charged, because it reaches every update. Thread-safe, except during Set.
class LogitPrior {
 public:
  virtual ~LogitPrior() = default;
  // Sets row i of `logits` to the logits, over the catalogue, of the item after row places[i] of
  // the unit, given that row and the rows before it in its crop. REQUIRES ascending places.
  virtual void Fill(const UnitRows& rows, std::span<const uint32_t> places,
                    ops::Matrix logits) const = 0;
  // Sets the logits of a unit's first item, before anything is known of the unit.
  virtual void FillFirst(std::span<float> logits) const;

  // The numbers that the logits are made of, for those who compute them elsewhere:
  //
  //   logit(b) = each[b] + sum over the items so far of decay^age table[item][b]
  struct Numbers {
    std::span<const float> each;   // if empty, zeros
    std::span<const float> table;  // catalogue x catalogue, row by row; if empty, zeros
    float decay = 0;
    uint64_t version = 0;  // of these numbers: another after each Set
  };
  // REQUIRES a prior that keeps them: rows of DecayedLogits may be made where they are needed.
  virtual Numbers numbers() const = 0;
};

// logit(b) = sum over the items so far of decay^age table[item][b], the latest having age 0. Ages
// at which decay^age is below 1e-7 may be left out.
class DecayedLogits final : public LogitPrior {
 public:
  // All items are equally likely until Set. REQUIRES 0 <= decay < 1.
  DecayedLogits(uint32_t catalogue, double decay);
  DecayedLogits(std::vector<float> table, uint32_t catalogue, double decay)
      : DecayedLogits(catalogue, decay) {
    Set(std::move(table));
  }

  // Sets `row` to the logits, over the catalogue, after an item alone. Thread-safe.
  using RowOf = std::function<void(uint32_t item, std::span<float> row)>;

  // REQUIRES catalogue x catalogue, row by row.
  void Set(std::vector<float> table);
  // Rows are made where they are needed: no table of all pairs is kept.
  void Set(RowOf row);

  void Fill(const UnitRows& rows, std::span<const uint32_t> places,
            ops::Matrix logits) const override;
  Numbers numbers() const override {
    TACIT_CHECK(!row_of_, "a table is kept");
    return {.each = {}, .table = table_, .decay = decay_, .version = version_};
  }

 private:
  // to = decay^times to + the rows' entries [from, end), the last of age 0. `made` is scratch.
  void Append(const UnitRows& rows, size_t from, size_t end, std::vector<float>* made,
              float* to) const;

  std::vector<float> table_;  // if empty, what row_of_ makes, or zeros
  RowOf row_of_;
  const uint32_t catalogue_;
  const float decay_;
  size_t reach_ = 1;  // ages that count
  uint64_t version_ = 0;
};

// logit(b) is the item's own, behind any items.
class ItemLogits final : public LogitPrior {
 public:
  // All items are equally likely until Set.
  explicit ItemLogits(uint32_t catalogue) : logits_(catalogue) {}

  // REQUIRES a logit for each item.
  void Set(std::vector<float> logits);

  void Fill(const UnitRows& rows, std::span<const uint32_t> places,
            ops::Matrix logits) const override;
  void FillFirst(std::span<float> logits) const override;
  Numbers numbers() const override {
    return {.each = logits_, .table = {}, .decay = 0, .version = version_};
  }

 private:
  std::vector<float> logits_;
  uint64_t version_ = 0;
};

}  // namespace tacit::model
