#include "privacy/query_table.h"

#include <algorithm>

#include "base/check.h"

namespace tacit::privacy {
namespace {

// Returns the query under which a charge lists this one.
Query AsCharged(Query query) {
  switch (query) {
    case Query::kSequenceGradient:
      return Query::kGradient;
    case Query::kItemHistogram:
    case Query::kPairCounts:
      return Query::kRowHistogram;
    default:
      return query;
  }
}

}  // namespace

std::string_view Name(Query query) {
  switch (query) {
    case Query::kUnnoised:
      return "a sum without noise";
    case Query::kGradient:
      return "a step's gradient";
    case Query::kRowThreshold:
      return "rows by a threshold";
    case Query::kClipQuantile:
      return "the count of an adaptive clip";
    case Query::kRowChoice:
      return "rows by exponential selection";
    case Query::kRowHistogram:
      return "a period's histogram of rows";
    case Query::kTopRows:
      return "a period's most frequent rows";
    case Query::kSequenceGradient:
      return "a step's gradient of whole histories";
    case Query::kPeriodCounts:
      return "a period's counts of transitions";
    case Query::kPeriodSums:
      return "a period's sums of residuals and counts";
    case Query::kItemHistogram:
      return "a period's histogram of items";
    case Query::kPairCounts:
      return "a period's counts of pairs of items, before its steps";
    case Query::kRepresentation:
      return "a step's noised representations";
    case Query::kRankerGradient:
      return "a ranker's gradient";
    case Query::kUnreadableCount:
      return "a window's count of unreadable records";
    case Query::kScoreCounts:
      return "a window's histogram of predictions";
    case Query::kInspectedCounts:
      return "an inspection's counts";
  }
  return "unknown";
}

std::vector<Query> QueriesOf(const Charge& charge, std::span<const MechanismRow> kinds) {
  if (!charge.Bounded()) return {Query::kUnnoised};
  switch (RowOf(kinds, charge.mechanism).charge_of) {
    case ChargeOf::kPeriodOpening:
      return {charge.zcdp_rho > 0 ? Query::kTopRows : Query::kRowHistogram};
    case ChargeOf::kPeriodCounts:
      if (charge.sigma_gradient > 0) return {Query::kPeriodCounts, Query::kRankerGradient};
      return {Query::kPeriodCounts};
    case ChargeOf::kPeriodSums:
      return {Query::kPeriodSums};
    case ChargeOf::kRepresentations:
      return {Query::kRepresentation};
    case ChargeOf::kWindowCount:
      return {Query::kUnreadableCount};
    case ChargeOf::kWindowScores:
      return {Query::kScoreCounts};
    case ChargeOf::kInspectedCounts:
      return {Query::kInspectedCounts};
    case ChargeOf::kStep:
      break;
  }
  std::vector<Query> queries;
  if (charge.sigma_selection > 0) queries.push_back(Query::kRowThreshold);
  if (charge.sigma_clip > 0) queries.push_back(Query::kClipQuantile);
  if (charge.zcdp_rho > 0) queries.push_back(Query::kRowChoice);
  if (charge.sigma_gradient > 0 || queries.empty()) queries.push_back(Query::kGradient);
  return queries;
}

bool IsOfPeriod(const Charge& charge) {
  const std::vector<Query> queries = QueriesOf(charge);
  return std::ranges::any_of(queries, [](Query query) {
    return IsOfPeriod(PriceOf(query, ParticipationMode::kPoisson, Unit::kUser));
  });
}

void CheckCharges(const std::vector<Query>& queries, const Charge& step,
                  const std::optional<Charge>& opening) {
  std::vector<Query> asked, charged = QueriesOf(step);
  for (const Query query : queries) asked.push_back(AsCharged(query));
  // The sum of a learner without noise is listed once, with its steps.
  if (opening && opening->Bounded())
    for (const Query query : QueriesOf(*opening)) charged.push_back(query);
  std::ranges::sort(asked);
  std::ranges::sort(charged);
  TACIT_CHECK(asked == charged, "a learner asks what it is not charged for");
}

std::optional<Query> RefusedOf(const std::vector<Query>& queries, ParticipationMode mode,
                               Unit unit) {
  const auto refused = std::ranges::find_if(
      queries, [&](Query query) { return PriceOf(query, mode, unit) == Price::kRefused; });
  if (refused == queries.end()) return std::nullopt;
  return *refused;
}

}  // namespace tacit::privacy
