#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/terms.h"
#include "feed/model_mark.h"
#include "feed/newest_ends.h"
#include "feed/record.h"
#include "feed/row_blocks.h"
#include "store/releaser.h"
#include "stream/kafka/producer.h"
#include "stream/kafka/topic_reader.h"

namespace tacit::feed {

struct PublisherOptions {
  stream::KafkaProperties properties = {};
  std::string topic = {};
  // Goes on where another lineage, or an older copy of this store, has published: the next version
  // is sent whole, under this store's lineage. For an operator to say.
  bool takes_over = false;
  // Places in the state of a linear model's row: its last move, and that move's release. Rows tell
  // them (RecordOrigin::moves), for workers. Nothing: they do not.
  std::optional<std::array<size_t, kMoveFloats>> moves = {};
  // Versions are marked (ModelMark), as far as they are of these learners, by name. Nothing: they
  // are not.
  struct Mark {
    SipHash::Key key{};
    std::vector<std::string> learners;
  };
  std::optional<Mark> mark = {};
  std::chrono::milliseconds patience{2'000};  // for one answer of the brokers
  // Checks the topic's settings before it is joined. If empty, CheckCompacted.
  std::function<Status()> check_topic = {};
  // A version that is begun is waited for as long as this says yes, and a minute at most between
  // two steps forward. If empty, yes.
  std::function<bool()> keep_going = {};
  // Called by the thread that publishes as it gets on: after each 256 records, and after
  // each of the brokers' answers that is waited for. May be empty.
  std::function<void()> on_progress = {};
};

struct PublishedVersion {
  CommitSeq version;
  bool whole = false;  // all rows were sent, not only those that have changed
  uint64_t records = 0, bytes = 0;
};

// The store as a feed is joined by it: what decides whether the version ends in a topic are its
// own.
struct FeedClaim {
  std::string lineage;
  std::vector<Ancestor> ancestors;
  Terms terms;
  CommitSeq version;
  Digest head{};
};
// Decides whether who claims may go on where these version ends are. kRefused names the difference,
// and what an operator can do. Asks no broker.
Status CheckClaim(const std::string& topic, const NewestEnds& ends, const FeedClaim& claim,
                  bool takes_over);

// The bytes that publishing learners of these layouts takes, for plans of memory.
uint64_t PublisherBytes(std::span<const store::RowLayout> layouts, bool moves = false);

// Publishes the commits of a store into a topic: each version that it sends is one transaction of
// rows, dense parameters, released states, ledger entries and a version end for every partition.
// The last publisher ends the one before it, by the name of its transactions. Not thread-safe; the
// store and clock must outlive it.
//
// After a failure it begins anew with what the topic's version ends say: a version is there wholly
// or not at all, and one that is sent again has the same values.
class Publisher {
 public:
  Publisher(store::Releaser& store, const Clock& clock, PublisherOptions options);
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  // Publishes the last commit unless it is there already; nothing if it is. kUnavailable: brokers
  // are away or refuse us, or there is no such topic yet; the next call tries again. Any other
  // failure stays: kRefused by CheckClaim and
  // CheckCompacted, or because another one publishes now; kCorruption by records of others.
  Result<std::optional<PublishedVersion>> Publish();

  // The version that the topic is known to have; nothing before the first call.
  std::optional<CommitSeq> published() const;

 private:
  class Version;
  struct Base {
    CommitSeq version;
    CommitSeq whole_since;
    uint64_t ledger_entries = 0;
  };

  Status Join();
  FeedClaim Claim() const;
  // The floats of a row that are sent; valid until the next call.
  std::span<const float> FloatsOf(const store::ReleasedRow& row);
  Result<NewestEnds> ReadEnds() const;
  void TakeBase(const NewestEnds& ends, const store::Release& release);
  Status CheckEnds();
  // Sends the rows that have changed since `since`; without it all. Returns false where the store
  // can no longer tell which have.
  Result<bool> SendRows(const store::Release& release, std::optional<CommitSeq> since,
                        Version& version);
  // Has blocks_ and the mark hold what is written, if they do not.
  Status LoadRows(const store::Release& release);
  void MarkRow(const store::ReleasedRow& row, std::span<const float> floats);
  Result<PublishedVersion> Send(const store::Release& release);

  store::Releaser& store_;
  const Clock& clock_;
  const PublisherOptions options_;
  std::unique_ptr<stream::KafkaProducer> producer_;   // null until it is joined
  std::unique_ptr<stream::KafkaTopicReader> looker_;  // asks for the topic's ends
  std::vector<uint64_t> ends_;                        // by partition, at least
  uint32_t partitions_ = 0;
  FeedId feed_{};
  std::optional<Base> base_;  // if null, the next version is sent whole
  // By learner; null for those whose rows have records of their own. Empty if not loaded yet.
  std::vector<std::unique_ptr<RowBlocks>> blocks_;
  // With marks: the version's, and by learner its rows' numbers in it; without rows where the
  // learner is not marked.
  struct MarkedRows {
    store::RowLayout layout;
    std::vector<uint64_t> numbers;  // by row
  };
  std::optional<ModelMark> mark_;
  std::vector<MarkedRows> marked_;
  std::vector<float> floats_;     // of a row
  CommitSeq previous_;            // the version that was published last
  bool takes_over_;               // until it has published once
  std::optional<Error> refused_;  // for good
};

// The id that all records which concern all learners have (RecordOrigin::model).
uint64_t ModelsId(const std::vector<store::ReleasedLearner>& learners);

}  // namespace tacit::feed
