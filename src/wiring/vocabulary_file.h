#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "event/schema.h"

namespace tacit::wiring {

// The features of a configuration in the transform's form.
event::FeatureSchema MakeSchema(const std::vector<config::Feature>& features);

// Reads the rows, ascending and distinct, of a public vocabulary: a text file with one value per
// line, `feature<TAB>value`, the value as a log writes it; an empty value stands for the missing
// one. Empty lines and lines that begin with # are skipped. Lines come in order of importance: with
// `keep` above 0, reading ends after that many rows. Fails, naming file and line, for a line
// without a tab or with a feature that has no table.
Result<std::vector<uint64_t>> ReadVocabularyFile(const std::string& path,
                                                 const std::vector<config::Feature>& features,
                                                 uint64_t keep);

}  // namespace tacit::wiring
