#include "stream/kafka/rounds.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tacit::stream {
namespace {

void PutVarint(uint64_t value, std::string* bytes) {
  for (; value >= 0x80; value >>= 7) bytes->push_back(static_cast<char>(value | 0x80));
  bytes->push_back(static_cast<char>(value));
}

uint64_t TakeVarint(const std::string& bytes, size_t* at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    TACIT_CHECK(*at < bytes.size() && shift < 64, "a round is cut off");
    const auto byte = static_cast<uint8_t>(bytes[(*at)++]);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
}

}  // namespace

bool RoundQueue::Close(std::span<const PartitionEnd> ends, bool tick) {
  const MutexLock lock(mutex_);
  Round round{.moved = {}, .tick = tick};
  for (const PartitionEnd& end : ends) {
    const auto known = ends_.find(end.partition);
    if (known != ends_.end() && end.end < known->second) return false;
    if (known == ends_.end() || end.end > known->second) round.moved.push_back(end);
  }
  for (const PartitionEnd& end : round.moved) ends_[end.partition] = end.end;
  std::ranges::sort(round.moved, {}, &PartitionEnd::partition);
  moved_since_tick_ |= !round.moved.empty();
  if (tick ? !std::exchange(moved_since_tick_, false) : round.moved.empty()) return true;
  Append(round);
  closed_.NotifyAll();
  return true;
}

void RoundQueue::Append(const Round& round) {
  if (!newest_) {
    newest_ = round;
    return;
  }
  if (encoded_.size() - read_ < bytes_max_) {
    Encode(*newest_);
    newest_ = round;
    return;
  }
  for (const PartitionEnd& end : round.moved) {
    const auto found = std::ranges::find(newest_->moved, end.partition, &PartitionEnd::partition);
    if (found == newest_->moved.end()) {
      newest_->moved.push_back(end);
    } else {
      found->end = end.end;
    }
  }
  std::ranges::sort(newest_->moved, {}, &PartitionEnd::partition);
  newest_->tick |= round.tick;
}

void RoundQueue::Encode(const Round& round) {
  PutVarint(round.tick ? 1 : 0, &encoded_);
  PutVarint(round.moved.size(), &encoded_);
  for (const PartitionEnd& end : round.moved) {
    uint64_t& before = ends_encoded_[end.partition];
    PutVarint(static_cast<uint64_t>(end.partition), &encoded_);
    PutVarint(end.end - std::exchange(before, end.end), &encoded_);
  }
}

Round RoundQueue::Decode() {
  Round round{.moved = {}, .tick = TakeVarint(encoded_, &read_) != 0};
  round.moved.resize(TakeVarint(encoded_, &read_));
  for (PartitionEnd& end : round.moved) {
    end.partition = static_cast<int32_t>(TakeVarint(encoded_, &read_));
    end.end = ends_read_[end.partition] += TakeVarint(encoded_, &read_);
  }
  // Erases used bytes in large pieces, so that each byte is moved once on average.
  if (read_ * 2 > encoded_.size()) {
    encoded_.erase(0, read_);
    read_ = 0;
  }
  return round;
}

std::optional<Round> RoundQueue::Pop() {
  const MutexLock lock(mutex_);
  if (read_ < encoded_.size()) return Decode();
  if (!newest_) return std::nullopt;
  for (const PartitionEnd& end : newest_->moved)
    ends_encoded_[end.partition] = ends_read_[end.partition] = end.end;
  return std::exchange(newest_, std::nullopt);
}

bool RoundQueue::WaitFor(std::chrono::milliseconds timeout) {
  if (timeout.count() <= 0) return !empty();
  const MutexLock lock(mutex_);
  return closed_.WaitFor(mutex_, timeout,
                         [&]() TACIT_REQUIRES(mutex_) { return newest_.has_value(); });
}

bool RoundQueue::empty() const {
  const MutexLock lock(mutex_);
  return !newest_;
}

void RoundQueue::Clear() {
  const MutexLock lock(mutex_);
  encoded_.clear();
  read_ = 0;
  ends_.clear();
  ends_encoded_.clear();
  ends_read_.clear();
  newest_.reset();
  moved_since_tick_ = false;
}

}  // namespace tacit::stream
