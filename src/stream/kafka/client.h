#pragma once

#include <librdkafka/rdkafka.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/threads/mutex.h"
#include "event/message.h"
#include "stream/kafka/properties.h"

// librdkafka's handles, and how to make a client from settings. Private to the room: no other code
// sees librdkafka's types.
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

// Destroys a client without leaving its group: a consumer never joined one.
struct KafkaClientDeleter {
  void operator()(rd_kafka_t* client) const {
    rd_kafka_destroy_flags(client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  }
};
using KafkaClient = std::unique_ptr<rd_kafka_t, KafkaClientDeleter>;

enum class KafkaRole { kConsumer, kProducer };

// The setting for how soon librdkafka looks at a full queue again; unknown before 2.2.
inline constexpr char kFetchQueueBackoff[] = "fetch.queue.backoff.ms";

// Receives librdkafka's callbacks, from its own threads too. Turns its log lines into ours, without
// the values of secrets. Must outlive the client. Thread-safe.
class KafkaContext {
 public:
  // The events since the last TakeEvents.
  struct Events {
    bool all_brokers_down = false;
    std::string unauthenticated;  // the reason; if empty, authentication did not fail
    bool outdated = false;        // a broker's certificate has wrong dates; it can be renewed there
  };

  KafkaContext() = default;
  KafkaContext(const KafkaContext&) = delete;
  KafkaContext& operator=(const KafkaContext&) = delete;

  Events TakeEvents();
  // Ignores everything from now on: for a client that is left behind.
  void Silence() { silent_ = true; }
  // Returns the text without secrets.
  std::string Redact(std::string_view text) const;

 private:
  friend Result<KafkaConf> MakeKafkaConf(const KafkaProperties&, KafkaRole, KafkaContext*);

  static void OnLog(const rd_kafka_t* client, int level, const char* facility, const char* line);
  static void OnError(rd_kafka_t* client, int error, const char* reason, void* opaque);
  // Examines one certificate of a broker's chain; OpenSSL's verdict stands.
  static int OnCertificate(rd_kafka_t* client, const char* broker, int32_t id, int* verdict,
                           int depth, const char* bytes, size_t size, char* why, size_t why_size,
                           void* opaque);

  std::vector<std::string> secrets_;  // written before there is a client
  std::atomic<bool> silent_ = false;
  Mutex mutex_;
  Events events_ TACIT_GUARDED_BY(mutex_);
  // The last certificate's fault; if empty, its dates are right.
  std::string outdated_ TACIT_GUARDED_BY(mutex_);
};

// Checks the settings: kInvalidArgument names one that does not exist, whose value is invalid, or
// that would break what we promise. `context` becomes the client's opaque. The caller may set more
// on the result before it makes a client of it.
Result<KafkaConf> MakeKafkaConf(const KafkaProperties& properties, KafkaRole role,
                                KafkaContext* context);
// Reads a setting that is a whole number; returns false if there is no such setting.
bool GetKafkaNumber(const rd_kafka_conf_t* conf, const char* name, uint64_t* value);
// Starts the client's threads; asks no broker for anything yet.
Result<KafkaClient> MakeKafkaClient(KafkaConf conf, KafkaRole role, const KafkaContext& context);

// Ends the client, whose opaque is `context`. librdkafka 2.0 waits forever for the partitions of a
// deleted topic: such a client is left behind after a moment, with its threads.
void EndKafkaClient(KafkaClient client, const std::shared_ptr<KafkaContext>& context);

// Replaces `headers` by the headers of the message, as views of it.
void ReadHeaders(const rd_kafka_message_t& message, std::vector<event::MessageHeader>* headers);

// Returns true if the same request may work later without any change here: brokers are down, slow,
// or moving a partition.
bool IsTransient(rd_kafka_resp_err_t error);

// The same of reading records. It counts an exception inside of the broker, too: a broker has one
// where its cleaner takes a segment away that is being read. librdkafka asks again after a pause.
bool IsTransientFetch(rd_kafka_resp_err_t error);

}  // namespace tacit::stream
