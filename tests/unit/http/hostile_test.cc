// Tests what strangers do to a server, and that others do not suffer. By counts and a clock of the
// test's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "echo_server.h"
#include "http/gate.h"

namespace tacit::http {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

std::string Announce(size_t body_bytes, size_t sent = 0) {
  return "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body_bytes) +
         "\r\n\r\n" + std::string(sent, 'b');
}

ServerOptions OnBoth() {
  ServerOptions options = OnLoopback();
  options.listeners.push_back({"127.0.0.1:0", Role::kOperator});
  return options;
}

uint32_t StatusOf(const EchoServer& server, size_t listener, size_t body_bytes = 0) {
  const auto response =
      Fetch("http://" + server.address(listener), "POST", std::string(body_bytes, 'x'), kPatience);
  EXPECT_TRUE(response.has_value()) << response.error().message;
  return response ? response->status : 0;
}

using Connections = std::vector<std::unique_ptr<RawConnection>>;
// Opens `count` connections that send `bytes`, and waits until the server has seen all of them.
Connections Open(const EchoServer& server, size_t count, const std::string& bytes) {
  Connections open;
  for (size_t i = 0; i < count; ++i) {
    open.push_back(std::make_unique<RawConnection>(server.address()));
    EXPECT_TRUE(open.back()->Send(bytes));
  }
  // The same loop answers this after what came before.
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(Fetch("http://" + server.address(), "GET", "", kPatience).has_value());
  return open;
}

// Waits until requests and answers of the public's hold exactly this much: the server may still be
// reading what was sent.
testing::AssertionResult HoldsInTheEnd(EchoServer& server, uint64_t bytes) {
  return Eventually("the public's requests hold " + std::to_string(bytes) + " bytes",
                    [&] { return server->held_bytes(Role::kPublic) == bytes; });
}

TEST(BytePoolTest, LargeOnesLeaveAQuarterToSmallOnes) {
  BytePool pool(800 << 10);
  Holding large(pool), more(pool), small(pool), last(pool);
  EXPECT_TRUE(large.Set(500 << 10));
  EXPECT_FALSE(more.Set(200 << 10));  // 700 of 600
  EXPECT_EQ(more.bytes(), 0u);
  EXPECT_TRUE(more.Set(100 << 10));
  EXPECT_TRUE(small.Set(60 << 10));
  EXPECT_TRUE(last.Set(64 << 10));
  EXPECT_TRUE(pool.pressed());
  large.Set(0);
  EXPECT_FALSE(pool.pressed());
  EXPECT_EQ(pool.held(), uint64_t{224 << 10});
}

TEST(BytePoolTest, OneAloneIsAlwaysLetIn) {
  BytePool pool(1000);
  Holding one(pool), other(pool);
  EXPECT_TRUE(one.Set(5000));
  EXPECT_FALSE(other.Set(1));
}

TEST(HostileTest, HeadersAloneKeepNobodyOut) {
  ServerOptions options = OnBoth();
  options.max_body_bytes = 1 << 20;
  options.max_held_bytes = 8 << 20;
  EchoServer server(options);
  const Connections hostile = Open(server, 40, Announce(1 << 20));
  EXPECT_EQ(StatusOf(server, 0, 500'000), 200u);
  EXPECT_EQ(StatusOf(server, 1, 500'000), 200u);
}

// The clock stands still, so that no caller is cut for being slow: what is let in has room beside
// them.
TEST(HostileTest, BodiesThatAreNotFinishedLeaveRoomForSmallOnes) {
  ServerOptions options = OnBoth();
  options.max_body_bytes = 1 << 20;
  options.max_held_bytes = 2 << 20;
  EchoServer server(options);
  constexpr uint64_t kUnfinished = (1 << 20) - 1;
  const std::string unfinished = Announce(1 << 20, kUnfinished);
  const Connections first = Open(server, 1, unfinished);
  // A caller who asks for much earlier may get the room instead of the first.
  ASSERT_TRUE(HoldsInTheEnd(server, kUnfinished));
  EXPECT_EQ(StatusOf(server, 0, 900'000), 503u);
  EXPECT_EQ(StatusOf(server, 0, 60'000), 200u);
  // None of them finds room, and what each had taken by then it gives back.
  for (const auto& refused : Open(server, 7, unfinished))
    EXPECT_EQ(refused->Receive()->status, 503);
  EXPECT_TRUE(HoldsInTheEnd(server, kUnfinished)) << "the first still has its room";
  EXPECT_EQ(StatusOf(server, 0, 60'000), 200u);
  EXPECT_EQ(StatusOf(server, 0, 900'000), 503u);
  EXPECT_EQ(StatusOf(server, 1, 900'000), 200u) << "the operator has a pool of its own";
}

TEST(HostileTest, WhoStallsWhileOthersWaitIsCut) {
  ServerOptions options = OnLoopback();
  options.max_body_bytes = 1 << 20;
  options.max_held_bytes = 1 << 20;
  options.request_timeout = milliseconds(3'600'000);
  options.idle_timeout = milliseconds(3'600'000);
  options.write_timeout = milliseconds(40);  // nobody is slow to read; for a tick each 10 ms
  EchoServer server(options);
  // Half of the pool: no other caller is in the way.
  Connections slow = Open(server, 1, Announce(1 << 20, 400'000));
  ASSERT_TRUE(HoldsInTheEnd(server, 400'000));
  server.Pass(milliseconds(40'000));
  server.AwaitTick();
  EXPECT_FALSE(slow[0]->HasNews());
  Connections slower = Open(server, 1, Announce(1 << 20, 300'000));
  ASSERT_TRUE(HoldsInTheEnd(server, 700'000));
  // No time has passed for this one, and it is not too slow, however long this takes.
  server.AwaitTick();
  EXPECT_FALSE(slower[0]->HasNews());
  server.Pass(milliseconds(40'000));  // far more could have come
  const auto cut = slower[0]->Receive();
  ASSERT_TRUE(cut.has_value());
  EXPECT_EQ(cut->status, 408);
  EXPECT_THAT(cut->body, HasSubstr("too slowly while others wait"));
}

TEST(HostileTest, ThePublicsConnectionsLeaveTheOperatorsAlone) {
  ServerOptions options = OnBoth();
  options.max_connections = 4;
  EchoServer server(options);
  const Connections idle = Open(server, 4, "GET / HTTP/1.1\r\n");
  RawConnection refused(server.address(0));
  ASSERT_EQ(refused.Receive()->status, 503);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(StatusOf(server, 1), 200u);
  options.max_operator_connections = 2;
  EchoServer other(options);
  RawConnection first(other.address(1)), second(other.address(1)), third(other.address(1));
  EXPECT_EQ(third.Receive()->status, 503) << "the operator's gate has an end too";
  EXPECT_EQ(StatusOf(other, 0), 200u);
}

// By order, not by time: the public's handler ends only when the operator has been answered.
TEST(HostileTest, NoAnswerOfTheOperatorsWaitsForThePublics) {
  std::promise<void> began, end;
  const std::shared_future<void> may_end = end.get_future().share();
  EchoServer server(OnBoth(), [&](const Request& request, Reply* reply) {
    if (request.path == "/v1/score") {
      began.set_value();
      may_end.wait();
    }
    reply->body = "answered";
  });
  RawConnection busy(server.address(0));
  ASSERT_TRUE(busy.Send(MakeRequest("POST", "/v1/score")));
  began.get_future().wait();
  int answered = 0;
  for (int i = 0; i < 20 && answered == i; ++i) {
    const auto response = Fetch("http://" + server.address(1) + "/readyz", "GET", "", kPatience);
    if (response && response->body == "answered") ++answered;
  }
  end.set_value();  // after any outcome, or the server could not end
  EXPECT_EQ(answered, 20);
  EXPECT_EQ(busy.Receive()->status, 200);
}

TEST(HostileTest, AnswersThatNobodyTakesAreBounded) {
  ServerOptions options = OnBoth();
  options.max_held_bytes = 80 << 20;
  const std::string large(32 << 20, 'z');
  EchoServer server(options, [&](const Request& request, Reply* reply) {
    if (request.path == "/large") reply->body = large;
  });
  Connections lazy;
  for (int i = 0; i < 2; ++i) {
    lazy.push_back(std::make_unique<RawConnection>(server.address()));
    ASSERT_TRUE(lazy.back()->Send(MakeRequest("GET", "/large")));
  }
  // Large ones leave a quarter free, so the second has no room.
  ASSERT_TRUE(HoldsInTheEnd(server, 32 << 20));
  for (int i = 0; i < 3; ++i) {
    const auto response = Fetch("http://" + server.address() + "/large", "GET", "", kPatience);
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(response->status, 503u);
    EXPECT_THAT(response->body, HasSubstr("too many answers"));
  }
  EXPECT_EQ(StatusOf(server, 0), 200u);
}

TEST(FramingTest, WhatServersDifferInIs400) {
  EchoServer server(OnLoopback());
  for (const std::string& bytes :
       {std::string("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n\tc\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\n Host: x\r\n\r\n"),
        std::string("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 5\r\n\r\nhello"),
        std::string("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n"
                    "hello"),
        std::string(9000, 'M') + " / HTTP/1.1\r\nHost: x\r\n\r\n"}) {
    RawConnection connection(server.address());
    ASSERT_TRUE(connection.Send(bytes));
    const auto response = connection.Receive();
    ASSERT_TRUE(response.has_value()) << bytes.substr(0, 100);
    EXPECT_EQ(response->status, 400) << bytes.substr(0, 100);
    EXPECT_TRUE(connection.Closes()) << bytes.substr(0, 100);
  }
}

TEST(FramingTest, AFoldThatDripsIsSeen) {
  EchoServer server(OnLoopback());
  RawConnection connection(server.address());
  for (const char c : std::string("GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n")) {
    if (!connection.Send(std::string(1, c))) break;
    // No answer tells when the server has read a byte: the pause lets most be reads of their own.
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(connection.Receive()->status, 400);
}

std::string Chunked(const std::string& extension, size_t chunks, size_t bytes,
                    const std::string& trailers = "") {
  std::string request = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  char size[20];
  std::snprintf(size, sizeof(size), "%zx", bytes);
  for (size_t i = 0; i < chunks; ++i)
    request += size + extension + "\r\n" + std::string(bytes, 'c') + "\r\n";
  return request + "0\r\n" + trailers + "\r\n";
}

TEST(FramingTest, ExtensionsAndTrailersCountAsHeader) {
  ServerOptions options = OnLoopback();
  options.max_header_bytes = 2000;
  EchoServer server(options);
  std::string trailers;
  for (int i = 0; i < 150; ++i) trailers += "Some-Field: value\r\n";
  for (const std::string& bytes :
       {Chunked(";e=" + std::string(97, 'e'), 30, 1), Chunked(";" + std::string(3000, 'e'), 1, 5),
        Chunked("", 1, 5, trailers)}) {
    RawConnection connection(server.address());
    connection.Send(bytes);
    const auto response = connection.Receive();
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->status, 431) << bytes.size();
  }
  // The parts that chunks need are no header, however small they are.
  for (const std::string& bytes :
       {Chunked("", 5000, 1), Chunked(";a=b", 100, 1000), Chunked("", 3, 5, "A: b\r\n")}) {
    RawConnection connection(server.address());
    ASSERT_TRUE(connection.Send(bytes));
    EXPECT_EQ(connection.Receive()->status, 200) << bytes.size();
  }
}

uint32_t WithHeader(const std::string& address, const std::string& fields) {
  RawConnection connection(address);
  EXPECT_TRUE(connection.Send("GET /metrics HTTP/1.1\r\n" + fields + "\r\n"));
  const auto response = connection.Receive();
  return response ? static_cast<uint32_t>(response->status) : 0;
}

// A page of a stranger's whose name leads to this machine asks with that name.
TEST(HostTest, ANameThatIsNotTheServersIs421) {
  ServerOptions options = OnBoth();
  options.hosts = {"Tacit.Example"};
  EchoServer server(options);
  for (const std::string& address : {server.address(0), server.address(1)}) {
    for (const char* host : {"evil.example", "evil.example:80", "127.0.0.1.evil.example",
                             "tacit.example.evil", "localhost.evil", "[::1].evil", "", "1"})
      EXPECT_EQ(WithHeader(address, std::string("Host: ") + host + "\r\n"), 421u) << host;
    for (const std::string host :
         {"localhost", "LOCALHOST:1", "127.0.0.1", "192.0.2.7:80", "[::1]", "[::1]:8980",
          "tacit.example:443", "tacit.example.", "a.localhost"})
      EXPECT_EQ(WithHeader(address, "Host: " + host + "\r\n"), 200u) << host;
  }
  RawConnection old(server.address());
  ASSERT_TRUE(old.Send("GET / HTTP/1.0\r\nHost: evil.example\r\n\r\n"));
  EXPECT_EQ(old.Receive()->status, 421);
  options.hosts = {"any"};
  EXPECT_EQ(WithHeader(EchoServer(options).address(), "Host: evil.example\r\n"), 200u);
}

TEST(HostTest, ASuffixStandsForAllNamesBelowItAndNoOthers) {
  ServerOptions options = OnBoth();
  options.hosts = {".Svc.Example"};
  EchoServer server(options);
  for (const std::string& address : {server.address(0), server.address(1)}) {
    for (const char* host : {"svc.example", "evil-svc.example", "evilsvc.example", ".svc.example",
                             "a..svc.example", "a b.svc.example", "evil.example/.svc.example",
                             "a.svc.example.evil", "svc.example.svc.evil", "a.svc", ""})
      EXPECT_EQ(WithHeader(address, std::string("Host: ") + host + "\r\n"), 421u) << host;
    for (const char* host :
         {"tacit.svc.example", "TACIT.Shop.SVC.example:8980", "a_1.b-2.svc.example."})
      EXPECT_EQ(WithHeader(address, std::string("Host: ") + host + "\r\n"), 200u) << host;
  }
}

TEST(HostTest, AUnixSocketAnswersToAnyName) {
  ServerOptions options;
  options.listeners = {{"unix:" + SocketPath("names"), Role::kOperator}};
  EchoServer server(options);
  ASSERT_TRUE(server.started()) << server.error().message;
  EXPECT_EQ(WithHeader(server.address(), "Host: whatever.example\r\n"), 200u);
}

TEST(HostTest, PagesOfOtherSitesGetNothingFromTheOperator) {
  EchoServer server(OnBoth());
  const std::string host = "Host: localhost:9\r\n";
  for (const std::string fields :
       {"Origin: http://evil.example\r\n", "Origin: null\r\n", "Origin: http://localhost:8\r\n",
        "Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: same-site\r\n"})
    EXPECT_EQ(WithHeader(server.address(1), host + fields), 403u) << fields;
  for (const std::string fields : {"", "Origin: http://localhost:9\r\n", "Sec-Fetch-Site: none\r\n",
                                   "Sec-Fetch-Site: same-origin\r\n"})
    EXPECT_EQ(WithHeader(server.address(1), host + fields), 200u) << fields;
  EXPECT_EQ(WithHeader(server.address(0), host + "Origin: http://evil.example\r\n"), 200u);
}

TEST(AddressTest, LocalOnesAreToldFromOthers) {
  for (const char* local : {"127.0.0.1:1", "[::1]:1", "localhost:1", "unix:/x", "127.9.9.9:1"})
    EXPECT_TRUE(IsLocalAddress(local)) << local;
  for (const char* other : {"0.0.0.0:1", "[::]:1", "192.0.2.1:1", "example.org:1", "nonsense"})
    EXPECT_FALSE(IsLocalAddress(other)) << other;
}

// With any umask: 0660, and the folder is as it was.
TEST(ListenTest, AUnixSocketIsTheGroupsWhateverTheUmask) {
  for (const mode_t mask : {0, 0022, 0077, 0177}) {
    const mode_t before = ::umask(mask);
    ServerOptions options;
    const std::string path = SocketPath("umask"), operators = SocketPath("umask_operator");
    options.listeners = {{"unix:" + path, Role::kPublic}, {"unix:" + operators, Role::kOperator}};
    EchoServer server(options);
    ::umask(before);
    ASSERT_TRUE(server.started()) << server.error().message;
    for (const std::string& socket : {path, operators}) {
      struct stat info {};
      ASSERT_EQ(::stat(socket.c_str(), &info), 0);
      EXPECT_EQ(info.st_mode & 07777, 0660u) << std::oct << mask;
      EXPECT_EQ(Fetch("unix:" + socket, "GET", "", kPatience)->status, 200u);
    }
  }
}

}  // namespace
}  // namespace tacit::http
