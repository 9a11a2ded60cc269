#pragma once

#include <string_view>

#include "base/hash.h"
#include "train/opt_out.h"
#include "wiring/assembly.h"
#include "workers/seal.h"

namespace tacit::wiring {

struct BuildParts {
  const Assembly& assembly;
  const workers::SharedKey& key;
  std::string_view sources;                // of the program, as console::BuildInfo has them
  const train::OptOut* opt_out = nullptr;  // the users that are left out; null if there is no file
};

// A digest of all that the sums of a range follow from beside the model and the range: the code
// version and its sources, the arithmetic of this machine, how records are read, the learners with
// their noise, the items of the catalogue and the bytes of source.opt_out. Paths, addresses,
// threads, and when and where a period ends are no part of it. A trainer and its workers have to
// have the same. It stands in the clear in both topics: without the key it says nothing of them.
Digest BuildOf(const BuildParts& parts);

}  // namespace tacit::wiring
