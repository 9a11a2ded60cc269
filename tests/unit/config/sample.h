#pragma once

#include <string>
#include <string_view>

#include "base/check.h"

namespace tacit::config {

// A small configuration that is valid. Line 1 is `source:`.
inline constexpr std::string_view kSample = R"(source:
  kind: generator
schema:
  features:
    - {name: I1, kind: dense}
    - {name: C1, kind: categorical, buckets: 1000}
    - {name: M1, kind: multi_hot, buckets: 500, dim: 8, max_values: 4}
learners:
  - id: ctr
    model:
      kind: pctr
      hidden: [128, 64]
    mechanism:
      kind: adafest
      threshold: 10
    participation:
      mode: once
      batch: 4096
    privacy:
      unit: event
      epsilon: 8
      delta: 1e-7
store:
  path: /tmp/tacit/store
)";

// The sample with `from`, which it must hold, replaced once.
inline std::string Sample(std::string_view from, std::string_view to) {
  std::string yaml(kSample);
  const size_t at = yaml.find(from);
  TACIT_CHECK(at != std::string::npos);
  return yaml.replace(at, from.size(), to);
}

}  // namespace tacit::config
