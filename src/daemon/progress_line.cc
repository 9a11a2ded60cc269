#include "daemon/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
    if (line_.is_terminal()) line += fmt::format("|{}| ", console::ProgressBar(share));
  }
  line += fmt::format("{} events  {}/s", WithThousands(done),
                      WithThousands(static_cast<uint64_t>(rate_)));
  for (const auto& [id, view, ranks] : learners)
    line += fmt::format("  {}{}  epsilon {}", learners.size() > 1 ? id + ": " : "",
                        ranks ? HitText(view.ranked) : ClickText(view), EpsilonText(view.epsilon));
  line_.Draw(line);
}

}  // namespace tacit::daemon
