#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "feed/replica.h"
#include "feed_rig.h"

// A replica behind librdkafka's mock of a broker. The oracle is the trainer's own snapshot of the
// version that the replica shows.
namespace tacit::feed {

class ReplicaTest : public FeedTest {
 protected:
  using Snapshots = std::map<uint64_t, std::shared_ptr<const store::Snapshot>>;

  store::ReplicaOptions replica_options(const std::string& name = "replica") const {
    store::ReplicaOptions options;
    options.path = folder_.root() + "/" + name;
    options.memory_bytes = uint64_t{32} << 20;
    options.fold_after_versions = 3;
    options.fold_file_bytes = 0;
    options.learners = options_.learners;
    return options;
  }
  ReplicaSource source(const std::string& topic = kTopic) const {
    return {.properties = properties(), .topic = topic, .check_topic = [] { return Status(); }};
  }
  std::unique_ptr<store::ReplicaStore> OpenReplica(const std::string& name = "replica") const {
    auto store = store::ReplicaStore::Open(replica_options(name));
    EXPECT_TRUE(store) << store.error().message;
    return *std::move(store);
  }
  void StepAndPublish(Publisher& publisher, int steps) {
    Steps(steps);
    MustPublish(publisher);
    snapshots_[store_->Latest()->version().value] = store_->Latest();
  }
  // Goes on until the replica shows this version; each version on the way is compared.
  void Follow(Replica& replica, const store::ReplicaStore& store, uint64_t version) {
    ASSERT_TRUE(test::Eventually("a version is shown", [&] {
      const auto stepped = replica.Step(std::chrono::milliseconds(50));
      if (!stepped && stepped.error().code != ErrorCode::kUnavailable) {
        ADD_FAILURE() << stepped.error().message;
        return true;
      }
      if (stepped && *stepped) ExpectSame(*store.Latest());
      return store.Latest() && store.Latest()->version().value >= version;
    }));
    ASSERT_TRUE(store.Latest());
    EXPECT_EQ(store.Latest()->version().value, version);
  }
  // Steps until it is refused, and returns why.
  static std::string Refusal(Replica& replica) {
    std::string why;
    EXPECT_TRUE(test::Eventually("the feed is refused", [&] {
      const auto stepped = replica.Step(std::chrono::milliseconds(50));
      if (stepped || stepped.error().code == ErrorCode::kUnavailable) return false;
      why = stepped.error().message;
      return true;
    }));
    return why;
  }
  // Everything that is served, bit for bit; false says that some of it differs.
  bool Same(const store::Snapshot& is, const store::Snapshot& expected) const {
    bool same = is.version() == expected.version() && is.head() == expected.head() &&
                is.lineage() == expected.lineage() &&
                is.ledger_entries() == expected.ledger_entries();
    const auto chain = is.LedgerEntries(0, ~uint64_t{0});
    const auto expected_chain = expected.LedgerEntries(0, ~uint64_t{0});
    same = same && chain && expected_chain && *chain == *expected_chain;
    for (uint16_t i = 0; i < options_.learners.size(); ++i) {
      const LearnerIndex index(i);
      const auto& space = options_.learners[i].rows.space;
      std::vector<uint64_t> rows(space.rows());
      size_t floats = 0;
      for (uint64_t row = 0; row < rows.size(); ++row) {
        rows[row] = row;
        floats += space.tables()[space.TableOf(row)].dim;
      }
      std::vector<float> one(floats), other(floats);
      const Status read = is.Rows(index, rows, one), read_other = expected.Rows(index, rows, other);
      EXPECT_TRUE(read && read_other);
      same = same && std::memcmp(one.data(), other.data(), floats * sizeof(float)) == 0;
      const auto dense = is.ServedDense(index), expected_dense = expected.ServedDense(index);
      same = same && std::ranges::equal(dense, expected_dense);
      const auto released = is.Released(index), expected_released = expected.Released(index);
      same = same && (released ? *released : "") == (expected_released ? *expected_released : "");
    }
    for (size_t i = 0; i < expected.learners().size(); ++i)
      same = same && is.learners()[i].epsilon == expected.learners()[i].epsilon &&
             is.learners()[i].steps == expected.learners()[i].steps;
    return same && is.total().epsilon == expected.total().epsilon;
  }
  void ExpectSame(const store::Snapshot& is) const {
    const auto found = snapshots_.find(is.version().value);
    ASSERT_TRUE(found != snapshots_.end()) << "version " << is.version().value;
    EXPECT_TRUE(Same(is, *found->second)) << "version " << is.version().value;
  }

  Snapshots snapshots_;
};

}  // namespace tacit::feed
