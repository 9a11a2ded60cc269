#include <boost/json.hpp>

#include "base/text.h"
#include "cli/ledger/statement.h"
#include "cli/parts/dp_event.h"
#include "console/json_number.h"
#include "privacy/tradeoff.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;
using console::FiniteOrNull;

json::array StatedEpsilonsJson(const std::vector<StatedEpsilon>& epsilons) {
  json::array list;
  for (const StatedEpsilon& stated : epsilons) {
    json::object one{{"delta", stated.delta}, {"upper", FiniteOrNull(stated.upper)}};
    if (stated.lower) one["lower"] = FiniteOrNull(*stated.lower);
    list.push_back(std::move(one));
  }
  return list;
}

json::object StatedRunJson(const privacy::LedgerEntry& run) {
  return {{"entry", run.index},
          {"first_commit", run.first_commit},
          {"last_commit", run.last_commit},
          {"first_time", MinuteOf(run.first_time_ms)},
          {"last_time", MinuteOf(run.last_time_ms)},
          {"steps", run.steps},
          {"mechanism", privacy::Name(run.charge.mechanism)},
          {"participation", privacy::Name(run.participation)},
          {"noise_multiplier", FiniteOrNull(run.charge.noise_multiplier)},
          {"sampling_rate", run.charge.sampling_rate},
          {"block_steps", run.charge.block_steps},
          {"zcdp_rho", run.charge.zcdp_rho},
          {"clip", run.charge.clip_gradient},
          {"done", RunInWords(run)},
          {"epsilon", FiniteOrNull(run.epsilon)},
          {"code_version", run.code_version},
          {"records", "sha256:" + ToHex(run.ranges_digest)},
          {"head", "sha256:" + ToHex(run.head)}};
}

json::object StatedLearnerJson(const StatedLearner& learner) {
  const double advantage = learner.total.AdvantageAtMost();
  json::object object{
      {"unit", privacy::Name(learner.total.unit)},
      {"delta", learner.total.delta},
      {"epsilon", FiniteOrNull(learner.worst.empty() ? 0 : learner.total.epsilon)},
      {"steps", learner.total.steps},
      {"epsilons", StatedEpsilonsJson(learner.epsilons)},
      {"at_most",
       json::object{{"accuracy", advantage < 1 ? json::value(privacy::AccuracyAtMost(advantage))
                                               : json::value(nullptr)},
                    {"words", privacy::PlainWords(advantage)}}}};
  if (learner.budget) object["budget"] = FiniteOrNull(*learner.budget);
  if (learner.mu)
    object["mu"] = json::object{{"lower", learner.mu->lower}, {"upper", learner.mu->upper}};
  if (learner.name.empty()) return object;
  object["learner"] = learner.name;
  object["event"] = DpEventJson(learner.worst);
  if (!learner.total.not_covered.empty()) object["not_covered"] = learner.total.not_covered;
  if (learner.charged()) {
    const privacy::LedgerEntry& last = learner.runs.back();
    object["adjacency"] = privacy::Name(last.adjacency);
    object["neighbours"] = privacy::InWords(last.adjacency, last.unit);
  }
  json::array runs;
  for (const privacy::LedgerEntry& run : learner.runs) runs.push_back(StatedRunJson(run));
  object["runs"] = std::move(runs);
  return object;
}

json::object StatedAuditJson(const StatedAudit& audit) {
  return {{"file", audit.file},
          {"learner", audit.learner},
          {"kind", audit.kind},
          {"runs", audit.runs},
          {"delta", audit.delta},
          {"epsilon", json::object{{"charged", audit.charged ? json::value(*audit.charged)
                                                             : json::value(nullptr)},
                                   {"proved", audit.proved}}},
          {"confidence", audit.confidence},
          {"exceeds", audit.exceeds},
          {"made_by", audit.made_by}};
}

}  // namespace

std::string ToJson(const Statement& statement) {
  json::array learners, reservations, versions, warnings, audits;
  for (const StatedLearner& learner : statement.learners)
    learners.push_back(StatedLearnerJson(learner));
  for (const std::string& sentence : NotPromised()) reservations.emplace_back(sentence);
  for (const std::string& warning : statement.warnings) warnings.emplace_back(warning);
  for (const std::string& version : statement.code_versions) versions.emplace_back(version);
  for (const StatedAudit& audit : statement.audits) audits.push_back(StatedAuditJson(audit));
  const json::object object{
      {"place", statement.place},
      {"head", statement.head},
      {"anchor", statement.anchor},
      {"entries", statement.entries},
      {"verified", true},
      {"witness", statement.witnessed},
      {"anchors",
       statement.anchors ? json::value(ToJson(*statement.anchors)) : json::value(nullptr)},
      {"audits", std::move(audits)},
      {"compared",
       statement.compared ? json::value(ToJson(*statement.compared)) : json::value(nullptr)},
      {"learners", std::move(learners)},
      {"total", StatedLearnerJson(statement.together)},
      {"warnings", std::move(warnings)},
      {"not_promised", std::move(reservations)},
      {"code_versions", std::move(versions)},
      {"made_by", statement.program}};
  return json::serialize(object) + "\n";
}

}  // namespace tacit::cli
