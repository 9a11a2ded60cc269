#pragma once

#include "base/hash.h"
#include "base/result.h"
#include "wiring/assembly.h"

namespace tacit::wiring {

// A digest of all that the sums of a range follow from beside the model and the range: the code
// version, the arithmetic of this machine, how records are read, the learners with their noise, and
// the bytes of catalogue.file and source.opt_out. Paths, addresses, threads, and when and where a
// period ends are no part of it. A trainer and its workers have to have the same. kNotFound, kIo: a
// file.
Result<Digest> BuildOf(const Assembly& assembly);

}  // namespace tacit::wiring
