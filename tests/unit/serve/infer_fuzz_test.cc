// 20,000 mutated requests to infer. An oracle that knows the protocol and the model, and nothing of
// the reader, says whether a request is one: what it refuses must never be answered.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <random>
#include <set>

#include "fake_snapshot.h"
#include "infer_rig.h"

namespace tacit::serve {
namespace {

namespace json = boost::json;

constexpr int kMutations = 20'000;

// A request as it is sent.
struct Sent {
  std::string head, tensors;
  std::optional<std::string> length;  // the field; nothing if there is none
};

// The elements of nested arrays, if all have the shape.
bool Flatten(const json::value& data, const std::vector<int64_t>& shape, size_t level,
             std::vector<const json::value*>* out) {
  if (!data.is_array()) return false;
  if (static_cast<int64_t>(data.get_array().size()) != shape[level]) return false;
  for (const json::value& inner : data.get_array()) {
    if (level + 1 < shape.size()) {
      if (!Flatten(inner, shape, level + 1, out)) return false;
    } else {
      out->push_back(&inner);
    }
  }
  return true;
}

bool IsElement(const json::value& value, const std::string& datatype) {
  if (datatype == "BYTES") return value.is_string() || value.is_null();
  if (datatype == "INT64" || datatype == "INT32") {
    if (!value.is_int64()) return false;
    return datatype == "INT64" || std::in_range<int32_t>(value.get_int64());
  }
  if (value.is_null()) return true;
  if (!value.is_number()) return false;
  const double number = value.to_number<double>();
  const double most = datatype == "FP32" ? double{std::numeric_limits<float>::max()}
                                         : std::numeric_limits<double>::max();
  return std::fabs(number) <= most;
}

// Returns true if these bytes are the elements; numbers must be finite or missing.
bool AreElements(std::string_view bytes, const std::string& datatype, int64_t count) {
  if (datatype == "BYTES") {
    for (; count > 0; --count) {
      uint32_t length = 0;
      if (bytes.size() < 4) return false;
      std::memcpy(&length, bytes.data(), 4);
      if (bytes.size() - 4 < length) return false;
      bytes.remove_prefix(4 + size_t{length});
    }
    return bytes.empty();
  }
  const size_t width = datatype == "FP32" || datatype == "INT32" ? 4 : 8;
  if (bytes.size() != width * static_cast<size_t>(count)) return false;
  for (; !bytes.empty(); bytes.remove_prefix(width)) {
    float single = 0;
    double number = 0;
    if (datatype == "FP32") std::memcpy(&single, bytes.data(), 4);
    if (datatype == "FP64") std::memcpy(&number, bytes.data(), 8);
    if (std::isinf(single) || std::isinf(number)) return false;
  }
  return true;
}

std::optional<std::vector<int64_t>> ShapeOf(const json::value& value) {
  if (!value.is_array()) return std::nullopt;
  std::vector<int64_t> shape;
  for (const json::value& size : value.get_array()) {
    if (!size.is_int64() || size.get_int64() < 0 || size.get_int64() > 4096) return std::nullopt;
    shape.push_back(size.get_int64());
  }
  return shape;
}

// The number of rows of a request that is one, for the model of fake_snapshot.h; -1 otherwise.
int64_t RowsOf(const Sent& sent) {
  const std::string body = sent.head + sent.tensors;
  size_t json_bytes = body.size();
  if (sent.length) {
    const char* const end = sent.length->data() + sent.length->size();
    const auto read = std::from_chars(sent.length->data(), end, json_bytes);
    if (read.ec != std::errc() || read.ptr != end || json_bytes > body.size()) return -1;
  }
  std::string_view binary = std::string_view(body).substr(json_bytes);
  json::error_code error;
  const json::value document = json::parse(json::string_view(body).substr(0, json_bytes), error);
  if (error || !document.is_object()) return -1;
  const json::value* inputs = document.get_object().if_contains("inputs");
  if (inputs == nullptr || !inputs->is_array() || inputs->get_array().empty()) return -1;
  std::set<std::string> names;
  int64_t rows = -1;
  for (const json::value& value : inputs->get_array()) {
    if (!value.is_object()) return -1;
    const json::object& input = value.get_object();
    for (const char* key : {"name", "datatype", "shape"})
      if (!input.contains(key)) return -1;
    if (!input.at("name").is_string() || !input.at("datatype").is_string()) return -1;
    const std::string name(input.at("name").get_string());
    const std::string datatype(input.at("datatype").get_string());
    const bool is_number = name == "I1" || name == "I2";
    if (!is_number && name != "C1" && name != "C2" && name != "tags") return -1;
    if (!names.insert(name).second) return -1;
    if (datatype != "INT64" && datatype != "INT32" &&
        (is_number ? datatype != "FP32" && datatype != "FP64" : datatype != "BYTES"))
      return -1;
    const auto shape = ShapeOf(input.at("shape"));
    if (!shape || shape->empty() || shape->size() > 2) return -1;
    if (shape->size() == 2 && (*shape)[1] != 1 && name != "tags") return -1;
    if (rows >= 0 && (*shape)[0] != rows) return -1;
    rows = (*shape)[0];
    const int64_t count = rows * (shape->size() == 2 ? (*shape)[1] : 1);
    if (const json::value* data = input.if_contains("data")) {
      std::vector<const json::value*> elements;
      if (!Flatten(*data, {count}, 0, &elements)) {
        elements.clear();
        if (!Flatten(*data, *shape, 0, &elements)) return -1;
      }
      for (const json::value* element : elements)
        if (!IsElement(*element, datatype)) return -1;
      continue;
    }
    const json::value* parameters = input.if_contains("parameters");
    if (parameters == nullptr || !parameters->is_object()) return -1;
    const json::value* size = parameters->get_object().if_contains("binary_data_size");
    if (size == nullptr || !size->is_int64() || size->get_int64() < 0) return -1;
    const auto bytes = static_cast<uint64_t>(size->get_int64());
    if (bytes > binary.size() || !AreElements(binary.substr(0, bytes), datatype, count)) return -1;
    binary.remove_prefix(bytes);
  }
  return binary.empty() ? rows : -1;
}

class InferFuzzTest : public testing::Test {
 protected:
  InferFuzzTest() : store_(SmallModel()), rig_(MakeServices()) { store_.Commit(6); }
  Services MakeServices() {
    Services services;
    services.latest = [this] { return store_.Latest(); };
    services.models = {SmallModel()};
    return services;
  }
  http::Reply Ask(const Sent& sent) {
    std::map<std::string, std::string> fields;
    if (sent.length) fields[std::string(kJsonBytesField)] = *sent.length;
    return rig_.Ask("POST", "/v2/models/ctr/infer", sent.head + sent.tensors, std::move(fields));
  }
  uint64_t Random(uint64_t below) { return random_() % below; }

  // A request that is one, in JSON, in binary or mixed.
  Sent Valid();
  void Mutate(Sent* sent);
  void MutateTree(Sent* sent);

  FakeStore store_;
  InferRig rig_;
  std::mt19937_64 random_{std::getenv("TACIT_SEED") ? std::stoull(std::getenv("TACIT_SEED")) : 7};
};

Sent InferFuzzTest::Valid() {
  const uint64_t rows = 1 + Random(4);
  json::array inputs;
  Sent sent;
  for (const char* name : {"I1", "I2", "C1", "C2", "tags"}) {
    if (inputs.empty() ? Random(8) == 0 : Random(3) == 0) continue;
    const bool is_number = name[0] == 'I', is_set = name[0] == 't', binary = Random(2) == 0;
    const uint64_t in_row = is_set ? Random(4) : 1;
    json::object input{{"name", name}};
    json::array shape{rows};
    if (is_set || Random(2) == 0) shape.push_back(in_row);
    const std::string datatype =
        is_number ? (Random(2) == 0 ? "FP32" : "FP64") : (Random(3) == 0 ? "INT64" : "BYTES");
    input["shape"] = shape;
    input["datatype"] = datatype;
    json::array data;
    std::string bytes;
    for (uint64_t i = 0; i < rows * in_row; ++i) {
      const auto number = static_cast<int64_t>(Random(1000)) - 500;
      if (datatype == "FP32") bytes += Bytes<float>({static_cast<float>(number)});
      if (datatype == "FP64") bytes += Bytes<double>({static_cast<double>(number)});
      if (datatype == "INT64") bytes += Bytes<int64_t>({number});
      const std::string text = std::string(Random(6), 'a') + std::to_string(number);
      if (datatype == "BYTES") bytes += Texts({text});
      data.push_back(datatype == "BYTES" ? json::value(text) : json::value(number));
    }
    if (binary) {
      input["parameters"] = json::object{{"binary_data_size", bytes.size()}};
      sent.tensors += bytes;
    } else {
      input["data"] = data;
    }
    inputs.push_back(std::move(input));
  }
  if (inputs.empty()) return Valid();
  sent.head = json::serialize(json::object{{"id", "1"}, {"inputs", std::move(inputs)}});
  if (!sent.tensors.empty() || Random(2) == 0) sent.length = std::to_string(sent.head.size());
  return sent;
}

// Changes a value of the tree, and sets the length anew.
void InferFuzzTest::MutateTree(Sent* sent) {
  json::error_code error;
  json::value document = json::parse(sent->head, error);
  json::value* const list =
      !error && document.is_object() ? document.get_object().if_contains("inputs") : nullptr;
  if (list == nullptr || !list->is_array() || list->get_array().empty()) return;
  json::array& inputs = list->get_array();
  json::value& chosen = inputs[Random(inputs.size())];
  if (!chosen.is_object()) return;
  json::object& input = chosen.get_object();
  const json::value odd[] = {nullptr,
                             -1,
                             0,
                             1,
                             2,
                             3.5,
                             1e300,
                             true,
                             "",
                             "x",
                             "FP32",
                             "INT64",
                             "BYTES",
                             "I1",
                             "C1",
                             "tags",
                             json::array{},
                             json::object{},
                             json::array{1, 2},
                             4097,
                             std::numeric_limits<int64_t>::max()};
  const json::value& other = odd[Random(std::size(odd))];
  static constexpr const char* kKeys[] = {"name", "shape", "datatype", "data", "parameters"};
  const char* key = kKeys[Random(std::size(kKeys))];
  json::value* const is = input.if_contains(key);
  switch (Random(5)) {
    case 0:
      input.erase(key);
      break;
    case 1:
      input[key] = other;
      break;
    case 2:
      if (is != nullptr && is->is_array() && !is->get_array().empty())
        is->get_array()[Random(is->get_array().size())] = other;
      else
        input["parameters"] = json::object{{"binary_data_size", other}};
      break;
    case 3:
      if (is != nullptr && is->is_array()) is->get_array().push_back(other);
      break;
    default:
      inputs.push_back(json::value(input));
  }
  const bool had = sent->length.has_value();
  sent->head = json::serialize(document);
  if (had) sent->length = std::to_string(sent->head.size());
}

void InferFuzzTest::Mutate(Sent* sent) {
  const uint64_t kind = Random(8);
  if (kind < 4) return MutateTree(sent);
  std::string& part = kind < 6 && !sent->tensors.empty() ? sent->tensors : sent->head;
  const size_t at = Random(part.size());
  if (kind == 6) {
    sent->length = std::to_string(static_cast<int64_t>(sent->head.size()) +
                                  static_cast<int64_t>(Random(9)) - 4);
    return;
  }
  switch (Random(4)) {
    case 0:
      part[at] = static_cast<char>(Random(256));
      break;
    case 1:
      part.erase(at, 1 + Random(6));
      break;
    case 2:
      part.insert(at, 1 + Random(4), static_cast<char>(Random(256)));
      break;
    default:
      part[at] = static_cast<char>(part[at] ^ (1 << Random(8)));
  }
}

TEST_F(InferFuzzTest, NoMalformedTensorIsAnswered) {
  int answered = 0, refused = 0;
  for (int i = 0; i < kMutations; ++i) {
    Sent sent = Valid();
    const auto check = [&](bool is_valid) {
      const http::Reply reply = Ask(sent);
      const int64_t rows = RowsOf(sent);
      ASSERT_TRUE(reply.status == 200 || reply.status == 400) << reply.body;
      if (reply.status == 400) {
        ++refused;
        ASSERT_FALSE(is_valid) << reply.body << sent.head;
        ASSERT_TRUE(json::parse(reply.body).at("error").is_string());
        return;
      }
      ++answered;
      ASSERT_GE(rows, 0) << i << ": " << sent.head << " + " << sent.tensors.size();
      const json::value output = json::parse(reply.body).at("outputs").at(0);
      ASSERT_EQ(static_cast<int64_t>(output.at("data").as_array().size()), rows);
      ASSERT_EQ(output.at("shape").at(0).to_number<int64_t>(), rows);
    };
    if (i % 10 == 0) check(true);
    for (uint64_t changes = 1 + Random(3); changes > 0; --changes) Mutate(&sent);
    check(false);
    if (HasFatalFailure()) return;
  }
  // Neither all nor nothing is let through.
  EXPECT_GT(answered, kMutations / 10);
  EXPECT_GT(refused, kMutations / 3);
}

}  // namespace
}  // namespace tacit::serve
