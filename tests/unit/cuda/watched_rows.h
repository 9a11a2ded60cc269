#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "store/rows/working_rows.h"
#include "store/types/delta.h"

namespace tacit::cuda::testing {

// WorkingRows that hold their users to the contract: pointers of a Gather die with the next one,
// what is changed and not marked is lost and fails the test, and only rows of the last Gather may
// be marked. Remembers which were.
class WatchedRows final : public store::WorkingRows {
 public:
  // Both must outlive it.
  WatchedRows(store::WorkingRows& rows, const store::RowLayout& layout)
      : rows_(rows), layout_(layout) {}

  Status Gather(std::span<const uint64_t> rows, std::span<float*> out) override {
    CheckUnchanged();
    lent_.clear();
    EXPECT_TRUE(std::ranges::adjacent_find(rows, std::ranges::greater_equal{}) == rows.end())
        << "rows are distinct and ascend";
    std::vector<float*> at(rows.size());
    TACIT_RETURN_IF_ERROR(rows_.Gather(rows, at));
    for (size_t i = 0; i < rows.size(); ++i) {
      const uint32_t floats = layout_.RowFloats(layout_.space.TableOf(rows[i]));
      Lent lent{rows[i], floats, std::make_unique<float[]>(floats), {at[i], at[i] + floats}};
      std::copy_n(at[i], floats, lent.floats.get());
      out[i] = lent.floats.get();
      lent_.push_back(std::move(lent));
    }
    ++gathers_;
    gathered_.insert(rows.begin(), rows.end());
    return {};
  }
  void MarkChanged(std::span<const uint64_t> rows) override {
    for (const uint64_t row : rows) {
      const auto lent = std::ranges::find(lent_, row, &Lent::row);
      ASSERT_NE(lent, lent_.end()) << "row " << row << " is not of the last Gather";
      std::vector<uint64_t> one = {row};
      std::vector<float*> at(1);
      ASSERT_TRUE(rows_.Gather(one, at));
      std::copy_n(lent->floats.get(), lent->size, at[0]);
      lent->before.assign(lent->floats.get(), lent->floats.get() + lent->size);
      rows_.MarkChanged(one);
      marked_.insert(row);
    }
  }
  std::shared_ptr<const store::RowDelta> TakeDelta() override {
    CheckUnchanged();
    lent_.clear();
    return rows_.TakeDelta();
  }
  Stats stats() const override { return rows_.stats(); }

  std::set<uint64_t> TakeMarked() { return std::exchange(marked_, {}); }
  std::set<uint64_t> TakeGathered() { return std::exchange(gathered_, {}); }
  uint64_t gathers() const { return gathers_; }

 private:
  struct Lent {
    uint64_t row;
    size_t size;
    std::unique_ptr<float[]> floats;
    std::vector<float> before;
  };
  void CheckUnchanged() const {
    for (const Lent& lent : lent_)
      EXPECT_EQ(std::memcmp(lent.before.data(), lent.floats.get(), lent.size * sizeof(float)), 0)
          << "row " << lent.row << " was changed and not marked";
  }

  store::WorkingRows& rows_;
  const store::RowLayout& layout_;
  std::vector<Lent> lent_;
  std::set<uint64_t> marked_, gathered_;
  uint64_t gathers_ = 0;
};

}  // namespace tacit::cuda::testing
