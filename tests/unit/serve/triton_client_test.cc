// Triton's own client for Python reads what the server says of its models, and gets the
// probabilities of /v1/score.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "fake_snapshot.h"
#include "serve/api.h"
#include "support/process.h"
#include "unit/http/echo_server.h"

namespace tacit::serve {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

std::vector<float> FloatsOf(const json::value& array) {
  std::vector<float> floats;
  for (const json::value& number : array.as_array())
    floats.push_back(static_cast<float>(number.to_number<double>()));
  return floats;
}

TEST(TritonClientTest, AStockClientGetsTheProbabilitiesOfScore) {
  std::string missing;
  const std::string folder = test::PypiFolder("triton", &missing);
  if (folder.empty()) GTEST_SKIP() << missing;
  FakeStore store(SmallModel());
  store.Commit(6);
  metrics::Registry registry;
  Services services;
  services.latest = [&store] { return store.Latest(); };
  services.models = {SmallModel()};
  services.code_version = "1.2.3";
  services.metrics = &registry;
  http::ServerOptions options;
  options.listeners = {{"127.0.0.1:0", http::Role::kPublic}};
  const auto server = http::Server::Start(options, MakeApi(services), registry);
  ASSERT_TRUE(server.has_value()) << server.error().message;
  const std::string address = (*server)->addresses()[0];
  const auto scores = [&](std::string_view body) {
    const auto response =
        http::Fetch("http://" + address + "/v1/score", "POST", body, test::kPatience);
    EXPECT_TRUE(response && response->status == 200);
    return FloatsOf(json::parse(response->body).at("scores"));
  };
  const test::Ended asked =
      test::Run({"/usr/bin/env", "PYTHONPATH=" + folder, "/usr/bin/python3",
                 std::string(TACIT_SOURCE_DIR) + "/tests/unit/serve/triton_client.py", address});
  ASSERT_EQ(asked.exit_code, 0) << asked.err;
  const json::value got = json::parse(asked.out);
  EXPECT_EQ(FloatsOf(got.at("binary")),
            scores(R"({"rows":[{"features":{"I1":3,"I2":-1.5,"C1":"68fd1e64","C2":"x",
                       "tags":["a","b"]}},{"features":{"I1":7,"tags":["b"]}},
                       {"features":{"C2":"17"}}]})"));
  EXPECT_EQ(got.at("mixed"), got.at("binary"));
  EXPECT_EQ(FloatsOf(got.at("text")),
            scores(R"({"rows":[{"features":{"C1":"68fd1e64","C2":"x","tags":["a","b"]}},
                       {"features":{"tags":["b"]}},{"features":{"C2":"17"}}]})"));
  EXPECT_NE(got.at("text"), got.at("binary"));
  EXPECT_EQ(got.at("server").at("name"), "tacit");
  EXPECT_EQ(got.at("model").at("versions"), json::parse("[\"6\"]"));
  EXPECT_EQ(got.at("model").at("inputs").as_array().size(), 5u);
  EXPECT_EQ(got.at("index").at(0).at("state"), "READY");
  EXPECT_EQ(got.at("parameters").at("epsilon").to_number<double>(), 1.5);
  EXPECT_THAT(std::string(got.at("refusal").as_string()),
              HasSubstr("model 'ctr' has no version 5: version 6 is served"));
}

}  // namespace
}  // namespace tacit::serve
