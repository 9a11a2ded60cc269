#pragma once

#include <boost/json.hpp>
#include <functional>
#include <memory>
#include <string>

#include "http/http.h"
#include "store/types/snapshot.h"
#include "wiring/assembly.h"

namespace tacit::cli {

// A store or checkpoint directory, as the command line names it.
struct CheckpointPlace {
  std::string checkpoint;
  std::string config;   // path of the configuration that it was learnt by
  std::string witness;  // path; if empty, the one beside the directory, if there is one
};

// Opens the directory read-only, without a daemon, and has `ask` answer from its last commit.
// Returns the answer's object with "witness": whether one vouches for the commit. An answer other
// than 200 becomes a failure, as in ReadAnswer.
Result<boost::json::object> AskCheckpoint(
    const CheckpointPlace& place,
    const std::function<Result<http::Reply>(const wiring::Assembly& assembly,
                                            std::shared_ptr<const store::Snapshot> snapshot)>& ask);

}  // namespace tacit::cli
