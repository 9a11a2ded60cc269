#include "lab/audit/audit_report.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "base/text.h"
#include "console/json_number.h"
#include "console/text_table.h"
#include "wiring/plans/code_version.h"

namespace tacit::lab {
namespace {

std::string Number(double number) { return fmt::format("{:.3f}", number); }
// "0.41 of 0.62"
std::string OfAllowed(double seen, double allowed) {
  return fmt::format("{:.3f} of {:.3f}", seen, allowed);
}

namespace json = boost::json;

json::object Json(const AuditedLearner::Losses& losses) {
  return {{"members", losses.members},
          {"others", losses.others},
          {"auc_without_reference", losses.plain_area},
          {"auc", json::array{losses.area.lower, losses.area.upper}},
          {"found_at_1_false_in_1000",
           json::object{{"seen", losses.found.found},
                        {"truth", json::array{losses.found.truth.lower, losses.found.truth.upper}},
                        {"false_alarms_upper", losses.found.false_alarms_upper}}},
          {"guesses", losses.guesses.guesses},
          {"right", losses.guesses.right},
          {"epsilon_steinke", losses.steinke_epsilon},
          {"xiang_mu", losses.xiang_mu ? json::value(*losses.xiang_mu) : json::value(nullptr)}};
}

std::string Text(const AuditedLearner& learner, const AuditedLearner::Losses& losses) {
  std::string text = fmt::format(
      "{}: {}: {} learnt from and {} not; AUC {:.3f} by loss, {:.3f} less a reference's, {:.3f} to "
      "{:.3f} of endless records; found with a false alarm in 1,000 {:.4f}, {:.4f} to {:.4f} of "
      "endless ones, with {:.4f} false alarms at most; {} of {} guesses right (epsilon {:.3f} by "
      "Steinke)",
      learner.id, learner.run, WithThousands(losses.members), WithThousands(losses.others),
      losses.plain_area, learner.judged.area, losses.area.lower, losses.area.upper,
      losses.found.found, losses.found.truth.lower, losses.found.truth.upper,
      losses.found.false_alarms_upper, WithThousands(losses.guesses.right),
      WithThousands(losses.guesses.guesses), losses.steinke_epsilon);
  if (losses.xiang_mu)
    text += fmt::format("; told, and no proof (Xiang): mu {:.3f}", *losses.xiang_mu);
  return text + "\n";
}

}  // namespace

boost::json::object ToJson(const AuditReport& report) {
  boost::json::array rows, refused;
  for (const AuditedLearner& learner : report.audited) {
    const audit::JudgedRuns& j = learner.judged;
    rows.push_back(boost::json::object{
        {"learner", learner.id},
        {"kind", learner.kind},
        {"run", learner.run},
        {"runs", learner.runs},
        {"canary", learner.reach},
        {"delta", j.delta},
        {"mu", boost::json::object{{"charged", console::FiniteOrNull(j.charged_mu)},
                                   {"proved", j.proved_mu}}},
        {"epsilon", boost::json::object{{"charged", console::FiniteOrNull(j.charged_epsilon)},
                                        {"proved", j.proved_epsilon}}},
        {"auc", boost::json::object{{"seen", j.area}, {"allowed", j.allowed_area}}},
        {"accuracy", boost::json::object{{"seen", j.accuracy}, {"allowed", j.allowed_accuracy}}},
        {"found_at_1_false_in_100",
         boost::json::object{{"seen", j.found_1_in_100}, {"allowed", j.allowed_1_in_100}}},
        {"found_at_1_false_in_1000",
         boost::json::object{{"seen", j.found_1_in_1000}, {"allowed", j.allowed_1_in_1000}}},
        {"losses", learner.losses ? json::value(Json(*learner.losses)) : json::value(nullptr)},
        {"exceeds", j.exceeds}});
  }
  for (const AuditReport::Refused& learner : report.refused)
    refused.push_back(boost::json::object{{"learner", learner.id}, {"reason", learner.reason}});
  return {{"rows", std::move(rows)},        {"refused", std::move(refused)},
          {"confidence", 1 - report.alpha}, {"exceeds", report.exceeds()},
          {"complete", !report.stopped},    {"made_by", wiring::CodeVersion()}};
}

std::string ToText(const AuditReport& report) {
  console::TextLines lines = {{"learner", "audit", "mu charged", "mu proved", "epsilon charged",
                               "proved", "at delta", "AUC", "accuracy", "found at 1/100",
                               "found at 1/1,000", ""}};
  for (const AuditedLearner& learner : report.audited) {
    const audit::JudgedRuns& j = learner.judged;
    lines.push_back(
        {learner.id, learner.kind, Number(j.charged_mu), Number(j.proved_mu),
         Number(j.charged_epsilon), Number(j.proved_epsilon), fmt::format("{:g}", j.delta),
         OfAllowed(j.area, j.allowed_area), OfAllowed(j.accuracy, j.allowed_accuracy),
         OfAllowed(j.found_1_in_100, j.allowed_1_in_100),
         OfAllowed(j.found_1_in_1000, j.allowed_1_in_1000), j.exceeds ? "EXCEEDS ITS CHARGE" : ""});
  }
  std::string text = report.audited.empty() ? "" : console::LayOut(lines, {0, 1, 11});
  for (const AuditedLearner& learner : report.audited) {
    if (learner.losses) {
      text += Text(learner, *learner.losses);
      continue;
    }
    text += fmt::format(
        "{}: {} runs with the canary and {} without of {}; the canary fills {:.1f} % of the "
        "charge's mu\n",
        learner.id, WithThousands(learner.runs), WithThousands(learner.runs), learner.run,
        100 * learner.reach);
  }
  for (const AuditReport::Refused& learner : report.refused)
    text += fmt::format("REFUSED: {}\n", learner.reason);
  if (!report.audited.empty())
    text += fmt::format(
        "proved: holds for {} with a confidence of {:.4g} %{}. \"a of b\": a was seen, b is the "
        "most that the charge allows.\n",
        report.audited.size() == 1 ? "it" : "all of them together", 100 * (1 - report.alpha),
        report.audited.size() == 1 ? "" : ", the errors of the bounds added up");
  return text;
}

}  // namespace tacit::lab
