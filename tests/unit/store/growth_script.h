#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "script.h"
#include "store/model_growth.h"

namespace tacit::store {

// A learner whose tables change. The kind's part is played by the simplest rule: tables are known
// by their names, one of more rows is a larger one, and the dense parameters stay.
class GrowthScript {
 public:
  static LearnerLayout Make(std::vector<TestTable> tables) {
    LearnerLayout layout = MakeLearner("ctr", std::move(tables));
    const auto of_tables = layout.rows.space.tables();
    layout.form = "form";
    Sha256 fingerprint;
    for (const RowSpace::Table& table : of_tables) {
      layout.form += " " + table.name;
      fingerprint.Update(table.name + std::to_string(table.rows));
    }
    layout.promise.model_fingerprint = fingerprint.Finish();
    layout.grow = [rows = layout.rows](const StoredModel& stored) { return Grow(stored, rows); };
    return layout;
  }
  static StoreOptions Options(const std::string& root, LearnerLayout layout) {
    StoreOptions options = TestOptionsAt(root);
    options.learners = {std::move(layout)};
    return options;
  }
  static LearnerLayout Before() { return Make({{"site", 40, 4, 1}, {"ad", 200, 8, 8}}); }
  // A larger table with wider rows, one that goes, one that is new, and another order.
  static LearnerLayout After() { return Make({{"hour", 24, 4, 1}, {"site", 118, 6, 2}}); }

  // The same learner under another name, whose items have other numbers, too.
  static constexpr uint32_t kItems = 50;
  static uint32_t MovedItem(uint32_t item) { return kItems - 1 - item; }
  static LearnerLayout Renamed() {
    LearnerLayout layout = After();
    layout.name = layout.promise.learner = "ads";
    layout.grow = [grow = layout.grow](const StoredModel& stored) {
      auto grown = grow(stored);
      for (uint32_t item = 0; item < kItems; ++item) grown->items.push_back(MovedItem(item));
      return grown;
    };
    return layout;
  }
  static StoreOptions RenamedOptions(const std::string& root) {
    StoreOptions options = Options(root, Renamed());
    options.renames = {{"ads", "ctr"}};
    options.may_lose = true;
    return options;
  }

  static constexpr Hash128 kReader{5, 6};
  static uint32_t ItemAt(uint64_t seq) { return static_cast<uint32_t>(7 * seq % kItems); }
  // The items of kReader.
  static std::vector<uint32_t> Read(const Store& store) {
    std::vector<uint32_t> items;
    const auto history = store.Latest()->History(LearnerIndex(0), kReader);
    EXPECT_TRUE(history);
    for (const HistoryItem& item : *history) items.push_back(item.item);
    return items;
  }

  // A commit that changes these rows, and gives kReader an item.
  static Status Step(Store& store, const RowLayout& layout, std::vector<uint64_t> rows,
                     const std::string& learner = "ctr") {
    const uint64_t seq = store.Latest()->version().value + 1;
    WorkingRows& working = store.working_rows(LearnerIndex(0));
    std::vector<float*> places(rows.size());
    TACIT_RETURN_IF_ERROR(working.Gather(rows, places));
    for (size_t i = 0; i < rows.size(); ++i)
      Script::Change(seq, {places[i], layout.RowFloats(layout.space.TableOf(rows[i]))});
    working.MarkChanged(rows);
    CommitRequest request;
    request.source_identity = "source";
    request.learners.push_back({LearnerIndex(0),
                                working.TakeDelta(),
                                nullptr,
                                Script::PositionOf(seq),
                                {TestCharge(learner, seq)}});
    request.learners.back().dense = std::make_shared<DenseState>(
        DenseState{.parameters = Script::DenseOf(seq), .optimizer = {1}});
    request.learners.back().histories = {
        .step = seq,
        .appended = {{.user = kReader, .items = {{.item = ItemAt(seq), .timestamp_ms = 1000}}}},
        .items_most = 10};
    TACIT_RETURN_IF_ERROR(store.Commit(std::move(request), {}));
    return store.Flush();
  }

  // All rows with their state, table by table.
  using Rows = std::vector<std::vector<float>>;
  static Rows RowsOf(Store& store, const RowLayout& layout) {
    Rows all(layout.space.rows());
    std::vector<uint64_t> rows(all.size());
    std::vector<float*> places(all.size());
    for (size_t row = 0; row < rows.size(); ++row) rows[row] = row;
    EXPECT_TRUE(store.working_rows(LearnerIndex(0)).Gather(rows, places));
    for (size_t row = 0; row < rows.size(); ++row)
      all[row].assign(places[row], places[row] + layout.RowFloats(layout.space.TableOf(row)));
    return all;
  }
  // Works out by the plainest of loops which rows these become.
  static Rows Grown(const Rows& was, const RowLayout& before, const RowLayout& after) {
    Rows all;
    for (uint32_t t = 0; t < after.space.tables().size(); ++t) {
      const RowSpace::Table& table = after.space.tables()[t];
      const auto from =
          std::ranges::find(before.space.tables(), table.name, &RowSpace::Table::name);
      for (uint64_t bucket = 0; bucket < table.rows; ++bucket) {
        if (from == before.space.tables().end()) {
          all.emplace_back(after.RowFloats(t), 0.0f);
          continue;
        }
        const uint64_t spread = (table.rows - 1) / (from->rows - 1);
        const uint64_t row = from->first + (bucket == 0 ? 0 : 1 + (bucket - 1) / spread);
        all.push_back(was[row]);
        if (from->dim == table.dim) continue;
        all.back().assign(after.RowFloats(t), 0.0f);
        const auto of = static_cast<size_t>(from - before.space.tables().begin());
        InitialRow(before.seed, row, before.initial_scale[of],
                   std::span(all.back()).first(table.dim));
        Move(was[row], from->dim, all.back(), table.dim);
      }
    }
    return all;
  }

  static std::vector<privacy::LedgerEntry> Entries(const Store& store) {
    std::vector<privacy::LedgerEntry> entries;
    const auto encoded = store.Latest()->LedgerEntries(0, ~uint64_t{0});
    EXPECT_TRUE(encoded);
    for (const std::string& bytes : *encoded) {
      auto entry = privacy::LedgerEntry::Decode(bytes);
      EXPECT_TRUE(entry);
      if (entry) entries.push_back(*std::move(entry));
    }
    return entries;
  }
  static void ExpectChain(const Store& store) {
    const Status whole = privacy::VerifyChain(Entries(store));
    EXPECT_TRUE(whole) << whole.error().message;
  }

 private:
  // Keeps what both have of the embedding, and as the first number of state the sum of the old one.
  static void Move(std::span<const float> was, size_t before, std::span<float> is, size_t now) {
    std::copy_n(was.begin(), std::min(before, now), is.begin());
    for (size_t i = before; i < was.size(); ++i) is[now] += was[i];
  }

  static Result<GrownModel> Grow(const StoredModel& stored, const RowLayout& rows) {
    GrownModel grown{.tables = {}, .dense = stored.dense, .released = stored.released};
    const auto was = stored.rows.space.tables();
    const auto is = rows.space.tables();
    for (const RowSpace::Table& table : is) {
      const auto from = std::ranges::find(was, table.name, &RowSpace::Table::name);
      if (from == was.end()) {
        grown.gained.push_back(table.name + " is new");
        grown.tables.emplace_back();
      } else {
        grown.tables.push_back(
            {.from = static_cast<uint32_t>(from - was.begin()),
             .spread = static_cast<uint32_t>((table.rows - 1) / (from->rows - 1))});
        if (from->dim != table.dim)
          grown.tables.back().rewrite = [dim = from->dim, now = table.dim](
                                            std::span<const float> row, std::span<float> into) {
            Move(row, dim, into, now);
          };
      }
    }
    for (const RowSpace::Table& table : was)
      if (std::ranges::find(is, table.name, &RowSpace::Table::name) == is.end())
        grown.lost.push_back(table.name + " is gone");
    return grown;
  }
};

}  // namespace tacit::store
