// A client's threads, its lines to the brokers, and its queues.
#include "sim/brokers/client.h"

#include <algorithm>
#include <cstdio>

namespace tacit::sim {

// It stays for ever, since threads of a simulation may.
Hub& TheHub() {
  static Hub& hub = *new Hub;
  return hub;
}

Moment In(int timeout_ms) {
  return std::chrono::steady_clock::now() +
         (timeout_ms < 0 ? Millis(std::chrono::hours(24)) : Millis(timeout_ms));
}

Queue::~Queue() {
  for (const Entry& entry : entries) {
    if (entry.message != nullptr) rd_kafka_message_destroy(entry.message);
    if (entry.event != nullptr) rd_kafka_event_destroy(entry.event);
  }
}

void Hub::TellAll() {
  for (rd_kafka_t* client : clients) client->work.notify_all();
}

}  // namespace tacit::sim

using tacit::sim::Entry;
using tacit::sim::Fate;
using tacit::sim::In;
using tacit::sim::Millis;
using tacit::sim::Queue;
using tacit::sim::TheHub;
using Steady = std::chrono::steady_clock;

namespace {

constexpr Millis kBetweenRetries(100), kBetweenLooks(100);

bool Changes(tacit::sim::Request request) {
  return request == tacit::sim::Request::kProduce ||
         request == tacit::sim::Request::kInitProducer ||
         request == tacit::sim::Request::kEndTransaction || request == tacit::sim::Request::kDelete;
}

int64_t WallMs() {
  return std::chrono::duration_cast<Millis>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

rd_kafka_s::rd_kafka_s(rd_kafka_type_t kind, std::unique_ptr<rd_kafka_conf_s> settings)
    : type(kind), conf(std::move(settings)) {
  const Lock lock(TheHub().mutex);
  const auto found = TheHub().clusters.find(conf->Get("bootstrap.servers"));
  if (found != TheHub().clusters.end()) cluster = found->second;
  const auto brokers = static_cast<size_t>(cluster == nullptr ? 1 : cluster->brokers());
  down.resize(brokers);
  next_fetch.resize(brokers);
  TheHub().clients.push_back(this);
  for (size_t broker = 0; broker < brokers; ++broker)
    threads.emplace_back([this, broker] { Run(static_cast<int32_t>(broker)); });
}

rd_kafka_s::~rd_kafka_s() {
  {
    const Lock lock(TheHub().mutex);
    ending = true;
    work.notify_all();
    ready.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
  const Lock lock(TheHub().mutex);
  std::erase(TheHub().clients, this);
  for (auto& [name, partition] : partitions) Unassign(partition);
}

void rd_kafka_s::Run(int32_t broker) {
  Lock lock(TheHub().mutex);
  while (!ending) {
    const auto task = std::ranges::find(tasks, broker, &Task::broker);
    if (task != tasks.end()) {
      const auto run = std::move(task->run);
      tasks.erase(task);
      run(lock);
      continue;
    }
    const bool busy = type == RD_KAFKA_PRODUCER ? SendSome(lock, broker) : FetchSome(lock, broker);
    if (!busy && !ending) work.wait_until(lock, Steady::now() + kBetweenLooks);
  }
}

void rd_kafka_s::Pause(Lock& lock, Moment until, const std::function<bool()>& done) {
  while (!ending && !(done && done()) && Steady::now() < until) work.wait_until(lock, until);
}

rd_kafka_s::Error rd_kafka_s::Ask(Lock& lock, tacit::sim::Request request, int32_t broker,
                                  Moment until, const std::function<Error()>& serve) {
  const auto cut = [&] { return cluster == nullptr || cluster->line(broker).cut; };
  const Moment begun = Steady::now();
  const Moment patience = begun + Millis(conf->Number("socket.timeout.ms"));
  const auto lose = [&] {
    if (cut() || Steady::now() >= patience) NoteDown(broker);
    return cut() ? RD_KAFKA_RESP_ERR__TRANSPORT : RD_KAFKA_RESP_ERR__TIMED_OUT;
  };
  until = std::min(until, patience);
  if (cut()) return lose();
  const auto& line = cluster->line(broker);
  const std::chrono::microseconds latency(line.latency_us);
  if (latency.count() > 0) Pause(lock, begun + latency, cut);
  // A broker that stands still finds the request when it goes on.
  if (line.silent) Pause(lock, until, [&] { return !line.silent || cut(); });
  const int64_t wall_ms = WallMs();
  if (cut() || line.silent || ending) return lose();
  cluster->Advance(wall_ms);
  const auto [fate, refusal] = cluster->Draw(request);
  Error answer = refusal;
  if (fate == Fate::kAnswered || fate == Fate::kAnswerLost) {
    answer = serve();
    if (Changes(request)) TheHub().TellAll();
  }
  if (line.half_open || fate == Fate::kRequestLost || fate == Fate::kAnswerLost) {
    Pause(lock, until, cut);
    return lose();
  }
  if (latency.count() > 0) Pause(lock, Steady::now() + latency, cut);
  if (cut()) return lose();
  down[static_cast<size_t>(broker)] = false;
  told_down = false;
  return answer;
}

rd_kafka_s::Error rd_kafka_s::AskUntil(Lock& lock, tacit::sim::Request request, int32_t broker,
                                       Moment until, const std::function<Error()>& serve) {
  for (;;) {
    const Error error = Ask(lock, request, broker, until, serve);
    const bool lost = error == RD_KAFKA_RESP_ERR__TRANSPORT ||
                      error == RD_KAFKA_RESP_ERR__TIMED_OUT ||
                      error == RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT ||
                      error == RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION ||
                      error == RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE;
    if (!lost || ending || Steady::now() >= until) return error;
    Pause(lock, std::min(until, Steady::now() + kBetweenRetries));
  }
}

void rd_kafka_s::NoteDown(int32_t broker) {
  down[static_cast<size_t>(broker)] = true;
  if (std::ranges::find(down, false) != down.end() || std::exchange(told_down, true)) return;
  if (conf->on_error == nullptr) return;
  const std::string words =
      std::to_string(down.size()) + "/" + std::to_string(down.size()) + " brokers are down";
  Push(main, {.call = [this, words] {
         conf->on_error(this, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, words.c_str(), conf->opaque);
       }});
}

int32_t rd_kafka_s::AnyBroker() const {
  for (const bool also_down : {false, true})
    for (size_t broker = 0; broker < down.size(); ++broker)
      if (cluster != nullptr && !cluster->line(static_cast<int32_t>(broker)).cut &&
          (also_down || !down[broker]))
        return static_cast<int32_t>(broker);
  return 0;
}

void rd_kafka_s::Push(Queue& queue, Entry entry) {
  Queue* to = &queue;
  while (to->forward != nullptr) to = to->forward;
  to->entries.push_back(std::move(entry));
  ready.notify_all();
}

std::optional<Entry> rd_kafka_s::Pop(Lock& lock, Queue& queue, Moment until, bool calls_only) {
  Queue* from = &queue;
  while (from->forward != nullptr) from = from->forward;
  for (;;) {
    const auto next = std::ranges::find_if(
        from->entries, [&](const Entry& one) { return !calls_only || one.call != nullptr; });
    if (next != from->entries.end()) {
      Entry entry = std::move(*next);
      from->entries.erase(next);
      if (entry.of != nullptr && entry.message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        --entry.of->queued;
        entry.of->queued_bytes -=
            static_cast<tacit::sim::OwnMessage*>(entry.message)->record.bytes();
        if (std::exchange(entry.of->full, false)) work.notify_all();
      }
      return entry;
    }
    if (Steady::now() >= until) return std::nullopt;
    ready.wait_until(lock, until);
  }
}

std::optional<Entry> rd_kafka_s::Take(Lock& lock, Queue& queue, Moment until) {
  for (;;) {
    std::optional<Entry> entry = Pop(lock, queue, until, false);
    if (!entry || !entry->call) return entry;
    lock.unlock();
    entry->call();
    lock.lock();
  }
}

int rd_kafka_s::Serve(Lock& lock, Queue& queue, int timeout_ms) {
  int served = 0;
  while (auto entry = Pop(lock, queue, served == 0 ? In(timeout_ms) : Moment(), true)) {
    ++served;
    lock.unlock();
    entry->call();
    lock.lock();
  }
  return served;
}

// NOLINTBEGIN: librdkafka's names
extern "C" {

rd_kafka_t* rd_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t* conf, char*, size_t) {
  return new rd_kafka_s(type, std::unique_ptr<rd_kafka_conf_s>(conf));
}
void rd_kafka_destroy_flags(rd_kafka_t* client, int) { delete client; }
void rd_kafka_destroy(rd_kafka_t* client) { delete client; }
const rd_kafka_conf_t* rd_kafka_conf(rd_kafka_t* client) { return client->conf.get(); }
void* rd_kafka_opaque(const rd_kafka_t* client) { return client->conf->opaque; }

rd_kafka_topic_t* rd_kafka_topic_new(rd_kafka_t* client, const char* name, rd_kafka_topic_conf_t*) {
  return new rd_kafka_topic_s{client, name};
}
void rd_kafka_topic_destroy(rd_kafka_topic_t* topic) { delete topic; }

int rd_kafka_poll(rd_kafka_t* client, int timeout_ms) {
  tacit::sim::Lock lock(TheHub().mutex);
  return client->Serve(lock, client->main, timeout_ms);
}

rd_kafka_queue_t* rd_kafka_queue_new(rd_kafka_t* client) {
  return new rd_kafka_queue_s{client, std::make_shared<Queue>()};
}
rd_kafka_queue_t* rd_kafka_queue_get_consumer(rd_kafka_t* client) {
  return new rd_kafka_queue_s{client, tacit::sim::Borrow(&client->consumer)};
}
rd_kafka_queue_t* rd_kafka_queue_get_partition(rd_kafka_t* client, const char* topic,
                                               int32_t partition) {
  const tacit::sim::Lock lock(TheHub().mutex);
  return new rd_kafka_queue_s{client,
                              tacit::sim::Borrow(&client->PartitionOf(topic, partition).queue)};
}
void rd_kafka_queue_destroy(rd_kafka_queue_t* queue) { delete queue; }
void rd_kafka_queue_forward(rd_kafka_queue_t* from, rd_kafka_queue_t* to) {
  const tacit::sim::Lock lock(TheHub().mutex);
  from->queue->forward = to == nullptr ? nullptr : to->queue.get();
}
size_t rd_kafka_queue_length(rd_kafka_queue_t* queue) {
  const tacit::sim::Lock lock(TheHub().mutex);
  return queue->queue->entries.size();
}
int rd_kafka_queue_poll_callback(rd_kafka_queue_t* queue, int timeout_ms) {
  tacit::sim::Lock lock(TheHub().mutex);
  return queue->client->Serve(lock, *queue->queue, timeout_ms);
}
rd_kafka_event_t* rd_kafka_queue_poll(rd_kafka_queue_t* queue, int timeout_ms) {
  tacit::sim::Lock lock(TheHub().mutex);
  const auto entry = queue->client->Take(lock, *queue->queue, In(timeout_ms));
  return entry ? entry->event : nullptr;
}

rd_kafka_message_t* rd_kafka_consume_queue(rd_kafka_queue_t* queue, int timeout_ms) {
  tacit::sim::Lock lock(TheHub().mutex);
  const auto entry = queue->client->Take(lock, *queue->queue, In(timeout_ms));
  return entry ? entry->message : nullptr;
}
ssize_t rd_kafka_consume_batch_queue(rd_kafka_queue_t* queue, int timeout_ms,
                                     rd_kafka_message_t** messages, size_t most) {
  tacit::sim::Lock lock(TheHub().mutex);
  const tacit::sim::Moment until = In(timeout_ms);
  size_t taken = 0;
  while (taken < most) {
    const auto entry = queue->client->Take(lock, *queue->queue, until);
    if (!entry) break;
    messages[taken++] = entry->message;
  }
  return static_cast<ssize_t>(taken);
}

}  // extern "C"
// NOLINTEND
