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

Terms Sample() {
  Terms terms;
  terms.Add({.first = CommitSeq(1), .id = Id(7), .head_before = {}});
  terms.Add({.first = CommitSeq(11), .id = Id(1), .head_before = Head(10)});
  terms.Add({.first = CommitSeq(20), .id = Id(2), .head_before = Head(19)});
  return terms;
}

TEST(TermsTest, EveryCommitIsOfTheLastTermBeforeIt) {
  const Terms terms = Sample();
  EXPECT_EQ(terms.At(CommitSeq(0)), kNoTerm);
  EXPECT_EQ(terms.At(CommitSeq(1)), Id(7));
  EXPECT_EQ(terms.At(CommitSeq(10)), Id(7));
  EXPECT_EQ(terms.At(CommitSeq(11)), Id(1));
  EXPECT_EQ(terms.At(CommitSeq(19)), Id(1));
  EXPECT_EQ(terms.At(CommitSeq(20)), Id(2));
  EXPECT_EQ(terms.At(CommitSeq(~uint64_t{0})), Id(2));
  EXPECT_EQ(Terms().At(CommitSeq(5)), kNoTerm);
}

TEST(TermsTest, ACommitIsKnownByItsTerm) {
  const Terms terms = Sample();
  const auto has = [&](uint64_t seq, TermId term) {
    return terms.Has({.seq = CommitSeq(seq), .term = term, .head = {}});
  };
  EXPECT_TRUE(has(15, Id(1)));
  EXPECT_FALSE(has(15, Id(2)));
  EXPECT_FALSE(has(15, Id(9)));
  EXPECT_FALSE(has(15, kNoTerm));
  EXPECT_TRUE(has(25, Id(2)));
  EXPECT_FALSE(has(5, Id(1)));
  EXPECT_FALSE(has(5, kNoTerm));
  EXPECT_TRUE(has(0, kNoTerm));
  EXPECT_FALSE(Terms().Has({.seq = CommitSeq(5), .term = Id(1), .head = {}}));
}

TEST(TermsTest, TheLastCommitBeforeATermIsKnownByItsHead) {
  const Terms terms = Sample();
  const auto has = [&](uint64_t seq, uint8_t head) {
    return terms.Has({.seq = CommitSeq(seq), .term = terms.At(CommitSeq(seq)), .head = Head(head)});
  };
  EXPECT_TRUE(has(10, 10));
  EXPECT_FALSE(has(10, 11));
  EXPECT_TRUE(has(19, 19));
  EXPECT_FALSE(has(19, 18));
  EXPECT_TRUE(has(9, 10));
}

}  // namespace
}  // namespace tacit
