#pragma once

#include <cstdint>

#include "app/bench/bench.h"

namespace tacit::app {

// AdaFEST in the setting of VocabularySetting with its rows in an EmbeddingStore on disk, in a
// temporary folder, and commits every so many steps that run behind the next steps' compute.
Result<BenchRow> BenchVocabularyStore(uint64_t vocabulary, bool quick);

}  // namespace tacit::app
