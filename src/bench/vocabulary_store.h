#pragma once

#include <cstdint>

#include "bench/suite.h"

namespace tacit::bench {

// Measures AdaFEST in the setting of VocabularySetting with its rows in an Store on disk,
// in a temporary folder. Commits come at fixed numbers of steps and run while the next steps
// compute.
Result<BenchRow> BenchVocabularyStore(uint64_t vocabulary, bool quick);

}  // namespace tacit::bench
