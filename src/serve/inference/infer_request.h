#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "serve/inference/tensor.h"

// Private to this room.
namespace tacit::serve {

// A request of the Open Inference Protocol to infer. Views are into the body and `held`.
struct InferRequest {
  struct Output {
    std::string name;
    std::optional<bool> binary;
  };
  std::optional<std::string> id;
  std::vector<Tensor> inputs;
  std::vector<Output> outputs;  // if empty, all of the model's
  bool binary_output = false;   // of outputs that do not say
  // For models of the next item.
  std::optional<int64_t> count;
  std::optional<bool> exclude_seen;

  std::string held;  // elements that came as JSON, in binary form

  // Empties it for another request; it keeps its memory.
  void Clear();
};

// A model's part in reading: its name, and its say on an input before the elements are read, so
// that nothing is kept that the model does not take.
class InputRules {
 public:
  virtual ~InputRules() = default;
  virtual std::string_view model() const = 0;
  // Checks name, datatype and shape; kInvalidArgument names the input.
  virtual Status Check(const Tensor& input) const = 0;
};

// Fills `request` from a body. `header_length` is the field Inference-Header-Content-Length, empty
// where there is none: the bytes of the JSON, which the binary tensors follow. kInvalidArgument
// says what is wrong and names the tensor.
Status ReadInferRequest(std::string_view body, std::string_view header_length,
                        const InputRules& rules, InferRequest* request);

}  // namespace tacit::serve
