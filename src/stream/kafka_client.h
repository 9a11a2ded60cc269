#pragma once

#include <librdkafka/rdkafka.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "event/message.h"
#include "stream/kafka_properties.h"

// librdkafka's handles, and how a client comes of its settings. Private to the room: nothing else
// of the house sees one of its types.
namespace tacit::stream {

template <auto Destroy>
struct KafkaDeleter {
  template <class T>
  void operator()(T* handle) const {
    Destroy(handle);
  }
};
using KafkaConf = std::unique_ptr<rd_kafka_conf_t, KafkaDeleter<rd_kafka_conf_destroy>>;
using KafkaQueue = std::unique_ptr<rd_kafka_queue_t, KafkaDeleter<rd_kafka_queue_destroy>>;
using KafkaTopic = std::unique_ptr<rd_kafka_topic_t, KafkaDeleter<rd_kafka_topic_destroy>>;
using KafkaMessage = std::unique_ptr<rd_kafka_message_t, KafkaDeleter<rd_kafka_message_destroy>>;
using KafkaPartitions = std::unique_ptr<rd_kafka_topic_partition_list_t,
                                        KafkaDeleter<rd_kafka_topic_partition_list_destroy>>;
using KafkaError = std::unique_ptr<rd_kafka_error_t, KafkaDeleter<rd_kafka_error_destroy>>;
using KafkaMetadata =
    std::unique_ptr<const rd_kafka_metadata_t, KafkaDeleter<rd_kafka_metadata_destroy>>;

// A consumer leaves no group when it goes: it never joined one.
struct KafkaClientDeleter {
  void operator()(rd_kafka_t* client) const {
    rd_kafka_destroy_flags(client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  }
};
using KafkaClient = std::unique_ptr<rd_kafka_t, KafkaClientDeleter>;

enum class KafkaRole { kConsumer, kProducer };

// How soon a full queue is looked at again; unknown to librdkafka before 2.2.
inline constexpr char kFetchQueueBackoff[] = "fetch.queue.backoff.ms";

// What librdkafka calls back into, from its own threads too. Its log lines become ours, without the
// values of secrets. Must outlive the client. Thread-safe.
class KafkaContext {
 public:
  // What has happened since the last question.
  struct Events {
    bool all_brokers_down = false;
    std::string unauthenticated;  // why; empty: authentication did not fail
  };

  KafkaContext() = default;
  KafkaContext(const KafkaContext&) = delete;
  KafkaContext& operator=(const KafkaContext&) = delete;

  Events TakeEvents();
  // Passes over everything from now on: for a client that is left behind.
  void Silence() { silent_ = true; }
  // The text without what must not be printed.
  std::string Redact(std::string_view text) const;

 private:
  friend Result<KafkaConf> MakeKafkaConf(const KafkaProperties&, KafkaRole, KafkaContext*);

  static void OnLog(const rd_kafka_t* client, int level, const char* facility, const char* line);
  static void OnError(rd_kafka_t* client, int error, const char* reason, void* opaque);

  std::vector<std::string> secrets_;  // written before there is a client
  std::atomic<bool> silent_ = false;
  std::mutex mutex_;
  Events events_;
};

// The settings, checked: kInvalidArgument names one that does not exist, whose value is none, or
// that would take away what we promise. `context` becomes the client's opaque. More may be set on
// the result before it becomes a client.
Result<KafkaConf> MakeKafkaConf(const KafkaProperties& properties, KafkaRole role,
                                KafkaContext* context);
// Starts the client's threads; no broker is asked for anything yet.
Result<KafkaClient> MakeKafkaClient(KafkaConf conf, KafkaRole role, const KafkaContext& context);

// Ends the client, whose opaque is `context`. librdkafka 2.0 waits without end for the partitions
// of a topic that was deleted: after a moment such a client is left behind with its threads.
void EndKafkaClient(KafkaClient client, std::shared_ptr<KafkaContext> context);

// The headers of a message in place of what was there; views of the message.
void ReadHeaders(const rd_kafka_message_t& message, std::vector<event::MessageHeader>* headers);

// Whether the same may work later, without anybody doing anything about it here: brokers that are
// down, slow, or at moving a partition.
bool IsTransient(rd_kafka_resp_err_t error);

}  // namespace tacit::stream
