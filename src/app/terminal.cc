#include "app/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "base/text.h"

namespace tacit::app {
namespace {

std::string EpsilonText(double epsilon) {
  return std::isfinite(epsilon) ? fmt::format("{:.3f}", epsilon) : "none promised";
}

std::string HitText(uint64_t hits, uint64_t asked) {
  return "HIT@10 " + (asked == 0 ? "-"
                                 : fmt::format("{:.3f}", static_cast<double>(hits) /
                                                             static_cast<double>(asked)));
}

std::string DayEpsilon(double epsilon) {
  return std::isfinite(epsilon) ? fmt::format("{:.4f}", epsilon) : "-";
}

// What a table of days cost; `seen`: what in it is not noised.
std::string CostLine(double epsilon, const privacy::Promise& promise, std::string_view seen) {
  if (!std::isfinite(epsilon)) return "\nThis run was not private.\n";
  const bool of_users = promise.unit == privacy::Unit::kUser;
  return fmt::format(
      "\nepsilon {:.4f} at delta {} for the whole stream: {},\nso a longer stream costs {} more. "
      "{} not noised: for the operator's eyes.\n",
      epsilon, promise.delta,
      of_users ? fmt::format("no user is ever in more than {} steps", promise.bounds.allowance)
               : "every event took part in its steps only",
      of_users ? "no user" : "no event", seen);
}

}  // namespace

uint64_t EventsOf(const std::vector<LearnerView>& learners) {
  uint64_t most = 0;
  for (const LearnerView& learner : learners) most = std::max(most, learner.view.events);
  return most;
}

ProgressLine::ProgressLine(const Clock& clock)
    : clock_(clock), line_(clock), start_(clock.Now()), last_(start_) {}

void ProgressLine::Update(uint64_t total, const std::vector<LearnerView>& learners) {
  if (line_.due()) Draw(total, learners);
}

void ProgressLine::Finish(uint64_t total, const std::vector<LearnerView>& learners) {
  const uint64_t done = EventsOf(learners);
  rate_ = static_cast<double>(done) / std::max(1e-9, Seconds(clock_.Now() - start_));
  last_done_ = done;
  Draw(total, learners);
  line_.End();
}

void ProgressLine::Draw(uint64_t total, const std::vector<LearnerView>& learners) {
  const uint64_t done = EventsOf(learners);
  const Clock::TimePoint now = clock_.Now();
  const double elapsed = Seconds(now - last_);
  if (elapsed > 0 && done > last_done_) {
    const double current = static_cast<double>(done - last_done_) / elapsed;
    rate_ = rate_ == 0 ? current : 0.8 * rate_ + 0.2 * current;
  }
  last_ = now;
  last_done_ = done;
  std::string line;
  if (total > 0) {
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    line = fmt::format("{:3.0f} % ", 100 * share);
    if (line_.is_terminal()) line += fmt::format("|{}| ", ProgressBar(share));
  }
  line += fmt::format("{} events  {}/s", WithThousands(done),
                      WithThousands(static_cast<uint64_t>(rate_)));
  for (const auto& [id, view, ranks] : learners)
    line += fmt::format("  {}{}  epsilon {}", learners.size() > 1 ? id + ": " : "",
                        ranks ? HitText(view.hits, view.asked)
                              : "AUC " + (view.events > 0 ? fmt::format("{:.4f}", view.auc) : "-"),
                        EpsilonText(view.epsilon));
  line_.Draw(line);
}

std::string DayTable(const std::vector<train::DayRow>& days,
                     const std::map<std::string, double>& best_auc, double epsilon,
                     const privacy::Promise& promise) {
  const bool known = !best_auc.empty();
  std::string table =
      fmt::format("{:<18} {:>9} {:>7} {:>8} {:>8}", "log", "events", "steps", "log loss", "AUC");
  if (known) table += fmt::format(" {:>8} {:>11}", "best", "gap closed");
  table += fmt::format(" {:>9} {:>13}\n", "epsilon", "rows written");
  for (const train::DayRow& day : days) {
    const double auc = day.auc.Auc();
    table += fmt::format("{:<18} {:>9} {:>7} {:>8.4f} {:>8.4f}", day.name.empty() ? "-" : day.name,
                         WithThousands(day.events), day.steps,
                         day.loss_sum / std::max<double>(1, static_cast<double>(day.events)), auc);
    if (known) {
      const auto best = best_auc.find(day.name);
      table += best == best_auc.end() ? fmt::format(" {:>8} {:>11}", "-", "-")
                                      : fmt::format(" {:>8.4f} {:>9.0f} %", best->second,
                                                    100 * (auc - 0.5) / (best->second - 0.5));
    }
    table +=
        fmt::format(" {:>9} {:>13}\n", DayEpsilon(day.epsilon), WithThousands(day.rows_written));
  }
  return table + CostLine(epsilon, promise, "AUC and loss are");
}

std::string RankedDayTable(const std::vector<train::DayRow>& days, double epsilon,
                           const privacy::Promise& promise) {
  std::string table = fmt::format("{:<18} {:>9} {:>7} {:>9} {:>8} {:>9}\n", "log", "events",
                                  "steps", "asked", "HIT@10", "epsilon");
  for (const train::DayRow& day : days)
    table += fmt::format(
        "{:<18} {:>9} {:>7} {:>9} {:>8} {:>9}\n", day.name.empty() ? "-" : day.name,
        WithThousands(day.events), day.steps, WithThousands(day.asked),
        day.asked == 0
            ? "-"
            : fmt::format("{:.4f}", static_cast<double>(day.hits) / static_cast<double>(day.asked)),
        DayEpsilon(day.epsilon));
  return table + CostLine(epsilon, promise, "Hits are");
}

std::map<std::string, double> ReadBestAuc(const std::vector<std::string>& files) {
  std::map<std::string, double> best;
  std::set<std::filesystem::path> folders;
  for (const std::string& file : files) folders.insert(std::filesystem::path(file).parent_path());
  for (const auto& folder : folders) {
    std::ifstream in(folder / kGroundTruthFile);
    if (!in) continue;
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    boost::json::error_code error;
    const boost::json::value value = boost::json::parse(text, error);
    const auto* object = error ? nullptr : value.if_object();
    const auto* table = object == nullptr ? nullptr : object->if_contains("best_auc");
    if (table == nullptr || !table->is_object()) continue;
    for (const auto& [name, auc] : table->get_object())
      if (auc.is_double()) best[std::string(name)] = auc.get_double();
  }
  return best;
}

}  // namespace tacit::app
