#include "cli/privacy/privacy_report.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "cli/ledger/ledger.h"
#include "cli/ledger/ledger_copy.h"
#include "cli/ledger/registry.h"
#include "cli/ledger/statement.h"
#include "console/exit_code.h"
#include "console/output_file.h"

namespace tacit::cli {
namespace {

struct PrivacyReportOptions {
  std::shared_ptr<LedgerOptions> place = std::make_shared<LedgerOptions>();
  std::shared_ptr<AnchorOptions> anchors = std::make_shared<AnchorOptions>();
  std::vector<std::string> audits;
  std::string format = "markdown", output, config, compare;
};

Result<std::string> RegistryYaml(const Statement& statement, const std::string& path) {
  std::optional<config::Config> config;
  if (!path.empty()) {
    TACIT_ASSIGN(config, config::Load(path, {}, config::LogFiles::kUnread));
  }
  TACIT_ASSIGN(const RegistryRecord record,
               MakeRegistryRecord(statement, config ? &*config : nullptr));
  for (const std::string& line : record.unwritten) fmt::print(stderr, "{}\n", line);
  return record.yaml;
}

Result<int> MakeReport(const PrivacyReportOptions& options) {
  const bool registry = options.format == "registry";
  if (!options.config.empty() && !registry) return BadUsage("--config needs --format registry");
  if (!options.compare.empty() && registry)
    return BadUsage("--compare: a record of the registry has no place for what has changed");
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
  if (!options.compare.empty()) {
    TACIT_ASSIGN(statement.compared, CompareWith(options.compare, ToJson(statement), ledger));
  }
  std::string text = options.format == "html"   ? ToHtml(statement)
                     : options.format == "json" ? ToJson(statement)
                                                : ToMarkdown(statement);
  if (registry) {
    TACIT_ASSIGN(text, RegistryYaml(statement, options.config));
  }
  if (options.output.empty())
    fmt::print("{}", text);
  else
    TACIT_RETURN_IF_ERROR(console::WriteFile(options.output, text));
  const bool continued = !statement.compared || statement.compared->not_in_chain.empty();
  return int{continued ? console::kExitDone : console::kExitFailed};
}

}  // namespace

void AddPrivacyReport(CLI::App* privacy, Action* chosen) {
  auto* command = privacy->add_subcommand(
      "report", "A statement of what was learnt from whom, and what that tells of one unit");
  auto options = std::make_shared<PrivacyReportOptions>();
  AddLedgerPlace(command, options->place, kOperatorListener);
  command->remove_option(command->get_option("--json"));
  command->add_option("--format", options->format, "markdown, html, json or registry")
      ->check(CLI::IsMember({"markdown", "html", "json", "registry"}))
      ->capture_default_str();
  command->add_option("--config", options->config,
                      "With --format registry: the service's configuration (YAML)");
  AddAnchorOptions(command, options->anchors);
  command
      ->add_option(
          "--audit", options->audits,
          "What `tacit audit --json` has printed (repeatable), to be told among the checks")
      ->allow_extra_args(false);
  command->add_option("--compare", options->compare,
                      "An older statement of --format json: tells what has changed since");
  command->add_option("--output", options->output, "File to write (default: standard output)");
  command->footer(
      "For those who have to answer for it, and for those who want to recompute it. All of it is "
      "out "
      "of the ledger,\nwhich is verified first: no statement is made of one that is damaged. It "
      "holds nothing that is not released.\nExamples:\n"
      "  tacit privacy report --store demo-data/store --format html --output privacy.html\n"
      "  tacit privacy report --file ledger.json --format json\n"
      "  tacit privacy report --store demo-data/store --format registry --config "
      "config/demo.yaml");
  command->callback([options, chosen] { *chosen = [options] { return MakeReport(*options); }; });
}

}  // namespace tacit::cli
