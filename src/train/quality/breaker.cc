#include "train/quality/breaker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace tacit::train {

BreakerState BreakerState::Of(const stream::Position& position) {
  return {.windows = position.step, .halted = position.period_step > 0, .next = position.next};
}

stream::Position BreakerState::ToPosition() const {
  stream::Position position;
  position.step = windows;
  position.period_step = halted ? 1 : 0;
  position.next = next;
  return position;
}

Breaker::Breaker(BreakerOptions options, std::unique_ptr<noise::NoiseSource> noise)
    : options_(std::move(options)),
      noise_(std::move(noise)),
      account_(std::string(kBreakerAccount), options_.index, options_.topic,
               privacy::MechanismKind::kBreaker, options_.noise_multiplier),
      state_(options_.state) {
  if (state_.halted && state_.windows == options_.past) state_.halted = false;
}

bool Breaker::Decide(const WindowEnd& window) {
  TACIT_CHECK(!state_.halted, "nothing is decided after a halt");
  const double noised = account_.Release(window.ranges, {&window.unreadable, 1}, *noise_)[0];
  MoveOn(window);
  const double share = noised / static_cast<double>(window.offsets());
  state_.halted = share > options_.share;
  if (state_.halted) noised_share_ = share;
  return state_.halted;
}

void Breaker::PassOver(const WindowEnd& window) { MoveOn(window); }

void Breaker::MoveOn(const WindowEnd& window) {
  ++state_.windows;
  for (const OffsetRange& range : window.ranges) {
    const OffsetRange begin{range.partition, range.end, range.end};
    const auto known = std::ranges::find(state_.next, range.partition, &OffsetRange::partition);
    if (known == state_.next.end())
      state_.next.push_back(begin);
    else
      *known = begin;
  }
}

std::optional<store::LearnerCommit> Breaker::TakePending() {
  return account_.TakePending(state_.ToPosition());
}

std::string Breaker::WhyHalted() const {
  const std::string seen =
      noised_share_ ? fmt::format(", {:.0f} % by a noised count", 100 * *noised_share_) : "";
  return fmt::format(
      "source.halt_above halted training at window {0}: more than {1:g} % of its {2} could not be "
      "learnt from{3}. What came before is committed and served; nothing is learnt until you say "
      "so. Mend the producer or the configuration (each dead letter has its reason), then start "
      "tacitd with --past-halt {0}",
      state_.windows, 100 * options_.share,
      options_.window > 0 ? Counted(options_.window, "record") : "records", seen);
}

}  // namespace tacit::train
