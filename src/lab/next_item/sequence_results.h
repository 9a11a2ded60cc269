#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/run_store.h"

namespace tacit::lab {

// The prediction quality over a tenth of a stream; means over the events asked about.
struct SequenceTenth {
  uint64_t events = 0;
  double ndcg10 = 0, hit10 = 0;

  template <class Tenth, class Visit>
  static void ForEachField(Tenth& tenth, const Visit& visit) {
    visit("events", tenth.events);
    visit("ndcg10", tenth.ndcg10);
    visit("hit10", tenth.hit10);
  }
  friend bool operator==(const SequenceTenth&, const SequenceTenth&) = default;
};

// The ranking quality after this many epochs of a run.
struct SequenceLook {
  double epochs = 0, ndcg10 = 0, hit10 = 0;

  template <class Look, class Visit>
  static void ForEachField(Look& look, const Visit& visit) {
    visit("epochs", look.epochs);
    visit("ndcg10", look.ndcg10);
    visit("hit10", look.hit10);
  }
  friend bool operator==(const SequenceLook&, const SequenceLook&) = default;
};

// One finished run of `tacit evaluate sequence`, as stored.
struct SequenceRun {
  std::string id;  // a digest of everything that determines the run, except its noise
  std::string learner;
  double epsilon = 0, delta = 0;  // promised; epsilon is infinite without a promise
  uint64_t seed = 0;
  double ndcg10 = 0, hit10 = 0;
  uint64_t users = 0;        // asked about; for a stream, events
  double epsilon_spent = 0;  // infinite: unbounded
  double fit_seconds = 0, score_seconds = 0;
  // For a stream: the most periods that a user is learnt from, and the quality over time.
  uint32_t user_periods = 0;
  std::vector<SequenceTenth> tenths = {};
  // Over events with items that first appear in the stream's last tenth: one, or none in runs of an
  // earlier program.
  std::vector<SequenceTenth> cold = {};
  // For a trained learner that was evaluated during training.
  std::vector<SequenceLook> curve = {};

  template <class Run, class Visit>
  static void ForEachField(Run& run, const Visit& visit) {
    visit("id", run.id);
    visit("learner", run.learner);
    visit("epsilon", run.epsilon);
    visit("delta", run.delta);
    visit("seed", run.seed);
    visit("ndcg10", run.ndcg10);
    visit("hit10", run.hit10);
    visit("users", run.users);
    visit("epsilon_spent", run.epsilon_spent);
    visit("fit_seconds", run.fit_seconds);
    visit("score_seconds", run.score_seconds);
    visit("user_periods", run.user_periods);
    visit("curve", run.curve);
    visit("tenths", run.tenths);
    visit("cold", run.cold);
  }
  friend bool operator==(const SequenceRun&, const SequenceRun&) = default;
};

using SequenceResults = RunStore<SequenceRun>;

}  // namespace tacit::lab
