#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/process.h"

namespace tacit::test {

inline constexpr char kDefaultVersion[] = "3.9.1";

// The reason why no broker can be started on this machine, or "" when one can: tools/kafka needs
// Java and the jars that `tools/kafka fetch` brings.
std::string BrokerMissing(const std::string& version = kDefaultVersion);

// True if TACIT_REQUIRE asks for a broker: then its absence is a failure.
bool BrokerRequired();

// First line of a test that needs a broker: fails or skips it where there is none.
#define TACIT_NEED_BROKER(version)                                                                \
  do {                                                                                            \
    const std::string tacit_missing_ = ::tacit::test::BrokerMissing(version);                     \
    if (tacit_missing_.empty()) break;                                                            \
    if (::tacit::test::BrokerRequired()) FAIL() << "TACIT_REQUIRE has kafka: " << tacit_missing_; \
    GTEST_SKIP() << tacit_missing_;                                                               \
  } while (false)

// A real Apache Kafka of one node on free ports of loopback, with a data folder of its own, run by
// tools/kafka. Wiped with the object, and when the test program dies. One thread at a time.
class Broker {
 public:
  struct Options {
    std::string version = kDefaultVersion;
    bool secure = false;          // TLS, and TLS with SASL, beside plain text
    std::string properties = {};  // lines for the broker's server.properties
  };

  // Starts it and waits until it answers; a failure is one of the test, and running() is false.
  Broker() : Broker(Options{}) {}
  explicit Broker(Options options);
  ~Broker();
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  // Plain text, TLS, TLS with SASL (SCRAM, PLAIN): "127.0.0.1:PORT".
  std::string bootstrap() const { return Address(0); }
  std::string tls() const { return Address(2); }
  std::string sasl_tls() const { return Address(3); }
  // With `secure`: a file of the CA's certificate, the user, a file of its password.
  std::string ca_file() const { return data_ / "secure/ca.pem"; }
  std::string user() const { return "tacit"; }
  std::string password_file() const { return data_ / "secure/password"; }

  bool running() const;
  void Start();  // after Stop or Kill; what it held is still there
  void Stop();   // an orderly end
  void Kill();   // SIGKILL
  // With `secure`: takes another certificate of the same authority, good for `days` from this many
  // days from now on: (-40, 30) has expired. Shown from the next Start on.
  void Certify(int first_day, int days);
  void Suspend();  // SIGSTOP: connections stay, no answer comes
  void Continue();

  // By librdkafka's admin interface; a failure is one of the test.
  void CreateTopic(const std::string& name, int32_t partitions = 1,
                   const std::vector<std::pair<std::string, std::string>>& settings = {});
  void GrowTopic(const std::string& name, int32_t partitions);  // to this many in all
  void DeleteTopic(const std::string& name);
  // Everything below `offset` is gone, as when retention has passed over it.
  void DeleteRecordsBefore(const std::string& topic, int32_t partition, int64_t offset);

  // The log of the broker itself, for a test that fails.
  std::string Log() const { return ReadFile(data_ / "broker.log"); }
  int port() const { return port_; }

 private:
  std::string Address(int offset) const { return "127.0.0.1:" + std::to_string(port_ + offset); }
  // tools/kafka COMMAND; adds a failure when it fails.
  bool Tool(const std::string& command);
  pid_t Pid() const;

  const Options options_;
  TempDir data_;
  int port_ = 0;
};

// One plain broker for all tests of a program, started with the first that asks.
Broker& SharedBroker();

// A name that no other test of this run has used: topics of a shared broker do not meet.
std::string FreshName(const std::string& stem);

}  // namespace tacit::test
