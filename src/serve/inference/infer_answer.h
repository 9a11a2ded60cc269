#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "http/http.h"
#include "serve/inference/infer_request.h"

// Private to this room.
namespace tacit::serve {

// The field that tells where the JSON of a body ends and binary tensors begin.
inline constexpr std::string_view kJsonBytesField = "Inference-Header-Content-Length";

// An output of a model: numbers, FP32, or texts, BYTES.
struct OutputTensor {
  std::string_view name;
  std::vector<uint64_t> shape;
  bool is_text = false;
  std::span<const float> numbers;
  std::vector<std::string_view> texts;
};

// The model that an answer is by.
struct AnsweringModel {
  std::string_view name;
  uint64_t version = 0;
  std::string_view parameters;  // the fields of a JSON object
};

// Checks that the request asks for outputs of these names only, each once; kInvalidArgument names
// the one that is not.
Status CheckOutputs(const InferRequest& request, std::string_view model,
                    std::span<const std::string_view> names);

// Writes the answer: the outputs that the request asks for, in its order and forms. REQUIRES
// CheckOutputs.
void WriteInferAnswer(const InferRequest& request, const AnsweringModel& model,
                      std::span<const OutputTensor> outputs, http::Reply* reply);

}  // namespace tacit::serve
