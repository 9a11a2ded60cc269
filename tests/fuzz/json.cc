// Fuzzes the bodies of requests that ask a click model.
#include "rig.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tacit;
  static auto* const model = new fuzz::ServedModel;
  static constexpr std::string_view kPaths[] = {"/v1/score", "/v1/score/lines", "/v1/lookup",
                                                "/v1/recommend"};
  std::string_view bytes = fuzz::TextOf(data, size);
  const uint8_t choice = fuzz::TakeChoice(&bytes);
  model->Ask("POST", kPaths[choice % std::size(kPaths)], bytes);
  return 0;
}
