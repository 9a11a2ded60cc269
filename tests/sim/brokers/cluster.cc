#include "sim/brokers/cluster.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "sim/brokers/client.h"

namespace tacit::sim {
namespace {

constexpr size_t kClusterBytes = size_t{2} << 30;  // takes memory where it is used
constexpr int64_t kTimeoutMostMs = 900'000;        // transaction.max.timeout.ms

// A broker's settings of topics, as tools/kafka starts one.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kTopicDefaults = {{
    {"cleanup.policy", "delete"},
    {"delete.retention.ms", "86400000"},
    {"max.message.bytes", "16777216"},
    {"message.timestamp.type", "CreateTime"},
    {"min.insync.replicas", "1"},
    {"retention.bytes", "-1"},
    {"retention.ms", "604800000"},
}};

void PutText(std::pmr::string* to, const std::optional<std::string>& text) {
  const int32_t size = text ? static_cast<int32_t>(text->size()) : -1;
  to->append(reinterpret_cast<const char*>(&size), sizeof(size));
  if (text) to->append(*text);
}

std::optional<std::string> TakeText(std::string_view* from) {
  int32_t size = 0;
  memcpy(&size, from->data(), sizeof(size));
  from->remove_prefix(sizeof(size));
  if (size < 0) return std::nullopt;
  std::string text(from->substr(0, static_cast<size_t>(size)));
  from->remove_prefix(text.size());
  return text;
}

std::string OffsetKey(std::string_view group, std::string_view topic, int32_t partition) {
  return std::string(topic) + '\0' + std::string(group) + '\0' + std::to_string(partition);
}

uint64_t Stir(uint64_t a, uint64_t b) {
  uint64_t x = a + 0x9e3779b97f4a7c15 * (b + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The address of the first number that no cluster has, so that each run may have the same.
std::string FreeAddress() {
  for (int number = 1;; ++number) {
    std::string address = "simulated-" + std::to_string(number) + ":9092";
    if (!TheHub().clusters.contains(address)) return address;
  }
}

}  // namespace

size_t ClusterRecord::bytes() const {
  size_t bytes = (key ? key->size() : 0) + (value ? value->size() : 0);
  for (const auto& [name, text] : headers) bytes += name.size() + (text ? text->size() : 0);
  return bytes;
}

Cluster::Owned Cluster::Make(int32_t brokers) {
  void* const mapping = mmap(nullptr, kClusterBytes, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<char*>(mapping);
  const std::lock_guard lock(TheHub().mutex);
  Owned cluster(new (mapping) Cluster(begin + sizeof(Cluster), begin + kClusterBytes, brokers));
  TheHub().clusters[cluster->address()] = cluster.get();
  return cluster;
}

// All that a cluster has lies in its mapping.
void Cluster::Unmap::operator()(Cluster* cluster) const {
  const std::lock_guard lock(TheHub().mutex);
  TheHub().clusters.erase(cluster->address());
  munmap(cluster, kClusterBytes);
}

OnCluster::OnCluster(Cluster& cluster) : cluster_(cluster) { TheHub().mutex.lock(); }

OnCluster::~OnCluster() {
  TheHub().TellAll();
  TheHub().mutex.unlock();
}

Cluster::Cluster(char* begin, char* end, int32_t brokers)
    : mapping_(begin, end),
      memory_({.max_blocks_per_chunk = 64, .largest_required_pool_block = size_t{1} << 20},
              &mapping_),
      address_(FreeAddress(), &memory_),
      lines_(static_cast<size_t>(brokers), &memory_),
      topics_(&memory_),
      transactions_(&memory_),
      offsets_(&memory_),
      planned_(&memory_) {}

void Cluster::CreateTopic(std::string_view name, int32_t partitions, const Settings& settings) {
  const auto [made, fresh] = topics_.try_emplace(std::pmr::string(name, &memory_), &memory_);
  if (!fresh) throw std::logic_error("a topic that is there is created");
  for (const auto& [setting, value] : settings)
    made->second.settings.try_emplace(std::pmr::string(setting, &memory_), value);
  GrowTopic(name, partitions);
}

void Cluster::GrowTopic(std::string_view name, int32_t partitions) {
  Topic& topic = topics_.find(name)->second;
  while (topic.partitions.size() < static_cast<size_t>(partitions))
    topic.partitions.emplace_back(&memory_);
}

void Cluster::DeleteTopic(std::string_view name) {
  topics_.erase(topics_.find(name));
  for (auto& [id, transaction] : transactions_)
    std::erase_if(transaction.partitions, [&](const auto& one) { return one.first == name; });
  std::erase_if(offsets_, [&](const auto& one) {
    return std::string_view(one.first).starts_with(std::string(name) + '\0');
  });
}

void Cluster::Compact(std::string_view topic, bool tombstones) {
  for (Partition& partition : topics_.find(topic)->second.partitions) {
    const int64_t stable = partition.stable(), last = partition.end - 1;
    std::map<std::string, int64_t> newest;
    const auto decided = [&](const Record& record) {
      return record.offset < stable &&
             (record.state == State::kPlain || record.state == State::kCommitted);
    };
    for (const Record& record : partition.log) {
      std::string_view bytes = record.bytes;
      if (const auto key = TakeText(&bytes); key && decided(record)) newest[*key] = record.offset;
    }
    std::erase_if(partition.log, [&](const Record& record) {
      if (record.offset == last || record.offset >= stable || record.state == State::kMarker)
        return false;
      if (record.state == State::kAborted) return true;
      std::string_view bytes = record.bytes;
      const auto key = TakeText(&bytes);
      return key && (newest[*key] != record.offset || (tombstones && !TakeText(&bytes)));
    });
  }
}

std::vector<Cluster::Line*> Cluster::lines() {
  std::vector<Line*> all;
  for (Line& one : lines_) all.push_back(&one);
  return all;
}

void Cluster::Plan(Request request, int count, Fate fate, Error error) {
  planned_.push_back({request, count, fate, error});
}

void Cluster::SetWeather(uint64_t seed, uint32_t requests_per_loss, uint32_t answers_per_loss) {
  weather_ = seed;
  requests_per_loss_ = requests_per_loss;
  answers_per_loss_ = answers_per_loss;
}

std::pair<Fate, Cluster::Error> Cluster::Draw(Request request) {
  const auto planned = std::ranges::find(planned_, request, &Planned::request);
  if (planned != planned_.end()) {
    const std::pair drawn(planned->fate, planned->error);
    if (--planned->count == 0) planned_.erase(planned);
    return drawn;
  }
  const uint64_t draw = Stir(weather_, ++requests_);
  const auto is_lost = [&](uint32_t one_in, int shift) {
    return one_in > 0 && (draw >> shift) % one_in == 0;
  };
  Fate fate = Fate::kAnswered;
  if (is_lost(requests_per_loss_, 0)) fate = Fate::kRequestLost;
  if (is_lost(answers_per_loss_, 32)) fate = Fate::kAnswerLost;
  losses_ += fate == Fate::kAnswered ? 0 : 1;
  return {fate, RD_KAFKA_RESP_ERR_NO_ERROR};
}

void Cluster::Advance(int64_t clock_ms) {
  if (clock_ms_ == 0) now_ms_ = clock_ms_ = clock_ms;
  now_ms_ += std::max<int64_t>(clock_ms - std::exchange(clock_ms_, clock_ms), 0);
  for (auto& [name, transaction] : transactions_) {
    if (!transaction.open || now_ms_ - transaction.begun_ms <= transaction.timeout_ms) continue;
    Decide(transaction, false);
    ++transaction.producer.epoch;
  }
}

int32_t Cluster::Partitions(std::string_view topic) const {
  const auto found = topics_.find(topic);
  return found == topics_.end() ? 0 : static_cast<int32_t>(found->second.partitions.size());
}

int32_t Cluster::Leader(std::string_view topic, int32_t partition) const {
  return (Coordinator(topic) + partition) % brokers();
}

int32_t Cluster::Coordinator(std::string_view name) const {
  uint64_t hash = name.size();
  for (const char letter : name) hash = Stir(hash, static_cast<uint8_t>(letter));
  return static_cast<int32_t>(hash % lines_.size());
}

std::string Cluster::Setting(const Topic& topic, std::string_view name) const {
  const auto own = topic.settings.find(name);
  if (own != topic.settings.end()) return std::string(own->second);
  const auto found =
      std::ranges::find(kTopicDefaults, name, [](const auto& one) { return one.first; });
  return found == kTopicDefaults.end() ? "" : std::string(found->second);
}

std::optional<Cluster::Settings> Cluster::SettingsOf(std::string_view topic) const {
  const auto found = topics_.find(topic);
  if (found == topics_.end()) return std::nullopt;
  std::set<std::string> names;
  for (const auto& [name, value] : kTopicDefaults) names.emplace(name);
  for (const auto& [name, value] : found->second.settings) names.emplace(name);
  Settings settings;
  for (const std::string& name : names) settings.emplace_back(name, Setting(found->second, name));
  return settings;
}

Cluster::Partition* Cluster::Find(std::string_view topic, int32_t partition) {
  const auto found = topics_.find(topic);
  if (found == topics_.end() || partition < 0 || partition >= Partitions(topic)) return nullptr;
  return &found->second.partitions[static_cast<size_t>(partition)];
}
const Cluster::Partition* Cluster::Find(std::string_view topic, int32_t partition) const {
  return const_cast<Cluster*>(this)->Find(topic, partition);
}

int64_t Cluster::Partition::stable() const {
  int64_t first = end;
  for (const auto& [producer, offset] : open) first = std::min(first, offset);
  return std::max(first, start);
}

Cluster::Written Cluster::Append(std::string_view topic, int32_t partition, ProducerId producer,
                                 int32_t sequence, bool in_transaction,
                                 std::span<const ClusterRecord> records) {
  Partition* const to = Find(topic, partition);
  if (to == nullptr) return {.error = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART};
  const Topic& settings = topics_.find(topic)->second;
  size_t bytes = 0;
  for (const ClusterRecord& record : records) bytes += record.bytes();
  if (bytes > std::stoul(Setting(settings, "max.message.bytes")))
    return {.error = RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE};
  if (in_transaction) {
    const auto found = std::ranges::find(transactions_, producer.id,
                                         [](const auto& one) { return one.second.producer.id; });
    if (found == transactions_.end())
      return {.error = RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING};
    const Error judged = Judge(found->second, producer);
    if (judged != RD_KAFKA_RESP_ERR_NO_ERROR) return {.error = judged};
    if (!found->second.open ||
        !found->second.partitions.contains({std::pmr::string(topic), partition}))
      return {.error = RD_KAFKA_RESP_ERR_INVALID_TXN_STATE};
  }
  if (producer.id >= 0) {
    Writer& writer = to->writers[producer.id];
    if (writer.epoch != producer.epoch) writer = {.epoch = producer.epoch};
    if (sequence == writer.last_sequence) return {.offset = writer.last_offset};
    if (sequence != writer.next_sequence)
      return {.error = RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER};
    writer.last_sequence = sequence;
    writer.next_sequence = sequence + static_cast<int32_t>(records.size());
    writer.last_offset = to->end;
  }
  if (in_transaction) to->open.try_emplace(producer.id, to->end);
  const Written written{.offset = to->end};
  const bool appended = Setting(settings, "message.timestamp.type") == "LogAppendTime";
  for (const ClusterRecord& record : records) {
    Record& stored = to->log.emplace_back(&memory_);
    stored.offset = to->end++;
    stored.timestamp_ms = appended ? now_ms_ : record.timestamp_ms;
    stored.producer = producer.id;
    stored.state = in_transaction ? State::kOpen : State::kPlain;
    PutText(&stored.bytes, record.key);
    PutText(&stored.bytes, record.value);
    for (const auto& [name, value] : record.headers) {
      PutText(&stored.bytes, name);
      PutText(&stored.bytes, value);
    }
  }
  return written;
}

Cluster::Fetched Cluster::Fetch(std::string_view topic, int32_t partition, int64_t offset,
                                size_t bytes, bool committed_only) const {
  const Partition* const from = Find(topic, partition);
  if (from == nullptr) return {.error = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART};
  Fetched fetched{.next = offset, .start = from->start, .end = from->end, .stable = from->stable()};
  if (offset < from->start || offset > from->end) {
    fetched.error = RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE;
    return fetched;
  }
  const int64_t limit = committed_only ? fetched.stable : from->end;
  const bool appended =
      Setting(topics_.find(topic)->second, "message.timestamp.type") == "LogAppendTime";
  auto at = std::ranges::lower_bound(from->log, offset, {}, &Record::offset);
  for (size_t taken = 0; at != from->log.end() && at->offset < limit && taken < bytes; ++at) {
    fetched.next = at->offset + 1;
    if (at->state == State::kMarker || (committed_only && at->state == State::kAborted)) continue;
    ClusterRecord& record = fetched.records.emplace_back();
    record.timestamp_ms = at->timestamp_ms;
    record.offset = at->offset;
    record.appended = appended;
    std::string_view rest = at->bytes;
    record.key = TakeText(&rest);
    record.value = TakeText(&rest);
    while (!rest.empty()) {
      std::string name = *TakeText(&rest);
      record.headers.emplace_back(std::move(name), TakeText(&rest));
    }
    taken += record.bytes() + 1;
  }
  if (at == from->log.end() || at->offset >= limit) fetched.next = std::max(limit, offset);
  return fetched;
}

Cluster::Written Cluster::OffsetAt(std::string_view topic, int32_t partition, int64_t time_ms,
                                   bool committed_only) const {
  const Partition* const from = Find(topic, partition);
  if (from == nullptr) return {.error = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART};
  const int64_t limit = committed_only ? from->stable() : from->end;
  if (time_ms == RD_KAFKA_OFFSET_END) return {.offset = limit};
  if (time_ms == RD_KAFKA_OFFSET_BEGINNING) return {.offset = from->start};
  for (const Record& record : from->log)
    if (record.timestamp_ms >= time_ms && record.offset < limit) return {.offset = record.offset};
  return {};
}

Cluster::Error Cluster::DeleteBefore(std::string_view topic, int32_t partition, int64_t offset) {
  Partition* const from = Find(topic, partition);
  if (from == nullptr) return RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
  if (offset == RD_KAFKA_OFFSET_END) offset = from->end;
  if (offset < 0 || offset > from->end) return RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE;
  from->start = std::max(from->start, offset);
  while (!from->log.empty() && from->log.front().offset < from->start) from->log.pop_front();
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

std::pair<Cluster::Error, ProducerId> Cluster::InitProducer(std::string_view name,
                                                            int64_t timeout_ms) {
  if (name.empty()) return {RD_KAFKA_RESP_ERR_NO_ERROR, {.id = next_producer_++}};
  if (timeout_ms > kTimeoutMostMs) return {RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT, {}};
  const auto [at, fresh] = transactions_.try_emplace(std::pmr::string(name, &memory_), &memory_);
  Transaction& transaction = at->second;
  if (transaction.open) Decide(transaction, false);
  if (fresh)
    transaction.producer.id = next_producer_++;
  else
    ++transaction.producer.epoch;
  transaction.timeout_ms = timeout_ms;
  return {RD_KAFKA_RESP_ERR_NO_ERROR, transaction.producer};
}

Cluster::Error Cluster::Judge(const Transaction& transaction, ProducerId producer) const {
  if (transaction.producer.id != producer.id) return RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING;
  if (transaction.producer.epoch != producer.epoch) return RD_KAFKA_RESP_ERR_PRODUCER_FENCED;
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

Cluster::Error Cluster::AddPartition(std::string_view name, ProducerId producer,
                                     std::string_view topic, int32_t partition) {
  const auto found = transactions_.find(name);
  if (found == transactions_.end()) return RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING;
  Transaction& transaction = found->second;
  const Error judged = Judge(transaction, producer);
  if (judged != RD_KAFKA_RESP_ERR_NO_ERROR) return judged;
  if (Find(topic, partition) == nullptr) return RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
  if (!transaction.open) transaction.begun_ms = now_ms_;
  transaction.open = true;
  transaction.partitions.emplace(std::pmr::string(topic, &memory_), partition);
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

Cluster::Error Cluster::EndTransaction(std::string_view name, ProducerId producer, bool commit) {
  const auto found = transactions_.find(name);
  if (found == transactions_.end()) return RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING;
  Transaction& transaction = found->second;
  const Error judged = Judge(transaction, producer);
  if (judged != RD_KAFKA_RESP_ERR_NO_ERROR) return judged;
  // A request whose answer was lost comes again.
  if (!transaction.open)
    return transaction.committed == commit ? RD_KAFKA_RESP_ERR_NO_ERROR
                                           : RD_KAFKA_RESP_ERR_INVALID_TXN_STATE;
  Decide(transaction, commit);
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

// Each partition gets a marker, which takes an offset.
void Cluster::Decide(Transaction& transaction, bool commit) {
  for (const auto& [topic, number] : transaction.partitions) {
    Partition& partition = *Find(topic, number);
    for (Record& record : partition.log)
      if (record.state == State::kOpen && record.producer == transaction.producer.id)
        record.state = commit ? State::kCommitted : State::kAborted;
    partition.open.erase(transaction.producer.id);
    Record& marker = partition.log.emplace_back(&memory_);
    marker.offset = partition.end++;
    marker.timestamp_ms = now_ms_;
    marker.state = State::kMarker;
    PutText(&marker.bytes, std::nullopt);
  }
  transaction.partitions.clear();
  transaction.open = false;
  transaction.committed = commit;
}

Cluster::Error Cluster::CommitOffset(std::string_view group, std::string_view topic,
                                     int32_t partition, const GroupOffset& offset) {
  if (Find(topic, partition) == nullptr) return RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
  StoredOffset& stored =
      offsets_.try_emplace(std::pmr::string(OffsetKey(group, topic, partition), &memory_), &memory_)
          .first->second;
  stored.offset = offset.offset;
  stored.metadata = offset.metadata;
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

std::optional<Cluster::GroupOffset> Cluster::CommittedOffset(std::string_view group,
                                                             std::string_view topic,
                                                             int32_t partition) const {
  const auto found = offsets_.find(std::string_view(OffsetKey(group, topic, partition)));
  if (found == offsets_.end()) return std::nullopt;
  return GroupOffset{found->second.offset, std::string(found->second.metadata)};
}

}  // namespace tacit::sim
