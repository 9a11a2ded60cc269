// Field numbers are those of onnx.proto3 (github.com/onnx/onnx), which has the grammar of the file.
#include "cli/export/onnx_graph.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace tacit::cli {
namespace {

constexpr uint64_t kIrVersion = 8, kOperatorSet = 17;

namespace model_proto {
enum : uint32_t { kIr = 1, kProducer = 2, kGraph = 7, kOperators = 8, kFacts = 14 };
}
namespace graph_proto {
enum : uint32_t { kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12 };
}
namespace node_proto {
enum : uint32_t { kInput = 1, kOutput = 2, kName = 3, kOperation = 4, kAttribute = 5 };
}
namespace attribute_proto {
enum : uint32_t { kName = 1, kInteger = 3, kType = 20 };
constexpr uint64_t kTypeInteger = 2;
}  // namespace attribute_proto
namespace tensor_proto {
enum : uint32_t { kDims = 1, kType = 2, kName = 8, kRaw = 9, kExternal = 13, kLocation = 14 };
constexpr uint64_t kLocationExternal = 1;
}  // namespace tensor_proto

// A StringStringEntryProto.
ProtobufMessage Entry(std::string_view key, std::string_view value) {
  return ProtobufMessage().Bytes(1, key).Bytes(2, value);
}

// A ValueInfoProto: name, and a type that is a tensor of this shape.
ProtobufMessage ValueInfo(const std::string& name, OnnxGraph::Type type,
                          const std::vector<OnnxGraph::Side>& sides) {
  ProtobufMessage shape;
  for (const OnnxGraph::Side& side : sides) {
    ProtobufMessage dimension;
    if (side.name.empty()) {
      dimension.Integer(1, side.length);
    } else {
      dimension.Bytes(2, side.name);
    }
    shape.Message(1, dimension);
  }
  const auto tensor = ProtobufMessage().Integer(1, static_cast<uint64_t>(type)).Message(2, shape);
  return ProtobufMessage().Bytes(1, name).Message(2, ProtobufMessage().Message(1, tensor));
}

ProtobufMessage TensorHead(const std::string& name, OnnxGraph::Type type,
                           const std::vector<uint64_t>& shape) {
  ProtobufMessage tensor;
  for (const uint64_t length : shape) tensor.Integer(tensor_proto::kDims, length);
  tensor.Integer(tensor_proto::kType, static_cast<uint64_t>(type));
  tensor.Bytes(tensor_proto::kName, name);
  return tensor;
}

template <class T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

}  // namespace

void OnnxGraph::Input(const std::string& name, Type type, const std::vector<Side>& shape) {
  inputs_.Message(graph_proto::kInput, ValueInfo(name, type, shape));
}

void OnnxGraph::Output(const std::string& name, Type type, const std::vector<Side>& shape) {
  outputs_.Message(graph_proto::kOutput, ValueInfo(name, type, shape));
}

void OnnxGraph::Stored(const Tensor& tensor, uint64_t offset) {
  ProtobufMessage message = TensorHead(tensor.name, Type::kFloat, tensor.shape);
  for (const auto& [key, value] : {std::pair<std::string_view, std::string>{"location", data_file_},
                                   {"offset", std::to_string(offset)},
                                   {"length", std::to_string(sizeof(float) * tensor.size())}})
    message.Message(tensor_proto::kExternal, Entry(key, value));
  message.Integer(tensor_proto::kLocation, tensor_proto::kLocationExternal);
  initializers_.Message(graph_proto::kInitializer, message);
}

std::string OnnxGraph::Constant(const std::string& name, Type type,
                                const std::vector<uint64_t>& shape, std::string_view bytes) {
  if (constants_.insert(name).second)
    initializers_.Message(graph_proto::kInitializer,
                          TensorHead(name, type, shape).Bytes(tensor_proto::kRaw, bytes));
  return name;
}

std::string OnnxGraph::Number(float value) {
  return Constant(fmt::format("/number/{}", value), Type::kFloat, {}, BytesOf(value));
}

std::string OnnxGraph::Integer(int64_t value) {
  return Constant(fmt::format("/integer/{}", value), Type::kInt64, {}, BytesOf(value));
}

std::string OnnxGraph::Axis(int64_t value) {
  return Constant(fmt::format("/axis/{}", value), Type::kInt64, {1}, BytesOf(value));
}

std::string OnnxGraph::Node(std::string_view operation, const std::vector<std::string>& inputs,
                            const std::vector<Attribute>& attributes, std::string output) {
  const std::string name = fmt::format("/{}/{}", operation, made_++);
  if (output.empty()) output = name;
  ProtobufMessage node;
  for (const std::string& input : inputs) node.Bytes(node_proto::kInput, input);
  node.Bytes(node_proto::kOutput, output).Bytes(node_proto::kName, name);
  node.Bytes(node_proto::kOperation, operation);
  for (const Attribute& attribute : attributes)
    node.Message(node_proto::kAttribute,
                 ProtobufMessage()
                     .Bytes(attribute_proto::kName, attribute.name)
                     .Integer(attribute_proto::kInteger, static_cast<uint64_t>(attribute.value))
                     .Integer(attribute_proto::kType, attribute_proto::kTypeInteger));
  nodes_.Message(graph_proto::kNode, node);
  return output;
}

std::string OnnxGraph::Encode(const std::string& name,
                              const std::map<std::string, std::string>& facts) const {
  ProtobufMessage graph;
  graph.Append(nodes_).Bytes(graph_proto::kName, name);
  graph.Append(initializers_).Append(inputs_).Append(outputs_);
  ProtobufMessage model;
  model.Integer(model_proto::kIr, kIrVersion).Bytes(model_proto::kProducer, "tacit");
  model.Message(model_proto::kGraph, graph);
  // The default operators have no domain.
  model.Message(model_proto::kOperators, ProtobufMessage().Integer(2, kOperatorSet));
  for (const auto& [key, value] : facts) model.Message(model_proto::kFacts, Entry(key, value));
  return model.bytes();
}

}  // namespace tacit::cli
