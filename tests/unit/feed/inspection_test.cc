// Tests what is said of a topic. Each fault is planted into a copy of a good feed, and seen.
#include "feed/inspection.h"

#include <gmock/gmock.h>

#include "feed_rig.h"
#include "privacy/ledger.h"

namespace tacit::feed {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class InspectionTest : public FeedTest {
 protected:
  // Three versions: 2, 5 and 6.
  void PublishSome() {
    const auto publisher = MakePublisher();
    for (const int steps : {2, 3, 1}) {
      Steps(steps);
      MustPublish(*publisher);
    }
  }
  // The faults of a copy of the topic.
  std::vector<std::string> FaultsOf(const std::string& copy,
                                    const std::function<bool(FoundRecord&)>& change) {
    CopyTopic(copy, change);
    return Inspect(copy).faults;
  }
  // The record with another payload, and the right checksum.
  static void Replace(FoundRecord& found, const Record& record, const std::string& payload) {
    std::string value;
    AppendValue(record.place, record.origin, payload, &value);
    found.value = value;
  }
  static Record Decode(const FoundRecord& found) {
    const auto record = DecodeRecord(found.key, found.value);
    EXPECT_TRUE(record) << record.error().message;
    return *record;
  }
};

TEST_F(InspectionTest, AGoodFeedHasItsVersionsAndNoFault) {
  PublishSome();
  const Inspection found = Inspect();
  EXPECT_THAT(found.faults, IsEmpty());
  EXPECT_EQ(found.partitions, 3u);
  ASSERT_EQ(found.versions.size(), 3u);
  std::vector<uint64_t> versions;
  uint64_t records = 0;
  for (const FoundVersion& version : found.versions) {
    versions.push_back(version.origin.version.value);
    EXPECT_TRUE(version.whole());
    EXPECT_EQ(version.records, version.end.all_records);
    records += version.records + version.ends;
  }
  EXPECT_THAT(versions, ElementsAre(2, 5, 6));
  EXPECT_EQ(found.records, records);
  EXPECT_EQ(found.versions[1].end.previous.value, 2u);
}

TEST_F(InspectionTest, AnEmptyTopicHasNothing) {
  const Inspection found = Inspect();
  EXPECT_THAT(found.faults, IsEmpty());
  EXPECT_THAT(found.versions, IsEmpty());
}

// As compaction leaves it: the last record of each key.
TEST_F(InspectionTest, ACompactedFeedIsWhole) {
  PublishSome();
  std::map<std::pair<int32_t, std::string>, uint64_t> last;
  for (const FoundRecord& record : ReadTopic())
    last[{record.partition, record.key}] = record.offset;
  CopyTopic("compacted", [&](FoundRecord& record) {
    return last[{record.partition, record.key}] == record.offset;
  });
  const Inspection found = Inspect("compacted");
  EXPECT_THAT(found.faults, IsEmpty());
  ASSERT_EQ(found.versions.size(), 1u);
  EXPECT_TRUE(found.versions[0].whole());
}

TEST_F(InspectionTest, RecordsThatAreLostOrMixedAreSeen) {
  PublishSome();
  bool done = false;
  const auto once = [&](bool is_it) { return is_it && !std::exchange(done, true); };
  // A version end of the newest version is missing.
  EXPECT_THAT(FaultsOf("no-mark",
                       [&](FoundRecord& found) {
                         const Record record = Decode(found);
                         return !(record.place.kind == RecordKind::kVersionEnd &&
                                  record.origin.version.value == 6 && found.partition == 1);
                       }),
              Contains(HasSubstr("version 6: 2 of 3 partitions have its mark")));
  // A row of the newest version is missing.
  done = false;
  EXPECT_THAT(FaultsOf("no-row",
                       [&](FoundRecord& found) {
                         const Record record = Decode(found);
                         return !once(record.place.kind == RecordKind::kRow &&
                                      record.origin.version.value == 6);
                       }),
              ElementsAre(HasSubstr("a partition has other records of it than its mark says")));
  // A row of the version before says that it is of the newest: two versions are mixed.
  done = false;
  EXPECT_THAT(FaultsOf("mixed",
                       [&](FoundRecord& found) {
                         Record record = Decode(found);
                         if (!once(record.place.kind == RecordKind::kRow &&
                                   record.origin.version.value == 5))
                           return true;
                         record.origin.version = CommitSeq(6);
                         Replace(found, record, std::string(record.payload));
                         return true;
                       }),
              ElementsAre(HasSubstr("a partition has other records of it than its mark says")));
}

TEST_F(InspectionTest, DamageIsSeenWhereItIs) {
  PublishSome();
  bool done = false;
  const auto once = [&](bool is_it) { return is_it && !std::exchange(done, true); };
  EXPECT_THAT(FaultsOf("flipped",
                       [&](FoundRecord& found) {
                         if (once(found.partition == 2))
                           found.value[40] = static_cast<char>(found.value[40] ^ 4);
                         return true;
                       }),
              Contains(HasSubstr("topic 'flipped': partition 2, offset 0: is no record of a feed: "
                                 "its checksum is another")));
  // A row of another length than the layout in the version end says.
  done = false;
  EXPECT_THAT(FaultsOf("length",
                       [&](FoundRecord& found) {
                         const Record record = Decode(found);
                         if (once(record.place.kind == RecordKind::kRow))
                           Replace(found, record, std::string(record.payload) + "1234");
                         return true;
                       }),
              Contains(HasSubstr("is of no layout that the mark has")));
  // A chunk of the dense parameters is cut.
  EXPECT_THAT(FaultsOf("chunk",
                       [&](FoundRecord& found) {
                         const Record record = Decode(found);
                         if (record.place.kind == RecordKind::kDense)
                           Replace(
                               found, record,
                               std::string(record.payload.substr(0, record.payload.size() - 4)));
                         return true;
                       }),
              Contains(HasSubstr("the dense parameters of learner 'ctr' have 3996 bytes")));
}

TEST_F(InspectionTest, ABrokenLedgerIsSeen) {
  PublishSome();
  EXPECT_THAT(FaultsOf("gone",
                       [&](FoundRecord& found) {
                         const Record record = Decode(found);
                         return record.place.kind != RecordKind::kLedger ||
                                record.place.number != 0;
                       }),
              Contains(HasSubstr("ledger entry 0 is missing")));
  // An epsilon is made smaller, with a head that fits the entry.
  EXPECT_THAT(FaultsOf("cheaper",
                       [&](FoundRecord& found) {
                         const Record record = Decode(found);
                         if (record.place.kind != RecordKind::kLedger) return true;
                         auto entry = privacy::LedgerEntry::Decode(record.payload);
                         EXPECT_TRUE(entry);
                         entry->epsilon /= 2;
                         entry->head = entry->ComputeHead();
                         Replace(found, record, entry->Encode());
                         return true;
                       }),
              Contains(HasSubstr("the ledger's chain is broken")));
  // The chain is whole and ends elsewhere: it is another one's.
  EXPECT_THAT(FaultsOf("head",
                       [&](FoundRecord& found) {
                         const Record record = Decode(found);
                         if (record.place.kind != RecordKind::kVersionEnd) return true;
                         VersionEnd end = *DecodeVersionEnd(record.payload);
                         end.tip.head[0] ^= 1;
                         Replace(found, record, EncodeVersionEnd(end));
                         return true;
                       }),
              Contains(HasSubstr("the ledger ends in head")));
}

// A version end that was copied to another partition says so itself.
TEST_F(InspectionTest, AnEndOfAnotherPartitionIsSeen) {
  PublishSome();
  EXPECT_THAT(
      FaultsOf("moved",
               [&](FoundRecord& found) {
                 if (found.partition == 0 && Decode(found).place.kind == RecordKind::kVersionEnd)
                   found.partition = 1;
                 return true;
               }),
      Contains(HasSubstr("is a mark of partition 0")));
}

}  // namespace
}  // namespace tacit::feed
