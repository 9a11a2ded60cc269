#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mechanism/mechanism.h"
#include "store/users/allowance_gap.h"
#include "support/temp_dir.h"
#include "tape/cases.h"
#include "tape/pair_learner.h"
#include "wiring/assembly.h"

// Runs of learners on tapes: records from a seed, through the product's participation, trainer and
// bill, to a store that only remembers.
namespace tacit::tape {

// A case as wiring makes it.
class Subject {
 public:
  // With its store and its log in `folder`; if empty, in one of its own.
  explicit Subject(const Case& tried, const std::string& folder = "");

  const Case& tried() const { return tried_; }
  const wiring::Assembly& assembly() const { return assembly_; }
  const wiring::LearnerPlan& plan() const { return assembly_.learners[0]; }
  const config::Learner& configured() const { return assembly_.config.learners[0]; }
  // The rows of a vocabulary, as the mechanism released it; empty if it has none.
  std::vector<uint64_t> VocabularyOf(std::string_view released) const;

 private:
  const test::TempDir dir_;
  const Case tried_;
  const wiring::Assembly assembly_;
  const std::unique_ptr<mechanism::Mechanism> reader_;  // of vocabularies; null if there is none
};

// A fault that is put into a run; each part may be empty.
struct Planted {
  using MakeLearner = std::function<Result<std::unique_ptr<train::Learner>>(
      const Subject&, wiring::LearnerParts parts)>;

  // Stands between the learners and their tapes.
  std::function<std::unique_ptr<noise::NoiseSource>(std::unique_ptr<noise::NoiseSource>)> noise =
      {};
  // Makes the noise below the tapes; if empty, one that is the same in every run.
  std::function<std::unique_ptr<noise::NoiseSource>()> source = {};
  const std::vector<lab::TwinNoise>* leads = nullptr;  // in place of a source, as in PairLearner
  std::function<void(stream::StepBatch*)> step = {};   // changes what both learners are shown
  MakeLearner learner = {};                            // makes them
  // Changes the learner that the trainer sees: what it is charged for.
  std::function<std::unique_ptr<train::Learner>(std::unique_ptr<train::Learner>)> pair = {};
  bool lets_all_in = false;  // users are let in beyond their allowance
  // Charges a user for steps that a restored store lacks; `most` is the most that any user had
  // used.
  using AfterGap = std::function<UserUses(const UserUses&, store::UsersGap, uint32_t most)>;
  AfterGap after_gap = {};  // if empty, as the product does
};

// Runs the case and reads its tape: `wrong` is empty where no rule is broken.
Reading ReadTape(const Subject& subject, uint64_t seed, const Planted& planted = {});

}  // namespace tacit::tape
