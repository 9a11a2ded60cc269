#include "cli/privacy/privacy_report.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/ledger/ledger.h"
#include "cli/ledger/ledger_copy.h"
#include "cli/ledger/statement.h"
#include "console/exit_code.h"
#include "console/output_file.h"

namespace tacit::cli {
namespace {

struct PrivacyReportOptions {
  std::shared_ptr<LedgerOptions> place = std::make_shared<LedgerOptions>();
  std::shared_ptr<AnchorOptions> anchors = std::make_shared<AnchorOptions>();
  std::vector<std::string> audits;
  std::string format = "markdown", output;
};

Result<int> MakeReport(const PrivacyReportOptions& options) {
  TACIT_RETURN_IF_ERROR(console::CheckWritable("--output", options.output));
  TACIT_ASSIGN(const LedgerCopy ledger, CopyLedger(*options.place));
  TACIT_ASSIGN(Statement statement, MakeStatement(ledger));
  statement.place = PlaceOf(*options.place);
  statement.witnessed = ledger.witnessed;
  TACIT_ASSIGN(statement.anchors, HoldAnchors(*options.anchors, ledger));
  for (const std::string& path : options.audits) {
    TACIT_ASSIGN(const std::vector<StatedAudit> audits, ReadAudits(path));
    statement.audits.insert(statement.audits.end(), audits.begin(), audits.end());
  }
  const std::string text = options.format == "html"   ? ToHtml(statement)
                           : options.format == "json" ? ToJson(statement)
                                                      : ToMarkdown(statement);
  if (options.output.empty())
    fmt::print("{}", text);
  else
    TACIT_RETURN_IF_ERROR(console::WriteFile(options.output, text));
  return int{console::kExitDone};
}

}  // namespace

void AddPrivacyReport(CLI::App* privacy, Action* chosen) {
  auto* command = privacy->add_subcommand(
      "report", "A statement of what was learnt from whom, and what that tells of one unit");
  auto options = std::make_shared<PrivacyReportOptions>();
  AddLedgerPlace(command, options->place, kOperatorListener);
  command->remove_option(command->get_option("--json"));
  command->add_option("--format", options->format, "markdown, html or json")
      ->check(CLI::IsMember({"markdown", "html", "json"}))
      ->capture_default_str();
  AddAnchorOptions(command, options->anchors);
  command
      ->add_option(
          "--audit", options->audits,
          "What `tacit audit --json` has printed (repeatable), to be told among the checks")
      ->allow_extra_args(false);
  command->add_option("--output", options->output, "File to write (default: standard output)");
  command->footer(
      "For those who have to answer for it, and for those who want to recompute it. All of it is "
      "out "
      "of the ledger,\nwhich is verified first: no statement is made of one that is damaged. It "
      "holds nothing that is not released.\nExamples:\n"
      "  tacit privacy report --store demo-data/store --format html --output privacy.html\n"
      "  tacit privacy report --file ledger.json --format json");
  command->callback([options, chosen] { *chosen = [options] { return MakeReport(*options); }; });
}

}  // namespace tacit::cli
