#include "stream/kafka/sequence.h"

#include <spdlog/spdlog.h>

#include <thread>

namespace tacit::stream {

Result<std::optional<Round>> KafkaSequence::NextRound(MessageFetcher& fetcher, Deadline deadline) {
  if (!round_) round_ = rounds_.Pop();
  if (!round_ && rounds_.WaitFor(Left(deadline))) round_ = rounds_.Pop();
  if (!round_) return std::nullopt;
  for (const PartitionEnd& moved : round_->moved) {
    if (Find(moved.partition) != nullptr) continue;
    const auto begin = fetcher.Add(moved.partition);
    if (!begin && begin.error().code != ErrorCode::kUnavailable) return Fail(begin.error());
    if (!begin) {
      std::this_thread::sleep_for(Left(deadline));
      return std::nullopt;
    }
    Start({.partition = moved.partition, .offset = *begin});
    spdlog::info("topic '{}' has a new partition {}: it is read from offset {}", reader_.topic(),
                 moved.partition, *begin);
  }
  return std::exchange(round_, std::nullopt);
}

}  // namespace tacit::stream
