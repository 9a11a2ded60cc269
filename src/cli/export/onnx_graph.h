#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/export/protobuf_message.h"
#include "cli/export/tensor_file.h"

namespace tacit::cli {

// A graph in the form of ONNX: IR version 8 (ONNX 1.10 and later) and version 17 of the default
// operators, which onnxruntime reads from 1.12 on. Large numbers lie in a file beside the model,
// so that a model may be larger than the 2 GiB that a protobuf message can have. Values are named;
// names that the graph makes up begin with a slash. One thread builds it.
class OnnxGraph {
 public:
  enum class Type : uint32_t { kFloat = 1, kInt64 = 7 };
  // A side of a shape: its length, or the name that equal sides share.
  struct Side {
    uint64_t length = 0;
    std::string name = {};
  };
  struct Attribute {
    std::string name;
    int64_t value = 0;
  };

  // `data_file` is the file of the tensors, in the folder of the model.
  explicit OnnxGraph(std::string data_file) : data_file_(std::move(data_file)) {}

  void Input(const std::string& name, Type type, const std::vector<Side>& shape);
  void Output(const std::string& name, Type type, const std::vector<Side>& shape);
  // A tensor of floats whose bytes begin at `offset` of the data file.
  void Stored(const Tensor& tensor, uint64_t offset);
  // The name of a constant that lies in the model: one float, one integer, or a list of one.
  std::string Number(float value);
  std::string Integer(int64_t value);
  std::string Axis(int64_t value);
  // Adds an operator and returns the name of its output: `output`, or a new name.
  std::string Node(std::string_view operation, const std::vector<std::string>& inputs,
                   const std::vector<Attribute>& attributes = {}, std::string output = "");

  // The whole file; `facts` become its metadata_props.
  std::string Encode(const std::string& name,
                     const std::map<std::string, std::string>& facts) const;

 private:
  std::string Constant(const std::string& name, Type type, const std::vector<uint64_t>& shape,
                       std::string_view bytes);

  const std::string data_file_;
  ProtobufMessage nodes_, initializers_, inputs_, outputs_;
  std::set<std::string> constants_;
  uint64_t made_ = 0;
};

}  // namespace tacit::cli
