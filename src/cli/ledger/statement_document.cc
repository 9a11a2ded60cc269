#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include "base/text.h"
#include "cli/ledger/document.h"
#include "cli/ledger/statement.h"
#include "cli/parts/dp_event.h"
#include "lab/line_figure.h"
#include "privacy/tradeoff.h"

namespace tacit::cli {
namespace {

constexpr double kMsOfADay = 86400e3;

std::string StatedNumber(double number) {
  return std::isfinite(number) ? fmt::format("{:.4g}", number) : "unbounded";
}

// An upper bound is rounded up and a lower one down, so that what is printed holds.
std::string StatedBound(double number, bool upper) {
  if (!std::isfinite(number)) return "unbounded";
  if (number <= 0) return "0";
  const double unit = std::pow(10, std::floor(std::log10(number)) - 3);
  const double steps = number / unit;
  return fmt::format("{:.4g}", (upper ? std::ceil(steps - 1e-9) : std::floor(steps + 1e-9)) * unit);
}

}  // namespace

std::string StatedText(const StatedEpsilon& stated) {
  const std::string upper = StatedBound(stated.upper, true);
  if (!stated.lower) return "at most " + upper;
  const std::string lower = StatedBound(*stated.lower, false);
  return lower == upper || stated.upper == *stated.lower ? StatedBound(stated.upper, true)
                                                         : lower + " to " + upper;
}

std::string NeighboursInWords(const StatedLearner& learner) {
  const privacy::LedgerEntry& last = learner.runs.back();
  std::string words =
      fmt::format("{} ({}); participation {}", privacy::InWords(last.adjacency, last.unit),
                  privacy::Name(last.adjacency), privacy::Name(last.participation));
  if (last.bounds.allowance > 0)
    words +=
        fmt::format("; a user is in at most {} steps, ever", WithThousands(last.bounds.allowance));
  if (last.bounds.dedupe_window > 0)
    words += fmt::format("; an event id counts once in {} offsets",
                         WithThousands(last.bounds.dedupe_window));
  return words;
}

namespace {

std::string StatedMu(const StatedLearner& learner) {
  if (!learner.mu) return "-";
  const std::string lower = StatedBound(learner.mu->lower, false),
                    upper = StatedBound(learner.mu->upper, true);
  return learner.mu->lower == learner.mu->upper || lower == upper ? upper : lower + " to " + upper;
}

std::string StatedName(const StatedLearner& learner) {
  return learner.name.empty() ? "all together" : learner.name;
}

std::string StatedBudget(const StatedLearner& learner) {
  if (!learner.budget) return learner.name.empty() ? "none" : "none: retired";
  return StatedNumber(*learner.budget);
}

void AddPromises(const Statement& statement, Document* document) {
  document->Heading("What is promised, and what has been spent of it");
  console::TextLines lines = {
      {"learner", "unit", "delta", "budget", "epsilon spent", "mu", "steps"}};
  const auto add = [&](const StatedLearner& learner) {
    const std::string spent = learner.worst.empty()      ? "0"
                              : learner.epsilons.empty() ? "not known without the store"
                                                         : StatedText(learner.epsilons[0]);
    lines.push_back({StatedName(learner), std::string(privacy::Name(learner.total.unit)),
                     StatedNumber(learner.total.delta), StatedBudget(learner), spent,
                     StatedMu(learner), WithThousands(learner.total.steps)});
  };
  for (const StatedLearner& learner : statement.learners) add(learner);
  add(statement.together);
  document->Table(std::move(lines));
  document->Text(
      "Two bounds, where there are two, are certified: the truth lies between them. The promise is "
      "the upper one. mu is that of the Gaussian mechanism with the same epsilon at this delta. "
      "The "
      "last line adds up what one unit spends with all learners.");
  if (!statement.warnings.empty()) document->List(statement.warnings);
}

void AddNeighbours(const Statement& statement, Document* document) {
  document->Heading("Between which streams");
  std::vector<std::string> items;
  for (const StatedLearner& learner : statement.learners) {
    if (learner.charged())
      items.push_back(fmt::format("{}: {}.", learner.name, NeighboursInWords(learner)));
  }
  if (items.empty()) items.push_back("Nothing has been learnt yet.");
  document->List(std::move(items));
}

void AddDeltas(const Statement& statement, Document* document) {
  document->Heading("Epsilon at other deltas");
  std::vector<const StatedLearner*> rows;
  for (const StatedLearner& learner : statement.learners) rows.push_back(&learner);
  if (rows.size() > 1) rows.push_back(&statement.together);
  std::set<double, std::greater<>> deltas;
  for (const StatedLearner* row : rows)
    for (const StatedEpsilon& stated : row->epsilons) deltas.insert(stated.delta);
  console::TextLines lines = {{"learner"}};
  for (const double delta : deltas) lines[0].push_back("delta " + StatedNumber(delta));
  for (const StatedLearner* row : rows) {
    if (row->worst.empty()) continue;
    lines.push_back({StatedName(*row)});
    for (const double delta : deltas) {
      const auto stated = std::ranges::find(row->epsilons, delta, &StatedEpsilon::delta);
      lines.back().push_back(stated == row->epsilons.end() ? "-" : StatedText(*stated));
    }
  }
  document->Table(std::move(lines));
}

void AddWords(const Statement& statement, Document* document) {
  document->Heading("In plain words");
  std::vector<std::string> items;
  const auto add = [&](const StatedLearner& learner) {
    if (learner.worst.empty()) return;
    items.push_back(fmt::format("{}: {}.", StatedName(learner),
                                privacy::PlainWords(learner.total.AdvantageAtMost())));
  };
  for (const StatedLearner& learner : statement.learners) add(learner);
  if (statement.learners.size() > 1) add(statement.together);
  document->List(std::move(items));
}

void AddRuns(const Statement& statement, Document* document) {
  document->Heading("What was done, and when");
  console::TextLines lines = {
      {"learner", "first commit (UTC)", "last commit (UTC)", "commits", "done", "epsilon then"}};
  for (const StatedLearner& learner : statement.learners)
    for (const privacy::LedgerEntry& run : learner.runs)
      lines.push_back({learner.name, MinuteOf(run.first_time_ms), MinuteOf(run.last_time_ms),
                       fmt::format("{} to {}", run.first_commit, run.last_commit), RunInWords(run),
                       StatedBound(run.epsilon, true)});
  document->Table(std::move(lines));
  document->Text(
      "Each line is an entry of the ledger: equal steps, one after the other. Which records they "
      "read is in the entry as a digest of their salted offsets, which the store's owner can "
      "recompute and nobody else can read.");
}

// Adds a run of commits to a curve: one stair a commit, at an even pace, for a ledger's entry has
// the times of the first and of the last alone. Many commits are drawn as kStairsMost.
void AddStairs(double first, double last, uint64_t commits, double percent, const std::string& tip,
               std::vector<lab::LineFigure::Point>* points) {
  constexpr uint64_t kStairsMost = 60;
  const double stairs = static_cast<double>(std::clamp<uint64_t>(commits, 1, kStairsMost));
  const double before = points->back().percent;
  first = std::max(first, points->back().x);  // several charges of one commit
  for (double i = 1; i <= stairs; ++i) {
    const double at = stairs > 1 ? first + (last - first) * (i - 1) / (stairs - 1) : last;
    points->push_back({at, points->back().percent, ""});
    points->push_back({at, before + (percent - before) * i / stairs, i < stairs ? "" : tip});
  }
}

// Epsilon over time as a share of its budget, or without one, of what has been spent in the end.
std::string CurvesOverTime(const Statement& statement) {
  const double days = static_cast<double>(statement.last_ms - statement.first_ms) / kMsOfADay;
  const bool hours = days < 2;
  const double unit_ms = hours ? kMsOfADay / 24 : kMsOfADay;
  const double span = std::max(hours ? 24 * days : days, 1e-3);
  const auto at = [&](int64_t time_ms) {
    return static_cast<double>(time_ms - statement.first_ms) / unit_ms;
  };
  std::vector<std::pair<std::string, std::vector<lab::LineFigure::Point>>> curves;
  double most = 0;
  for (const StatedLearner& learner : statement.learners) {
    if (learner.worst.empty() || !std::isfinite(learner.total.epsilon)) continue;
    const bool budget = learner.budget && std::isfinite(*learner.budget);
    const double whole = budget ? *learner.budget : learner.total.epsilon;
    std::vector<lab::LineFigure::Point> points = {
        {at(learner.runs[0].first_time_ms), 0, "before its first step"}};
    for (const privacy::LedgerEntry& run : learner.runs) {
      const double percent = 100 * run.epsilon / whole;
      most = std::max(most, percent);
      AddStairs(at(run.first_time_ms), at(run.last_time_ms), run.last_commit - run.first_commit + 1,
                percent,
                fmt::format("epsilon {:.4g} on {} UTC", run.epsilon, MinuteOf(run.last_time_ms)),
                &points);
    }
    curves.emplace_back(budget ? learner.name : learner.name + " (no budget)", std::move(points));
  }
  if (curves.empty()) return "";
  lab::LineFigure figure({.title = "Epsilon over time",
                          .x_axis = fmt::format("{} since {} UTC", hours ? "hours" : "days",
                                                MinuteOf(statement.first_ms)),
                          .y_axis = "epsilon spent, in % of its budget",
                          .x_most = span,
                          .x_ticks = lab::RoundTicks(span),
                          .percent_most = most});
  for (size_t i = 0; i < curves.size(); ++i)
    figure.Add(curves[i].first, i, i / lab::LineFigure::kColours, curves[i].second);
  return std::move(figure).Take();
}

void AddNotPromised(const Statement& statement, Document* document) {
  document->Heading("What is not promised");
  std::vector<std::string> items;
  for (const StatedLearner& learner : statement.learners)
    if (!learner.total.not_covered.empty())
      items.push_back(fmt::format("{}: {}.", learner.name, learner.total.not_covered));
  items.insert(items.end(), NotPromised().begin(), NotPromised().end());
  document->List(std::move(items));
}

void AddChecks(const Statement& statement, Document* document) {
  document->Heading("What was checked for this statement");
  std::vector<std::string> items = {
      fmt::format(
          "Every link, head and epsilon of the ledger's {} was recomputed: all are right. "
          "Its head is {}.",
          statement.entries == 1 ? "1 entry" : WithThousands(statement.entries) + " entries",
          statement.head),
      statement.witnessed
          ? "The ledger agrees with its witness: it was not rolled back."
          : "No witness was at hand, so that a ledger that was rolled back could not be told."};
  items.push_back(
      statement.anchors
          ? fmt::format("Heads written down elsewhere: {}.", InWords(*statement.anchors))
          : "No heads that were written down elsewhere (anchors) were at hand.");
  if (statement.audits.empty()) items.push_back("No results of an audit were at hand.");
  for (const StatedAudit& audit : statement.audits) items.push_back(InWords(audit));
  if (!statement.code_versions.empty())
    items.push_back(fmt::format("Learnt by {}.", fmt::join(statement.code_versions, ", ")));
  items.push_back(fmt::format("This statement was made by {}.", statement.program));
  document->List(std::move(items));
}

void AddEvents(const Statement& statement, Document* document) {
  document->Heading("To recompute it");
  document->Text(
      "The composition of each learner's worst unit, as events of google/differential-privacy's "
      "dp_accounting 0.6.0; DpEvent.from_named_tuple reads them. They are composed for adding or "
      "removing one unit, which bounds what is promised above.");
  for (const StatedLearner& learner : statement.learners) {
    if (!learner.charged()) continue;
    document->Code(learner.name + ": " + boost::json::serialize(DpEventJson(learner.worst)));
  }
}

Document DocumentOf(const Statement& statement) {
  Document document;
  document.title = "A statement of privacy";
  if (statement.compared) document.Text(InWords(*statement.compared));
  document.Text(
      statement.entries == 0
          ? fmt::format("About {}. Nothing has been learnt from anybody yet.", statement.place)
          : fmt::format("About {}: what was learnt from {} to {} (UTC), and what that tells of one "
                        "unit at most.",
                        statement.place, MinuteOf(statement.first_ms),
                        MinuteOf(statement.last_ms)));
  if (statement.compared) {
    document.Heading("What has changed since " + statement.compared->file);
    document.List(statement.compared->changes.empty() ? std::vector<std::string>{"Nothing."}
                                                      : statement.compared->changes);
  }
  AddPromises(statement, &document);
  if (statement.entries > 0) {
    AddWords(statement, &document);
    AddNeighbours(statement, &document);
    if (std::string picture = CurvesOverTime(statement); !picture.empty())
      document.Figure(std::move(picture));
    AddDeltas(statement, &document);
    AddRuns(statement, &document);
  }
  AddNotPromised(statement, &document);
  AddChecks(statement, &document);
  if (statement.entries > 0) AddEvents(statement, &document);
  return document;
}

}  // namespace

std::string ToMarkdown(const Statement& statement) { return RenderMarkdown(DocumentOf(statement)); }
std::string ToHtml(const Statement& statement) { return RenderHtml(DocumentOf(statement)); }

}  // namespace tacit::cli
