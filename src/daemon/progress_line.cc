#include "daemon/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/files/log.h"
#include "base/text.h"

namespace tacit::daemon {
namespace {

std::string EpsilonText(double epsilon) {
  return std::isfinite(epsilon) ? fmt::format("{:.3f}", epsilon) : "none promised";
}

std::string HitText(const train::RankTotals& ranked) {
  if (ranked.asked == 0) return "HIT@10 -";
  return fmt::format("HIT@10 {:.3f} (popular {:.3f})", ranked.Hit(ranked.model),
                     ranked.Hit(ranked.popular));
}

// AUC, and log loss over that of the best constant.
std::string ClickText(const train::Progress::View& view) {
  if (view.events == 0) return "AUC -";
  return fmt::format("AUC {:.4f} NE {:.3f}", view.auc, view.entropy);
}

// The same figures for programs.
std::vector<LogField> FieldsOf(const LearnerView& learner) {
  const train::Progress::View& view = learner.view;
  std::vector<LogField> fields{{"learner", learner.id},
                               {"events", view.events},
                               {"steps", view.steps},
                               {"waiting", learner.waiting},
                               {"epsilon", view.epsilon}};
  if (learner.ranks) {
    const bool asked = view.ranked.asked > 0;
    fields.emplace_back("hit_at_10", asked ? view.ranked.Hit(view.ranked.model) : NAN);
    fields.emplace_back("popularity_hit_at_10", asked ? view.ranked.Hit(view.ranked.popular) : NAN);
  } else {
    fields.emplace_back("auc", view.events > 0 ? view.auc : NAN);
    fields.emplace_back("normalised_entropy", view.entropy);
    fields.emplace_back("calibration", view.calibration);
  }
  return fields;
}

}  // namespace

uint64_t EventsOf(const std::vector<LearnerView>& learners) {
  uint64_t most = 0;
  for (const LearnerView& learner : learners) most = std::max(most, learner.view.events);
  return most;
}

ProgressLine::ProgressLine(const Clock& clock)
    : clock_(clock), line_(clock), start_(clock.Now()), last_(start_) {}

void ProgressLine::Update(uint64_t read, uint64_t total, const std::vector<LearnerView>& learners) {
  if (!line_.due()) return;
  SeeRate(EventsOf(learners));
  Draw(read, total, learners, /*is_last=*/false);
}

void ProgressLine::Finish(uint64_t total, const std::vector<LearnerView>& learners) {
  const uint64_t done = EventsOf(learners);
  rate_ = static_cast<double>(done) / std::max(1e-9, Seconds(clock_.Now() - start_));
  Draw(done, total, learners, /*is_last=*/true);
  line_.End();
}

// A line of the log is of seconds, so that its rate falls to 0 at once. On a terminal, where a step
// may take longer than a drawing, it falls slowly.
void ProgressLine::SeeRate(uint64_t done) {
  const Clock::TimePoint now = clock_.Now();
  const double elapsed = Seconds(now - std::exchange(last_, now));
  const uint64_t more = done - std::exchange(last_done_, done);
  if (elapsed <= 0) return;
  const double current = static_cast<double>(more) / elapsed;
  const bool begins = rate_ == 0, ends = more == 0 && !line_.is_terminal();
  rate_ = begins || ends ? current : 0.8 * rate_ + 0.2 * current;
  if (rate_ < 0.5) rate_ = 0;
}

void ProgressLine::Draw(uint64_t read, uint64_t total, const std::vector<LearnerView>& learners,
                        bool is_last) {
  const uint64_t done = EventsOf(learners);
  const bool waits = !is_last && rate_ == 0 && std::ranges::any_of(learners, &LearnerView::waiting);
  std::string line;
  std::vector<LogField> fields{{"events", done}, {"events_per_second", rate_}};
  if (total > 0) {
    const auto reached = static_cast<double>(waits ? std::max(read, done) : done);
    const double share = std::min(1.0, reached / static_cast<double>(total));
    line = fmt::format("{:3.0f} % ", 100 * share);
    if (line_.is_terminal()) line += fmt::format("|{}| ", console::ProgressBar(share));
    fields.emplace_back("records_known", total);
  }
  line += fmt::format("{} events  {}/s", WithThousands(done),
                      WithThousands(static_cast<uint64_t>(rate_)));
  std::vector<std::vector<LogField>> of_learners;
  for (const LearnerView& learner : learners) {
    const train::Progress::View& view = learner.view;
    line += fmt::format("  {}{}  epsilon {}", learners.size() > 1 ? learner.id + ": " : "",
                        learner.ranks ? HitText(view.ranked) : ClickText(view),
                        EpsilonText(view.epsilon));
    if (waits && learner.waiting > 0)
      line += fmt::format(", {} wait until their {} is full", Counted(learner.waiting, "record"),
                          learner.waits_for);
    of_learners.push_back(FieldsOf(learner));
  }
  if (!line_.is_terminal() && !is_last && line == drawn_) return line_.Pass();
  fields.emplace_back("learners", of_learners);
  line_.Draw(line, fields);
  drawn_ = std::move(line);
}

}  // namespace tacit::daemon
