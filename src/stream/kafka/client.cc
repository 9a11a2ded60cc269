#include "stream/kafka/client.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
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

// Settings that would run foreign code within this process.
constexpr std::array<std::string_view, 5> kRunsCode = {
    "plugin.library.paths", "sasl.kerberos.kinit.cmd", "ssl.engine.location", "ssl.engine.id",
    "ssl.providers"};

// Settings that allow only one value here, with the reason. Setting that value is no mistake.
struct Forced {
  std::string_view name, value, why;
  bool by_default = false;  // librdkafka's default; it would warn if we set an old name
};
constexpr std::array<Forced, 8> kForcedOnConsumers = {{
    {"enable.auto.commit", "false", "offsets are committed with the model"},
    {"auto.commit.enable", "false", "offsets are committed with the model", true},
    {"enable.auto.offset.store", "false", "offsets are committed with the model"},
    {"auto.offset.reset", "error", "the store says where to begin"},
    {"isolation.level", "read_committed",
     "records of a transaction that was aborted must not be learnt from"},
    {"offset.store.method", "broker", "offsets are kept in the store", true},
    {"enable.partition.eof", "true", "it reports that everything has been read"},
    {"log.queue", "false", "log lines go into Tacit's log"},
}};
constexpr std::array<Forced, 5> kForcedOnProducers = {{
    {"enable.idempotence", "true", "a record is written once, and in its order"},
    {"acks", "all", "what is acknowledged must not get lost"},
    {"request.required.acks", "all", "what is acknowledged must not get lost", true},
    {"message.timeout.ms", "0", "a record that is given up would leave a gap"},
    {"delivery.timeout.ms", "0", "a record that is given up would leave a gap", true},
}};
// Defaults that users may override. A client must find a returning broker within seconds after
// any loss on the way: of connections, packets or answers.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kDefaults = {{
    {"client.id", "tacit"},
    {"reconnect.backoff.max.ms", "2000"},
}};
constexpr std::string_view kFetchedKBytes = "32768";
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kConsumerDefaults = {{
    {"check.crcs", "true"},
    {"socket.timeout.ms", "10000"},
    {"socket.connection.setup.timeout.ms", "5000"},
    {"queued.max.messages.kbytes", kFetchedKBytes},  // fetched ahead, all partitions together
    {"socket.keepalive.enable", "true"},
    // A partition whose queue has room again is asked for once the request for the others is
    // answered, and a request for idle partitions is answered when this time is up.
    {"fetch.wait.max.ms", "100"},
}};

// Compares values; librdkafka has several spellings of each truth value.
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
                fmt::format("kafka.{}: is refused: it would load and run code", name));
  for (const Forced& forced : ForcedOn(role)) {
    if (name != forced.name || SameValue(value, forced.value)) continue;
    return Fail(ErrorCode::kInvalidArgument, fmt::format("kafka.{}: must be {}, is '{}': {}", name,
                                                         forced.value, value, forced.why));
  }
  return {};
}

// Returns the names that librdkafka knows, to suggest the one nearest to a mistake. Its dump omits
// settings without a value, so these are added.
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

// Since Kafka 4 brokers check SCRAM's nonce against RFC 5802, which older clients violate
// (librdkafka's pull request 4895).
std::string ScramHint(std::string_view reason) {
  constexpr int kMended = 0x020601ff;
  if (rd_kafka_version() >= kMended || reason.find("SCRAM") == std::string_view::npos) return "";
  return fmt::format(
      " (brokers of Kafka 4 refuse SCRAM of librdkafka before 2.6.1, with any password; this "
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

// Replaces librdkafka's default of a second, in which a reader uses up all that was fetched
// (FetchWaker).
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

uint64_t KafkaFetchBytes(std::string_view kbytes) {
  constexpr uint64_t kMost = 2097151;  // that librdkafka takes; it refuses what is no number
  constexpr uint64_t kFactor = 2;      // small messages need as much again
  uint64_t number = 0;
  for (const std::string_view text : {kFetchedKBytes, kbytes}) {
    uint64_t given = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), given);
    if (error == std::errc() && end == text.data() + text.size()) number = std::min(given, kMost);
  }
  return kFactor * number * 1024;
}

KafkaContext::Events KafkaContext::TakeEvents() {
  const MutexLock lock(mutex_);
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
  // The levels are syslog's. A client's failure is a warning; its user decides whether it is an
  // error.
  auto ours = level <= 4 ? spdlog::level::warn : spdlog::level::info;
  // A producer that is given the same settings has no use for a consumer's.
  if (level > 6 || std::strcmp(facility, "CONFWARN") == 0) ours = spdlog::level::debug;
  // librdkafka repeats this at each try; OnCertificate reports it once.
  if (std::strcmp(facility, "SSLCERTVRFY") == 0) ours = spdlog::level::debug;
  if (!spdlog::should_log(ours)) return;
  const auto* context = static_cast<const KafkaContext*>(rd_kafka_opaque(client));
  if (context->silent_) return;
  spdlog::log(ours, "librdkafka: {}: {}", facility, context->Redact(line));
}

void KafkaContext::OnError(rd_kafka_t*, int error, const char* reason, void* opaque) {
  auto* context = static_cast<KafkaContext*>(opaque);
  const MutexLock lock(context->mutex_);
  if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) context->events_.all_brokers_down = true;
  if (error == RD_KAFKA_RESP_ERR__AUTHENTICATION || error == RD_KAFKA_RESP_ERR__SSL ||
      error == RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED) {
    // librdkafka blames ssl.ca.location for any certificate, so an outdated one gets our own text.
    context->events_.outdated = !context->outdated_.empty();
    context->events_.unauthenticated = context->events_.outdated
                                           ? context->outdated_
                                           : context->Redact(reason) + ScramHint(reason);
  }
}

int KafkaContext::OnCertificate(rd_kafka_t*, const char* broker, int32_t, int* verdict, int depth,
                                const char*, size_t, char* why, size_t why_size, void* opaque) {
  // X509_V_ERR_... of openssl/x509_vfy.h, which this file does not include.
  constexpr int kNotYetValid = 9, kHasExpired = 10;
  std::string outdated;
  if (*verdict == kHasExpired)
    outdated = fmt::format(
        "broker {} shows a certificate that has expired: renew it at the broker, or correct the "
        "clock of this machine if that is wrong; reading then resumes by itself",
        broker);
  if (*verdict == kNotYetValid)
    outdated = fmt::format(
        "broker {} shows a certificate that is not valid yet: correct the clock of this machine, "
        "or of the one that made the certificate; reading then resumes by itself",
        broker);
  auto* context = static_cast<KafkaContext*>(opaque);
  const MutexLock lock(context->mutex_);
  if (!outdated.empty() && context->outdated_.empty() && !context->silent_)
    spdlog::error("{}", outdated);
  // The broker's own certificate comes last, after those of its signers.
  if (*verdict != 0 || depth == 0) context->outdated_ = outdated;
  std::snprintf(why, why_size, "%s", outdated.c_str());
  return *verdict == 0 ? 1 : 0;
}

Result<KafkaConf> MakeKafkaConf(const KafkaProperties& properties, KafkaRole role,
                                KafkaContext* context) {
  constexpr size_t kSecretBytesMin = 3;  // shorter ones occur in many lines by chance
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
  // A librdkafka built without TLS refuses the callback, and needs none.
  static_cast<void>(rd_kafka_conf_set_ssl_cert_verify_cb(conf.get(), KafkaContext::OnCertificate));
  return conf;
}

bool GetKafkaNumber(const rd_kafka_conf_t* conf, const char* name, uint64_t* value) {
  std::array<char, 64> text{};
  size_t size = text.size();
  if (rd_kafka_conf_get(conf, name, text.data(), &size) != RD_KAFKA_CONF_OK) return false;
  return std::from_chars(text.data(), text.data() + size, *value).ec == std::errc();
}

Result<KafkaClient> MakeKafkaClient(KafkaConf conf, KafkaRole role, const KafkaContext& context) {
  std::array<char, kMessageBytes> message{};
  rd_kafka_t* client =
      rd_kafka_new(role == KafkaRole::kConsumer ? RD_KAFKA_CONSUMER : RD_KAFKA_PRODUCER, conf.get(),
                   message.data(), message.size());
  if (client == nullptr)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("kafka: {}", context.Redact(message.data())));
  static_cast<void>(conf.release());  // the client owns it now
  return KafkaClient(client);
}

void EndKafkaClient(KafkaClient client, const std::shared_ptr<KafkaContext>& context) {
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
  spdlog::warn(
      "a client of Kafka does not end, perhaps because its topic was deleted: it is left running");
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

bool IsTransientFetch(rd_kafka_resp_err_t error) {
  return IsTransient(error) || error == RD_KAFKA_RESP_ERR_UNKNOWN;
}

}  // namespace tacit::stream
