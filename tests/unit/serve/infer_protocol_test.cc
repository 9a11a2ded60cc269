// The Open Inference Protocol as it is published, held against the server: its OpenAPI, its
// examples, its table of datatypes and the extensions that we have (tests/golden/README.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <set>

#include "fake_snapshot.h"
#include "infer_rig.h"
#include "json_schema.h"

namespace tacit::serve {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

json::value OipGolden(const std::string& name) {
  std::ifstream file(std::string(TACIT_SOURCE_DIR) + "/tests/golden/" + name);
  return json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
}

std::string OipBytes(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

std::set<std::string> KeysOf(const json::value& value) {
  std::set<std::string> keys;
  for (const auto& [key, inner] : value.as_object()) keys.emplace(std::string_view(key));
  return keys;
}

// A model that takes every tensor of the protocol.
class AnyRules final : public InputRules {
 public:
  std::string_view model() const override { return "mymodel"; }
  Status Check(const Tensor&) const override { return {}; }
};

class InferProtocolTest : public testing::Test {
 protected:
  InferProtocolTest() : store_(SmallModel()), rig_(MakeServices()) { store_.Commit(6); }
  Services MakeServices() {
    Services services;
    services.latest = [this] { return store_.Latest(); };
    services.models = {SmallModel()};
    services.code_version = "1.2.3";
    return services;
  }
  // The published request with the names, types and values of our model in it.
  json::value OurRequest(const char* published) const {
    json::value request = examples_.at(published);
    json::array& inputs = request.at("inputs").as_array();
    for (size_t i = 0; i < inputs.size(); ++i) {
      json::object& input = inputs[i].as_object();
      input["name"] = i == 0 ? "I1" : "C1";
      input["datatype"] = i == 0 ? "UINT32" : "BYTES";
      input["shape"] = json::array{2};
      if (input.contains("data"))
        input["data"] = i == 0 ? json::array{3, 4} : json::array{"68fd1e64", "x"};
      else
        input["parameters"].as_object()["binary_data_size"] = i == 0 ? 8 : 17;
    }
    if (request.as_object().contains("model_name")) request.as_object()["model_name"] = "ctr";
    request.at("outputs").at(0).as_object()["name"] = "probability";
    return request;
  }

  const json::value examples_ = OipGolden("oip_examples.json");
  const json::value schemas_ = OipGolden("oip_schemas.json");
  FakeStore store_;
  InferRig rig_;
};

// Paths of the published OpenAPI and text are answered 200, by answers of the published schemas.
TEST_F(InferProtocolTest, AnswersAreOfThePublishedSchemas) {
  const JsonSchema schema(schemas_);
  const json::object& named = schemas_.at("components").at("schemas").as_object();
  const std::string request = json::serialize(OurRequest("request"));
  EXPECT_EQ(schema.Check(named.at("inference_request"), json::parse(request)), "");
  size_t asked = 0;
  for (const char* list : {"paths", "text"}) {
    for (const json::value& route : schemas_.at(list).as_array()) {
      const std::string method(route.at(0).as_string()), wanted(route.at(2).as_string());
      std::string path(route.at(1).as_string());
      for (const auto& [part, is] :
           {std::pair<std::string, std::string>{"${MODEL_NAME}", "ctr"}, {"${MODEL_VERSION}", "6"}})
        if (const size_t at = path.find(part); at != path.npos) path.replace(at, part.size(), is);
      SCOPED_TRACE(method + " " + path);
      const http::Reply reply = rig_.Ask(method, path, path.ends_with("/infer") ? request : "");
      EXPECT_EQ(reply.status, 200u) << reply.body;
      EXPECT_EQ(reply.content_type, "application/json");
      ++asked;
      if (wanted.empty()) continue;
      json::value answer = json::parse(reply.body);
      // Our answer on readiness says more: that the server lives and that it is ready.
      if (wanted == "ready_server_response") {
        EXPECT_EQ(answer.as_object().erase("ready"), 1u);
      }
      EXPECT_EQ(schema.Check(named.at(wanted), answer), "");
    }
  }
  EXPECT_EQ(asked, 13u);
}

TEST_F(InferProtocolTest, ErrorsAreOfThePublishedForm) {
  const JsonSchema schema(schemas_);
  const json::value& error = schemas_.at("components").at("schemas").at("error_response");
  for (const auto& [method, path, body, status] :
       std::vector<std::tuple<const char*, const char*, std::string, uint32_t>>{
           {"GET", "/v2/models/none", "", 404},
           {"GET", "/v2/models/ctr/versions/5", "", 404},
           {"GET", "/v2/models/ctr/versions/5/ready", "", 404},
           {"GET", "/v2/nothing", "", 404},
           {"GET", "/v2/models/ctr/infer", "", 405},
           {"POST", "/v2/models/ctr/infer", "", 400},
           {"POST", "/v2/models/ctr/infer", "{}", 400},
           {"POST", "/v2/models/ctr/infer", json::serialize(examples_.at("request")), 400},
           {"POST", "/v2/repository/index", "[]", 400}}) {
    const http::Reply reply = rig_.Ask(method, path, body);
    EXPECT_EQ(reply.status, status) << path;
    EXPECT_EQ(reply.content_type, "application/json");
    EXPECT_EQ(schema.Check(error, json::parse(reply.body)), "") << reply.body;
  }
  rig_.readiness = {false, "not yet"};
  const http::Reply unready = rig_.Ask("GET", "/v2/health/ready");
  EXPECT_EQ(unready.status, 503u);
  EXPECT_EQ(schema.Check(error, json::parse(unready.body)), "");
}

// The published request of two tensors in binary form, to the last byte.
TEST_F(InferProtocolTest, ThePublishedBinaryRequestIsRead) {
  const std::string head = json::serialize(examples_.at("binary_request"));
  const std::string tensors = OipBytes(examples_.at("binary_request_bytes").as_string().c_str());
  ASSERT_EQ(tensors.size(), 19u);
  InferRequest request;
  const std::string body = head + tensors;
  const Status read = ReadInferRequest(body, std::to_string(head.size()), AnyRules(), &request);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(request.inputs.size(), 2u);
  EXPECT_EQ(request.inputs[0].datatype, Datatype::kUint32);
  EXPECT_EQ(request.inputs[0].shape, (std::vector<uint64_t>{2, 2}));
  TensorReader numbers(request.inputs[0]), flags(request.inputs[1]);
  for (const double number : {1, 2, 3, 4}) EXPECT_EQ(numbers.Number(), number);
  for (const double flag : {1, 0, 1}) EXPECT_EQ(flags.Number(), flag);
  ASSERT_EQ(request.outputs.size(), 1u);
  EXPECT_EQ(request.outputs[0].name, "output0");
  EXPECT_EQ(request.outputs[0].binary, true);
}

// The JSON request too, but that its input1 lacks two of three elements, as it was published.
TEST_F(InferProtocolTest, ThePublishedJsonRequestIsRead) {
  json::value published = examples_.at("request");
  InferRequest request;
  const std::string as_published = json::serialize(published);
  const Status refused = ReadInferRequest(as_published, "", AnyRules(), &request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "input 'input1' has 1 elements, its shape 3");
  published.at("inputs").at(1).at("data") = json::array{true, false, true};
  const std::string whole = json::serialize(published);
  const Status read = ReadInferRequest(whole, "", AnyRules(), &request);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(request.id, "42");
  // Elements of JSON are kept as binary tensors have them.
  const std::string tensors = OipBytes(examples_.at("binary_request_bytes").as_string().c_str());
  EXPECT_EQ(std::string(request.inputs[0].data) + std::string(request.inputs[1].data), tensors);
}

TEST_F(InferProtocolTest, ThePublishedAnswersAreWritten) {
  const std::vector<float> numbers = {1.0f, 1.1f, 2.0f, 2.1f, 3.0f, 3.1f};
  const OutputTensor output{.name = "output0", .shape = {3, 2}, .numbers = numbers, .texts = {}};
  InferRequest request;
  request.id = "42";
  request.outputs = {{.name = "output0", .binary = {}}};
  http::Reply plain;
  WriteInferAnswer(request, {"mymodel", 1, ""}, std::span(&output, 1), &plain);
  const json::value answer = json::parse(plain.body);
  const json::value& published = examples_.at("response");
  EXPECT_EQ(answer.at("id"), published.at("id"));
  // The same output; numbers as floats, in the shortest digits that name them.
  const json::value& tensor = answer.at("outputs").at(0);
  EXPECT_EQ(KeysOf(tensor), KeysOf(published.at("outputs").at(0)));
  for (const char* key : {"name", "shape", "datatype"})
    EXPECT_EQ(tensor.at(key), published.at("outputs").at(0).at(key));
  EXPECT_THAT(plain.body, HasSubstr(R"("data":[1,1.1,2,2.1,3,3.1])"));
  EXPECT_EQ(plain.content_type, examples_.at("response_fields").at("Content-Type").as_string());

  request.outputs[0].binary = true;
  http::Reply binary;
  WriteInferAnswer(request, {"mymodel", 1, ""}, std::span(&output, 1), &binary);
  const std::string head = JsonOf(binary);
  EXPECT_EQ(json::parse(head).at("outputs"), examples_.at("binary_response").at("outputs"));
  EXPECT_EQ(binary.body.substr(head.size()),
            OipBytes(examples_.at("binary_response_bytes").as_string().c_str()));
  EXPECT_EQ(binary.content_type,
            examples_.at("binary_response_fields").at("Content-Type").as_string());
  ASSERT_EQ(binary.headers.size(), 1u);
  EXPECT_TRUE(examples_.at("binary_response_fields").as_object().contains(binary.headers[0].first));
}

// The published requests of our tensors get the same numbers in both forms.
TEST_F(InferProtocolTest, BothFormsOfTheExamplesAreAnswered) {
  const http::Reply plain =
      rig_.Ask("POST", "/v2/models/ctr/infer", json::serialize(OurRequest("request")));
  ASSERT_EQ(plain.status, 200u) << plain.body;
  const http::Reply binary =
      rig_.AskBinary("/v2/models/ctr/infer", json::serialize(OurRequest("binary_request")),
                     Bytes<uint32_t>({3, 4}) + Texts({"68fd1e64", "x"}));
  ASSERT_EQ(binary.status, 200u) << binary.body;
  const json::value answer = json::parse(plain.body), head = json::parse(JsonOf(binary));
  EXPECT_EQ(KeysOf(answer.at("outputs").at(0)),
            KeysOf(examples_.at("response").at("outputs").at(0)));
  EXPECT_EQ(KeysOf(head.at("outputs").at(0)),
            KeysOf(examples_.at("binary_response").at("outputs").at(0)));
  std::string bytes;
  for (const json::value& number : answer.at("outputs").at(0).at("data").as_array())
    bytes += Bytes<float>({static_cast<float>(number.to_number<double>())});
  EXPECT_EQ(binary.body.substr(JsonOf(binary).size()), bytes);
}

TEST_F(InferProtocolTest, ElementsComeFlatOrNested) {
  InferRequest nested, flat;
  const auto read = [&](const char* form, InferRequest* request) {
    const std::string body = json::serialize(
        json::object{{"inputs", json::array{json::object{{"name", "x"},
                                                         {"shape", json::array{2, 2}},
                                                         {"datatype", "INT8"},
                                                         {"data", examples_.at(form)}}}}});
    return ReadInferRequest(body, "", AnyRules(), request).has_value();
  };
  ASSERT_TRUE(read("nested", &nested) && read("flat", &flat));
  EXPECT_EQ(nested.inputs[0].data, std::string_view("\1\2\4\5", 4));
  EXPECT_EQ(flat.inputs[0].data, nested.inputs[0].data);
}

TEST_F(InferProtocolTest, DatatypesHaveThePublishedSizes) {
  for (const auto& [name, size] : examples_.at("datatypes").as_object()) {
    const auto datatype = DatatypeOf(name);
    ASSERT_TRUE(datatype.has_value()) << std::string_view(name);
    EXPECT_EQ(ElementBytes(*datatype), size.to_number<size_t>()) << std::string_view(name);
  }
  EXPECT_EQ(examples_.at("datatypes").as_object().size(),
            static_cast<size_t>(Datatype::kBytes) + 1);
  EXPECT_FALSE(DatatypeOf("fp32").has_value()) << "names are of one case";
}

// The ends of each type's range, in JSON and in bytes; what is beyond them is refused.
TEST_F(InferProtocolTest, IntegersHaveTheRangesOfTheirTypes) {
  const auto data_of = [&](const std::string& datatype, const std::string& number) {
    InferRequest request;
    const std::string body = R"({"inputs":[{"name":"x","shape":[1],"datatype":")" + datatype +
                             R"(","data":[)" + number + "]}]}";
    if (!ReadInferRequest(body, "", AnyRules(), &request)) return std::string("refused");
    TensorReader reader(request.inputs[0]);
    return std::string(reader.Text());
  };
  for (const auto& [datatype, least, most, below, above] : std::vector<std::array<std::string, 5>>{
           {"UINT8", "0", "255", "-1", "256"},
           {"UINT16", "0", "65535", "-1", "65536"},
           {"UINT32", "0", "4294967295", "-1", "4294967296"},
           {"UINT64", "0", "18446744073709551615", "-1", "18446744073709551616"},
           {"INT8", "-128", "127", "-129", "128"},
           {"INT16", "-32768", "32767", "-32769", "32768"},
           {"INT32", "-2147483648", "2147483647", "-2147483649", "2147483648"},
           {"INT64", "-9223372036854775808", "9223372036854775807", "-9223372036854775809",
            "9223372036854775808"}}) {
    EXPECT_EQ(data_of(datatype, least), least) << datatype;
    EXPECT_EQ(data_of(datatype, most), most) << datatype;
    EXPECT_EQ(data_of(datatype, below), "refused") << datatype;
    EXPECT_EQ(data_of(datatype, above), "refused") << datatype;
    EXPECT_EQ(data_of(datatype, "1.5"), "refused") << datatype;
    EXPECT_EQ(data_of(datatype, "true"), "refused") << datatype;
  }
  EXPECT_EQ(data_of("BOOL", "1"), "refused");
  EXPECT_EQ(data_of("FP16", "1"), "refused");
}

// The platform is ours, which the published list lacks: docs/internals/serve.md lists what differs.
TEST_F(InferProtocolTest, ThePlatformIsNoneOfThePublished) {
  const json::value model = json::parse(rig_.Ask("GET", "/v2/models/ctr").body);
  const json::array& published = examples_.at("platforms").as_array();
  EXPECT_EQ(std::ranges::count(published, model.at("platform")), 0);
  EXPECT_EQ(model.at("platform"), "tacit_rows");
  EXPECT_EQ(KeysOf(json::parse(rig_.Ask("POST", "/v2/repository/index",
                                        json::serialize(examples_.at("repository_index_request")))
                                   .body)
                       .at(0)),
            (std::set<std::string>{"name", "version", "state", "reason"}));
}

}  // namespace
}  // namespace tacit::serve
