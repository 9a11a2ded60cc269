#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "stream/steps/participation.h"

namespace tacit::train {

// Sums up parts of a learner's periods for a trainer elsewhere, whose learner takes their bytes
// (Learner::AddPart). It predicts and adds up; it draws no noise, and moves no weight. Not
// thread-safe.
class PartSummer {
 public:
  virtual ~PartSummer() = default;

  // Goes on with another model: the learner's released state, and its rows as they are from now on.
  // `released` is empty if there is none yet. Drops the part under way. kCorruption names the
  // learner.
  virtual Status Load(std::string_view released) = 0;
  // Predicts the examples by the model, and adds them to the part. REQUIRES whole units, each in
  // one call.
  virtual Status Add(const stream::StepBatch& examples) = 0;
  // Returns the bytes of the part, and begins another one. They are a function of the model and the
  // examples: the same for any order of them, and any number of threads.
  virtual std::string Take() = 0;
};

}  // namespace tacit::train
