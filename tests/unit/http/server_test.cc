#include "http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <random>
#include <thread>
#include <tuple>
#include <vector>

#include "base/files/unique_fd.h"
#include "echo_server.h"

namespace tacit::http {
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
    // No answer tells when the server has read a byte: the pause lets most be reads of their own.
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
  EXPECT_TRUE(polite.Closes());
  RawConnection old(server.address());
  ASSERT_TRUE(old.Send("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_EQ(old.Receive()->status, 200);
  EXPECT_TRUE(old.Closes());
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
  // The client learns of it although it keeps sending.
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
    std::this_thread::sleep_for(milliseconds(1));  // as above, most are reads of their own
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
    ASSERT_TRUE(connection.Closes()) << bytes;
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
    ASSERT_TRUE(connection.Closes()) << "round " << round;
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
  EXPECT_TRUE(third.Closes());
  second.reset();  // makes room, once the server has seen it
  EXPECT_TRUE(Eventually("there is room after a connection has gone", [&] {
    const auto again = Fetch("http://" + server.address(), "GET", "", kPatience);
    return again && again->status == 200;
  }));
}

TEST(ServerLimitsTest, BodiesTogetherAreBounded) {
  ServerOptions options = OnLoopback();
  options.max_body_bytes = 1000;
  options.max_held_bytes = 1500;
  EchoServer server(options);
  RawConnection first(server.address()), second(server.address());
  ASSERT_TRUE(first.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" +
                         std::string(900, 'x')));
  ASSERT_TRUE(
      Eventually("the first is seen", [&] { return server->held_bytes(Role::kPublic) == 900; }));
  const auto refused =
      Fetch("http://" + server.address(), "POST", std::string(700, 'x'), kPatience);
  ASSERT_TRUE(refused.has_value()) << refused.error().message;
  EXPECT_EQ(refused->status, 503u);
  ASSERT_TRUE(first.Send(std::string(100, 'x')));
  EXPECT_EQ(first.Receive()->status, 200);
  ASSERT_TRUE(second.Send(MakeRequest("POST", "/", std::string(700, 'x'))));
  EXPECT_EQ(second.Receive()->status, 200);
}

TEST(ServerTimeoutTest, SilentConnectionsAreClosed) {
  ServerOptions options = OnLoopback();
  options.idle_timeout = milliseconds(100);
  EchoServer server(options);
  RawConnection fresh(server.address()), used(server.address());
  ASSERT_TRUE(used.Send(MakeRequest("GET", "/")));
  // It came after the other connection, which therefore is known too.
  ASSERT_EQ(used.Receive()->status, 200);
  server.AwaitTick();
  server.Pass(milliseconds(100));
  server.AwaitTick();
  EXPECT_FALSE(fresh.HasNews() || used.HasNews()) << "their time is not over yet";
  server.Pass(milliseconds(1));
  EXPECT_TRUE(fresh.Closes());
  EXPECT_TRUE(used.Closes());
}

// A slow-loris: every byte comes in time, the request never does.
TEST(ServerTimeoutTest, ARequestThatDripsIs408) {
  ServerOptions options = OnLoopback();
  options.request_timeout = milliseconds(200);
  EchoServer server(options);
  RawConnection header(server.address()), body(server.address());
  ASSERT_TRUE(body.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"));
  ASSERT_TRUE(header.Send("GET / HTTP/1.1\r\n"));
  const auto drip = [&] {
    ASSERT_TRUE(header.Send("X") && body.Send("X"));
    // The same loop answers this after it has read the bytes above.
    ASSERT_TRUE(Fetch("http://" + server.address(), "GET", "", kPatience).has_value());
  };
  for (int i = 0; i < 10; ++i) {
    drip();
    server.Pass(milliseconds(20));
  }
  server.AwaitTick();
  EXPECT_FALSE(header.HasNews() || body.HasNews()) << "their time is not over yet";
  drip();
  server.Pass(milliseconds(1));
  for (RawConnection* connection : {&header, &body}) {
    const auto response = connection->Receive();
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->status, 408);
    EXPECT_TRUE(connection->Closes());
  }
}

TEST(ServerTimeoutTest, AClientThatDoesNotTakeItsAnswerIsCut) {
  constexpr uint64_t kAnswer = 64 << 20;
  ServerOptions options = OnLoopback();
  options.write_timeout = milliseconds(200);
  EchoServer server(options,
                    [](const Request&, Reply* reply) { reply->body.assign(kAnswer, 'x'); });
  RawConnection connection(server.address());
  ASSERT_TRUE(connection.Send(MakeRequest("GET", "/")));
  const auto held = [&] { return server->held_bytes(Role::kPublic); };
  ASSERT_TRUE(Eventually("the answer waits to be taken", [&] { return held() >= kAnswer; }));
  ASSERT_TRUE(Eventually("the client is cut", [&] {
    server.Pass(milliseconds(201));
    return held() == 0;
  }));
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
    std::this_thread::sleep_for(milliseconds(round % 20));  // the moment of the stop, each round
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
    EchoServer second(options);  // a server answers there
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
  ::close(left);  // the file stays, no server listens
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

// A process that hangs leaves its backlog full; a blocking probe would wait for it.
TEST(ListenTest, AUnixSocketWhoseBacklogIsFullIsInUse) {
  const std::string path = SocketPath("full");
  const auto make = [](int flags) { return ::socket(AF_UNIX, SOCK_STREAM | flags, 0); };
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  std::strncpy(un.sun_path, path.c_str(), sizeof(un.sun_path) - 1);
  const auto* name = reinterpret_cast<const sockaddr*>(&un);
  UniqueFd hung(make(0));
  ASSERT_EQ(::bind(hung.get(), name, sizeof(un)), 0);
  ASSERT_EQ(::listen(hung.get(), 1), 0);
  std::vector<UniqueFd> waiting;
  do waiting.emplace_back(make(SOCK_NONBLOCK));
  while (::connect(waiting.back().get(), name, sizeof(un)) == 0 && waiting.size() < 100);
  ASSERT_LT(waiting.size(), 100u);
  ServerOptions options;
  options.listeners = {{"unix:" + path, Role::kPublic}};
  std::future<void> tried = std::async(std::launch::async, [&] {
    EchoServer server(options);
    ASSERT_FALSE(server.started());
    EXPECT_EQ(server.error().code, ErrorCode::kUnavailable) << server.error().message;
    EXPECT_THAT(server.error().message, HasSubstr(path));
  });
  EXPECT_EQ(tried.wait_for(kPatience), std::future_status::ready) << "it waits for the listener";
  hung = UniqueFd();  // lets a probe that waits go on
  tried.wait();
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

// Listens on a socket, and sends its first client `head` and then `piece` again and again until the
// client goes, or has had `most` bytes.
class EndlessServer {
 public:
  EndlessServer(const std::string& path, std::string head, std::string piece, size_t most)
      : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    ::unlink(path.c_str());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    thread_ = std::thread([this, head = std::move(head), piece = std::move(piece), most] {
      const UniqueFd client(::accept(listener_.get(), nullptr, nullptr));
      const auto send = [&](const std::string& bytes) {
        return ::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(bytes.size());
      };
      for (bool taken = send(head); taken && sent_ < most; sent_ += taken ? piece.size() : 0)
        taken = send(piece);
    });
  }
  ~EndlessServer() {
    if (thread_.joinable()) thread_.join();
  }

  // Waits for the end, and returns the bytes of pieces that were taken.
  size_t Sent() {
    thread_.join();
    return sent_;
  }

 private:
  UniqueFd listener_;
  size_t sent_ = 0;
  std::thread thread_;
};

// A mistyped URL may be any server's. What it announces, or sends without an end, is not believed.
TEST(ClientTest, AnAnswerWithoutBoundsIsRefused) {
  const std::string path = SocketPath("endless"), head = "HTTP/1.1 200 OK\r\n",
                    data(size_t{1} << 20, 'x'), piece = "100000\r\n" + data + "\r\n";
  for (const auto& [name, fields, sends] :
       {std::tuple("chunks", "Transfer-Encoding: chunked\r\n\r\n", &piece),
        {"until it closes", "\r\n", &data},
        {"a length", "Content-Length: 99999999999999\r\n\r\n", &data}}) {
    EndlessServer server(path, head + fields, *sends, 3 * kAnswerBytesMost);
    const auto response = Fetch("unix:" + path, "GET", "", kPatience);
    ASSERT_FALSE(response.has_value()) << name;
    EXPECT_EQ(response.error().code, ErrorCode::kIo) << name;
    EXPECT_THAT(response.error().message, HasSubstr("its answer is larger than 64 MiB")) << name;
    EXPECT_LT(server.Sent(), 2 * kAnswerBytesMost) << name;
  }
  ::unlink(path.c_str());
}

// By order, not by time: the server answers only when the client has given up.
TEST(ClientTest, AServerThatIsTooSlowIsUnavailable) {
  std::promise<void> given_up;
  const std::shared_future<void> may_answer = given_up.get_future().share();
  EchoServer server(OnLoopback(), [&](const Request&, Reply*) { may_answer.wait(); });
  const auto response = Fetch("http://" + server.address(), "GET", "", milliseconds(50));
  given_up.set_value();
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace tacit::http
