#include "train/watch/dead_letter_news.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>
#include <vector>

#include "base/files/log.h"
#include "base/text.h"
#include "metrics/families.h"

namespace tacit::train {
namespace {

constexpr std::chrono::seconds kBetweenRates(60);
constexpr uint64_t kWindowRecords = 5000;
constexpr uint64_t kFewestDead = 100;  // fewer are no trouble, at any share
constexpr double kShareOfTrouble = 0.1;

}  // namespace

std::string PlaceOf(const event::DeadLetter& letter) {
  if (letter.line > 0) return fmt::format("{}, line {}", letter.origin, letter.line);
  return fmt::format("{}, partition {}, offset {}", letter.origin, letter.partition, letter.offset);
}

uint64_t DeadLetterNews::Counts::all_dead() const {
  return std::accumulate(dead.begin(), dead.end(), uint64_t{0});
}

std::string DeadLetterNews::Counts::ByPart() const {
  std::vector<std::string> parts;
  for (size_t part = 0; part < dead.size(); ++part)
    if (dead[part] > 0)
      parts.push_back(fmt::format("{} {}", event::kBadPartNames[part], WithThousands(dead[part])));
  return fmt::format("{}", fmt::join(parts, ", "));
}

DeadLetterNews::DeadLetterNews(const Clock& clock, metrics::Registry& registry, std::string kept_in)
    : clock_(clock),
      kept_in_(std::move(kept_in)),
      read_(registry.AddCounter("tacit_records_read_total")),
      last_told_(clock.Now()) {
  for (size_t part = 0; part < dead_.size(); ++part)
    dead_[part] = registry.AddCounter("tacit_dead_letters_total",
                                      {{"part", std::string(event::kBadPartNames[part])}});
}

void DeadLetterNews::See(const event::RawRecords& records,
                         std::span<const event::DeadLetter> dead) {
  Counts seen{.records = records.size() + records.summed.records, .dead = records.summed.dead};
  for (size_t part = 0; part < seen.dead.size(); ++part)
    if (seen.dead[part] > 0 && !std::exchange(told_[part], true))
      TellFirst(static_cast<event::BadPart>(part), "read by worker " + records.origin);
  for (const event::DeadLetter& letter : dead) {
    const auto part = static_cast<size_t>(letter.part);
    ++seen.dead[part];
    if (!std::exchange(told_[part], true)) TellFirst(letter.part, PlaceOf(letter));
  }
  read_.Add(static_cast<double>(seen.records));
  const auto add = [&seen](Counts* to) {
    to->records += seen.records;
    for (size_t part = 0; part < seen.dead.size(); ++part) to->dead[part] += seen.dead[part];
  };
  for (size_t part = 0; part < dead_.size(); ++part)
    if (seen.dead[part] > 0) dead_[part].Add(static_cast<double>(seen.dead[part]));
  add(&since_told_);
  TellRate();
  const MutexLock lock(mutex_);
  add(&recent_);
  if (recent_.records >= kWindowRecords) previous_ = std::exchange(recent_, {});
}

void DeadLetterNews::TellFirst(event::BadPart part, const std::string& place) const {
  LogEvent(spdlog::level::warn, "dead_letter",
           {{"part", NameOf(part)}, {"place", place}, {"kept_in", kept_in_}},
           fmt::format("a record cannot be learnt from because of its {} ({}), and there may be "
                       "more: {} has each with the reason",
                       NameOf(part), place, kept_in_));
}

void DeadLetterNews::TellRate() {
  const Clock::TimePoint now = clock_.Now();
  if (now - last_told_ < kBetweenRates) return;
  if (since_told_.all_dead() > 0)
    LogEvent(spdlog::level::warn, "dead_letters",
             {{"dead", since_told_.all_dead()},
              {"records", since_told_.records},
              {"seconds", Seconds(now - last_told_)}},
             fmt::format("{} of the {} records of the last {:.0f} s could not be learnt from: {}",
                         WithThousands(since_told_.all_dead()), WithThousands(since_told_.records),
                         Seconds(now - last_told_), since_told_.ByPart()));
  since_told_ = {};
  last_told_ = now;
}

std::string DeadLetterNews::trouble() const {
  const MutexLock lock(mutex_);
  Counts last = previous_;
  last.records += recent_.records;
  for (size_t part = 0; part < last.dead.size(); ++part) last.dead[part] += recent_.dead[part];
  const uint64_t dead = last.all_dead();
  const double share =
      static_cast<double>(dead) / static_cast<double>(std::max<uint64_t>(1, last.records));
  if (dead < kFewestDead || share < kShareOfTrouble) return "";
  return fmt::format("{:.0f} % of the last {} records could not be learnt from ({})", 100 * share,
                     WithThousands(last.records), last.ByPart());
}

}  // namespace tacit::train
