// Fuzzes requests of the Open Inference Protocol, in JSON and with binary tensors behind it.
#include "rig.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tacit;
  static auto* const model = new fuzz::ServedModel;
  const std::string_view bytes = fuzz::TextOf(data, size);
  std::map<std::string, std::string> fields;
  // The JSON ends where braces that were opened are closed, unless the input says otherwise.
  if (const size_t end = bytes.find('\n'); end != std::string_view::npos)
    fields[std::string(serve::kJsonBytesField)] = std::to_string(end);
  model->Ask("POST", "/v2/models/ctr/infer", bytes, std::move(fields));
  return 0;
}
