#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "event/batch.h"
#include "event/feature_transform.h"
#include "http/request_json.h"

namespace tacit::serve {

// Reads the JSON of /v1/score into a batch; docs/internals/serve.md documents the form. Keeps its
// memory between requests; not thread-safe.
class ScoreRequestParser {
 public:
  struct Target {
    std::string learner;
    std::shared_ptr<const event::FeatureTransform> transform;
  };
  struct Limits {
    size_t max_rows = 4096;
    size_t max_depth = 8;
    size_t max_values = size_t{1} << 18;  // of all sets together, repeated ones too
  };

  // `elsewhere` are learners that this form is not for.
  ScoreRequestParser(std::vector<Target> targets, Limits limits,
                     std::vector<http::LearnerElsewhere> elsewhere = {});
  ~ScoreRequestParser();

  // Fills `batch`, replacing what was in it, and returns the index of the learner among the
  // targets. kNotFound: no such learner; kInvalidArgument: anything else. The message names row and
  // field.
  Result<size_t> Parse(std::string_view json, event::Batch* batch);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tacit::serve
