// The Open Inference Protocol for models that score rows, held against /v1/score.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <fstream>
#include <limits>

#include "fake_snapshot.h"
#include "infer_rig.h"

namespace tacit::serve {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

constexpr char kInfer[] = "/v2/models/ctr/infer";
constexpr char kScoreRows[] =
    R"({"rows":[{"features":{"I1":3,"I2":-1.5,"C1":"68fd1e64","C2":"x","tags":["a","b"]}},
                {"features":{"I1":7,"tags":["b"]}},{"features":{"C2":"17"}}]})";
// The same rows as tensors.
constexpr char kTensors[] =
    R"({"id":"42","inputs":[
        {"name":"I1","shape":[3],"datatype":"FP64","data":[3,7,null]},
        {"name":"I2","shape":[3,1],"datatype":"FP64","data":[-1.5,null,null]},
        {"name":"C1","shape":[3],"datatype":"BYTES","data":["68fd1e64","",null]},
        {"name":"C2","shape":[3,1],"datatype":"BYTES","data":[["x"],[""],["17"]]},
        {"name":"tags","shape":[3,2],"datatype":"BYTES","data":["a","b","","b","",""]}]})";

class InferRowsTest : public testing::Test {
 protected:
  explicit InferRowsTest(std::optional<RepositoryCommands> repository = {}, double epsilon = 4)
      : store_(SmallModel("ctr", epsilon)), rig_(ServicesFor(std::move(repository), epsilon)) {
    store_.Commit(6);
  }
  Services ServicesFor(std::optional<RepositoryCommands> repository, double epsilon) {
    Services services;
    services.latest = [this] { return store_.Latest(); };
    services.models = {SmallModel("ctr", epsilon)};
    services.repository = std::move(repository);
    services.code_version = "1.2.3";
    return services;
  }
  std::vector<float> Scores() {
    const http::Reply reply = rig_.Ask("POST", "/v1/score", kScoreRows);
    EXPECT_EQ(reply.status, 200u) << reply.body;
    return Numbers(json::parse(reply.body).at("scores"));
  }
  static std::vector<float> Numbers(const json::value& array) {
    std::vector<float> numbers;
    for (const json::value& number : array.as_array())
      numbers.push_back(static_cast<float>(number.to_number<double>()));
    return numbers;
  }
  json::value Infer(std::string_view body, std::string_view path = kInfer) {
    const http::Reply reply = rig_.Ask("POST", path, body);
    EXPECT_EQ(reply.status, 200u) << reply.body;
    return json::parse(reply.body);
  }
  std::string Refusal(std::string_view body, uint32_t status = 400,
                      std::string_view path = kInfer) {
    const http::Reply reply = rig_.Ask("POST", path, body);
    EXPECT_EQ(reply.status, status) << body << reply.body;
    return std::string(json::parse(reply.body).at("error").as_string());
  }

  FakeStore store_;
  InferRig rig_;
};

TEST_F(InferRowsTest, TensorsGetTheScoresOfTheSameRows) {
  const json::value answer = Infer(kTensors);
  EXPECT_EQ(answer.at("model_name"), "ctr");
  EXPECT_EQ(answer.at("model_version"), "6");
  EXPECT_EQ(answer.at("id"), "42");
  std::string hash = "sha256:";
  for (int i = 0; i < 32; ++i) hash += "06";
  EXPECT_EQ(
      answer.at("parameters"),
      json::parse(fmt::format(
          R"({{"version":6,"snapshot":"{}","epsilon":1.5,"delta":1e-6,"private":true}})", hash)));
  const json::array& outputs = answer.at("outputs").as_array();
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].at("name"), "probability");
  EXPECT_EQ(outputs[0].at("datatype"), "FP32");
  EXPECT_EQ(outputs[0].at("shape"), json::parse("[3]"));
  const std::vector<float> scores = Scores();
  EXPECT_EQ(Numbers(outputs[0].at("data")), scores);
  EXPECT_NE(scores[0], scores[1]);
  // The whole answer, byte by byte, as the protocol's examples have it.
  EXPECT_EQ(
      rig_.Ask("POST", kInfer, kTensors).body,
      fmt::format(R"({{"model_name":"ctr","model_version":"6","id":"42","parameters":{{)"
                  R"("version":6,"snapshot":"{}","epsilon":1.5,"delta":1e-06,"private":true}},)"
                  R"("outputs":[{{"name":"probability","datatype":"FP32","shape":[3],)"
                  R"("data":[{},{},{}]}}]}})"
                  "\n",
                  hash, scores[0], scores[1], scores[2]));
}

// Elements may come before what they are.
TEST_F(InferRowsTest, KeysMayComeInAnyOrder) {
  const json::value answer = Infer(
      R"({"outputs":[{"name":"probability"}],"inputs":[
          {"data":[[3],[7],[null]],"datatype":"FP64","name":"I1","shape":[3,1]},
          {"name":"I2","data":[-1.5,null,null],"shape":[3],"datatype":"FP64"},
          {"name":"tags","shape":[3,2],"datatype":"BYTES","data":[["a","b"],["","b"],["",""]]},
          {"shape":[3],"data":["x","","17"],"datatype":"BYTES","name":"C2"},
          {"datatype":"BYTES","data":["68fd1e64","",""],"shape":[3],"name":"C1"}],
          "parameters":{"binary_data_output":false},"model_name":"ctr"})");
  EXPECT_EQ(Numbers(answer.at("outputs").at(0).at("data")), Scores());
  EXPECT_FALSE(answer.as_object().contains("id"));
}

TEST_F(InferRowsTest, IntegersStandForTheirDigits) {
  const auto infer = [&](std::string_view inputs) {
    return Numbers(
        Infer(fmt::format(R"({{"inputs":[{}]}})", inputs)).at("outputs").at(0).at("data"));
  };
  EXPECT_EQ(infer(R"({"name":"C2","shape":[1],"datatype":"INT64","data":[17]})")[0], Scores()[2]);
  EXPECT_EQ(infer(R"({"name":"C2","shape":[1],"datatype":"INT32","data":[-5]})"),
            infer(R"({"name":"C2","shape":[1],"datatype":"BYTES","data":["-5"]})"));
  EXPECT_EQ(infer(R"({"name":"I1","shape":[1],"datatype":"INT64","data":[7]})"),
            infer(R"({"name":"I1","shape":[1],"datatype":"FP32","data":[7]})"));
  for (const char* datatype : {"UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32"}) {
    EXPECT_EQ(infer(fmt::format(R"({{"name":"C2","shape":[1],"datatype":"{}","data":[17]}})",
                                datatype))[0],
              Scores()[2]);
    EXPECT_EQ(
        infer(fmt::format(R"({{"name":"I1","shape":[1],"datatype":"{}","data":[7]}})", datatype)),
        infer(R"({"name":"I1","shape":[1],"datatype":"FP32","data":[7]})"));
  }
  EXPECT_EQ(infer(R"({"name":"I1","shape":[2],"datatype":"BOOL","data":[true,false]})"),
            infer(R"({"name":"I1","shape":[2],"datatype":"FP32","data":[1,0]})"));
  // 0.1 is another number in FP32.
  EXPECT_EQ(infer(R"({"name":"I2","shape":[1],"datatype":"FP32","data":[0.1]})"),
            infer(fmt::format(R"({{"name":"I2","shape":[1],"datatype":"FP64","data":[{:.17g}]}})",
                              0.1f)));
}

TEST_F(InferRowsTest, BinaryTensorsGetTheSameScores) {
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  const std::string head =
      R"({"inputs":[{"name":"I1","shape":[3],"datatype":"FP32","parameters":{"binary_data_size":12}},
          {"name":"I2","shape":[3,1],"datatype":"FP64","parameters":{"binary_data_size":24}},
          {"name":"C1","shape":[3],"datatype":"BYTES","data":["68fd1e64","",""]},
          {"name":"C2","shape":[3],"datatype":"BYTES","parameters":{"binary_data_size":15}},
          {"name":"tags","shape":[3,2],"datatype":"BYTES","parameters":{"binary_data_size":27}}])";
  const std::string tensors = Bytes<float>({3, 7, kNone}) + Bytes<double>({-1.5, kNone, kNone}) +
                              Texts({"x", "", "17"}) + Texts({"a", "b", "", "b", "", ""});
  const http::Reply plain = rig_.AskBinary(kInfer, head + "}", tensors);
  ASSERT_EQ(plain.status, 200u) << plain.body;
  EXPECT_EQ(Numbers(json::parse(plain.body).at("outputs").at(0).at("data")), Scores());
  EXPECT_TRUE(plain.headers.empty());
  // An output's own wish goes before the request's.
  for (const char* wish :
       {R"(,"outputs":[{"name":"probability","parameters":{"binary_data":true}}]})",
        R"(,"parameters":{"binary_data_output":true}})"}) {
    const http::Reply reply = rig_.AskBinary(kInfer, head + wish, tensors);
    ASSERT_EQ(reply.status, 200u) << reply.body;
    EXPECT_EQ(reply.content_type, "application/octet-stream");
    const std::string text = JsonOf(reply);
    const json::value output = json::parse(text).at("outputs").at(0);
    EXPECT_EQ(output.at("parameters"), json::parse(R"({"binary_data_size":12})"));
    EXPECT_FALSE(output.as_object().contains("data"));
    ASSERT_EQ(reply.body.size(), text.size() + 12);
    std::vector<float> scores(3);
    std::memcpy(scores.data(), reply.body.data() + text.size(), 12);
    EXPECT_EQ(scores, Scores());
  }
  const http::Reply json_again =
      rig_.AskBinary(kInfer, head + R"(,"parameters":{"binary_data_output":true},
               "outputs":[{"name":"probability","parameters":{"binary_data":false}}]})",
                     tensors);
  EXPECT_EQ(json_again.content_type, "application/json");
}

// Every length that lies is refused, and the message names the tensor.
TEST_F(InferRowsTest, BinaryLengthsThatLieAreRefusedByName) {
  const auto refusal = [&](const std::string& size, const std::string& tensors,
                           const std::string& datatype = "BYTES",
                           const std::string& shape = "[2]") {
    const std::string head = fmt::format(
        R"({{"inputs":[{{"name":"{}","shape":{},"datatype":"{}","parameters":{{"binary_data_size":{}}}}}]}})",
        datatype == "BYTES" ? "C1" : "I1", shape, datatype, size);
    const http::Reply reply = rig_.AskBinary(kInfer, head, tensors);
    EXPECT_EQ(reply.status, 400u) << reply.body;
    return std::string(json::parse(reply.body).at("error").as_string());
  };
  EXPECT_THAT(refusal("10", Texts({"a", ""})),
              HasSubstr("input 'C1': \"binary_data_size\" is 10, 9 "
                        "bytes are left of the body"));
  EXPECT_THAT(refusal("8", Texts({"a", ""})),
              HasSubstr("input 'C1' ends within the length of element 1 of 2"));
  EXPECT_THAT(refusal("18446744073709551615", ""), HasSubstr("must be a whole number"));
  EXPECT_THAT(refusal("-1", ""),
              HasSubstr("input 'C1': \"binary_data_size\" must be a whole number"));
  EXPECT_THAT(refusal("9223372036854775807", "abc"), HasSubstr("3 bytes are left"));
  EXPECT_THAT(refusal("8", Bytes<uint32_t>({0xffffffff, 0})),
              HasSubstr("input 'C1': element 0 has 4294967295 bytes, a text has at most 65536"));
  EXPECT_THAT(refusal("8", Bytes<uint32_t>({5, 0})),
              HasSubstr("input 'C1': element 0 has 5 bytes, 4 are left"));
  EXPECT_THAT(refusal("9", Texts({"", ""}) + "x"),
              HasSubstr("input 'C1' has 1 bytes after its last element of 2"));
  EXPECT_THAT(refusal("8", Texts({"", ""}) + "x"), HasSubstr("1 bytes after the last tensor"));
  EXPECT_THAT(refusal("8", Bytes<float>({1, 2}), "FP64"),
              HasSubstr("input 'I1' has 8 bytes; 2 elements of FP64 take 16"));
  EXPECT_THAT(refusal("8", Bytes<double>({INFINITY}), "FP64", "[1]"),
              HasSubstr("input 'I1', row 0: I1 is out of range"));
  EXPECT_THAT(refusal("8", "12345678", "FP64", "[4294967296,4294967296]"),
              HasSubstr("input 'I1' has more than 262144 elements"));

  const auto with_length = [&](const std::string& length) {
    const http::Reply reply =
        rig_.Ask("POST", kInfer, kTensors, {{std::string(kJsonBytesField), length}});
    EXPECT_EQ(reply.status, 400u) << length;
    return std::string(json::parse(reply.body).at("error").as_string());
  };
  EXPECT_THAT(with_length("100000"), HasSubstr("Inference-Header-Content-Length is 100000, the"));
  EXPECT_THAT(with_length("18446744073709551616"), HasSubstr("must be a whole number"));
  EXPECT_THAT(with_length("-1"), HasSubstr("must be a whole number"));
  EXPECT_THAT(with_length("10"), HasSubstr("not JSON: it ends too early"));
  EXPECT_THAT(with_length("0"), HasSubstr("not JSON"));
}

TEST_F(InferRowsTest, WhatIsWrongIsSaidByName) {
  const auto input = [&](std::string_view fields) {
    return Refusal(fmt::format(R"({{"inputs":[{{{}}}]}})", fields));
  };
  EXPECT_THAT(input(R"("name":"C3","shape":[1],"datatype":"BYTES","data":["x"])"),
              HasSubstr("unknown feature 'C3' (did you mean 'C1'?)"));
  EXPECT_THAT(
      input(R"("name":"I1","shape":[1],"datatype":"BYTES","data":["x"])"),
      HasSubstr("input 'I1' of ctr: datatype must be FP32, FP64, BOOL or an integer's, not BYTES"));
  EXPECT_THAT(input(R"("name":"C1","shape":[1],"datatype":"FP32","data":[1])"),
              HasSubstr("input 'C1' of ctr: datatype must be BYTES or an integer's, not FP32"));
  EXPECT_THAT(input(R"("name":"C1","shape":[1],"datatype":"TEXT","data":[1])"),
              HasSubstr("input 'C1': there is no datatype 'TEXT'"));
  EXPECT_THAT(input(R"("name":"I1","shape":[1,2],"datatype":"FP32","data":[1,2])"),
              HasSubstr("input 'I1' of ctr: shape must be [rows] or [rows,1], not [1,2]"));
  EXPECT_THAT(input(R"("name":"I1","shape":[],"datatype":"FP32","data":[1])"),
              HasSubstr("shape must be [rows] or [rows,1], not []"));
  EXPECT_THAT(input(R"("name":"tags","shape":[1,1,1],"datatype":"BYTES","data":["a"])"),
              HasSubstr("input 'tags' of ctr: shape must be [rows,n] or [rows], not [1,1,1]"));
  EXPECT_THAT(input(R"("name":"I1","shape":[-1],"datatype":"FP32","data":[1])"),
              HasSubstr("input 'I1': \"shape\" must hold whole numbers"));
  EXPECT_THAT(input(R"("name":"I1","shape":[1.5],"datatype":"FP32","data":[1])"),
              HasSubstr("input 'I1': \"shape\" must hold whole numbers"));
  EXPECT_THAT(input(R"("name":"I1","shape":[2],"datatype":"FP32","data":[1])"),
              HasSubstr("input 'I1' has 1 elements, its shape 2"));
  EXPECT_THAT(input(R"("name":"I1","shape":[1],"datatype":"FP32","data":[1,2])"),
              HasSubstr("input 'I1' has more elements than its shape, 1"));
  EXPECT_THAT(input(R"("name":"I1","shape":[2],"datatype":"FP32","data":[1,"2"])"),
              HasSubstr("input 'I1': element 1 is no FP32"));
  EXPECT_THAT(input(R"("name":"I1","shape":[1],"datatype":"FP32","data":[1e39])"),
              HasSubstr("input 'I1': element 0 is no FP32"));
  EXPECT_THAT(input(R"("name":"I1","shape":[1],"datatype":"FP64","data":[1e999])"),
              HasSubstr("input 'I1': element 0 is no FP64"));
  EXPECT_THAT(input(R"("name":"I1","shape":[1],"datatype":"INT32","data":[2147483648])"),
              HasSubstr("input 'I1': element 0 is no INT32"));
  EXPECT_THAT(input(R"("name":"I1","shape":[1],"datatype":"INT64","data":[null])"),
              HasSubstr("input 'I1': element 0 is no INT64"));
  EXPECT_THAT(input(R"("name":"C1","shape":[1],"datatype":"BYTES","data":[1])"),
              HasSubstr("input 'C1': element 0 is no BYTES"));
  EXPECT_THAT(input(R"("name":"C1","shape":[2,1],"datatype":"BYTES","data":[["a"],"b"])"),
              HasSubstr("input 'C1': \"data\" is neither flat nor nested as its shape"));
  EXPECT_THAT(input(R"("name":"C1","shape":[2,1],"datatype":"BYTES","data":["b",["a"]])"),
              HasSubstr("input 'C1': \"data\" is neither flat nor nested as its shape"));
  EXPECT_THAT(
      input(R"("name":"tags","shape":[2,2],"datatype":"BYTES","data":[["a"],["b","c","d"]])"),
      HasSubstr("input 'tags': an array within \"data\" has 1 elements, its shape 2"));
  EXPECT_THAT(input(R"("name":"C1","shape":[1],"datatype":"BYTES","data":[["a"]])"),
              HasSubstr("input 'C1': \"data\" is nested deeper than its shape"));
  EXPECT_THAT(input(R"("name":"tags","shape":[3,0],"datatype":"BYTES","data":[[]])"),
              HasSubstr("input 'tags': \"data\" has 1 arrays, which are not its shape"));
  EXPECT_THAT(input(R"("name":"C1","shape":[1],"datatype":"BYTES","data":[{}])"),
              HasSubstr("input 'C1': \"data\" must hold scalars"));
  EXPECT_THAT(input(R"("name":"C1","shape":[1],"datatype":"BYTES","data":"a")"),
              HasSubstr("input 'C1': \"data\" is of the wrong kind"));
  EXPECT_THAT(input(R"("name":"C1","shape":[1],"datatype":"BYTES")"),
              HasSubstr("input 'C1' has neither \"data\" nor \"binary_data_size\""));
  EXPECT_THAT(input(R"("name":"C1","shape":[1],"datatype":"BYTES","data":[""],
                       "parameters":{"binary_data_size":4})"),
              HasSubstr("input 'C1' has both"));
  EXPECT_THAT(input(R"("shape":[1],"datatype":"BYTES","data":[""])"),
              HasSubstr("input 0 has no \"name\""));
  EXPECT_THAT(input(R"("name":"C1","datatype":"BYTES","data":[""])"),
              HasSubstr("input 'C1' has no \"shape\""));
  EXPECT_THAT(input(R"("name":"C1","shape":[1],"data":[""])"),
              HasSubstr("input 'C1' has no \"datatype\""));
  EXPECT_THAT(input(R"("name":"C1","shape":[1],"datatype":"BYTES","dta":[""])"),
              HasSubstr("input 'C1': unknown key 'dta' (did you mean 'data'?)"));
  EXPECT_THAT(input(R"("name":"C1","shape":[1],"datatype":"BYTES","data":[""],
                       "parameters":{"shared_memory_region":"x"})"),
              HasSubstr("input 'C1': unknown parameter 'shared_memory_region'"));
  EXPECT_THAT(input(R"("name":"I1","shape":[4097],"datatype":"FP32",
                       "parameters":{"binary_data_size":0})"),
              HasSubstr("input 'I1' of ctr: more than 4096 rows"));
  constexpr char kOne[] = R"({"name":"I1","shape":[1],"datatype":"FP32","data":[1]})";
  EXPECT_THAT(Refusal(fmt::format(R"({{"inputs":[{},{}]}})", kOne, kOne)),
              HasSubstr("input 'I1' is there twice"));
  EXPECT_THAT(
      Refusal(fmt::format(
          R"({{"inputs":[{},{{"name":"C1","shape":[2],"datatype":"BYTES","data":["",""]}}]}})",
          kOne)),
      HasSubstr("input 'C1' has 2 rows, input 'I1' has 1"));
  const auto more = [&](std::string_view fields) {
    return Refusal(fmt::format(R"({{"inputs":[{}],{}}})", kOne, fields));
  };
  EXPECT_THAT(more(R"("outputs":[{"name":"probabilty"}])"),
              HasSubstr("unknown output 'probabilty' (did you mean 'probability'?) of ctr"));
  EXPECT_THAT(more(R"("outputs":[{"name":"probability"},{"name":"probability"}])"),
              HasSubstr("output 'probability' is asked for twice"));
  EXPECT_THAT(more(R"("outputs":[{"parameters":{}}])"), HasSubstr("an output has no \"name\""));
  EXPECT_THAT(more(R"("outputs":[{"name":""}])"), HasSubstr("unknown output '' of ctr"));
  EXPECT_THAT(more(R"("outputs":[{"name":"probability","parameters":{"classification":2}}])"),
              HasSubstr("unknown parameter 'classification'"));
  EXPECT_THAT(more(R"("parameters":{"k":3})"), HasSubstr("\"k\" is for models of the next item"));
  EXPECT_THAT(more(R"("model_name":"other")"),
              HasSubstr("\"model_name\" is 'other', the path's is 'ctr'"));
  EXPECT_THAT(more(R"("inputs":[])"), HasSubstr("\"inputs\" is there twice"));
  EXPECT_THAT(Refusal("{}"), HasSubstr("\"inputs\" is missing"));
  EXPECT_THAT(Refusal(R"({"inputs":[]})"), HasSubstr("\"inputs\" is empty"));
  EXPECT_THAT(Refusal(R"({"inputs":[1]})"), HasSubstr("\"inputs\" must hold objects"));
  EXPECT_THAT(Refusal("[]"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(Refusal(""), HasSubstr("not JSON"));
  EXPECT_THAT(Refusal(kTensors, 404, "/v2/models/ctx/infer"),
              HasSubstr("unknown model 'ctx' (did you mean 'ctr'?); there is 'ctr'"));
}

TEST_F(InferRowsTest, AVersionIsTheCommitThatIsServed) {
  EXPECT_EQ(Infer(kTensors, "/v2/models/ctr/versions/6/infer").at("model_version"), "6");
  EXPECT_EQ(Refusal(kTensors, 404, "/v2/models/ctr/versions/5/infer"),
            "model 'ctr' has no version 5: version 6 is served");
  EXPECT_THAT(Refusal(kTensors, 404, "/v2/models/ctr/versions/v6/infer"),
              HasSubstr("has no version 'v6': a version is the number of a commit"));
  for (const char* path : {"/v2/models/ctr", "/v2/models/ctr/ready"}) {
    const std::string_view tail = std::string_view(path).substr(14);
    EXPECT_EQ(rig_.Ask("GET", path).status, 200u);
    EXPECT_EQ(rig_.Ask("GET", fmt::format("/v2/models/ctr/versions/6{}", tail)).status, 200u);
    EXPECT_EQ(rig_.Ask("GET", fmt::format("/v2/models/ctr/versions/7{}", tail)).status, 404u);
  }
  store_.Commit(7);
  EXPECT_EQ(Infer(kTensors).at("model_version"), "7");
  EXPECT_EQ(Refusal(kTensors, 404, "/v2/models/ctr/versions/6/infer"),
            "model 'ctr' has no version 6: version 7 is served");
}

TEST_F(InferRowsTest, ServerAndModelAreDescribed) {
  EXPECT_EQ(rig_.Ask("GET", "/v2").body,
            "{\"name\":\"tacit\",\"version\":\"1.2.3\",\"extensions\":[\"binary_tensor_data\","
            "\"model_repository\"]}\n");
  EXPECT_EQ(rig_.Ask("GET", "/v2/health/live").body, "{\"live\":true}\n");
  EXPECT_EQ(rig_.Ask("GET", "/v2/health/ready").body, "{\"live\":true,\"ready\":true}\n");
  EXPECT_EQ(rig_.Ask("GET", "/v2/models/ctr/ready").body, "{\"name\":\"ctr\",\"ready\":true}\n");
  EXPECT_EQ(json::parse(rig_.Ask("GET", "/v2/models/ctr").body), json::parse(R"({
      "name":"ctr","versions":["6"],"platform":"tacit_rows","inputs":[
      {"name":"I1","datatype":"FP32","shape":[-1]},{"name":"I2","datatype":"FP32","shape":[-1]},
      {"name":"C1","datatype":"BYTES","shape":[-1]},{"name":"C2","datatype":"BYTES","shape":[-1]},
      {"name":"tags","datatype":"BYTES","shape":[-1,-1]}],
      "outputs":[{"name":"probability","datatype":"FP32","shape":[-1]}]})"));
  rig_.readiness = {false, "training has stopped"};
  const http::Reply stopped = rig_.Ask("GET", "/v2/health/ready");
  EXPECT_EQ(stopped.status, 503u);
  EXPECT_EQ(stopped.body, "{\"error\":\"training has stopped\"}\n");
  EXPECT_EQ(rig_.Ask("GET", "/v2/health/live").status, 200u);
}

TEST_F(InferRowsTest, BeforeTheFirstCommitNothingIsReady) {
  store_.Commit(0);
  EXPECT_EQ(rig_.Ask("GET", "/v2/health/ready").status, 503u);
  EXPECT_EQ(rig_.Ask("GET", "/v2/models/ctr/ready").status, 503u);
  EXPECT_EQ(rig_.Ask("GET", "/v2/models/ctr/versions/0").status, 503u);
  EXPECT_THAT(Refusal(kTensors, 503), HasSubstr("has no committed model yet"));
  EXPECT_EQ(json::parse(rig_.Ask("GET", "/v2/models/ctr").body).at("versions"), json::parse("[]"));
  EXPECT_EQ(
      rig_.Ask("POST", "/v2/repository/index").body,
      "[{\"name\":\"ctr\",\"state\":\"UNAVAILABLE\",\"reason\":\"learner 'ctr' has no committed "
      "model yet\"}]\n");
  EXPECT_EQ(rig_.Ask("POST", "/v2/repository/index", R"({"ready":true})").body, "[]\n");
}

// The most memory that the process had since it was made, which Linux keeps.
class PeakMemory {
 public:
  PeakMemory() { std::ofstream("/proc/self/clear_refs") << "5"; }
  static size_t Kilobytes() {
    std::ifstream status("/proc/self/status");
    for (std::string name; status >> name;) {
      size_t kilobytes = 0;
      if (name == "VmHWM:" && status >> kilobytes) return kilobytes;
    }
    ADD_FAILURE() << "the system does not say";
    return 0;
  }
};

// A question of a few bytes is not read as a tree of millions of values, which nothing counts.
TEST_F(InferRowsTest, ALargeQuestionTakesNoMemory) {
  std::string body = R"({"ready":[0)";
  while (body.size() < 8'000'000) body += ",0";
  body += "]}";
  const PeakMemory peak;
  const size_t before = PeakMemory::Kilobytes();
  const http::Reply reply = rig_.Ask("POST", "/v2/repository/index", body);
  EXPECT_LT(PeakMemory::Kilobytes(), before + 8'000);
  EXPECT_EQ(reply.status, 400u);
  EXPECT_THAT(reply.body, HasSubstr("the body has 8000003 bytes, and at most 4096 here"));
}

// The public does not see why, and the fault is not the client's.
TEST_F(InferRowsTest, AFailureIsNotTold) {
  store_.CommitBroken(7, {ErrorCode::kNotFound, "/var/leak/000012.sst is gone"});
  const http::Reply reply = rig_.Ask("POST", kInfer, kTensors);
  EXPECT_EQ(reply.status, 500u) << reply.body;
  EXPECT_THAT(reply.body, testing::Not(HasSubstr("leak")));
}

TEST_F(InferRowsTest, WhereTrainingGoesOnNothingIsLoaded) {
  EXPECT_EQ(rig_.Ask("POST", "/v2/repository/index", "{}").body,
            "[{\"name\":\"ctr\",\"version\":\"6\",\"state\":\"READY\",\"reason\":\"\"}]\n");
  for (const char* path : {"/v2/repository/models/ctr/load", "/v2/repository/models/ctr/unload"}) {
    EXPECT_EQ(rig_.Ask("POST", path).status, 403u);
    const http::Reply reply = rig_.Ask("POST", path, "", {}, http::Role::kOperator);
    EXPECT_EQ(reply.status, 403u);
    EXPECT_THAT(reply.body, HasSubstr("where tacitd runs with --serve-only"));
  }
}

class InferUnprivateTest : public InferRowsTest {
 protected:
  InferUnprivateTest() : InferRowsTest({}, INFINITY) {}
};

TEST_F(InferUnprivateTest, WithoutPrivacyThereIsNoEpsilon) {
  const json::value parameters = Infer(kTensors).at("parameters");
  EXPECT_EQ(parameters.at("private"), false);
  EXPECT_FALSE(parameters.as_object().contains("epsilon"));
}

class InferRepositoryTest : public InferRowsTest {
 protected:
  InferRepositoryTest()
      : InferRowsTest(RepositoryCommands{[this]() -> Result<bool> {
          if (broken_) return Fail(ErrorCode::kIo, "checkpoint 7 is damaged");
          store_.Commit(7);
          return true;
        }}) {}
  bool broken_ = false;
};

TEST_F(InferRepositoryTest, TheOperatorLoadsAndUnloads) {
  const auto operate = [&](std::string_view what, std::string_view body = "",
                           http::Role role = http::Role::kOperator) {
    return rig_.Ask("POST", fmt::format("/v2/repository/models/ctr/{}", what), body, {}, role);
  };
  EXPECT_EQ(operate("unload", "", http::Role::kPublic).status, 403u);
  EXPECT_EQ(operate("unload", R"({"parameters":{"unload_dependents":false}})").status, 200u);
  EXPECT_THAT(Refusal(kTensors, 503), HasSubstr("model 'ctr' is unloaded"));
  EXPECT_EQ(rig_.Ask("POST", "/v1/score", kScoreRows).status, 503u);
  EXPECT_EQ(rig_.Ask("GET", "/v2/models/ctr/ready").status, 503u);
  EXPECT_EQ(rig_.Ask("GET", "/v2/health/ready").status, 503u);
  broken_ = true;
  const http::Reply damaged = operate("load");
  EXPECT_EQ(damaged.status, 500u);
  EXPECT_THAT(damaged.body, HasSubstr("checkpoint 7 is damaged"));
  EXPECT_EQ(rig_.Ask("GET", "/v2/models/ctr/ready").status, 503u);
  broken_ = false;
  EXPECT_EQ(operate("load").body,
            "{\"name\":\"ctr\",\"version\":\"7\",\"state\":\"READY\",\"reason\":\"\"}\n");
  EXPECT_EQ(Infer(kTensors).at("model_version"), "7");
  EXPECT_EQ(operate("load", R"({"parameters":{"config":"{}"}})").status, 400u);
  EXPECT_EQ(operate("load", "[]").status, 400u);
  EXPECT_EQ(
      rig_.Ask("POST", "/v2/repository/models/cts/load", "", {}, http::Role::kOperator).status,
      404u);
}

}  // namespace
}  // namespace tacit::serve
