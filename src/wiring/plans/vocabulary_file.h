#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "event/feature_transform.h"

namespace tacit::wiring {

// A value of a feature, and the bucket of the feature's table that holds it. Several values may
// share a bucket.
struct NamedValue {
  uint32_t table = 0;
  uint64_t bucket = 0;
  std::string value;
};

// Reads the values of a public vocabulary, in their order: a text file with one value per line,
// `feature<TAB>value`, the value as a log writes it; an empty value stands for the missing one.
// Empty lines and lines that begin with # are skipped. The stream's own code finds the buckets.
// Fails, naming file and line, for a line without a tab or with a feature that has no table.
Result<std::vector<NamedValue>> ReadNamedValues(const std::string& path,
                                                const event::FeatureTransform& transform);

// Reads the rows, ascending and distinct, of such a file, which may not be empty. Lines come in
// order of importance: with `keep` above 0, reading ends after that many rows.
Result<std::vector<uint64_t>> ReadVocabularyFile(const std::string& path,
                                                 const std::vector<config::Feature>& features,
                                                 uint64_t keep);

}  // namespace tacit::wiring
