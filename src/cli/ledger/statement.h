#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/ledger/audits.h"
#include "cli/ledger/comparison.h"
#include "cli/ledger/ledger_anchors.h"
#include "cli/ledger/ledger_copy.h"
#include "privacy/ledger.h"

// A statement of privacy: what was learnt from whom, when, under which noise, and what that tells
// of one unit at most. All of it comes out of a ledger that was verified first.
namespace tacit::cli {

// Epsilon at a delta, certified from both sides.
struct StatedEpsilon {
  double delta = 0;
  std::optional<double> lower;  // nothing where units of several learners may differ
  double upper = 0;
};

struct StatedLearner {
  std::string name;
  privacy::LedgerTotal total;    // as the ledger claims it
  std::optional<double> budget;  // nothing if it is configured no more
  privacy::Spending worst;       // of the worst unit
  // All units' spendings are on one line, so that the worst is so at every delta.
  bool one_line = true;
  std::vector<StatedEpsilon>
      epsilons;  // the first at the promise's delta; no other unless one_line
  // The Gaussian mechanism that has the same epsilon at the promise's delta, from both sides.
  std::optional<privacy::CertifiedInterval> mu;
  std::vector<privacy::LedgerEntry> runs;  // in the order of the chain

  bool charged() const { return !runs.empty(); }
};

struct Statement {
  std::string program;  // the version that made the statement
  std::string place;    // the store, checkpoint, file or daemon that it is about
  std::string head;
  std::string
      anchor;  // a line of it, as files of anchors have them: a later statement is held to it
  bool witnessed = false;              // the place was held to a witness
  std::optional<AnchorsHeld> anchors;  // nothing if no file of them was at hand
  std::vector<StatedAudit> audits;
  std::optional<Comparison> compared;  // with an older statement
  uint64_t entries = 0;
  std::vector<StatedLearner> learners;
  // The most that one unit spends with all learners together: no name, no runs.
  StatedLearner together;
  std::vector<std::string> warnings;       // promises that protect little
  std::vector<std::string> code_versions;  // those that learnt, in the order of their first steps
  int64_t first_ms = 0, last_ms = 0;       // UTC of the first and last commit
};

// kCorruption unless every link, head and epsilon of the ledger is right.
Result<Statement> MakeStatement(const LedgerCopy& ledger);

// The parts of a promise that no epsilon covers, one sentence each. The same for every ledger.
const std::vector<std::string>& NotPromised();
// Sentences of NotPromised that are told elsewhere too, by their places.
enum : size_t { kOfTheOperator = 2, kOfTuning = 3 };

// An epsilon between its bounds, each rounded to its own side.
std::string StatedText(const StatedEpsilon& stated);
// Says between which streams a learner promises, and by which limits. REQUIRES charged().
std::string NeighboursInWords(const StatedLearner& learner);

// Says what one run of steps did: "12 steps of adafest, noise 1.5 of the clip 4".
std::string RunInWords(const privacy::LedgerEntry& run);

// UTC: "2026-11-26 04:12".
std::string MinuteOf(int64_t unix_ms);

std::string ToJson(const Statement& statement);
std::string ToMarkdown(const Statement& statement);
// One page that loads nothing.
std::string ToHtml(const Statement& statement);

}  // namespace tacit::cli
