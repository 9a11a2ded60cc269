#include "bench/feed_topic.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "base/threads/bounded_queue.h"
#include "base/threads/named_thread.h"
#include "stream/kafka/producer.h"

namespace tacit::bench {
namespace {

// A prime, so that its multiples visit every row of a table once.
constexpr uint64_t kScatterStep = 2'654'435'761;
constexpr uint64_t kModels = 7;
constexpr int64_t kPublishedMs = 1'700'000'000'000;

int32_t PartitionOf(std::string_view key) {
  return stream::KafkaProducer::PartitionOfKey(key, SyntheticModel::kPartitions);
}

struct RecordBlock {
  struct Item {
    int32_t partition;
    uint32_t key, value;  // bytes
  };
  std::string bytes;
  std::vector<Item> items;
};

class SyntheticReader final : public stream::KafkaTopicReader {
 public:
  SyntheticReader(const SyntheticModel& model, const SyntheticVersion& version)
      : ends_(model.CountRecords(version)),
        thread_(NamedThread("bench-topic", [this, &model, version] { Make(model, version); })) {}
  ~SyntheticReader() override {
    queue_.Close();
    thread_.join();
  }

  Result<std::vector<stream::PartitionSpan>> Spans(Milliseconds) override {
    std::vector<stream::PartitionSpan> spans;
    for (const auto& [partition, end] : ends_)
      spans.push_back({.partition = partition, .begin = 0, .end = end});
    return spans;
  }
  Status Seek(std::span<const stream::PartitionOffset>) override { return {}; }
  Status Read(Milliseconds timeout, const Show& show) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (!at_end() && std::chrono::steady_clock::now() < deadline) {
      const auto block = queue_.PopFor(timeout);
      if (!block) return {};
      const std::string_view bytes = block->bytes;
      size_t at = 0;
      for (const RecordBlock::Item& item : block->items) {
        const std::string_view key = bytes.substr(at, item.key);
        const std::string_view value = bytes.substr(at + item.key, item.value);
        at += item.key + item.value;
        TACIT_RETURN_IF_ERROR(show({.partition = item.partition,
                                    .offset = next_[item.partition]++,
                                    .key = key,
                                    .value = value}));
      }
    }
    return {};
  }
  Status DeleteBefore(std::span<const stream::PartitionOffset>, Milliseconds) override {
    return {};
  }
  uint64_t Position(int32_t partition) const override {
    const auto found = next_.find(partition);
    return found == next_.end() ? 0 : found->second;
  }
  bool at_end() const override { return next_ == ends_; }
  std::string trouble() const override { return ""; }

 private:
  void Make(const SyntheticModel& model, const SyntheticVersion& version) {
    constexpr size_t kBlockBytes = 1 << 20;
    RecordBlock block;
    const Status made = model.Send(
        version, [&](int32_t partition, std::string_view key, std::string_view value) -> Status {
          block.bytes.append(key).append(value);
          block.items.push_back(
              {partition, static_cast<uint32_t>(key.size()), static_cast<uint32_t>(value.size())});
          if (block.bytes.size() < kBlockBytes) return {};
          if (!queue_.Push(std::exchange(block, {})))
            return Fail(ErrorCode::kUnavailable, "nobody reads any more");
          return {};
        });
    if (made) queue_.Push(std::move(block));
    queue_.Close();
  }

  const std::map<int32_t, uint64_t> ends_;
  std::map<int32_t, uint64_t> next_;
  BoundedQueue<RecordBlock> queue_{8};
  std::thread thread_;
};

}  // namespace

SyntheticModel::SyntheticModel(uint64_t rows) : rows_(rows) {
  layout_.name = "rows";
  layout_.rows.space.AddTable("items", rows, kDimension);
  layout_.rows.state_floats = {0};
  layout_.rows.initial_scale = {0};
  layout_.promise.learner = layout_.name;
  layout_.promise.epsilon = 8;
  layout_.promise.delta = 1e-6;
  layout_.promise.model_fingerprint.fill(1);
  record_ = {.key = 0,
             .name = layout_.name,
             .model_fingerprint = layout_.promise.model_fingerprint,
             .layout = layout_.rows};
}

uint64_t SyntheticModel::RowAt(uint64_t place) const {
  return place % rows_ * kScatterStep % rows_;
}

void SyntheticModel::FillRow(uint64_t row, CommitSeq version, std::span<float> floats) {
  for (size_t i = 0; i < floats.size(); ++i)
    floats[i] = static_cast<float>(row & 0xffff) + static_cast<float>(i);
  floats[0] = static_cast<float>(version.value);
}

feed::RecordPlace SyntheticModel::PlaceOf(uint64_t row) const {
  return {.kind = feed::RecordKind::kRow, .learner = 0, .table = 0, .number = row};
}

feed::RecordOrigin SyntheticModel::OriginOf(CommitSeq version, feed::RecordKind kind) const {
  feed::RecordOrigin origin;
  origin.version = version;
  origin.lineage.fill(2);
  origin.model =
      kind == feed::RecordKind::kVersionEnd ? kModels : feed::ModelId(record_.model_fingerprint);
  return origin;
}

feed::FeedIdentity SyntheticModel::identity() const {
  feed::FeedIdentity identity;
  identity.models = kModels;
  identity.partitions = kPartitions;
  identity.learners = {record_};
  identity.feed.fill(3);
  identity.lineage.fill(2);
  identity.whole_since = CommitSeq(1);
  return identity;
}

store::ReplicaOrigin SyntheticModel::origin() const {
  return {.lineage = std::string(32, '2'), .feed = "synthetic", .learners = {record_}};
}

feed::VersionEnd SyntheticModel::MakeVersionEnd(const SyntheticVersion& version) const {
  feed::VersionEnd end;
  end.partitions = kPartitions;
  end.previous = version.previous;
  end.whole_since = version.whole_since;
  end.time_ms = kPublishedMs;
  end.feed.fill(3);
  end.tip.seq = version.version;
  end.learners.push_back({.key = 0, .record = store::EncodeLearner(record_)});
  return end;
}

feed::NewestEnds SyntheticModel::NewestEndsOf(const SyntheticVersion& version) const {
  feed::NewestEnds newest;
  newest.partitions = kPartitions;
  newest.has_records = true;
  for (uint32_t partition = 0; partition < kPartitions; ++partition)
    newest.by_partition[static_cast<int32_t>(partition)] = {
        .end = MakeVersionEnd(version),
        .origin = OriginOf(version.version, feed::RecordKind::kVersionEnd)};
  return newest;
}

std::map<int32_t, uint64_t> SyntheticModel::CountRecords(const SyntheticVersion& version) const {
  std::map<int32_t, uint64_t> counts;
  for (uint32_t partition = 0; partition < kPartitions; ++partition)
    counts[static_cast<int32_t>(partition)] = 1;
  for (uint64_t i = 0; i < version.rows; ++i)
    ++counts[PartitionOf(feed::EncodeKey(PlaceOf(RowAt(version.first + i))))];
  return counts;
}

Status SyntheticModel::Send(const SyntheticVersion& version, const Sink& sink) const {
  std::array<uint64_t, kPartitions> records{}, checksums{};
  std::array<float, kDimension> floats{};
  const feed::RecordOrigin origin = OriginOf(version.version, feed::RecordKind::kRow);
  std::string value;
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < version.rows; ++i) {
    const uint64_t row = RowAt(version.first + i);
    FillRow(row, version.version, floats);
    const feed::RecordPlace place = PlaceOf(row);
    const std::string key = feed::EncodeKey(place);
    const int32_t partition = PartitionOf(key);
    value.clear();
    checksums[static_cast<size_t>(partition)] += feed::AppendValue(
        key, origin, {reinterpret_cast<const char*>(floats.data()), sizeof(floats)}, &value);
    records[static_cast<size_t>(partition)] += 1;
    bytes += key.size() + value.size();
    TACIT_RETURN_IF_ERROR(sink(partition, key, value));
  }
  feed::VersionEnd end = MakeVersionEnd(version);
  end.all_records = version.rows;
  end.all_bytes = bytes;
  const feed::RecordPlace place{.kind = feed::RecordKind::kVersionEnd};
  for (uint32_t partition = 0; partition < kPartitions; ++partition) {
    end.partition = partition;
    end.records = records[partition];
    end.checksum = checksums[partition];
    value.clear();
    feed::AppendValue(place, OriginOf(version.version, place.kind), feed::EncodeVersionEnd(end),
                      &value);
    TACIT_RETURN_IF_ERROR(sink(static_cast<int32_t>(partition), feed::EncodeKey(place), value));
  }
  return {};
}

std::unique_ptr<stream::KafkaTopicReader> ReadSynthetic(const SyntheticModel& model,
                                                        const SyntheticVersion& version) {
  return std::make_unique<SyntheticReader>(model, version);
}

}  // namespace tacit::bench
