#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "store/rows/row_reader.h"
#include "store/store.h"

namespace tacit::store {

// A folder that goes when the test does.
class TestFolder {
 public:
  TestFolder() {
    // In memory where there is such a place: a kill loses as little there as on a disk, and the
    // tests sync a thousand times.
    const std::filesystem::path memory = "/dev/shm";
    const auto parent =
        access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
    std::string name = parent / "tacit-store-XXXXXX";
    TACIT_CHECK(mkdtemp(name.data()) != nullptr);
    root_ = name;
  }
  ~TestFolder() { std::filesystem::remove_all(root_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string root() const { return root_; }
  std::string store() const { return root_ + "/store"; }
  std::string witness() const { return root_ + "/witness"; }

 private:
  std::string root_;
};

struct TestTable {
  const char* name;
  uint64_t rows;
  uint32_t dim, state;
};

inline LearnerLayout MakeLearner(const std::string& name, std::vector<TestTable> tables) {
  LearnerLayout learner;
  learner.name = name;
  learner.rows.seed = 7 + name.size();
  for (const TestTable& table : tables) {
    learner.rows.space.AddTable(table.name, table.rows, table.dim);
    learner.rows.state_floats.push_back(table.state);
    learner.rows.initial_scale.push_back(0.25f);
  }
  learner.promise.learner = name;
  learner.promise.epsilon = 8;
  learner.promise.delta = 1e-6;
  learner.promise.model_fingerprint.fill(static_cast<uint8_t>(name.size()));
  return learner;
}

inline std::vector<LearnerLayout> TestLearners() {
  return {MakeLearner("ctr", {{"site", 40, 4, 1}, {"ad", 200, 8, 8}}),
          MakeLearner("next", {{"item", 100, 3, 0}})};
}

inline StoreOptions TestOptionsAt(const std::string& root) {
  StoreOptions options;
  options.path = root + "/store";
  options.witness = root + "/witness";
  options.shards = 4;
  options.fold_file_bytes = 0;  // folds write files of any size
  options.memory_bytes = uint64_t{32} << 20;
  options.row_cache_bytes = uint64_t{1} << 20;
  options.fold_after_commits = 2;
  options.code_version = "test";
  options.learners = TestLearners();
  return options;
}

inline StoreOptions TestOptions(const TestFolder& folder) { return TestOptionsAt(folder.root()); }

inline std::unique_ptr<Store> MustOpen(const StoreOptions& options) {
  auto store = Store::Open(options);
  if (!store) ADD_FAILURE() << store.error().message;
  TACIT_CHECK(store.has_value());
  return *std::move(store);
}

// The naive store of one learner: every row that was ever written.
class RowModel {
 public:
  explicit RowModel(const RowLayout* layout) : layout_(layout) {}

  std::vector<float> Row(uint64_t row) const {
    if (const auto found = rows_.find(row); found != rows_.end()) return found->second;
    const uint32_t table = layout_->space.TableOf(row);
    std::vector<float> initial(layout_->RowFloats(table));
    FillInitialRow(*layout_, table, row, initial);
    return initial;
  }
  void Set(uint64_t row, std::span<const float> floats) {
    rows_[row].assign(floats.begin(), floats.end());
  }
  const RowLayout& layout() const { return *layout_; }

 private:
  const RowLayout* layout_;
  std::map<uint64_t, std::vector<float>> rows_;
};

// Every row of the learner, in a shuffled order, is what the model says.
inline void ExpectRows(const Snapshot& snapshot, LearnerIndex learner, const RowModel& model) {
  std::vector<uint64_t> rows(model.layout().space.rows());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = i;
  std::shuffle(rows.begin(), rows.end(), std::mt19937_64(snapshot.version().value));
  std::vector<float> expected;
  for (uint64_t row : rows) {
    const auto whole = model.Row(row);
    const uint32_t dim = model.layout().space.tables()[model.layout().space.TableOf(row)].dim;
    expected.insert(expected.end(), whole.begin(), whole.begin() + dim);
  }
  std::vector<float> got(expected.size(), NAN);
  const Status read = snapshot.Rows(learner, rows, got);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(got, expected) << "learner " << learner.value << " at commit "
                           << snapshot.version().value;
}

inline privacy::CommitCharge TestCharge(const std::string& learner, uint64_t seq) {
  privacy::CommitCharge charge;
  charge.learner = learner;
  charge.charge.mechanism = privacy::MechanismKind::kDpSgd;
  // A new entry at every fourth commit, which the commits in between extend.
  charge.charge.noise_multiplier = charge.charge.sigma_gradient = seq / 4 % 2 == 0 ? 2 : 3;
  charge.charge.clip_gradient = 1;
  charge.steps = 1;
  charge.topic = "events";
  charge.ranges = {{0, seq * 100, seq * 100 + 100}};
  return charge;
}

// A fixed history: commit `seq` changes rows of learner 0 in a way that depends on what they were,
// so that every commit on the way must have been there.
class Script {
 public:
  static constexpr size_t kDense = 1000;

  static std::vector<uint64_t> RowsOf(uint64_t seq) {
    std::vector<uint64_t> rows;
    for (uint64_t row = seq % 5; row < 240; row += 1 + (row * seq) % 7) rows.push_back(row);
    return rows;
  }
  static void Change(uint64_t seq, std::span<float> row) {
    for (size_t i = 0; i < row.size(); ++i)
      row[i] = row[i] * 0.5f + static_cast<float>(seq) + static_cast<float>(i) * 0.125f;
  }
  static std::vector<float> DenseOf(uint64_t seq) {
    return std::vector<float>(kDense, static_cast<float>(seq) * 0.5f);
  }
  static std::string PositionOf(uint64_t seq) {
    return seq == 0 ? "" : "position " + std::to_string(seq);
  }

  // Changes at some commits only; the one before the first has none.
  static std::string ReleasedOf(uint64_t seq) {
    const uint64_t changed = seq - seq % 3;
    return changed == 0 ? "" : "released by " + std::to_string(changed);
  }

  // Commit `seq` is the step `seq` and counts two users of three: what user `u` has used after it.
  static UserUses UsesOf(uint64_t u, uint64_t seq) {
    UserUses uses{.user = {u, ~u}};
    for (uint64_t step = 1; step <= seq; ++step)
      if (step % 3 != u % 3)
        uses = {.user = uses.user, .used = uses.used + 1, .in_period = 1, .period = step};
    return uses;
  }
  static constexpr uint64_t kUsers = 30;
  static AllowanceCommit AllowancesOf(uint64_t seq) {
    AllowanceCommit commit{.step = seq, .uses = {}};
    for (uint64_t u = 0; u < kUsers; ++u)
      if (seq % 3 != u % 3) commit.uses.push_back(UsesOf(u, seq));
    return commit;
  }

  // Commit `seq` appends one or two items to what half of the users did; the last ten are kept.
  static constexpr uint32_t kItemsKept = 10;
  static std::vector<HistoryItem> AppendedBy(uint64_t u, uint64_t seq) {
    std::vector<HistoryItem> items;
    for (uint64_t i = 0; i <= (u + seq) % 3 && (u + seq) % 2 == 0; ++i)
      items.push_back({static_cast<uint32_t>(100 * seq + i), static_cast<int64_t>(seq)});
    return items;
  }
  static std::vector<HistoryItem> HistoryOf(uint64_t u, uint64_t seq) {
    std::vector<HistoryItem> items;
    for (uint64_t commit = 1; commit <= seq; ++commit)
      for (const HistoryItem& item : AppendedBy(u, commit)) items.push_back(item);
    if (items.size() > kItemsKept) items.erase(items.begin(), items.end() - kItemsKept);
    return items;
  }
  // One user more than there are is asked for, too.
  static std::vector<HistoryItem> RememberedOf(uint64_t u, uint64_t seq,
                                               const std::set<uint64_t>& forgotten) {
    return u < kUsers && !forgotten.contains(u) ? HistoryOf(u, seq) : std::vector<HistoryItem>{};
  }
  static HistoryCommit HistoriesOf(uint64_t seq) {
    HistoryCommit commit{.step = seq, .appended = {}, .items_most = kItemsKept};
    for (uint64_t u = 0; u < kUsers; ++u)
      if (auto items = AppendedBy(u, seq); !items.empty())
        commit.appended.push_back({.user = {u, ~u}, .items = std::move(items)});
    return commit;
  }

  // Makes the next commit and waits for it.
  static Status Step(Store& store, size_t dense_floats = kDense) {
    const uint64_t seq = store.Latest()->version().value + 1;
    WorkingRows& working = store.working_rows(LearnerIndex(0));
    const auto rows = RowsOf(seq);
    std::vector<float*> places(rows.size());
    TACIT_RETURN_IF_ERROR(working.Gather(rows, places));
    const LearnerLayout layout = TestLearners()[0];
    for (size_t i = 0; i < rows.size(); ++i)
      Change(seq, {places[i], layout.rows.RowFloats(layout.rows.space.TableOf(rows[i]))});
    working.MarkChanged(rows);
    auto dense = std::make_shared<DenseState>();
    dense->parameters = DenseOf(seq);
    dense->optimizer.assign(dense_floats, 1.0f);
    CommitRequest request;
    request.source_identity = "source " + std::to_string(seq);
    request.learners.push_back(
        {LearnerIndex(0), working.TakeDelta(), dense, PositionOf(seq), {TestCharge("ctr", seq)}});
    request.learners.back().allowances = AllowancesOf(seq);
    request.learners.back().histories = HistoriesOf(seq);
    if (seq % 3 == 0)
      request.learners.back().released = std::make_shared<const std::string>(ReleasedOf(seq));
    TACIT_RETURN_IF_ERROR(store.Commit(std::move(request), {}));
    return store.Flush();
  }

  // The script's items are older than any request to be forgotten: `forgotten` users have none.
  using Forgotten = std::set<uint64_t>;

  static void ExpectSnapshot(const Snapshot& snapshot, const Forgotten& forgotten = {}) {
    const uint64_t seq = snapshot.version().value;
    static const auto learners = TestLearners();
    RowModel model(&learners[0].rows);
    for (uint64_t commit = 1; commit <= seq; ++commit)
      for (uint64_t row : RowsOf(commit)) {
        auto floats = model.Row(row);
        Change(commit, floats);
        model.Set(row, floats);
      }
    ExpectRows(snapshot, LearnerIndex(0), model);
    const auto dense = snapshot.Dense(LearnerIndex(0));
    ASSERT_EQ(dense != nullptr, seq > 0);
    if (dense) {
      ASSERT_EQ(dense->parameters, DenseOf(seq));
    }
    const auto released = snapshot.Released(LearnerIndex(0));
    if (released) {
      ASSERT_EQ(*released, ReleasedOf(seq));
    }
    // If there are more items than are kept, a commit that the witness has not seen may have
    // dropped the oldest.
    for (uint64_t u = 0; u <= kUsers; ++u) {
      const auto history = snapshot.History(LearnerIndex(0), {u, ~u});
      ASSERT_TRUE(history) << history.error().message;
      auto expected = RememberedOf(u, seq, forgotten);
      ASSERT_LE(history->size(), expected.size());
      ASSERT_GE(history->size() + 3, expected.size());
      expected.erase(expected.begin(), expected.end() - static_cast<ptrdiff_t>(history->size()));
      ASSERT_EQ(*history, expected) << "user " << u << " at commit " << seq;
    }
    uint64_t steps = 0;
    for (const auto& learner : snapshot.learners()) steps += learner.steps;
    ASSERT_EQ(steps, seq);
    ExpectLedger(snapshot);
  }

  // The chain is whole, and is that of this commit; also when it is read in pieces.
  static void ExpectLedger(const Snapshot& snapshot) {
    std::vector<privacy::LedgerEntry> entries;
    const auto encoded = snapshot.LedgerEntries(0, ~uint64_t{0});
    ASSERT_TRUE(encoded) << encoded.error().message;
    for (const std::string& bytes : *encoded) {
      auto entry = privacy::LedgerEntry::Decode(bytes);
      ASSERT_TRUE(entry) << entry.error().message;
      entries.push_back(*std::move(entry));
    }
    const uint64_t length = snapshot.ledger_entries();
    ASSERT_EQ(entries.size(), length);
    const Status whole = privacy::VerifyChain(entries, {.epsilons_max = 0});
    ASSERT_TRUE(whole) << whole.error().message;
    ASSERT_EQ(entries.empty() ? Digest{} : entries.back().head, snapshot.head());
    for (uint64_t from :
         {uint64_t{0}, length / 2, length - std::min<uint64_t>(length, 1), length}) {
      const auto piece = snapshot.LedgerEntries(from, 2);
      ASSERT_TRUE(piece) << piece.error().message;
      ASSERT_EQ(*piece, std::vector<std::string>(
                            encoded->begin() + static_cast<ptrdiff_t>(from),
                            encoded->begin() + static_cast<ptrdiff_t>(std::min(from + 2, length))));
    }
  }

  // The counts are as of the same commit as everything else.
  static void ExpectAllowances(const Store& store, uint64_t seq) {
    std::vector<UserUses> uses;
    for (uint64_t u = 0; u <= kUsers; ++u) uses.push_back({.user = {u, ~u}, .used = 77});
    const auto step = store.ReadAllowances(LearnerIndex(0), uses);
    ASSERT_TRUE(step) << step.error().message;
    ASSERT_EQ(*step, seq);
    for (uint64_t u = 0; u < kUsers; ++u) ASSERT_EQ(uses[u], UsesOf(u, seq));
    ASSERT_EQ(uses[kUsers], UserUses{.user = uses[kUsers].user});
  }

  static void ExpectHistories(const Store& store, uint64_t seq, const Forgotten& forgotten = {}) {
    std::vector<UserHistory> users;
    for (uint64_t u = 0; u <= kUsers; ++u) users.push_back({.user = {u, ~u}, .items = {{77, 77}}});
    const auto step = store.ReadHistories(LearnerIndex(0), users);
    ASSERT_TRUE(step) << step.error().message;
    ASSERT_EQ(*step, seq);
    for (uint64_t u = 0; u <= kUsers; ++u)
      ASSERT_EQ(users[u].items, RememberedOf(u, seq, forgotten)) << "user " << u;
  }

  static void ExpectStore(Store& store, const Forgotten& forgotten = {}) {
    const auto snapshot = store.Latest();
    ExpectSnapshot(*snapshot, forgotten);
    ExpectAllowances(store, snapshot->version().value);
    ExpectHistories(store, snapshot->version().value, forgotten);
    // The owner's own snapshot has what was released, whenever that was.
    const auto released = snapshot->Released(LearnerIndex(0));
    ASSERT_EQ(released ? *released : "", ReleasedOf(snapshot->version().value));
    const LearnerState state = store.State(LearnerIndex(0));
    ASSERT_EQ(state.position, PositionOf(snapshot->version().value));
    ASSERT_EQ(state.released ? *state.released : "", ReleasedOf(snapshot->version().value));
    if (snapshot->version().value > 0) {
      ASSERT_EQ(store.source_identity(), "source " + std::to_string(snapshot->version().value));
    }
  }
};

}  // namespace tacit::store
