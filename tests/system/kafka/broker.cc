#include "system/kafka/broker.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <string_view>

#include "base/files/unique_fd.h"
#include "support/eventually.h"
#include "system/kafka/clients.h"
#include "system/kafka/topic.h"

namespace tacit::test {
namespace {

constexpr int kPorts = 4;  // plain text, controller, TLS, TLS with SASL
constexpr auto kToolTimeout = 4 * kPatience;
constexpr int kAdminTimeoutMs = std::chrono::milliseconds(kPatience).count();

std::string ToolPath() { return std::string(TACIT_SOURCE_DIR) + "/tools/kafka"; }

bool Free(int port) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
}

// Below the ports that the system gives to clients, which would take one between look and start.
int FreePorts() {
  std::random_device device;
  std::uniform_int_distribution<int> any(15000, 31000);
  for (;;) {
    const int first = any(device);
    bool free = true;
    for (int i = 0; i < kPorts; ++i) free = free && Free(first + i);
    if (free) return first;
  }
}

template <auto kDestroy>
struct Destroy {
  template <class T>
  void operator()(T* object) const {
    kDestroy(object);
  }
};
using Queue = std::unique_ptr<rd_kafka_queue_t, Destroy<rd_kafka_queue_destroy>>;
using Event = std::unique_ptr<rd_kafka_event_t, Destroy<rd_kafka_event_destroy>>;

// Asks something of the broker; the answer, when it is no failure.
Event Ask(const std::string& bootstrap, const std::string& what,
          const std::function<void(rd_kafka_t*, rd_kafka_queue_t*)>& ask) {
  const Client client = MakeClient(RD_KAFKA_PRODUCER, bootstrap, {});
  if (!client) return nullptr;
  const Queue queue(rd_kafka_queue_new(client.get()));
  ask(client.get(), queue.get());
  Event event(rd_kafka_queue_poll(queue.get(), kAdminTimeoutMs));
  if (!event) {
    ADD_FAILURE() << what << ": no answer";
  } else if (rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    ADD_FAILURE() << what << ": " << rd_kafka_event_error_string(event.get());
    event.reset();
  }
  return event;
}

void CheckTopics(const std::string& what, const rd_kafka_topic_result_t* const* topics,
                 size_t count) {
  for (size_t i = 0; i < count; ++i)
    EXPECT_EQ(rd_kafka_topic_result_error(topics[i]), RD_KAFKA_RESP_ERR_NO_ERROR)
        << what << ": " << rd_kafka_topic_result_error_string(topics[i]);
}

// The controller's answer comes before the broker leads the new partitions.
void AwaitPartitions(const std::string& bootstrap, const std::string& topic, int32_t partitions) {
  EXPECT_TRUE(Eventually(topic + " has " + std::to_string(partitions) + " partitions",
                         [&] { return TopicPartitions(bootstrap, topic) == partitions; }));
  EXPECT_GE(TopicSize(bootstrap, topic), 0) << "their leader answers for them from then on";
}

}  // namespace

std::string BrokerMissing(const std::string& version) {
  Process ready({ToolPath(), "ready", "--version", version});
  const auto ended = ready.WaitFor(kToolTimeout);
  if (!ended) return "tools/kafka ready does not end";
  return ended->exit_code == 0 ? "" : "needs a real Kafka: " + ended->out + ended->err;
}

bool BrokerRequired() {
  const char* required = std::getenv("TACIT_REQUIRE");
  return required != nullptr && std::string_view(required).find("kafka") != std::string_view::npos;
}

Broker::Broker(Options options) : options_(std::move(options)), port_(FreePorts()) {
  WriteFile(data_ / "extra.properties", options_.properties + "\n");
  Start();
}

Broker::~Broker() {
  if (running()) Kill();
}

bool Broker::Tool(const std::string& command) {
  std::vector<std::string> words{ToolPath(),  command,
                                 "--version", options_.version,
                                 "--port",    std::to_string(port_),
                                 "--data",    data_.path(),
                                 "--config",  data_ / "extra.properties",
                                 "--while",   std::to_string(::getpid())};
  if (options_.secure) words.push_back("--secure");
  const Ended ended = Run(std::move(words), {}, kToolTimeout);
  EXPECT_EQ(ended.exit_code, 0) << "tools/kafka " << command << ": " << ended.out << ended.err;
  return ended.exit_code == 0;
}

pid_t Broker::Pid() const {
  const std::string pid = ReadFile(data_ / "broker.pid");
  return pid.empty() ? 0 : static_cast<pid_t>(std::atoi(pid.c_str()));
}

bool Broker::running() const {
  const pid_t pid = Pid();
  return pid > 0 && ::kill(pid, 0) == 0;
}

void Broker::Start() { Tool("start"); }
void Broker::Stop() { Tool("stop"); }
void Broker::Kill() {
  Continue();  // one that is stopped would not be seen to die
  Tool("kill");
}
void Broker::Certify(int first_day, int days) {
  const std::string dir = data_ / "secure";
  const std::string then = (first_day < 0 ? "" : "+") + std::to_string(first_day) + "d";
  const Ended ended = Run({"/bin/bash", "-euc",
                           "cd '" + dir + "'\nfaketime -f " + then +
                               " openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key"
                               " -CAcreateserial -extfile server.ext -out server.crt -days " +
                               std::to_string(days) + "\ncat server.key server.crt >server.pem"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
}

// One thread takes the signal and stops the others, which go on meanwhile.
void Broker::Suspend() {
  ASSERT_EQ(::kill(Pid(), SIGSTOP), 0);
  const auto stopped = [](const std::filesystem::directory_entry& thread) {
    const std::string stat = ReadFile(thread.path() / "stat");
    const size_t name_end = stat.rfind(')');
    return name_end == std::string::npos || stat.substr(name_end, 4) == ") T ";
  };
  EXPECT_TRUE(Eventually("all threads of the broker stand still", [&] {
    return std::ranges::all_of(
        std::filesystem::directory_iterator(fmt::format("/proc/{}/task", Pid())), stopped);
  }));
}
void Broker::Continue() {
  if (running()) ::kill(Pid(), SIGCONT);
}

void Broker::CreateTopic(const std::string& name, int32_t partitions,
                         const std::vector<std::pair<std::string, std::string>>& settings) {
  char why[512];
  const std::unique_ptr<rd_kafka_NewTopic_t, Destroy<rd_kafka_NewTopic_destroy>> topic(
      rd_kafka_NewTopic_new(name.c_str(), partitions, 1, why, sizeof(why)));
  ASSERT_TRUE(topic) << why;
  for (const auto& [key, value] : settings)
    rd_kafka_NewTopic_set_config(topic.get(), key.c_str(), value.c_str());
  const std::string what = "creating topic " + name;
  const Event event = Ask(bootstrap(), what, [&](rd_kafka_t* client, rd_kafka_queue_t* queue) {
    rd_kafka_NewTopic_t* topics[] = {topic.get()};
    rd_kafka_CreateTopics(client, topics, 1, nullptr, queue);
  });
  if (!event) return;
  size_t count = 0;
  const auto* result = rd_kafka_event_CreateTopics_result(event.get());
  const auto* const* topics = rd_kafka_CreateTopics_result_topics(result, &count);
  CheckTopics(what, topics, count);
  AwaitPartitions(bootstrap(), name, partitions);
}

void Broker::GrowTopic(const std::string& name, int32_t partitions) {
  char why[512];
  const std::unique_ptr<rd_kafka_NewPartitions_t, Destroy<rd_kafka_NewPartitions_destroy>> grown(
      rd_kafka_NewPartitions_new(name.c_str(), static_cast<size_t>(partitions), why, sizeof(why)));
  ASSERT_TRUE(grown) << why;
  const std::string what = "growing topic " + name;
  const Event event = Ask(bootstrap(), what, [&](rd_kafka_t* client, rd_kafka_queue_t* queue) {
    rd_kafka_NewPartitions_t* topics[] = {grown.get()};
    rd_kafka_CreatePartitions(client, topics, 1, nullptr, queue);
  });
  if (!event) return;
  size_t count = 0;
  const auto* result = rd_kafka_event_CreatePartitions_result(event.get());
  const auto* const* topics = rd_kafka_CreatePartitions_result_topics(result, &count);
  CheckTopics(what, topics, count);
  AwaitPartitions(bootstrap(), name, partitions);
}

void Broker::DeleteTopic(const std::string& name) {
  const std::unique_ptr<rd_kafka_DeleteTopic_t, Destroy<rd_kafka_DeleteTopic_destroy>> topic(
      rd_kafka_DeleteTopic_new(name.c_str()));
  const std::string what = "deleting topic " + name;
  const Event event = Ask(bootstrap(), what, [&](rd_kafka_t* client, rd_kafka_queue_t* queue) {
    rd_kafka_DeleteTopic_t* topics[] = {topic.get()};
    rd_kafka_DeleteTopics(client, topics, 1, nullptr, queue);
  });
  if (!event) return;
  size_t count = 0;
  const auto* result = rd_kafka_event_DeleteTopics_result(event.get());
  const auto* const* topics = rd_kafka_DeleteTopics_result_topics(result, &count);
  CheckTopics(what, topics, count);
}

void Broker::DeleteRecordsBefore(const std::string& topic, int32_t partition, int64_t offset) {
  using Offsets = std::unique_ptr<rd_kafka_topic_partition_list_t,
                                  Destroy<rd_kafka_topic_partition_list_destroy>>;
  const Offsets before(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(before.get(), topic.c_str(), partition)->offset = offset;
  const std::unique_ptr<rd_kafka_DeleteRecords_t, Destroy<rd_kafka_DeleteRecords_destroy>> request(
      rd_kafka_DeleteRecords_new(before.get()));
  const std::string what = "deleting records of " + topic;
  const Event event = Ask(bootstrap(), what, [&](rd_kafka_t* client, rd_kafka_queue_t* queue) {
    rd_kafka_DeleteRecords_t* requests[] = {request.get()};
    rd_kafka_DeleteRecords(client, requests, 1, nullptr, queue);
  });
  if (!event) return;
  const auto* offsets =
      rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event.get()));
  for (int i = 0; i < offsets->cnt; ++i)
    EXPECT_EQ(offsets->elems[i].err, RD_KAFKA_RESP_ERR_NO_ERROR)
        << what << ": " << rd_kafka_err2str(offsets->elems[i].err);
}

Broker& SharedBroker() {
  static Broker broker;
  return broker;
}

std::string FreshName(const std::string& stem) {
  static std::atomic<int> next = 0;
  return stem + "-" + std::to_string(next++);
}

}  // namespace tacit::test
