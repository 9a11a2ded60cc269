// A program of its own: it counts what operator new is asked for.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "counted_new.h"
#include "event/envelope.h"

namespace tacit::event {
namespace {

class AcceptAll final : public SchemaBook {
 public:
  SchemaVerdict Look(const SchemaKey&) override { return {.kind = SchemaVerdict::Kind::kAccept}; }
};

// Counts for all messages but the first, which is allowed to make room.
size_t AllocationsOf(Envelope& envelope, const std::vector<Message>& messages) {
  size_t all = 0;
  for (int round = 0; round < 3; ++round) {
    for (const Message& message : messages) {
      std::string_view payload;
      std::string reason;
      const size_t before = test::Allocations();
      const auto outcome = envelope.Open(message, &payload, &reason);
      if (round > 0) all += test::Allocations() - before;
      EXPECT_EQ(outcome, Envelope::Outcome::kPayload) << reason;
    }
  }
  return all;
}

TEST(EnvelopeAllocation, TheCounterCounts) {
  const size_t before = test::Allocations();
  const auto thing = std::make_unique<std::string>(100, 'x');
  EXPECT_EQ(test::Allocations() - before, 2u) << *thing;
}

TEST(EnvelopeAllocation, NoneForAGoodMessageWithAndWithoutHeaders) {
  const std::vector<MessageHeader> cloud = {{"ce_specversion", "1.0"},
                                            {"ce_source", "/a/source/with/a/rather/long/name"},
                                            {"ce_id", "0123456789012345678901234567890123456789"},
                                            {"content-type", "application/json"}};
  const std::string value(300, 'v');
  Envelope envelope({}, nullptr);
  EXPECT_EQ(AllocationsOf(envelope, {{value, false, {}}, {value, false, cloud}}), 0u);
  EXPECT_NE(envelope.event_id(), "");
}

TEST(EnvelopeAllocation, NoneForAFrameOfAKnownSchema) {
  const std::string seven = std::string("\0\0\0\0\7", 5) + std::string(300, 'v');
  const std::string eight = std::string("\0\0\0\0\10", 5) + std::string(300, 'v');
  Envelope envelope({.framed = true}, std::make_unique<AcceptAll>());
  EXPECT_EQ(AllocationsOf(envelope, {{seven, false, {}}, {eight, false, {}}}), 0u);
}

}  // namespace
}  // namespace tacit::event
