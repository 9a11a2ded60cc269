#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "event/schema.h"

namespace tacit::app {

// The features of a configuration as the transform wants them.
event::FeatureSchema MakeSchema(const std::vector<config::Feature>& features);

// The rows, ascending and distinct, of a vocabulary that everybody may know: a text file of one
// value a line, `feature<TAB>value`, the value as a log writes it; nothing behind the tab stands
// for the missing value. Empty lines and lines that begin with # are passed over. Lines count in
// order, the first ones most: with `keep` above 0, reading ends once there are so many rows. Fails,
// naming file and line, for a line without a tab or of a feature that has no table.
Result<std::vector<uint64_t>> ReadVocabularyFile(const std::string& path,
                                                 const std::vector<config::Feature>& features,
                                                 uint64_t keep);

}  // namespace tacit::app
