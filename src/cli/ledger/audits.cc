#include "cli/ledger/audits.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "base/text.h"
#include "config/text_file.h"

namespace tacit::cli {
namespace {

StatedAudit AuditOfRow(const boost::json::object& row) {
  StatedAudit audit;
  audit.learner = row.at("learner").as_string();
  audit.kind = row.at("kind").as_string();
  audit.runs = row.at("runs").to_number<uint64_t>();
  audit.delta = row.at("delta").to_number<double>();
  const boost::json::object& epsilon = row.at("epsilon").as_object();
  if (epsilon.at("charged").is_number()) audit.charged = epsilon.at("charged").to_number<double>();
  audit.proved = epsilon.at("proved").to_number<double>();
  audit.exceeds = row.at("exceeds").as_bool();
  return audit;
}

}  // namespace

Result<std::vector<StatedAudit>> ReadAudits(const std::string& path) {
  TACIT_ASSIGN(const std::string text, config::ReadTextFile(path));
  std::vector<StatedAudit> audits;
  try {
    const boost::json::value report = boost::json::parse(text);
    if (!report.at("complete").as_bool())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: the audit was stopped before all runs were made", path));
    for (const boost::json::value& row : report.at("rows").as_array()) {
      StatedAudit audit = AuditOfRow(row.as_object());
      audit.file = path;
      audit.confidence = report.at("confidence").to_number<double>();
      if (const auto* by = report.as_object().if_contains("made_by"))
        audit.made_by = by->as_string();
      audits.push_back(std::move(audit));
    }
  } catch (const std::exception&) {  // no JSON, or of another shape
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is nothing that `tacit audit --json` has printed", path));
  }
  return audits;
}

std::string InWords(const StatedAudit& audit) {
  std::string words = fmt::format(
      "{} audit of {} ({}): {} prove an epsilon of at least {:.4g} at delta {:g}, and {} was "
      "charged",
      audit.kind, audit.learner, audit.file, Counted(audit.runs, "run"), audit.proved, audit.delta,
      audit.charged ? fmt::format("{:.4g}", *audit.charged) : "no bound");
  if (audit.exceeds) words += ": MORE IS PROVED THAN WAS CHARGED";
  words += fmt::format(". All of that file holds with confidence {:g}", audit.confidence);
  if (!audit.made_by.empty()) words += fmt::format("; audited by {}", audit.made_by);
  return words + ".";
}

}  // namespace tacit::cli
