#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "inspect/roles.h"
#include "inspect/sample.h"

namespace tacit::inspect {

// The privacy keys of the command line, and what else a person decides. Those that are not given
// stay empty in the proposal.
struct Asked {
  std::optional<double> epsilon = {}, delta = {};
  std::optional<std::string> unit = {}, mode = {};
  std::string items = {};   // file of the public items; "": none was named
  std::string output = {};  // the proposal's file; store and witness are named after it
  std::string store = {}, witness = {};  // those that were charged; if empty, none was

  bool of_users() const { return unit == "user"; }
  bool held() const { return mode == "poisson" || mode == "allocate"; }
};

struct Proposal {
  std::string yaml;
  std::vector<std::string> open_keys;  // those that a person has to fill in
  std::vector<std::string> filled;     // overrides that fill them in for a trial
  config::Config config;               // with those
  // The noise of a step of the first learner at `config`'s epsilon, beside its records, in words
  // and in what a unit adds; "" and 0 where the learner could not be planned yet.
  std::string noise;
  double noise_in_units = 0;
  std::string next_item;  // a sentence on the model of the next item beside that of labels, or ""
};

// Returns the reason why nothing can be learnt from such records with any decision; "" if
// something can.
std::string WhyNothingToLearn(const Roles& roles);

// Writes a whole configuration, each value with its reason, and has it loaded as tacitd would load
// it. REQUIRES that there is something to learn. Fails where what was asked for does not go with
// the records (unit user without a user); the message says what is missing.
Result<Proposal> Propose(const Sample& sample, const Roles& roles, const Evidence& evidence,
                         const Asked& asked);
// The same of a raw sample.
Result<Proposal> Propose(const Sample& sample, const Roles& roles, const Asked& asked);

}  // namespace tacit::inspect
