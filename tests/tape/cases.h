#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "privacy/query_table.h"

// The learners that are run on tapes.
namespace tacit::tape {

// A learner for one cell of the table of queries: asks the query, in one participation, of one
// unit.
struct Case {
  privacy::Query query = privacy::Query::kUnnoised;
  privacy::ParticipationMode mode = privacy::ParticipationMode::kOnce;
  privacy::Unit unit = privacy::Unit::kEvent;
  std::string model, mechanism;
  std::string more = {};  // further keys of the learner
  std::string id = "it";
  uint32_t buckets = 40;  // of the larger feature

  std::string name() const;
  bool of_items() const;
  bool of_users() const { return unit == privacy::Unit::kUser; }
};

// A case for each cell that the table of queries has for a learner, and for the ways in which
// gradients are made, clipped and stored.
std::vector<Case> AllCases();

// One of them with other sizes, clips and optimisers; some of these no configuration may have.
Case RandomCase(uint64_t seed);
// The first of AllCases() that asks this. REQUIRES one.
Case CaseOf(privacy::Query query,
            privacy::ParticipationMode mode = privacy::ParticipationMode::kOnce,
            privacy::Unit unit = privacy::Unit::kUser);

// The queries that no learner asks.
inline constexpr privacy::Query kAskedByNoLearner[] = {privacy::Query::kUnreadableCount,
                                                       privacy::Query::kScoreCounts,
                                                       privacy::Query::kInspectedCounts};

// The word by which a query's draws are declared (noise/declared.h).
std::string_view DeclaredAs(privacy::Query query);

// Reads the case's configuration; the catalogue, a file of items, is in `folder`.
Result<config::Config> Configure(const Case& tried, const std::string& folder);
inline constexpr uint32_t kItems = 6;
inline constexpr uint64_t kPeriod = 36;            // offsets of a period; three steps of `once`
inline constexpr uint64_t kOffsets = 3 * kPeriod;  // of a stream

}  // namespace tacit::tape
