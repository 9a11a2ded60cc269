#include "stream/kafka_client.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <future>
#include <span>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/secret_name.h"
#include "base/text.h"

namespace tacit::stream {
namespace {

constexpr size_t kMessageBytes = 512;

// Settings that run code of somebody's choice within this process.
constexpr std::array<std::string_view, 5> kRunsCode = {
    "plugin.library.paths", "sasl.kerberos.kinit.cmd", "ssl.engine.location", "ssl.engine.id",
    "ssl.providers"};

// What has one right value here, and why. A setting that says the same is no mistake.
struct Forced {
  std::string_view name, value, why;
  bool by_default = false;  // librdkafka's own, and it would warn of an old name being set
};
constexpr std::array<Forced, 8> kForcedOnConsumers = {{
    {"enable.auto.commit", "false", "offsets are committed with the model"},
    {"auto.commit.enable", "false", "offsets are committed with the model", true},
    {"enable.auto.offset.store", "false", "offsets are committed with the model"},
    {"auto.offset.reset", "error", "where to begin is the store's to say"},
    {"isolation.level", "read_committed",
     "records of a transaction that was aborted must not be learnt from"},
    {"offset.store.method", "broker", "offsets are kept in the store", true},
    {"enable.partition.eof", "true", "it tells when everything there is has been read"},
    {"log.queue", "false", "log lines go into Tacit's log"},
}};
constexpr std::array<Forced, 5> kForcedOnProducers = {{
    {"enable.idempotence", "true", "a record is written once, and in its order"},
    {"acks", "all", "what is acknowledged must not get lost"},
    {"request.required.acks", "all", "what is acknowledged must not get lost", true},
    {"message.timeout.ms", "0", "a record that is given up would leave a gap"},
    {"delivery.timeout.ms", "0", "a record that is given up would leave a gap", true},
}};
// What one may set, and what is so unless one does. A broker that returns is to be found within
// seconds, whatever was lost on the way: connections, packets or answers.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kDefaults = {{
    {"client.id", "tacit"},
    {"reconnect.backoff.max.ms", "2000"},
}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kConsumerDefaults = {{
    {"check.crcs", "true"},
    {"socket.timeout.ms", "10000"},
    {"socket.connection.setup.timeout.ms", "5000"},
    {"queued.max.messages.kbytes", "32768"},  // what is fetched ahead, all partitions together
    {"socket.keepalive.enable", "true"},
}};

// librdkafka has several words for each truth value.
bool SameValue(std::string_view given, std::string_view wanted) {
  if (wanted == "true") return given == "true" || given == "t" || given == "1" || given.empty();
  if (wanted == "all") return given == "all" || given == "-1";
  if (wanted == "false") return given == "false" || given == "f" || given == "0";
  return given == wanted;
}

std::span<const Forced> ForcedOn(KafkaRole role) {
  if (role == KafkaRole::kConsumer) return kForcedOnConsumers;
  return kForcedOnProducers;
}

Status CheckAllowed(std::string_view name, std::string_view value, KafkaRole role) {
  if (std::ranges::find(kRunsCode, name) != kRunsCode.end())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("kafka.{}: is refused: it would run code of another's choice", name));
  for (const Forced& forced : ForcedOn(role)) {
    if (name != forced.name || SameValue(value, forced.value)) continue;
    return Fail(ErrorCode::kInvalidArgument, fmt::format("kafka.{}: must be {}, is '{}': {}", name,
                                                         forced.value, value, forced.why));
  }
  return {};
}

// The names that librdkafka knows, for the nearest one to a mistake. It does not list those that
// have no value.
std::vector<std::string> KnownNames(rd_kafka_conf_t* conf) {
  std::vector<std::string> names = {
      "bootstrap.servers", "group.id",         "sasl.mechanism",
      "sasl.username",     "sasl.password",    "ssl.ca.location",
      "ssl.key.location",  "ssl.key.password", "ssl.certificate.location"};
  size_t count = 0;
  const char** dump = rd_kafka_conf_dump(conf, &count);
  for (size_t i = 0; i + 1 < count; i += 2) names.emplace_back(dump[i]);
  rd_kafka_conf_dump_free(dump, count);
  return names;
}

// Brokers hold SCRAM's nonce against RFC 5802 since Kafka 4, which older clients do not keep to
// (librdkafka's pull request 4895).
std::string ScramHint(std::string_view reason) {
  constexpr int kMended = 0x020601ff;
  if (rd_kafka_version() >= kMended || reason.find("SCRAM") == std::string_view::npos) return "";
  return fmt::format(
      " (brokers of Kafka 4 refuse SCRAM of librdkafka before 2.6.1, whatever the password; this "
      "is "
      "{})",
      rd_kafka_version_str());
}

Status Set(rd_kafka_conf_t* conf, std::string_view name, std::string_view value) {
  std::array<char, kMessageBytes> message{};
  const auto outcome = rd_kafka_conf_set(
      conf, std::string(name).c_str(), std::string(value).c_str(), message.data(), message.size());
  if (outcome == RD_KAFKA_CONF_OK) return {};
  if (outcome == RD_KAFKA_CONF_UNKNOWN) {
    const std::vector<std::string> names = KnownNames(conf);
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("kafka.{}: librdkafka {} has no such setting{}", name,
                            rd_kafka_version_str(), DidYouMean(name, candidates)));
  }
  // The message may quote the value.
  if (IsSecretName(name))
    return Fail(ErrorCode::kInvalidArgument, fmt::format("kafka.{}: its value is refused", name));
  return Fail(ErrorCode::kInvalidArgument, fmt::format("kafka.{}: {}", name, message.data()));
}

// Its own default is a second, in which a reader uses up all that was fetched (FetchWaker).
Status SetFetchQueueBackoff(const KafkaProperties& given, rd_kafka_conf_t* conf) {
  if (given.Find(kFetchQueueBackoff) != nullptr) return {};
  size_t size = 0;
  if (rd_kafka_conf_get(conf, kFetchQueueBackoff, nullptr, &size) != RD_KAFKA_CONF_OK) return {};
  return Set(conf, kFetchQueueBackoff, "10");
}

template <size_t N>
Status SetDefaults(const std::array<std::pair<std::string_view, std::string_view>, N>& defaults,
                   const KafkaProperties& given, rd_kafka_conf_t* conf) {
  for (const auto& [name, value] : defaults)
    if (given.Find(name) == nullptr) TACIT_RETURN_IF_ERROR(Set(conf, name, value));
  return {};
}

}  // namespace

KafkaContext::Events KafkaContext::TakeEvents() {
  std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

std::string KafkaContext::Redact(std::string_view text) const {
  std::string shown(text);
  for (const std::string& secret : secrets_) {
    for (size_t at = 0; (at = shown.find(secret, at)) != std::string::npos;) {
      constexpr std::string_view kInstead = "[redacted]";
      shown.replace(at, secret.size(), kInstead);
      at += kInstead.size();
    }
  }
  return shown;
}

void KafkaContext::OnLog(const rd_kafka_t* client, int level, const char* facility,
                         const char* line) {
  // Syslog's levels. What a client cannot do is for whoever uses it to call an error.
  auto ours = level <= 4 ? spdlog::level::warn : spdlog::level::info;
  // A consumer's settings are of no use to a producer that is given the same.
  if (level > 6 || std::strcmp(facility, "CONFWARN") == 0) ours = spdlog::level::debug;
  if (!spdlog::should_log(ours)) return;
  const auto* context = static_cast<const KafkaContext*>(rd_kafka_opaque(client));
  if (context->silent_) return;
  spdlog::log(ours, "librdkafka: {}: {}", facility, context->Redact(line));
}

void KafkaContext::OnError(rd_kafka_t*, int error, const char* reason, void* opaque) {
  auto* context = static_cast<KafkaContext*>(opaque);
  std::lock_guard lock(context->mutex_);
  if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) context->events_.all_brokers_down = true;
  if (error == RD_KAFKA_RESP_ERR__AUTHENTICATION || error == RD_KAFKA_RESP_ERR__SSL ||
      error == RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED)
    context->events_.unauthenticated = context->Redact(reason) + ScramHint(reason);
}

Result<KafkaConf> MakeKafkaConf(const KafkaProperties& properties, KafkaRole role,
                                KafkaContext* context) {
  constexpr size_t kSecretBytesMin = 3;  // shorter ones are in every line by chance
  KafkaConf conf(rd_kafka_conf_new());
  TACIT_CHECK(conf != nullptr && context != nullptr);
  for (const auto& [name, value] : properties.values)
    if ((IsSecretName(name) ||
         std::ranges::find(properties.hidden, name) != properties.hidden.end()) &&
        value.size() >= kSecretBytesMin)
      context->secrets_.push_back(value);
  for (const auto& [name, value] : properties.values) {
    TACIT_RETURN_IF_ERROR(CheckAllowed(name, value, role));
    if (const Status set = Set(conf.get(), name, value); !set)
      return Fail(set.error().code, context->Redact(set.error().message));
  }
  TACIT_RETURN_IF_ERROR(SetDefaults(kDefaults, properties, conf.get()));
  if (role == KafkaRole::kConsumer) {
    TACIT_RETURN_IF_ERROR(SetDefaults(kConsumerDefaults, properties, conf.get()));
    TACIT_RETURN_IF_ERROR(SetFetchQueueBackoff(properties, conf.get()));
  }
  for (const Forced& forced : ForcedOn(role))
    if (!forced.by_default) TACIT_RETURN_IF_ERROR(Set(conf.get(), forced.name, forced.value));
  rd_kafka_conf_set_opaque(conf.get(), context);
  rd_kafka_conf_set_log_cb(conf.get(), KafkaContext::OnLog);
  rd_kafka_conf_set_error_cb(conf.get(), KafkaContext::OnError);
  return conf;
}

Result<KafkaClient> MakeKafkaClient(KafkaConf conf, KafkaRole role, const KafkaContext& context) {
  std::array<char, kMessageBytes> message{};
  rd_kafka_t* client =
      rd_kafka_new(role == KafkaRole::kConsumer ? RD_KAFKA_CONSUMER : RD_KAFKA_PRODUCER, conf.get(),
                   message.data(), message.size());
  if (client == nullptr)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("kafka: {}", context.Redact(message.data())));
  static_cast<void>(conf.release());  // the client's
  return KafkaClient(client);
}

void EndKafkaClient(KafkaClient client, std::shared_ptr<KafkaContext> context) {
  constexpr std::chrono::seconds kMoment(3);
  if (client == nullptr) return;
  std::promise<void> ended;
  const std::future<void> end = ended.get_future();
  std::thread([client = std::move(client), context, ended = std::move(ended)]() mutable {
    client.reset();
    ended.set_value();
  }).detach();
  if (end.wait_for(kMoment) == std::future_status::ready) return;
  context->Silence();
  spdlog::warn("a client of Kafka does not end, as where its topic was deleted: it is left behind");
}

void ReadHeaders(const rd_kafka_message_t& message, std::vector<event::MessageHeader>* headers) {
  headers->clear();
  rd_kafka_headers_t* list = nullptr;
  if (rd_kafka_message_headers(&message, &list) != RD_KAFKA_RESP_ERR_NO_ERROR) return;
  const char* name = nullptr;
  const void* value = nullptr;
  size_t size = 0;
  for (size_t i = 0;
       rd_kafka_header_get_all(list, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; ++i)
    headers->push_back({name, {static_cast<const char*>(value), value == nullptr ? 0 : size}});
}

bool IsTransient(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE:
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
    case RD_KAFKA_RESP_ERR__RESOLVE:
    case RD_KAFKA_RESP_ERR__WAIT_COORD:
    case RD_KAFKA_RESP_ERR__WAIT_CACHE:
    case RD_KAFKA_RESP_ERR__RETRY:
    case RD_KAFKA_RESP_ERR__IN_PROGRESS:
    case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
    case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
    case RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION:
    case RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS:
    case RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NOT_COORDINATOR:
    case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS:
    case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND:
    case RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR:
    case RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH:
    case RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH:
    case RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE:
      return true;
    default:
      return false;
  }
}

}  // namespace tacit::stream
