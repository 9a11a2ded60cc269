#include "serve/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>

#include "echo_server.h"

namespace tacit::serve {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

TEST(ServerTest, AHandlerSeesTheWholeRequest) {
  EchoServer server(OnLoopback());
  const auto response =
      Fetch("http://" + server.address() + "/a/b?x=1&y=%20", "PUT", "body", kPatience);
  ASSERT_TRUE(response.has_value()) << response.error().message;
  EXPECT_EQ(response->status, 200u);
  EXPECT_EQ(response->body, "PUT /a/b?x=1&y=%20 body public");
  EXPECT_EQ(response->Header("content-type"), "text/plain");
  EXPECT_THAT(std::string(response->Header("Date")), testing::EndsWith(" GMT"));
}

TEST(ServerTest, AConnectionServesManyRequests) {
  EchoServer server(OnLoopback());
  RawConnection connection(server.address());
  for (int i = 0; i < 50; ++i) {
    const std::string body(static_cast<size_t>(i) * 3000, 'x');  // some in one piece, some not
    ASSERT_TRUE(connection.Send(MakeRequest("POST", "/n", body)));
    const auto response = connection.Receive();
    ASSERT_TRUE(response.has_value()) << i;
    EXPECT_EQ(response->body, "POST /n? " + body + " public");
    EXPECT_THAT(response->head, Not(HasSubstr("Connection: close")));
  }
}

TEST(ServerTest, PipelinedRequestsAreAnsweredInOrder) {
  EchoServer server(OnLoopback());
  RawConnection connection(server.address());
  std::string requests;
  for (int i = 0; i < 200; ++i)
    requests += MakeRequest("POST", "/" + std::to_string(i), std::string(i % 7, 'b'));
  ASSERT_TRUE(connection.Send(requests));
  for (int i = 0; i < 200; ++i) {
    const auto response = connection.Receive();
    ASSERT_TRUE(response.has_value()) << i;
    EXPECT_EQ(response->body,
              "POST /" + std::to_string(i) + "? " + std::string(i % 7, 'b') + " public");
  }
}

TEST(ServerTest, ARequestMayComeByteByByte) {
  EchoServer server(OnLoopback());
  RawConnection connection(server.address());
  for (const char c : MakeRequest("POST", "/slow", "abc")) {
    ASSERT_TRUE(connection.Send(std::string(1, c)));
    std::this_thread::sleep_for(milliseconds(1));
  }
  const auto response = connection.Receive();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->body, "POST /slow? abc public");
}

TEST(ServerTest, ChunkedBodiesAreJoined) {
  EchoServer server(OnLoopback());
  RawConnection connection(server.address());
  ASSERT_TRUE(
      connection.Send("POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                      "3\r\nabc\r\n4;ext=1\r\ndefg\r\n0\r\n\r\n"));
  EXPECT_EQ(connection.Receive()->body, "POST /c? abcdefg public");
  ASSERT_TRUE(connection.Send(MakeRequest("GET", "/next")));
  EXPECT_EQ(connection.Receive()->body, "GET /next?  public");
}

TEST(ServerTest, HeadHasTheLengthButNoBody) {
  EchoServer server(OnLoopback());
  RawConnection connection(server.address());
  ASSERT_TRUE(connection.Send(MakeRequest("HEAD", "/h") + MakeRequest("GET", "/g")));
  const auto head = connection.Receive(true);
  ASSERT_TRUE(head.has_value());
  EXPECT_THAT(head->head, HasSubstr("Content-Length: 15\r\n"));  // "GET /h?  public"
  EXPECT_EQ(connection.Receive()->body, "GET /g?  public");
}

TEST(ServerTest, AClientThatAsksIsToldToContinue) {
  EchoServer server(OnLoopback());
  RawConnection connection(server.address());
  ASSERT_TRUE(
      connection.Send("POST /e HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
                      "Expect: 100-continue\r\n\r\n"));
  const auto go_on = connection.Receive();
  ASSERT_TRUE(go_on.has_value());
  EXPECT_EQ(go_on->status, 100);
  ASSERT_TRUE(connection.Send("ab"));
  EXPECT_EQ(connection.Receive()->body, "POST /e? ab public");
}

TEST(ServerTest, ConnectionsCloseWhenAskedTo) {
  EchoServer server(OnLoopback());
  RawConnection polite(server.address());
  ASSERT_TRUE(polite.Send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(polite.Receive()->head, HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(polite.ClosesWithin(kPatience));
  RawConnection old(server.address());
  ASSERT_TRUE(old.Send("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_EQ(old.Receive()->status, 200);
  EXPECT_TRUE(old.ClosesWithin(kPatience));
  RawConnection kept(server.address());
  ASSERT_TRUE(kept.Send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
  EXPECT_THAT(kept.Receive()->head, HasSubstr("Connection: keep-alive\r\n"));
  ASSERT_TRUE(kept.Send("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_EQ(kept.Receive()->status, 200);
}

TEST(ServerTest, AnAnswerLargerThanTheSocketsBuffersArrivesWhole) {
  const std::string large(20 << 20, 'z');
  EchoServer server(OnLoopback(), [&](const Request&, Reply* reply) { reply->body = large; });
  const auto response = Fetch("http://" + server.address(), "GET", "", kPatience);
  ASSERT_TRUE(response.has_value()) << response.error().message;
  EXPECT_EQ(response->body, large);
}

TEST(ServerTest, AHandlerThatThrowsIs500AndTheServerGoesOn) {
  EchoServer server(OnLoopback(), [](const Request& request, Reply*) {
    if (request.path == "/bad") throw std::bad_alloc();
  });
  RawConnection connection(server.address());
  ASSERT_TRUE(connection.Send(MakeRequest("GET", "/bad") + MakeRequest("GET", "/good")));
  EXPECT_EQ(connection.Receive()->status, 500);
  EXPECT_EQ(connection.Receive()->status, 200);
}

TEST(ServerLimitsTest, ABodyTooLargeIs413BeforeItIsRead) {
  ServerOptions options = OnLoopback();
  options.max_body_bytes = 1000;
  EchoServer server(options);
  RawConnection announced(server.address());
  ASSERT_TRUE(announced.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n"));
  const auto refused = announced.Receive();
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status, 413);
  EXPECT_EQ(refused->body,
            "{\"error\":{\"code\":413,\"message\":\"a body has at most 1000 bytes\"}}\n");
  // The client learns of it although it goes on sending.
  const auto large =
      Fetch("http://" + server.address(), "POST", std::string(3 << 20, 'x'), kPatience);
  ASSERT_TRUE(large.has_value()) << large.error().message;
  EXPECT_EQ(large->status, 413u);
  RawConnection chunked(server.address());
  ASSERT_TRUE(
      chunked.Send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                   "400\r\n" +
                   std::string(1024, 'x') + "\r\n0\r\n\r\n"));
  EXPECT_EQ(chunked.Receive()->status, 413);
  RawConnection fits(server.address());
  ASSERT_TRUE(fits.Send(MakeRequest("POST", "/", std::string(1000, 'x'))));
  EXPECT_EQ(fits.Receive()->status, 200);
}

TEST(ServerLimitsTest, AHeaderTooLargeIs431HoweverItComes) {
  ServerOptions options = OnLoopback();
  options.max_header_bytes = 2000;
  EchoServer server(options);
  RawConnection at_once(server.address());
  ASSERT_TRUE(
      at_once.Send("GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(3000, 'x') + "\r\n\r\n"));
  EXPECT_EQ(at_once.Receive()->status, 431);
  RawConnection endless_line(server.address());
  ASSERT_TRUE(endless_line.Send("GET /" + std::string(3000, 'x')));
  EXPECT_EQ(endless_line.Receive()->status, 431);
  RawConnection line_by_line(server.address());
  ASSERT_TRUE(line_by_line.Send("GET / HTTP/1.1\r\n"));
  for (int i = 0; i < 150; ++i) {
    line_by_line.Send("Some-Field: value\r\n");
    std::this_thread::sleep_for(milliseconds(1));
  }
  const auto refused = line_by_line.Receive();
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status, 431);
}

TEST(ServerLimitsTest, WhatIsNotHttpIs400) {
  EchoServer server(OnLoopback());
  for (const std::string bytes :
       {"hello\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/3.0\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"}) {
    RawConnection connection(server.address());
    ASSERT_TRUE(connection.Send(bytes));
    const auto response = connection.Receive();
    ASSERT_TRUE(response.has_value()) << bytes;
    EXPECT_EQ(response->status, 400) << bytes;
    EXPECT_THAT(response->body, HasSubstr("{\"error\":{\"code\":400,\"message\":\""));
    EXPECT_TRUE(connection.ClosesWithin(kPatience)) << bytes;
  }
  RawConnection gzip(server.address());
  ASSERT_TRUE(gzip.Send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n"));
  EXPECT_EQ(gzip.Receive()->status, 501);
}

TEST(ServerLimitsTest, RandomBytesNeverStopIt) {
  EchoServer server(OnLoopback());
  std::mt19937 random(11);
  const std::string good = MakeRequest("POST", "/x?y", "body");
  for (int round = 0; round < 400; ++round) {
    RawConnection connection(server.address());
    ASSERT_TRUE(connection.connected());
    std::string bytes = good;
    if (round % 2 == 0) {
      bytes.resize(random() % 300);
      for (char& c : bytes) c = static_cast<char>(random());
    } else {
      for (uint32_t i = 0; i < 1 + random() % 4; ++i)
        bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    connection.Send(bytes);
    connection.CloseSending();
    EXPECT_TRUE(connection.ClosesWithin(kPatience)) << "round " << round;
  }
  const auto after = Fetch("http://" + server.address() + "/alive", "GET", "", kPatience);
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(after->status, 200u);
}

TEST(ServerLimitsTest, OneConnectionTooManyIs503) {
  ServerOptions options = OnLoopback();
  options.max_connections = 2;
  EchoServer server(options);
  RawConnection first(server.address());
  auto second = std::make_unique<RawConnection>(server.address());
  for (RawConnection* connection : {&first, second.get()}) {
    ASSERT_TRUE(connection->Send(MakeRequest("GET", "/")));
    ASSERT_EQ(connection->Receive()->status, 200);
  }
  RawConnection third(server.address());
  const auto refused = third.Receive();
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status, 503);
  EXPECT_THAT(refused->head, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_TRUE(third.ClosesWithin(kPatience));
  second.reset();  // makes room, once the server has seen it
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const auto again = Fetch("http://" + server.address(), "GET", "", kPatience);
    if (again && again->status == 200) return;
    std::this_thread::sleep_for(milliseconds(5));
  }
  FAIL() << "no room after a connection has gone";
}

TEST(ServerLimitsTest, BodiesTogetherAreBounded) {
  ServerOptions options = OnLoopback();
  options.max_body_bytes = 1000;
  options.max_body_bytes_total = 1500;
  EchoServer server(options);
  RawConnection first(server.address()), second(server.address());
  ASSERT_TRUE(first.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc"));
  // Until the first is seen, the second is let in; from then on it is refused.
  bool was_refused = false;
  for (int attempt = 0; attempt < 1000 && !was_refused; ++attempt) {
    const auto response =
        Fetch("http://" + server.address(), "POST", std::string(600, 'x'), kPatience);
    ASSERT_TRUE(response.has_value()) << response.error().message;
    was_refused = response->status == 503;
  }
  EXPECT_TRUE(was_refused);
  ASSERT_TRUE(first.Send(std::string(997, 'x')));
  EXPECT_EQ(first.Receive()->status, 200);
  ASSERT_TRUE(second.Send(MakeRequest("POST", "/", std::string(600, 'x'))));
  EXPECT_EQ(second.Receive()->status, 200);
}

TEST(ServerTimeoutTest, SilentConnectionsAreClosed) {
  ServerOptions options = OnLoopback();
  options.idle_timeout = milliseconds(100);
  EchoServer server(options);
  RawConnection fresh(server.address()), used(server.address());
  ASSERT_TRUE(used.Send(MakeRequest("GET", "/")));
  ASSERT_EQ(used.Receive()->status, 200);
  EXPECT_TRUE(fresh.ClosesWithin(milliseconds(2000)));
  EXPECT_TRUE(used.ClosesWithin(milliseconds(2000)));
}

// A slow-loris: every byte comes in time, the request never does.
TEST(ServerTimeoutTest, ARequestThatDripsIs408) {
  ServerOptions options = OnLoopback();
  options.request_timeout = milliseconds(200);
  EchoServer server(options);
  RawConnection header(server.address()), body(server.address());
  ASSERT_TRUE(body.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"));
  ASSERT_TRUE(header.Send("GET / HTTP/1.1\r\n"));
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < milliseconds(400)) {
    header.Send("X");
    body.Send("X");
    std::this_thread::sleep_for(milliseconds(10));
  }
  for (RawConnection* connection : {&header, &body}) {
    const auto response = connection->Receive();
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->status, 408);
    EXPECT_TRUE(connection->ClosesWithin(kPatience));
  }
}

TEST(ServerTimeoutTest, AClientThatDoesNotTakeItsAnswerIsCut) {
  ServerOptions options = OnLoopback();
  options.write_timeout = milliseconds(200);
  EchoServer server(options,
                    [](const Request&, Reply* reply) { reply->body.assign(64 << 20, 'x'); });
  RawConnection connection(server.address());
  ASSERT_TRUE(connection.Send(MakeRequest("GET", "/")));
  // Long enough on a busy machine too: a client that reads before it is cut gets the whole answer.
  std::this_thread::sleep_for(milliseconds(3000));
  EXPECT_FALSE(connection.Receive().has_value());  // cut in the middle
}

// A tick that is due when the server is stopped does not keep its thread.
TEST(ServerTimeoutTest, AServerStopsWhileItsTickIsDue) {
  ServerOptions options = OnLoopback();
  options.write_timeout = milliseconds(40);  // a tick of 10 ms
  for (int round = 0; round < 40; ++round) {
    EchoServer server(options, [](const Request&, Reply* reply) {
      std::this_thread::sleep_for(milliseconds(12));
      reply->body = "late";
    });
    RawConnection first(server.address()), second(server.address());
    ASSERT_TRUE(first.Send(MakeRequest("GET", "/")) && second.Send(MakeRequest("GET", "/")));
    std::this_thread::sleep_for(milliseconds(round % 20));
  }
}

TEST(ListenTest, APortInUseIsUnavailableAndNamed) {
  EchoServer server(OnLoopback());
  ServerOptions options;
  options.listeners = {{server.address(), Role::kPublic}};
  EchoServer second(options);
  ASSERT_FALSE(second.started());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message, HasSubstr(server.address()));
}

TEST(ListenTest, AnAddressThatCannotBeIsInvalid) {
  for (const std::string address : {"nonsense", "192.0.2.1:80", "no such host:80"}) {
    ServerOptions options;
    options.listeners = {{address, Role::kPublic}};
    EchoServer server(options);
    ASSERT_FALSE(server.started()) << address;
    EXPECT_EQ(server.error().code, ErrorCode::kInvalidArgument) << server.error().message;
    EXPECT_THAT(server.error().message, HasSubstr(address));
  }
}

TEST(ListenTest, ListenersHaveTheirRoles) {
  ServerOptions options;
  const std::string path = SocketPath("roles");
  options.listeners = {{"127.0.0.1:0", Role::kPublic}, {"unix:" + path, Role::kOperator}};
  options.threads = 2;
  EchoServer server(options);
  ASSERT_TRUE(server.started()) << server.error().message;
  EXPECT_THAT(server.address(0), testing::MatchesRegex("127.0.0.1:[1-9][0-9]*"));
  EXPECT_EQ(server.address(1), "unix:" + path);
  EXPECT_EQ(Fetch("http://" + server.address(0), "GET", "", kPatience)->body, "GET /?  public");
  EXPECT_EQ(Fetch(server.address(1) + ":/x", "GET", "", kPatience)->body, "GET /x?  operator");
}

TEST(ListenTest, ListensOnIpv6WhereThereIsOne) {
  ServerOptions options;
  options.listeners = {{"[::1]:0", Role::kPublic}};
  EchoServer server(options);
  if (!server.started()) {
    EXPECT_THAT(server.error().message, HasSubstr("[::1]:0"));
    return;
  }
  EXPECT_THAT(server.address(), testing::MatchesRegex("\\[::1\\]:[1-9][0-9]*"));
  EXPECT_EQ(Fetch("http://" + server.address(), "GET", "", kPatience)->body, "GET /?  public");
}

TEST(ListenTest, AUnixSocketIsPrivateToItsGroupAndGoesWithTheServer) {
  const std::string path = SocketPath("mode");
  ServerOptions options;
  options.listeners = {{"unix:" + path, Role::kPublic}};
  {
    EchoServer server(options);
    ASSERT_TRUE(server.started()) << server.error().message;
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0007, 0u);
    EchoServer second(options);  // somebody answers there
    ASSERT_FALSE(second.started());
    EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(Fetch("unix:" + path, "GET", "", kPatience)->status, 200u);
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

TEST(ListenTest, AStaleUnixSocketIsReplacedAndAFileIsNot) {
  const std::string path = SocketPath("stale");
  const int left = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  std::strncpy(un.sun_path, path.c_str(), sizeof(un.sun_path) - 1);
  ASSERT_EQ(::bind(left, reinterpret_cast<sockaddr*>(&un), sizeof(un)), 0);
  ::close(left);  // the file stays, nobody listens
  ServerOptions options;
  options.listeners = {{"unix:" + path, Role::kPublic}};
  {
    EchoServer server(options);
    ASSERT_TRUE(server.started()) << server.error().message;
    EXPECT_EQ(Fetch("unix:" + path, "GET", "", kPatience)->status, 200u);
  }
  FILE* const file = std::fopen(path.c_str(), "w");
  std::fclose(file);
  EchoServer server(options);
  EXPECT_FALSE(server.started());
  EXPECT_EQ(::access(path.c_str(), F_OK), 0) << "a file that is no socket was removed";
  ::unlink(path.c_str());
}

TEST(ClientTest, NobodyThereIsUnavailable) {
  const auto refused = Fetch("http://127.0.0.1:1/", "GET", "", kPatience);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("127.0.0.1:1"));
  EXPECT_EQ(Fetch("unix:/nowhere.sock", "GET", "", kPatience).error().code,
            ErrorCode::kUnavailable);
  EXPECT_EQ(Fetch("ftp://x", "GET", "", kPatience).error().code, ErrorCode::kInvalidArgument);
}

TEST(ClientTest, AServerThatIsTooSlowIsUnavailable) {
  EchoServer server(OnLoopback(),
                    [](const Request&, Reply*) { std::this_thread::sleep_for(milliseconds(300)); });
  const auto start = std::chrono::steady_clock::now();
  const auto response = Fetch("http://" + server.address(), "GET", "", milliseconds(50));
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(280));
}

}  // namespace
}  // namespace tacit::serve
