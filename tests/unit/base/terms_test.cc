#include "base/terms.h"

#include <gtest/gtest.h>

namespace tacit {
namespace {

TermId Id(uint8_t byte) {
  TermId id;
  id.fill(byte);
  return id;
}
Digest Head(uint8_t byte) {
  Digest head;
  head.fill(byte);
  return head;
}

// Commits 1 to 10 are of a program without terms.
Terms Sample() {
  Terms terms;
  terms.Add({.first = CommitSeq(11), .id = Id(1), .head_before = Head(10)});
  terms.Add({.first = CommitSeq(20), .id = Id(2), .head_before = Head(19)});
  return terms;
}

TEST(TermsTest, EveryCommitIsOfTheLastTermBeforeIt) {
  const Terms terms = Sample();
  EXPECT_EQ(terms.At(CommitSeq(1)), kNoTerm);
  EXPECT_EQ(terms.At(CommitSeq(10)), kNoTerm);
  EXPECT_EQ(terms.At(CommitSeq(11)), Id(1));
  EXPECT_EQ(terms.At(CommitSeq(19)), Id(1));
  EXPECT_EQ(terms.At(CommitSeq(20)), Id(2));
  EXPECT_EQ(terms.At(CommitSeq(~uint64_t{0})), Id(2));
  EXPECT_EQ(Terms().At(CommitSeq(5)), kNoTerm);
}

TEST(TermsTest, ACommitIsKnownByItsTerm) {
  const Terms terms = Sample();
  const auto kinship = [&](uint64_t seq, TermId term) {
    return terms.KinshipOf({.seq = CommitSeq(seq), .term = term, .head = {}});
  };
  EXPECT_EQ(kinship(15, Id(1)), Kinship::kOwn);
  EXPECT_EQ(kinship(15, Id(2)), Kinship::kForeign);
  EXPECT_EQ(kinship(15, Id(9)), Kinship::kForeign);
  EXPECT_EQ(kinship(15, kNoTerm), Kinship::kForeign);  // an old program continued from commit 10
  EXPECT_EQ(kinship(25, Id(2)), Kinship::kOwn);
  EXPECT_EQ(kinship(5, Id(1)), Kinship::kForeign);
  EXPECT_EQ(kinship(5, kNoTerm), Kinship::kUnknown);
  EXPECT_EQ(Terms().KinshipOf({.seq = CommitSeq(5), .term = Id(1), .head = {}}), Kinship::kForeign);
}

TEST(TermsTest, TheLastCommitBeforeATermIsKnownByItsHead) {
  const Terms terms = Sample();
  const auto kinship = [&](uint64_t seq, uint8_t head) {
    return terms.KinshipOf(
        {.seq = CommitSeq(seq), .term = terms.At(CommitSeq(seq)), .head = Head(head)});
  };
  EXPECT_EQ(kinship(10, 10), Kinship::kOwn);
  EXPECT_EQ(kinship(10, 11), Kinship::kForeign);
  EXPECT_EQ(kinship(19, 19), Kinship::kOwn);
  EXPECT_EQ(kinship(19, 18), Kinship::kForeign);
  EXPECT_EQ(kinship(9, 10), Kinship::kUnknown);
}

}  // namespace
}  // namespace tacit
