#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "serve/api.h"
#include "store/types/snapshot.h"

namespace tacit::serve {

// A commit in memory, of a learner that recommends.
class RecommendSnapshot : public store::Snapshot {
 public:
  RecommendSnapshot(uint64_t version, const privacy::Promise& promise) : version_(version) {
    head_.fill(static_cast<uint8_t>(version));
    learners_ = {{promise.learner, promise.unit, 0.25 * static_cast<double>(version), promise.delta,
                  version}};
    total_ = learners_[0];
    total_.learner.clear();
  }
  std::shared_ptr<const std::string> released;
  std::map<Hash128, std::vector<store::HistoryItem>> histories;
  std::shared_ptr<const store::DenseState> dense;

  CommitSeq version() const override { return CommitSeq(version_); }
  const Digest& head() const override { return head_; }
  std::string lineage() const override { return "line-1"; }
  const std::vector<privacy::LedgerTotal>& learners() const override { return learners_; }
  const privacy::LedgerTotal& total() const override { return total_; }
  uint64_t ledger_entries() const override { return version_; }
  Result<std::vector<std::string>> LedgerEntries(uint64_t, uint64_t) const override {
    return std::vector<std::string>{};
  }
  std::shared_ptr<const store::DenseState> Dense(LearnerIndex) const override { return dense; }
  std::span<const float> ServedDense(LearnerIndex) const override {
    return dense ? std::span<const float>(dense->parameters) : std::span<const float>();
  }
  std::shared_ptr<const std::string> Released(LearnerIndex) const override { return released; }
  Result<std::vector<store::HistoryItem>> History(LearnerIndex,
                                                  const Hash128& user) const override {
    const auto at = histories.find(user);
    return at == histories.end() ? std::vector<store::HistoryItem>{} : at->second;
  }
  Status Rows(LearnerIndex, std::span<const uint64_t>, std::span<float>) const override {
    return Fail(ErrorCode::kInternal, "no rows here");
  }

 private:
  const uint64_t version_;
  Digest head_{};
  std::vector<privacy::LedgerTotal> learners_;
  privacy::LedgerTotal total_;
};

// A model whose scores follow from what was released, a text, and from the history.
class FakeItems final : public ItemModel {
 public:
  struct State final : ItemState {
    State(std::string of, uint32_t items) : text(std::move(of)) {
      for (uint32_t item = 0; item < items; ++item) cold_start_.push_back(Fake(text, {}, item));
    }
    const std::string text;
  };
  struct ClickScorer final : ItemScorer {
    Status Score(const ItemState& state, std::span<const uint32_t> history,
                 std::span<float> scores) override {
      for (uint32_t item = 0; item < scores.size(); ++item)
        scores[item] = Fake(static_cast<const State&>(state).text, history, item);
      return {};
    }
    // The reason for even items is the latest of the history.
    std::optional<ItemReason> ReasonOf(const ItemState&, std::span<const uint32_t> history,
                                       uint32_t item) override {
      if (item % 2 != 0) return std::nullopt;
      return ItemReason{history.back(), 0.25f};
    }
  };

  explicit FakeItems(uint32_t items) : items_(items) {}
  // Builds that have begun.
  size_t builds() const { return builds_; }
  std::string_view kind() const override { return "transitions"; }
  uint32_t items() const override { return items_; }
  Result<std::shared_ptr<const ItemState>> Build(
      const store::Snapshot& snapshot,
      const std::shared_ptr<const ItemState>& last) const override {
    ++builds_;
    const auto bytes = snapshot.Released(LearnerIndex(0));
    if (bytes == nullptr) return std::shared_ptr<const ItemState>();
    if (*bytes == "damaged") return Fail(ErrorCode::kCorruption, "the bytes are damaged");
    if (last != nullptr && static_cast<const State&>(*last).text == *bytes) return last;
    return std::make_shared<const State>(*bytes, items_);
  }
  std::unique_ptr<ItemScorer> MakeScorer() const override {
    return std::make_unique<ClickScorer>();
  }

  // A few values only, so that many are equal.
  static float Fake(std::string_view text, std::span<const uint32_t> history, uint32_t item) {
    uint64_t hash = BucketHash(text, item);
    for (const uint32_t before : history) hash = hash * 31 + before + item * before;
    return static_cast<float>(BucketHash({reinterpret_cast<const char*>(&hash), 8}, 1) % 50) / 8;
  }

 private:
  const uint32_t items_;
  mutable std::atomic<size_t> builds_ = 0;
};

// Items "a0", "a1", ...; described, they are of the year 1990 + i, except for every fifth, which
// has none, and of the genre "even" or "odd", those that 3 divides also of "three".
inline std::shared_ptr<const event::ItemCatalogue> SomeItems(uint32_t items,
                                                             bool described = false) {
  std::string text;
  for (uint32_t i = 0; i < items; ++i) {
    text += fmt::format("a{}", i);
    if (described)
      text += fmt::format("::title{}::{}{}", i % 5 == 0 ? "" : fmt::format(" ({})", 1990 + i),
                          i % 2 == 0 ? "even" : "odd", i % 3 == 0 ? "|three" : "");
    text += '\n';
  }
  auto catalogue = event::ItemCatalogue::Parse(std::move(text), "items");
  EXPECT_TRUE(catalogue.has_value());
  return std::make_shared<const event::ItemCatalogue>(std::move(*catalogue));
}

inline RecommendModel SomeRecommender(uint32_t items, bool serve_users = false) {
  RecommendModel model;
  model.index = LearnerIndex(0);
  model.promise.learner = "next";
  model.promise.unit = privacy::Unit::kUser;
  model.promise.epsilon = 4;
  model.promise.delta = 1e-6;
  model.items = SomeItems(items);
  model.model = std::make_shared<const FakeItems>(items);
  model.serve_users = serve_users;
  return model;
}

}  // namespace tacit::serve
