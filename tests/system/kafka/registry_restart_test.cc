// A schema registry that goes away and comes back while framed messages are read: their partition
// waits, says so, and continues; nothing is lost or learnt twice.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>

#include "system/kafka/fault.h"
#include "unit/stream/http_responder.h"

namespace tacit::test {
namespace {

using stream::HttpResponder;
using testing::HasSubstr;

constexpr char kOurs[] = R"({"schemaType":"JSON","schema":"{\"type\":\"object\"}"})";
constexpr char kAvro[] = R"({"schema":"\"string\""})";
constexpr int kAvroId = 99;

class RegistryRestartTest : public FaultTest {
 protected:
  void SetUp() override {
    FaultTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    MakeTopic(SharedBroker(), 2);
    Up();
    Configure(
        fmt::format("format: json, framing: confluent, registry: {{url: \"{}\", timeout_ms: 500}}, "
                    "schema_wait_ms: 600000",
                    registry_->url()));
  }

  // The registry, where it was before; its first answers say that it is not ready yet.
  void Up(int not_ready = 0) {
    registry_ = std::make_unique<HttpResponder>(
        [this, left = std::make_shared<std::atomic<int>>(not_ready)](const std::string& head) {
          if (left->fetch_sub(1) > 0) return HttpResponder::Reply("503 Starting", "");
          const bool avro = head.starts_with(fmt::format("GET /schemas/ids/{} ", kAvroId));
          return HttpResponder::Reply("200 OK", avro ? kAvro : kOurs);
        },
        port_);
    port_ = registry_->port();
  }
  void Down() { registry_.reset(); }

  std::vector<TopicRecord> Framed(int32_t partition, int count, int schema, int times = 1) {
    std::vector<TopicRecord> records;
    for (int i = 0; i < count; ++i) {
      const size_t event = oracle_.Invent();
      expected_.push_back(times);
      std::string value("\0\0\0\0", 4);
      value.push_back(static_cast<char>(schema));
      value += fmt::format(R"({{"label":{},"features":{{"I1":1,"E":"{}"}}}})",
                           static_cast<int>(oracle_.Label(event)), oracle_.Value(event));
      records.push_back({.partition = partition, .value = std::move(value)});
    }
    return records;
  }

  std::unique_ptr<HttpResponder> registry_;
  uint16_t port_ = 0;
};

TEST_F(RegistryRestartTest, APartitionWaitsAndGoesOnWhenItIsBack) {
  for (int32_t p = 0; p < 2; ++p) Write(Framed(p, 48, 7));
  StartDaemon();
  AwaitLearnt();
  Down();
  Write(Framed(0, 16, 7));  // which it knows
  Write(Framed(0, 16, 8));
  Write(Framed(0, 16, 7));
  Write(Framed(1, 32, 7));
  AwaitReadyz("ready, degraded: ", "partition 0 waits at offset 64");
  ExpectServing();
  Up(/*not_ready=*/2);
  AwaitLearnt();
  AwaitReadyz("ready\n");

  // It goes again, and the daemon dies while it waits: the next one knows no schema at all.
  Down();
  Write(Framed(1, 16, 9));
  Write(Framed(1, 16, kAvroId, 0));
  Write(Framed(1, 16, 8));
  AwaitReadyz("ready, degraded: ", "partition 1 waits at offset 80");
  KillDaemon();
  Write(Framed(0, 16, 7));
  StartDaemon();
  AwaitReadyz("ready, degraded: ", "waits at offset");
  ExpectServing();
  Up();
  AwaitLearnt();
  KillDaemon();
  ASSERT_EQ(Learn().exit_code, 0);
  ExpectLearnt();
  ExpectSteps(StepsOf(0, 112) + StepsOf(0, 128));
  const DeadLetters letters = ReadDeadLetters(dir_ / "store.dead-letters.jsonl");
  EXPECT_EQ(letters.size(), 16u);
  for (const auto& [place, reason] : letters) {
    EXPECT_EQ(place.first, 1);
    EXPECT_THAT(reason, HasSubstr("AVRO"));
  }
}

}  // namespace
}  // namespace tacit::test
