#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stream/kafka/plan.h"

namespace tacit::stream {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kNowhere = PartitionOffset::kNowhere;

std::string Refusal(const Status& status) {
  if (status) return "";
  EXPECT_EQ(status.error().code, ErrorCode::kRefused);
  return status.error().message;
}

// "partition@offset-lost" of each start, or the refusal.
std::vector<std::string> Plan(std::vector<PartitionSpan> there, std::vector<PartitionOffset> wanted,
                              OnLost on_lost = OnLost::kRefuse) {
  const auto starts = PlanStarts("t", there, wanted, on_lost);
  if (!starts) {
    EXPECT_EQ(starts.error().code, ErrorCode::kRefused);
    return {starts.error().message};
  }
  std::vector<std::string> text;
  for (const PartitionStart& start : *starts)
    text.push_back(std::to_string(start.partition) + "@" + std::to_string(start.offset) + "-" +
                   std::to_string(start.lost));
  return text;
}

TEST(KafkaPlan, PartitionsGoOnWhereTheyWereAndNewOnesBegin) {
  EXPECT_THAT(Plan({{0, 0, 100}, {1, 20, 50}, {2, 7, 7}}, {{0, 40}, {1, 50}}),
              ElementsAre("0@40-0", "1@50-0", "2@7-0"));
  EXPECT_THAT(Plan({{0, 30, 100}}, {}), ElementsAre("0@30-0"));
}

// A learner that was added reads what is left; what the others are at has to be there all the same.
TEST(KafkaPlan, ALearnerThatBeginsDoesNotHideThatAnothersRecordsAreLost) {
  EXPECT_THAT(Plan({{0, 30, 100}}, {{0, 60, true}}), ElementsAre("0@30-0"));
  EXPECT_THAT(Plan({{0, 30, 100}}, {{0, kNowhere, true}}), ElementsAre("0@30-0"));
  EXPECT_THAT(Plan({{0, 30, 100}}, {{0, 10, true}}),
              ElementsAre(HasSubstr("offsets 10 to 29 are gone")));
}

TEST(KafkaPlan, WhatRetentionTookIsNamedOrPassedOver) {
  EXPECT_THAT(Plan({{3, 30, 100}}, {{3, 29}}),
              ElementsAre(AllOf(HasSubstr("topic 't' partition 3: offsets 29 to 29 are gone"),
                                HasSubstr("source.on_period_lost: close"))));
  EXPECT_THAT(Plan({{3, 30, 100}}, {{3, 12}}, OnLost::kGoOn), ElementsAre("3@30-18"));
  EXPECT_THAT(Plan({{3, 30, 30}}, {{3, 30}}), ElementsAre("3@30-0")) << "all of it was read";
}

TEST(KafkaPlan, ATopicThatShrankIsRefusedWhateverMayBeLost) {
  for (const OnLost on_lost : {OnLost::kRefuse, OnLost::kGoOn}) {
    EXPECT_THAT(Plan({{0, 0, 100}}, {{0, 101}}, on_lost),
                ElementsAre(HasSubstr("partition 0: ends at offset 100, but the store has read up "
                                      "to offset 101")));
    EXPECT_THAT(Plan({{0, 0, 100}}, {{0, 1}, {4, 2}}, on_lost),
                ElementsAre(HasSubstr("partition 4: is not there")));
  }
}

TEST(KafkaPlan, TheLastRecordReadTellsATopicFromAnother) {
  const KafkaIdentity identity{"t", {{0, {9, 1000, 77}}, {1, {4, 1000, 78}}}};
  const auto check = [&](std::vector<PartitionSpan> there) {
    const auto places = LastRecordsToCheck(identity, there);
    return places ? std::to_string(places->size()) : places.error().message;
  };
  EXPECT_EQ(check({{0, 0, 10}, {1, 0, 5}}), "2");
  EXPECT_EQ(check({{0, 10, 10}, {1, 4, 5}}), "1") << "retention took the other one";
  EXPECT_THAT(check({{0, 0, 9}, {1, 0, 5}}), HasSubstr("partition 0: ends at offset 9"));
  EXPECT_THAT(check({{0, 0, 10}}), HasSubstr("partition 1: is not there"));

  EXPECT_EQ(Refusal(CheckLastRecords(identity, {{0, {9, 1000, 77}}, {1, {4, 1000, 78}}})), "");
  EXPECT_EQ(Refusal(CheckLastRecords(identity, {{0, {11, 5, 5}}})), "") << "compaction took it";
  for (const LastRecord& other : {LastRecord{9, 1001, 77}, LastRecord{9, 1000, 76}})
    EXPECT_THAT(Refusal(CheckLastRecords(identity, {{0, other}})),
                HasSubstr("partition 0: the record at offset 9 is not the one that was read"));
}

TEST(KafkaPlan, IdentitiesAndStoreMarksAreReadAsTheyWereWritten) {
  const KafkaIdentity identity{"clicks", {{0, {9, -1, 77}}, {3, {1ull << 60, 1000, 1}}}};
  const auto read = KafkaIdentity::Decode(identity.Encode());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->topic, identity.topic);
  EXPECT_EQ(read->last, identity.last);
  const std::string bytes = identity.Encode();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(KafkaIdentity::Decode(bytes.substr(0, size))) << size;

  const StoreMark mark{"0123abcd", 42, "ff00"};
  EXPECT_EQ(Text(mark), "lineage:0123abcd seq:42 head:ff00");
  EXPECT_EQ(ParseStoreMark(Text(mark)), mark);
  const StoreMark later{"0123abcd", 42, "ff00", "77aa"};
  EXPECT_EQ(Text(later), "lineage:0123abcd seq:42 head:ff00 term:77aa");
  EXPECT_EQ(ParseStoreMark(Text(later)), later);
  for (const char* foreign : {"", "reset by hand", "lineage:", "lineage:a", "lineage:a seq:",
                              "lineage:a seq:x head:b", "lineage: seq:1 head:b", "LINEAGE:a seq:1"})
    EXPECT_FALSE(ParseStoreMark(foreign)) << foreign;
}

TEST(KafkaPlan, OneStoreReadsWithAGroup) {
  const StoreMark own{"aa", 10, "h10"};
  const auto check = [&](const StoreMark& there) {
    const GroupOffset offset{5, 700, Text(there)};
    return Refusal(CheckReader("t", "g", {&offset, 1}, own));
  };
  EXPECT_EQ(check(own), "");
  EXPECT_EQ(check({"aa", 9, "h9"}), "");
  EXPECT_THAT(check({"aa", 11, "h11"}),
              AllOf(HasSubstr("topic 't' partition 5"), HasSubstr("up to offset 700"),
                    HasSubstr("commit 11"), HasSubstr("commit 10"), HasSubstr("older copy")));
  EXPECT_THAT(check({"aa", 10, "other"}), HasSubstr("continued on its own"));
  EXPECT_THAT(check({"bb", 1, "h1"}),
              AllOf(HasSubstr("lineage bb"), HasSubstr("lineage aa"), HasSubstr("group 'g'")));
  const GroupOffset foreign{5, 700, "set by an operator"};
  EXPECT_EQ(Refusal(CheckReader("t", "g", {&foreign, 1}, own)), "");
  EXPECT_THAT(Refusal(CheckReader("t", "g", {}, own)), IsEmpty());
}

// A copy that continued on its own has other terms than the store that has read, and may be longer.
TEST(KafkaPlan, ACopyThatWentAnotherWayDoesNotReadHoweverFarItIs) {
  const auto hex = [](char digit) { return std::string(32, digit); };
  const auto id = [](uint8_t byte) {
    TermId term;
    term.fill(byte);
    return term;
  };
  StoreClaim own{{"aa", 113, "h113", hex('3')}};
  Digest head_24;
  head_24.fill(0x24);
  own.terms.Add({.first = CommitSeq(1), .id = id(0x11), .head_before = {}});
  own.terms.Add({.first = CommitSeq(25), .id = id(0x33), .head_before = head_24});
  const auto check = [&](const StoreMark& there) {
    const GroupOffset offset{5, 700, Text(there)};
    return Refusal(CheckReader("t", "g", {&offset, 1}, own));
  };
  EXPECT_EQ(check({"aa", 20, "h20", hex('1')}), "");
  EXPECT_EQ(check({"aa", 41, "h41", hex('3')}), "");
  EXPECT_THAT(check({"aa", 41, "h41", hex('2')}),
              AllOf(HasSubstr("topic 't' partition 5"), HasSubstr("commit 41"),
                    HasSubstr("continued on its own"), HasSubstr("up to offset 700")));
  EXPECT_THAT(check({"aa", 41, "h41", hex('1')}), HasSubstr("continued on its own"));
  EXPECT_THAT(check({"aa", 41, "h41", "not a term"}), HasSubstr("continued on its own"));
  // The last commit before a term is known by its head, for any writer of the mark.
  std::string head;
  for (int i = 0; i < 32; ++i) head += "24";
  EXPECT_EQ(check({"aa", 24, head}), "");
  EXPECT_THAT(check({"aa", 24, hex('2') + hex('5')}), HasSubstr("continued on its own"));
  EXPECT_THAT(check({"aa", 41, "h41"}), HasSubstr("continued on its own"));
  EXPECT_THAT(check({"aa", 7, "h7"}), HasSubstr("continued on its own"));
}

}  // namespace
}  // namespace tacit::stream
