#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "cli/ledger/ledger.h"
#include "cli/parts/command.h"
#include "config/config.h"
#include "config/text_file.h"
#include "console/exit_code.h"
#include "console/stop_signals.h"
#include "lab/audit/audit_report.h"
#include "lab/audit/score_audit.h"
#include "lab/audit/trained_scores.h"

namespace tacit::cli {
namespace {

struct AuditCommandOptions {
  std::string config;
  std::vector<std::string> overrides;
  lab::AuditRunOptions run;
  std::vector<std::string> kinds = {"white-box"};
  std::vector<std::string> epsilons;  // numbers, or "none"
  lab::TrainedAuditOptions trained;
  double confidence = 0.95;
  std::string scores;  // audits these, against what `ledger` has spent
  LedgerOptions ledger;
  uint64_t guesses = 0;
  bool json = false;
};

// The text of the configuration with its overrides: what runs are remembered under.
Result<std::string> KeyOf(const AuditCommandOptions& options) {
  TACIT_ASSIGN(std::string key, config::ReadTextFile(options.config));
  for (const std::string& override : options.overrides) key += "\n" + override;
  return key;
}

// "8", or "none".
Result<double> ReadEpsilon(const std::string& text) {
  if (text == "none") return std::numeric_limits<double>::infinity();
  char* end = nullptr;
  const double epsilon = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != 0 || !(epsilon > 0))
    return BadUsage(fmt::format("--epsilons: '{}' is neither none nor a number above 0", text));
  return epsilon;
}

// The part of the audits that trains models, by what both parts are asked.
Result<lab::AuditReport> AuditTrained(const AuditCommandOptions& options, lab::TrainedAudit kind,
                                      double alpha) {
  lab::TrainedAuditOptions trained = options.trained;
  trained.kind = kind;
  trained.learners = options.run.learners;
  trained.alpha = alpha;
  trained.workers = options.run.workers;
  trained.guesses = options.guesses;
  trained.key = options.run.key;
  trained.show_progress = options.run.show_progress;
  trained.stop = options.run.stop;
  if (!options.run.state.empty())
    trained.state =
        options.run.state + (kind == lab::TrainedAudit::kOneRun ? ".one-run" : ".membership");
  for (const std::string& text : options.epsilons) {
    TACIT_ASSIGN(const double epsilon, ReadEpsilon(text));
    trained.epsilons.push_back(epsilon);
  }
  trained.load = [&](const std::vector<std::string>& further) {
    std::vector<std::string> overrides = options.overrides;
    overrides.insert(overrides.end(), further.begin(), further.end());
    return config::Load(options.config, overrides);
  };
  return lab::RunTrainedAudits(trained);
}

// Makes the audits of all kinds asked for, which share the error.
Result<lab::AuditReport> AuditAll(const config::Config& config,
                                  const AuditCommandOptions& options) {
  lab::AuditReport all;
  all.alpha = options.run.alpha;
  const double alpha = options.run.alpha / static_cast<double>(options.kinds.size());
  for (const std::string& kind : options.kinds) {
    lab::AuditReport report;
    if (kind == "white-box") {
      lab::AuditRunOptions run = options.run;
      run.alpha = alpha;
      TACIT_ASSIGN(report, lab::RunAudits(config, run));
    } else {
      TACIT_ASSIGN(report, AuditTrained(options,
                                        kind == "one-run" ? lab::TrainedAudit::kOneRun
                                                          : lab::TrainedAudit::kMembership,
                                        alpha));
    }
    std::ranges::move(report.audited, std::back_inserter(all.audited));
    std::ranges::move(report.refused, std::back_inserter(all.refused));
    all.stopped = all.stopped || report.stopped;
    if (all.stopped) break;
  }
  return all;
}

Result<int> Audit(AuditCommandOptions options) {
  if (!(options.confidence > 0.5 && options.confidence < 1))
    return BadUsage(fmt::format("--confidence: {} is not between 0.5 and 1", options.confidence));
  TACIT_ASSIGN(const config::Config config,
               config::Load(options.config, options.overrides, config::LogFiles::kUnread));
  TACIT_ASSIGN(options.run.key, KeyOf(options));
  console::StopSignals signals;
  options.run.alpha = 1 - options.confidence;
  options.run.show_progress = isatty(STDERR_FILENO) == 1;
  options.run.stop = [&] { return signals.WaitFor(std::chrono::milliseconds(0)); };
  TACIT_ASSIGN(const lab::AuditReport report, AuditAll(config, options));
  if (options.json)
    fmt::print("{}\n", boost::json::serialize(lab::ToJson(report)));
  else
    fmt::print("{}", lab::ToText(report));
  if (report.stopped)
    fmt::print(stderr, "tacit: stopped before all runs were made{}\n",
               options.run.state.empty() ? "; with --state FILE it would go on from here"
                                         : ": the same command goes on from here");
  const bool nothing = report.audited.empty();
  return int{report.exceeds() || report.stopped || nothing ? console::kExitFailed
                                                           : console::kExitDone};
}

struct ScoresCharge {
  privacy::LedgerTotal total;
  bool gaussian = false;  // all that the worst unit was in
};

// The charge of the only learner asked for.
Result<ScoresCharge> ChargeOf(const AuditCommandOptions& options) {
  if (options.run.learners.size() != 1)
    return BadUsage("--scores: name the learner that they are of with --learner ID");
  TACIT_ASSIGN(const store::ReadOnlyStore store, OpenLedger(options.ledger));
  ScoresCharge charge;
  TACIT_ASSIGN(const std::vector<std::string> entries,
               store.snapshot->LedgerEntries(0, store.snapshot->ledger_entries()));
  for (const std::string& bytes : entries) {
    TACIT_ASSIGN(const privacy::LedgerEntry entry, privacy::LedgerEntry::Decode(bytes));
    if (entry.learner == options.run.learners[0]) charge.gaussian = entry.worst.gaussian();
  }
  for (const privacy::LedgerTotal& total : store.snapshot->learners()) {
    if (total.learner != options.run.learners[0]) continue;
    charge.total = total;
    return charge;
  }
  return Fail(ErrorCode::kNotFound,
              fmt::format("the store has no learner '{}'", options.run.learners[0]));
}

Result<int> AuditScoresOf(const AuditCommandOptions& options) {
  if (!(options.confidence > 0.5 && options.confidence < 1))
    return BadUsage(fmt::format("--confidence: {} is not between 0.5 and 1", options.confidence));
  TACIT_ASSIGN(const ScoresCharge charged, ChargeOf(options));
  TACIT_ASSIGN(const std::vector<audit::Score> scores, lab::ReadScores(options.scores));
  auto found = lab::AuditScores(scores, options.guesses, charged.total, 1 - options.confidence,
                                charged.gaussian);
  if (!found) return Fail(std::move(found.error()).Context(options.scores));
  if (options.json)
    fmt::print("{}\n", boost::json::serialize(lab::ToJson(*found)));
  else
    fmt::print("{}", lab::ToText(*found));
  return int{found->exceeds() ? console::kExitFailed : console::kExitDone};
}

}  // namespace

void AddAudit(CLI::App& cli, Action* chosen) {
  auto options = std::make_shared<AuditCommandOptions>();
  auto* audit = cli.add_subcommand(
      "audit", "Attack the learners of a configuration, and hold what that proves to their charge");
  auto* config = audit->add_option("--config", options->config, "Configuration file (YAML)");
  audit->add_option("--set", options->overrides, "Override a key: learners.0.model.hidden=[8]")
      ->allow_extra_args(false);
  audit
      ->add_option("--learner", options->run.learners,
                   "Id of a learner (repeatable; default: all that can be audited)")
      ->allow_extra_args(false);
  audit
      ->add_option("--runs", options->run.runs,
                   "Runs with the canary, and as many without; a tenth chooses the threshold")
      ->check(WholeNumberFrom(200, 1'000'000'000))
      ->capture_default_str();
  audit->add_option("--confidence", options->confidence, "Of all bounds together")
      ->capture_default_str();
  audit->add_option("--workers", options->run.workers, "Threads")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  audit->add_option("--state", options->run.state,
                    "Keep the runs made in this file, and go on with those in it");
  audit
      ->add_option("--kind", options->kinds,
                   "white-box, membership or one-run (repeatable): the last two train the learner "
                   "on a part of the source's records or users")
      ->check(CLI::IsMember({"white-box", "membership", "one-run"}))
      ->allow_extra_args(false);
  audit
      ->add_option("--epsilons", options->epsilons,
                   "Train for each of these instead of the configured epsilon: none,8,1")
      ->delimiter(',');
  audit
      ->add_option("--canaries", options->trained.canaries,
                   "Records or users with wrong labels or drawn items, one-run")
      ->check(WholeNumberFrom(200, 10'000'000))
      ->capture_default_str();
  audit->add_option("--records", options->trained.records_most, "Read no more of the source")
      ->check(WholeNumberFrom(1000, 10'000'000'000))
      ->capture_default_str();
  audit->add_option("--seed", options->trained.seed, "Of the hash that splits the records")
      ->capture_default_str();
  auto* scores =
      audit->add_option("--scores", options->scores,
                        "Audit these scores of records instead, one a line: "
                        "{\"id\":7,\"member\":true,\"score\":-0.31,\"reference\":-0.35}");
  auto* where = audit->add_option("--store", options->ledger.store,
                                  "Store or checkpoint whose ledger has the charge of the scores");
  audit->add_option(
      "--guesses", options->guesses,
      "Records to guess in one run, the farthest out (default: all of --scores, else a "
      "tenth)");
  scores->needs(where)->excludes(config);
  where->needs(scores);
  audit->add_flag("--json", options->json, "Print JSON");
  audit->footer(
      "White-box: the learner is run as the daemon makes it, with a canary and without, by an "
      "auditor "
      "who knows\nall but that. Nothing is read of the log and nothing written but --state.\n"
      "Membership and one-run: the learner is trained on records of the source, or users with all "
      "of "
      "theirs, that a keyed\nhash chooses, and its losses are told apart, less those of a "
      "reference "
      "model without privacy. "
      "Nothing is written but --state. Exit "
      "status 1: more is proved than\nis charged, nothing could be audited, or it was stopped.\n"
      "Examples:\n  tacit audit --config config/demo.yaml --learner ctr\n  tacit audit --config "
      "config/demo.yaml --runs 100000 --state audit.jsonl --json\n  tacit audit --config "
      "config/demo.yaml --learner "
      "ctr --kind membership --epsilons none,8,1\n  tacit audit --scores "
      "scores.jsonl "
      "--store demo-data/store --learner ctr");
  audit->callback([options, chosen] {
    if (options->config.empty() && options->scores.empty())
      throw CLI::RequiredError("--config, or --scores");
    *chosen = [options] {
      return options->scores.empty() ? Audit(*options) : AuditScoresOf(*options);
    };
  });
}

}  // namespace tacit::cli
