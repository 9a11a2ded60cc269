#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "echo_server.h"

namespace tacit::serve {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(DrainTest, ARequestInFlightIsAnsweredAndIdleOnesAreClosed) {
  std::promise<void> started;
  EchoServer server(OnLoopback(), [&](const Request& request, Reply* reply) {
    if (request.path != "/slow") return;
    started.set_value();
    std::this_thread::sleep_for(milliseconds(300));
    reply->body = "done";
  });
  RawConnection idle(server.address()), busy(server.address());
  ASSERT_TRUE(idle.Send(MakeRequest("GET", "/")));
  ASSERT_EQ(idle.Receive()->status, 200);
  ASSERT_TRUE(busy.Send(MakeRequest("GET", "/slow")));
  started.get_future().wait();

  const auto start = steady_clock::now();
  EXPECT_EQ(server->Stop(milliseconds(10'000)), 0u);
  EXPECT_LT(steady_clock::now() - start, milliseconds(5000));  // no longer than the handler
  const auto response = busy.Receive();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->body, "done");
  EXPECT_THAT(response->head, testing::HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(idle.ClosesWithin(milliseconds(1000)));
  EXPECT_FALSE(RawConnection(server.address()).connected());
  EXPECT_EQ(server->Stop(milliseconds(10'000)), 0u);  // again: nothing
}

TEST(DrainTest, ARequestHalfReceivedMayBeFinished) {
  EchoServer server(OnLoopback());
  RawConnection connection(server.address());
  ASSERT_TRUE(connection.Send("POST /half HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab"));
  // Another request on the same loop is answered only after the bytes above have been taken.
  ASSERT_TRUE(Fetch("http://" + server.address(), "GET", "", kPatience).has_value());
  auto stopping =
      std::async(std::launch::async, [&] { return server->Stop(milliseconds(10'000)); });
  std::this_thread::sleep_for(milliseconds(100));
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
  const auto start = steady_clock::now();
  EXPECT_EQ(server->Stop(milliseconds(200)), 1u);
  const auto took = steady_clock::now() - start;
  EXPECT_GE(took, milliseconds(200));
  EXPECT_LT(took, milliseconds(3000));
  EXPECT_TRUE(connection.ClosesWithin(milliseconds(1000)));
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
    std::this_thread::sleep_for(milliseconds(30));
    EXPECT_EQ(server->Stop(milliseconds(5000)), 0u) << "round " << round;
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
  EXPECT_TRUE(connection->ClosesWithin(milliseconds(1000)));
}

}  // namespace
}  // namespace tacit::serve
