// librdkafka's settings, as far as Tacit and its tests give or read them.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "sim/brokers/client.h"

namespace tacit::sim {
namespace {

// A setting with librdkafka 2.0.2's default and what it takes: any text, a truth value, a number
// from `least` to `most`, or one of these words.
struct Setting {
  std::string_view name;
  const char* by_default;
  enum { kText, kFlag, kNumber, kWord } kind = kText;
  int64_t least = 0, most = 0;
  std::string_view words = {};
};
constexpr int64_t kMost = 2147483647;
constexpr Setting kSettings[] = {
    {"allow.auto.create.topics", "false", Setting::kFlag},
    {"auto.commit.enable", "true", Setting::kFlag},
    {"auto.offset.reset", "largest", Setting::kWord, 0, 0,
     " smallest earliest beginning largest latest end error "},
    {"batch.num.messages", "10000", Setting::kNumber, 1, 1'000'000},
    {"bootstrap.servers", nullptr},
    {"check.crcs", "false", Setting::kFlag},
    {"client.id", "rdkafka"},
    {"enable.auto.commit", "true", Setting::kFlag},
    {"enable.auto.offset.store", "true", Setting::kFlag},
    {"enable.idempotence", "false", Setting::kFlag},
    {"enable.partition.eof", "false", Setting::kFlag},
    {"fetch.error.backoff.ms", "500", Setting::kNumber, 0, 300'000},
    {"fetch.message.max.bytes", "1048576", Setting::kNumber, 1, 1'000'000'000},
    {"fetch.wait.max.ms", "500", Setting::kNumber, 0, 300'000},
    {"group.id", nullptr},
    {"isolation.level", "read_committed", Setting::kWord, 0, 0,
     " read_uncommitted read_committed "},
    {"log.queue", "false", Setting::kFlag},
    {"log_level", "6", Setting::kNumber, 0, 7},
    {"message.max.bytes", "1000000", Setting::kNumber, 1000, 1'000'000'000},
    {"message.timeout.ms", "300000", Setting::kNumber, 0, kMost},
    {"offset.store.method", "broker", Setting::kWord, 0, 0, " none file broker "},
    {"partitioner", "consistent_random", Setting::kWord, 0, 0,
     " random consistent consistent_random murmur2 murmur2_random fnv1a fnv1a_random "},
    {"queue.buffering.max.kbytes", "1048576", Setting::kNumber, 1, kMost},
    {"queue.buffering.max.messages", "100000", Setting::kNumber, 1, 10'000'000},
    {"queue.buffering.max.ms", "5", Setting::kNumber, 0, 900'000},
    {"queued.max.messages.kbytes", "65536", Setting::kNumber, 1, 2'097'151},
    {"queued.min.messages", "100000", Setting::kNumber, 1, 10'000'000},
    {"reconnect.backoff.max.ms", "10000", Setting::kNumber, 0, 3'600'000},
    {"reconnect.backoff.ms", "100", Setting::kNumber, 0, 3'600'000},
    {"request.required.acks", "-1", Setting::kNumber, -1, 1000},
    {"retry.backoff.ms", "100", Setting::kNumber, 1, 300'000},
    {"socket.connection.setup.timeout.ms", "30000", Setting::kNumber, 1000, kMost},
    {"socket.keepalive.enable", "false", Setting::kFlag},
    {"socket.timeout.ms", "60000", Setting::kNumber, 10, 300'000},
    {"topic.metadata.propagation.max.ms", "30000", Setting::kNumber, 0, 3'600'000},
    {"topic.metadata.refresh.interval.ms", "300000", Setting::kNumber, -1, 3'600'000},
    {"transaction.timeout.ms", "60000", Setting::kNumber, 1000, kMost},
    {"transactional.id", nullptr},
};
constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"acks", "request.required.acks"},
    {"delivery.timeout.ms", "message.timeout.ms"},
    {"linger.ms", "queue.buffering.max.ms"},
    {"max.partition.fetch.bytes", "fetch.message.max.bytes"},
};

const Setting* Find(std::string_view name) {
  for (const auto& [alias, real] : kAliases)
    if (name == alias) name = real;
  const auto* found = std::ranges::find(kSettings, name, &Setting::name);
  return found == std::end(kSettings) ? nullptr : found;
}

// The value as librdkafka tells it; nullopt if the setting does not take it.
std::optional<std::string> Accept(const Setting& setting, std::string_view value) {
  switch (setting.kind) {
    case Setting::kText:
      break;
    case Setting::kFlag:
      if (value == "true" || value == "t" || value == "1") return "true";
      if (value == "false" || value == "f" || value == "0") return "false";
      return std::nullopt;
    case Setting::kNumber: {
      if (setting.name == "request.required.acks" && value == "all") return "-1";
      int64_t number = 0;
      const char* const end = value.data() + value.size();
      const auto read = std::from_chars(value.data(), end, number);
      if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
      if (number < setting.least || number > setting.most) return std::nullopt;
      break;
    }
    case Setting::kWord:
      if (value.empty() || value.find(' ') != std::string_view::npos ||
          setting.words.find(" " + std::string(value) + " ") == std::string_view::npos)
        return std::nullopt;
      break;
  }
  return std::string(value);
}

}  // namespace
}  // namespace tacit::sim

std::string rd_kafka_conf_s::Get(std::string_view name) const {
  const auto found = given.find(name);
  if (found != given.end()) return found->second;
  const char* const by_default = tacit::sim::Find(name)->by_default;
  return by_default == nullptr ? "" : by_default;
}

// NOLINTBEGIN: librdkafka's names
extern "C" {

rd_kafka_conf_t* rd_kafka_conf_new() { return new rd_kafka_conf_s; }
void rd_kafka_conf_destroy(rd_kafka_conf_t* conf) { delete conf; }

rd_kafka_conf_res_t rd_kafka_conf_set(rd_kafka_conf_t* conf, const char* name, const char* value,
                                      char* why, size_t why_size) {
  const auto* setting = tacit::sim::Find(name);
  if (setting == nullptr) {
    if (why_size > 0) snprintf(why, why_size, "No such configuration property: \"%s\"", name);
    return RD_KAFKA_CONF_UNKNOWN;
  }
  auto accepted = tacit::sim::Accept(*setting, value);
  if (!accepted) {
    if (why_size > 0)
      snprintf(why, why_size, "Invalid value \"%s\" for configuration property \"%s\"", value,
               name);
    return RD_KAFKA_CONF_INVALID;
  }
  conf->given[std::string(setting->name)] = *std::move(accepted);
  return RD_KAFKA_CONF_OK;
}

rd_kafka_conf_res_t rd_kafka_conf_get(const rd_kafka_conf_t* conf, const char* name, char* to,
                                      size_t* size) {
  const auto* setting = tacit::sim::Find(name);
  if (setting == nullptr) return RD_KAFKA_CONF_UNKNOWN;
  const std::string value = conf->Get(setting->name);
  if (to != nullptr) snprintf(to, *size, "%s", value.c_str());
  *size = value.size() + 1;
  return RD_KAFKA_CONF_OK;
}

const char** rd_kafka_conf_dump(rd_kafka_conf_t* conf, size_t* count) {
  std::vector<std::string> texts;
  for (const auto& setting : tacit::sim::kSettings) {
    if (setting.by_default == nullptr && !conf->given.contains(setting.name)) continue;
    texts.emplace_back(setting.name);
    texts.push_back(conf->Get(setting.name));
  }
  *count = texts.size();
  auto** dump = static_cast<const char**>(calloc(texts.size(), sizeof(char*)));
  for (size_t i = 0; i < texts.size(); ++i) dump[i] = strdup(texts[i].c_str());
  return dump;
}
void rd_kafka_conf_dump_free(const char** dump, size_t count) {
  for (size_t i = 0; i < count; ++i) free(const_cast<char*>(dump[i]));
  free(dump);
}

void rd_kafka_conf_set_opaque(rd_kafka_conf_t* conf, void* opaque) { conf->opaque = opaque; }
// Simulated brokers have no certificates, and their clients log nothing.
void rd_kafka_conf_set_log_cb(rd_kafka_conf_t*,
                              void (*)(const rd_kafka_t*, int, const char*, const char*)) {}
rd_kafka_conf_res_t rd_kafka_conf_set_ssl_cert_verify_cb(rd_kafka_conf_t*,
                                                         int (*)(rd_kafka_t*, const char*, int32_t,
                                                                 int*, int, const char*, size_t,
                                                                 char*, size_t, void*)) {
  return RD_KAFKA_CONF_OK;
}
void rd_kafka_conf_set_error_cb(rd_kafka_conf_t* conf,
                                void (*call)(rd_kafka_t*, int, const char*, void*)) {
  conf->on_error = call;
}
void rd_kafka_conf_set_dr_msg_cb(rd_kafka_conf_t* conf,
                                 void (*call)(rd_kafka_t*, const rd_kafka_message_t*, void*)) {
  conf->on_delivery = call;
}
void rd_kafka_conf_set_offset_commit_cb(rd_kafka_conf_t* conf,
                                        void (*call)(rd_kafka_t*, rd_kafka_resp_err_t,
                                                     rd_kafka_topic_partition_list_t*, void*)) {
  conf->on_commit = call;
}

}  // extern "C"
// NOLINTEND
