#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/row_space.h"
#include "feed/newest_ends.h"
#include "store/types/delta.h"
#include "store/types/learner_record.h"

// Whole versions out of the records of a topic.
namespace tacit::feed {

// The feed that a replica follows: what all its version ends have in common.
struct FeedIdentity {
  FeedId feed{};
  LineageId lineage{};
  uint64_t models = 0;  // RecordOrigin::model of version ends and ledger entries
  uint32_t partitions = 0;
  // Older records are of a store or model before, or a later version has them again.
  CommitSeq whole_since;
  std::vector<store::LearnerRecord> learners;  // by key
};
// Takes it from a version end. kCorruption: its learners cannot be read.
Result<FeedIdentity> IdentityOf(const PlacedEnd& placed);

// The change of one learner. Null members have not changed.
struct VersionLearner {
  uint16_t key = 0;
  // Floats as records have them: the embedding, with a moving average the average and its step.
  std::shared_ptr<const store::RowDelta> rows = nullptr;
  std::shared_ptr<const std::vector<float>> dense = nullptr;
  std::shared_ptr<const std::string> released = nullptr;
};

// A version that is whole: all that has changed since the one before (Assembler::base).
struct WholeVersion {
  VersionEnd end;  // of one partition
  std::vector<VersionLearner> learners;
  std::map<uint64_t, std::string> entries;  // of the ledger, encoded, by number
  std::map<int32_t, uint64_t> next;         // offsets behind its version ends
  uint64_t records = 0, bytes = 0;          // of keys and values
};

// The offset that a partition was read to, and the one that it ends at.
struct PartitionSight {
  uint64_t next = 0, end = 0;
};

// Takes the committed records of all partitions, each partition's in order, and gives out whole
// versions: those of which every partition has the version end, and all records that it counts.
//
// Compaction takes records that a newer version has again, so a reader that begins far back finds
// versions with holes. It then reads on: each record that was taken away is replaced before
// the ends that the topic had when the hole was read, so the first version that all partitions have
// at or behind these ends has no hole, if all that was read after the ends were asked for had
// none. Not thread-safe. Memory: all that is read and not taken (TakeRows, TakeWhole).
class Assembler {
 public:
  // The place that reading begins at: behind the version ends of `base`, or the topic's beginning.
  enum class Beginning : uint8_t { kBehindBase, kOfTopic };
  // Rows may tell how they moved (RecordOrigin::moves). A worker needs that, behind a row's own
  // floats; for any other reader it is left out.
  enum class Moves : uint8_t { kLeftOut, kNeeded };
  // `base`: the version that the caller has; what comes out first is the change of it. Nothing:
  // there is none, and the first is all there is.
  Assembler(std::string topic, FeedIdentity identity, std::optional<CommitSeq> base,
            Beginning beginning, Moves moves = Moves::kLeftOut);

  // Takes a record. kCorruption: its bytes are no record's. kRefused: a record of another store,
  // model or feed, versions that go back, or rows without moves that are needed. After a failure
  // nothing more may be taken.
  Status Take(const stream::KafkaTopicRecord& record);

  // True where a hole was read since ends were last noted, or none were yet: the reader asks
  // the brokers for the ends, and notes them.
  bool needs_ends() const { return hole_; }
  // Notes, for every partition, how far was read and where it ended after that.
  void NoteEnds(const std::map<int32_t, PartitionSight>& sights);

  // Returns the rows that it holds, for a place where nobody reads before there is a first version,
  // and forgets them. That version will be the newest that any of them came with, or a later one.
  // REQUIRES no base.
  std::vector<VersionLearner> TakeRows();

  // Returns the newest version that is whole, which becomes the base; nothing if there is none yet.
  // `position`: how far each partition was read, markers of transactions included. kCorruption: the
  // records of the version do not fit its version ends.
  Result<std::optional<WholeVersion>> TakeWhole(const std::map<int32_t, uint64_t>& position);

  std::optional<CommitSeq> base() const { return base_; }
  CommitSeq newest() const { return newest_; }  // version of which any version end was read
  int64_t newest_time_ms() const { return newest_time_ms_; }
  uint64_t pending_bytes() const { return pending_bytes_; }

 private:
  struct Chunk {
    uint32_t of = 0;
    CommitSeq version;
    std::string bytes;
  };
  using Chunks = std::map<uint64_t, Chunk>;
  struct Rows {
    std::vector<uint64_t> rows;
    std::vector<size_t> end;
    std::vector<float> floats;

    void Add(uint64_t row, std::string_view bytes);
  };
  struct Pending {
    std::map<uint16_t, Rows> rows;
    // Rows that came in a block with others, and have not changed since the version before.
    std::map<uint16_t, Rows> unchanged;
    std::map<uint16_t, Chunks> dense, released;
    std::map<uint64_t, std::string> entries;
    std::map<int32_t, PlacedEnd> ends;
    uint64_t records = 0, bytes = 0;
    uint64_t row_bytes = 0, taken_bytes = 0;  // of rows that are held, and of those that were
  };
  // A partition as far as it was read.
  struct Part {
    bool ours = false;   // a record of this store and these models was seen
    CommitSeq version;   // of the last record
    CommitSeq ended;     // of the last version end; 0: none
    bool knows = false;  // no other one can be before the next record
    bool fits = false;   // the records of `ended` are those that its version end counts
    uint64_t records = 0, checksum = 0;  // since the last version end
    PartitionSight noted;
  };

  // True for records that belong to a store or model before, or that a later version has again.
  bool IsOld(const Record& record, const Part& part) const;
  Status CheckOrigin(const Record& record, const Part& part) const;
  Status TakeDecoded(const stream::KafkaTopicRecord& record, const Record& decoded,
                     std::optional<PlacedEnd> end);
  Status TakeRow(const Record& record, Pending* to) const;
  Status TakeBlock(const Record& record, Pending* to) const;
  // The table that a record of rows names. kCorruption: its layout is not in the version end.
  Result<uint32_t> TableOf(const Record& record, bool blocks) const;
  std::string_view Kept(const Record& record, std::string_view row) const;
  static Status TakeChunk(const Record& record, Chunks* to);
  Status TakeEnd(int32_t partition, PlacedEnd placed, Part& part);
  Status CheckEnd(const PlacedEnd& placed) const;
  Status CheckEnds(const Pending& of) const;
  // Decides from which version on there are no holes, once all ends that were noted are reached.
  Status Settle(const std::map<int32_t, uint64_t>& position);
  std::optional<CommitSeq> FindWhole() const;
  static void Append(std::map<uint16_t, Rows>* rows, std::map<uint16_t, Rows>* to);
  Result<WholeVersion> Merge(CommitSeq version);
  Status MergeChunks(const VersionEnd& end, std::map<uint16_t, Chunks> dense,
                     std::map<uint16_t, Chunks> released,
                     std::map<uint16_t, VersionLearner>* to) const;
  tl::unexpected<Error> Wrong(ErrorCode code, CommitSeq version, std::string_view what) const;

  const std::string topic_;
  const FeedIdentity identity_;
  const Moves moves_;
  std::optional<CommitSeq> base_;
  std::map<int32_t, Part> parts_;
  std::map<CommitSeq, Pending> pending_;
  bool hole_;        // the ends have to be noted
  bool settled_;     // all versions from first_ on were read without a hole
  bool broken_;      // since the base a hole was read: unchanged rows may be new to us
  CommitSeq first_;  // may be shown, and so may later ones
  CommitSeq taken_;  // the newest whose rows were taken: none before it may be shown
  CommitSeq newest_;
  int64_t newest_time_ms_ = 0;
  uint64_t pending_bytes_ = 0;
};

}  // namespace tacit::feed
