#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "privacy/anchor.h"
#include "stream/kafka/properties.h"

// Topics of anchors: a record an anchor, in one partition. Its value is the line that a file would
// have, and it has no key, so that no broker compacts it away.
namespace tacit::cli {

struct AnchorTopic {
  stream::KafkaProperties properties = {};
  std::string topic = {};
  std::chrono::milliseconds timeout{10'000};
};

// Reads all anchors, and holds each against the one before. kNotFound: there is no such topic.
// kUnavailable: its end was not reached in time. kRefused: it has several partitions. kCorruption
// names the offset of what is no anchor, or does not follow the one before.
Result<std::vector<privacy::Anchor>> ReadAnchorTopic(const AnchorTopic& topic);

// Adds an anchor, with number and link by what is there, signed, and returns it once readers see
// it. `check` is shown what is there first, and may refuse. Of two who add at once one is refused
// (kRefused), and has added nothing.
Result<privacy::Anchor> AppendAnchorToTopic(
    const AnchorTopic& topic, privacy::Anchor anchor, const privacy::AnchorSigner& signer,
    const std::function<Status(std::span<const privacy::Anchor>)>& check);

}  // namespace tacit::cli
