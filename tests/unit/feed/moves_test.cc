// Tests a feed whose rows tell how they moved, for workers. The oracle is the trainer's own store.
#include <gmock/gmock.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "feed/model_mark.h"
#include "feed/row_blocks.h"
#include "replica_rig.h"

namespace tacit::feed {
namespace {

using ::testing::HasSubstr;
using Rows = std::map<std::pair<uint16_t, uint64_t>, std::vector<float>>;

// A replica's store that keeps the newest floats of each row, and nothing else.
class KeptRows final : public store::ReplicaStore {
 public:
  std::shared_ptr<const store::Snapshot> Latest() const override { return nullptr; }
  std::string feed() const override { return feed_; }
  std::string position() const override { return position_; }
  const std::vector<store::LearnerRecord>& learners() const override { return learners_; }
  Status Begin(const store::ReplicaOrigin& origin) override {
    feed_ = origin.feed;
    learners_ = origin.learners;
    return {};
  }
  Status Fill(const std::vector<store::ReplicaLearner>& learners) override {
    released_.resize(learners_.size());
    for (const store::ReplicaLearner& learner : learners)
      if (learner.released) released_[learner.key] = learner.released;
    for (const store::ReplicaLearner& learner : learners)
      for (size_t i = 0; learner.rows && i < learner.rows->size(); ++i)
        rows[{learner.key, learner.rows->rows[i]}] = {learner.rows->Row(i).begin(),
                                                      learner.rows->Row(i).end()};
    return {};
  }
  Status Apply(store::ReplicaVersion version) override {
    position_ = version.position;
    mark = version.mark;
    head_ = version.tip.head;
    return Fill(version.learners);
  }
  // The mark of what is kept.
  Hash128 MarkUnder(const SipHash::Key& key) const {
    ModelMark made(key);
    for (const auto& [place, floats] : rows)
      if (place.first == 0) made.Replace(0, made.OfRow(place.first, place.second, floats));
    std::vector<std::shared_ptr<const std::string>> released(released_.size());
    released.at(0) = released_.at(0);
    return made.Of(head_, released);
  }
  Status Settle() override { return {}; }
  uint64_t unfolded() const override { return 0; }

  Rows rows;
  std::optional<Hash128> mark;

 private:
  Digest head_{};
  std::vector<std::shared_ptr<const std::string>> released_;
  std::string feed_, position_;
  std::vector<store::LearnerRecord> learners_;
};

class MovesTest : public ReplicaTest {
 protected:
  // Any two of a row's state; the feed does not know what they are.
  static constexpr std::array<size_t, kMoveFloats> kPlaces = {1, 0};
  static constexpr SipHash::Key kKey = {3, 1, 4};

  std::unique_ptr<Publisher> MakeWith(bool moves) {
    PublisherOptions options{
        .properties = properties(), .topic = kTopic, .check_topic = [] { return Status(); }};
    if (moves) options.moves = kPlaces;
    // The first one alone: workers need not have others.
    if (moves) options.mark = PublisherOptions::Mark{.key = kKey, .learners = {}};
    if (moves) options.mark->learners = {options_.learners[0].name};
    return std::make_unique<Publisher>(*store_, clock_, std::move(options));
  }
  ReplicaSource NeedsMoves() const {
    ReplicaSource needs = source();
    needs.moves = Assembler::Moves::kNeeded;
    return needs;
  }
  // All rows of the trainer's store, as a worker gets them.
  Rows Expected() const {
    Rows expected;
    for (uint16_t key = 0; key < options_.learners.size(); ++key) {
      const store::RowLayout& layout = options_.learners[key].rows;
      for (uint32_t t = 0; t < layout.space.tables().size(); ++t) {
        const size_t dim = layout.space.tables()[t].dim;
        const Status shown = store_->Latest()->ForWritten(
            LearnerIndex(key), t, [&](uint64_t row, std::span<const float> floats) {
              std::vector<float>& one = expected[{key, row}];
              one.assign(floats.begin(), floats.begin() + static_cast<ptrdiff_t>(dim));
              const size_t average = layout.average.StateFloats(static_cast<uint32_t>(dim));
              one.insert(one.end(), floats.end() - static_cast<ptrdiff_t>(average), floats.end());
              const size_t state = floats.size() - dim - average;
              for (const size_t place : kPlaces)
                one.push_back(place < state ? floats[dim + place] : 0);
            });
        EXPECT_TRUE(shown) << shown.error().message;
      }
    }
    return expected;
  }
  void FollowTo(Replica& replica, CommitSeq version) {
    ASSERT_TRUE(test::Eventually("a version is here", [&] {
      const auto stepped = replica.Step(std::chrono::milliseconds(50));
      if (stepped || stepped.error().code == ErrorCode::kUnavailable)
        return replica.sight().served == version;
      ADD_FAILURE() << stepped.error().message;
      return true;
    }));
  }
};

TEST_F(MovesTest, AWorkerHasEachRowWithItsMove) {
  const auto publisher = MakeWith(true);
  Steps(3);
  MustPublish(*publisher);
  KeptRows kept;
  Replica worker(kept, options_.learners, NeedsMoves());
  for (const int steps : {1, 4, 2}) {
    Steps(steps);
    MustPublish(*publisher);
    FollowTo(worker, store_->Latest()->version());
    EXPECT_EQ(kept.rows, Expected());
  }
  EXPECT_GT(kept.rows.size(), 10u);
  std::set<float> moves;
  for (const auto& [row, floats] : kept.rows) moves.insert(floats[floats.size() - 2]);
  EXPECT_GT(moves.size(), 2u) << "the store's states are too alike to tell anything";
}

// Each version has the mark of all that a worker then has, under the key, also after another start
// of the publisher, and for a worker that comes late.
TEST_F(MovesTest, AVersionIsMarkedAsAWorkerHasIt) {
  KeptRows kept;
  Replica worker(kept, options_.learners, NeedsMoves());
  std::set<Hash128> marks;
  const auto expect_marked = [&](const KeptRows& rows) {
    ASSERT_TRUE(rows.mark);
    EXPECT_EQ(*rows.mark, rows.MarkUnder(kKey));
    EXPECT_NE(*rows.mark, rows.MarkUnder({2, 7}));
    marks.insert(*rows.mark);
  };
  for (int start = 0; start < 2; ++start) {
    const auto publisher = MakeWith(true);
    for (const int steps : {3, 1, 4}) {
      Steps(steps);
      MustPublish(*publisher);
      FollowTo(worker, store_->Latest()->version());
      expect_marked(kept);
    }
  }
  EXPECT_EQ(marks.size(), 6u);
  KeptRows late;
  Replica other(late, options_.learners, NeedsMoves());
  FollowTo(other, store_->Latest()->version());
  expect_marked(late);
  EXPECT_EQ(marks.size(), 6u);
  // A row that another program has written, or left out, or put at another place.
  const Rows all = late.rows;
  const auto [place, floats] = *all.begin();
  late.rows[place][0] += 1;
  EXPECT_NE(*late.mark, late.MarkUnder(kKey));
  late.rows.erase(place);
  EXPECT_NE(*late.mark, late.MarkUnder(kKey));
  late.rows[{place.first, 1 << 30}] = floats;
  EXPECT_NE(*late.mark, late.MarkUnder(kKey));
  late.rows = all;
  EXPECT_EQ(*late.mark, late.MarkUnder(kKey));
}

// Workers come and go: the first version of the other kind is sent whole, and a replica goes on.
TEST_F(MovesTest, AReplicaShowsTheSameWithMovesAndWithout) {
  auto publisher = MakeWith(false);
  StepAndPublish(*publisher, 3);
  const auto store = OpenReplica();
  Replica replica(*store, options_.learners, source());
  Follow(replica, *store, 3);
  for (const bool moves : {true, false, true}) {
    publisher = MakeWith(moves);
    Steps(1);
    snapshots_[store_->Latest()->version().value] = store_->Latest();
    EXPECT_TRUE(MustPublish(*publisher).whole) << moves;
    Follow(replica, *store, store_->Latest()->version().value);
    StepAndPublish(*publisher, 1);
    Follow(replica, *store, store_->Latest()->version().value);
    publisher = MakeWith(moves);
    Steps(1);
    snapshots_[store_->Latest()->version().value] = store_->Latest();
    EXPECT_FALSE(MustPublish(*publisher).whole) << "a start builds on what is there";
    Follow(replica, *store, store_->Latest()->version().value);
  }
  // A worker that comes late has the moves of rows from before them too.
  KeptRows kept;
  Replica worker(kept, options_.learners, NeedsMoves());
  FollowTo(worker, store_->Latest()->version());
  EXPECT_EQ(kept.rows, Expected());
  const Inspection found = Inspect();
  EXPECT_TRUE(found.faults.empty()) << found.faults.front();
}

TEST_F(MovesTest, AWorkerRefusesAFeedWithoutMoves) {
  const auto publisher = MakeWith(false);
  Steps(2);
  MustPublish(*publisher);
  KeptRows kept;
  Replica worker(kept, options_.learners, NeedsMoves());
  EXPECT_THAT(Refusal(worker),
              HasSubstr("has rows that do not tell how they moved: its trainer has no "
                        "workers.topic"));
}

// A linear model's rows have three floats, and still go in blocks.
TEST_F(MovesTest, BlocksHoldThreeFloats) {
  store::RowLayout layout;
  layout.space.AddTable("t", 5'000'000, 1);
  layout.state_floats = {5};
  layout.initial_scale = {0};
  EXPECT_TRUE(SendsBlocks(layout, /*moves=*/true));
  EXPECT_EQ(SentFloats(layout, 0, true), 3u);
  EXPECT_EQ(SentFloats(layout, 0, false), 1u);
  layout.space.AddTable("u", 5'000'000, 1);
  layout.state_floats.push_back(5);
  layout.initial_scale.push_back(0);
  EXPECT_TRUE(SendsBlocks(layout, false));
  EXPECT_FALSE(SendsBlocks(layout, true));
}

}  // namespace
}  // namespace tacit::feed
