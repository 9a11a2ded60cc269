#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tape/follow_noise.h"
#include "tape/records.h"
#include "tape/run.h"
#include "tape/service.h"

namespace tacit::tape {

// The life of one world's learner, from its first step to the end of its stream, over starts at
// places of its own.
struct Life {
  std::vector<ShownCommit> commits;
  std::string end;  // the reason for which training ended early; "" if it did not
  std::vector<TapedStep> tape;
  std::string unpaid;  // a life that leads: where its bill does not cover what it asked
  // A life that follows notes in which ways it asked other things than the tape has, and by how
  // much its sums were apart from the other life's, at most, in parts of their query's bound.
  std::vector<std::string> strayed;
  std::map<std::string, double> moved;
};

struct Circumstances {
  uint64_t seed = 1;            // of noise, and of the places where the service starts again
  const Life* leads = nullptr;  // the life that is followed; if null, this one leads
  double budget = HUGE_VAL;     // mu squared
};

// Makes the noise of a life's learners, and notes their steps.
class Taper {
 public:
  struct Tape {
    lab::TwinNoise* leads = nullptr;  // this one, drawing from a source,
    noise::NoiseSource* source = nullptr;
    FollowNoise* follows = nullptr;  // or this one, led by a life
    const Life* by = nullptr;
  };

  // Both must outlive the learners.
  Taper(const Subject& subject, const Circumstances& circumstances, Life* life);

  // The noise of the next start.
  std::unique_ptr<noise::NoiseSource> Noise();
  // The learner that has this noise, or noise that stands before it.
  std::unique_ptr<train::Learner> Taped(std::unique_ptr<train::Learner> learner);

 private:
  const Subject& subject_;
  const Circumstances circumstances_;
  Life& life_;
  Tape tape_;
  std::unique_ptr<noise::NoiseSource> source_;
};

Life Live(const Subject& subject, const Records& records, const Circumstances& circumstances,
          const Planted& planted = {});

// Says where a bill, mu squared, does not cover what these steps asked; "" where it does.
std::string Unpaid(std::span<const TapedStep> steps, double paid);

// The difference between what the two lives showed, and asked; "" if there is none.
std::string Difference(const Life& one, const Life& other);

}  // namespace tacit::tape
