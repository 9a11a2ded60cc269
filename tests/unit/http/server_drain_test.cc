#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "echo_server.h"

namespace tacit::http {
namespace {

using std::chrono::milliseconds;

// Far more than a test may take: a stop that waited for its deadline would be seen.
constexpr std::chrono::hours kNever{1};

// Waits until the server that is stopping takes no connection any more.
testing::AssertionResult IsClosed(const EchoServer& server) {
  return Eventually("the server is closed to others",
                    [&] { return !RawConnection(server.address()).connected(); });
}

TEST(DrainTest, ARequestInFlightIsAnsweredAndIdleOnesAreClosed) {
  std::promise<void> started, may_end;
  ServerOptions options = OnLoopback();
  options.threads = 2;  // the second one's handler does not hold up the first
  EchoServer server(options, [&](const Request& request, Reply* reply) {
    if (request.path != "/slow") return;
    started.set_value();
    may_end.get_future().wait();
    reply->body = "done";
  });
  RawConnection idle(server.address()), busy(server.address());
  ASSERT_TRUE(idle.Send(MakeRequest("GET", "/")));
  ASSERT_EQ(idle.Receive()->status, 200);
  ASSERT_TRUE(busy.Send(MakeRequest("GET", "/slow")));
  started.get_future().wait();

  auto stopping = std::async(std::launch::async, [&] { return server->Stop(kNever); });
  EXPECT_TRUE(IsClosed(server));
  EXPECT_TRUE(idle.Closes());
  EXPECT_FALSE(busy.HasNews());
  may_end.set_value();
  EXPECT_EQ(stopping.get(), 0u);
  const auto response = busy.Receive();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->body, "done");
  EXPECT_THAT(response->head, testing::HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(server->Stop(kNever), 0u);  // again: nothing
}

TEST(DrainTest, ARequestHalfReceivedMayBeFinished) {
  EchoServer server(OnLoopback());
  RawConnection connection(server.address());
  ASSERT_TRUE(connection.Send("POST /half HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab"));
  // Another request on the same loop is answered only after the bytes above have been taken.
  ASSERT_TRUE(Fetch("http://" + server.address(), "GET", "", kPatience).has_value());
  auto stopping = std::async(std::launch::async, [&] { return server->Stop(kNever); });
  EXPECT_TRUE(IsClosed(server));
  ASSERT_TRUE(connection.Send("cd"));
  const auto response = connection.Receive();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->body, "POST /half? abcd public");
  EXPECT_EQ(stopping.get(), 0u);
}

TEST(DrainTest, TheDeadlineCutsWhatIsNotFinished) {
  EchoServer server(OnLoopback());
  RawConnection connection(server.address());
  ASSERT_TRUE(connection.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab"));
  ASSERT_TRUE(Fetch("http://" + server.address(), "GET", "", kPatience).has_value());
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(server->Stop(milliseconds(200)), 1u);
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(200));
  EXPECT_TRUE(connection.Closes());
}

TEST(DrainTest, StoppingUnderLoadLosesNoAnswer) {
  for (int round = 0; round < 5; ++round) {
    ServerOptions options = OnLoopback();
    options.threads = 2;
    EchoServer server(options);
    std::atomic<bool> stop{false};
    std::atomic<int> broken{0}, answered{0};
    std::vector<std::thread> clients;
    for (int c = 0; c < 4; ++c)
      clients.emplace_back([&] {
        RawConnection connection(server.address());
        while (!stop && connection.Send(MakeRequest("POST", "/x", "payload"))) {
          const auto response = connection.Receive();
          if (!response) break;  // closed between two requests
          if (response->body != "POST /x? payload public") ++broken;
          ++answered;
        }
      });
    EXPECT_TRUE(Eventually("the server is under load", [&] { return answered >= 20; }));
    EXPECT_EQ(server->Stop(kNever), 0u) << "round " << round;
    stop = true;
    for (std::thread& client : clients) client.join();
    EXPECT_EQ(broken, 0);
    EXPECT_GT(answered, 0);
  }
}

TEST(DrainTest, AServerMayBeDestroyedWithoutStop) {
  RawConnection* connection = nullptr;
  std::unique_ptr<RawConnection> kept;
  {
    EchoServer server(OnLoopback());
    kept = std::make_unique<RawConnection>(server.address());
    connection = kept.get();
    ASSERT_TRUE(connection->Send(MakeRequest("GET", "/")));
    ASSERT_EQ(connection->Receive()->status, 200);
  }
  EXPECT_TRUE(connection->Closes());
}

}  // namespace
}  // namespace tacit::http
