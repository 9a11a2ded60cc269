#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "tape/pair_learner.h"
#include "tape/run.h"

namespace tacit::tape {

// The numbers that records have, one after the other.
double NumberOf(uint64_t i);

// A stream from a seed: records as a hostile user would make them, and those of everybody else.
class Records {
 public:
  Records(const Subject& subject, uint64_t seed);

  const Canary& unit() const { return unit_; }
  const event::Batch& batch() const { return batch_; }

  // Another stream in the same public frame. Where the case does not cover labels, it has these
  // ones, at the same offsets.
  Records Beside(uint64_t seed) const;
  // The same stream without the canary's records.
  Records WithoutUnit() const;
  // The frame without a record; where labels are not covered, without features.
  Records Nothing() const;

 private:
  void Add(uint64_t offset, const std::string& user, double number, uint64_t rows);

  const Subject& subject_;
  std::mt19937_64 random_;
  Canary unit_;
  event::Batch batch_;
};

}  // namespace tacit::tape
