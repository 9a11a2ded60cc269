// Fuzzes configurations: the text of one must be read or refused with a message that names a place.
#include "config/config.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tacit;
  const auto config = config::Parse(fuzz::TextOf(data, size), "fuzz.yaml", {});
  fuzz::DemandGoodError(config);
  return 0;
}
