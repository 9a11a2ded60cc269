#include "bench/read_whole.h"

#include <atomic>
#include <chrono>
#include <memory>

#include "bench/suite.h"
#include "event/dead_letters.h"

namespace tacit::bench {
namespace {

using Steady = std::chrono::steady_clock;

// Records when the last record was decoded, and makes no steps.
class LookOn final : public stream::Participation {
 public:
  explicit LookOn(std::atomic<Steady::time_point>& last) : last_(last) {}

  bool Feed(const event::RawRecords&, const event::Batch&, const Emit&) override {
    last_ = Steady::now();
    return true;
  }
  bool Finish(const Emit&) override { return true; }

 private:
  std::atomic<Steady::time_point>& last_;
};

class NoDeadLetters final : public event::DeadLetterSink {
 public:
  Status Write(std::span<const event::DeadLetter>) override { return {}; }
};

}  // namespace

Result<FeedReading> ReadWhole(train::FeedOptions options, stream::Source& source,
                              const event::Codec& codec, const event::FeatureTransform& transform) {
  NoDeadLetters dead_letters;
  std::atomic<Steady::time_point> last{};
  options.learners.push_back(
      {.index = LearnerIndex(0),
       .participation = [&last](const stream::Position&) -> std::unique_ptr<stream::Participation> {
         return std::make_unique<LookOn>(last);
       },
       .start = {}});
  train::Feed feed(std::move(options), source, codec, transform, dead_letters);
  TACIT_RETURN_IF_ERROR(feed.Start());
  const Steady::time_point begun = Steady::now();
  feed.steps().Pop();  // closed at the end
  feed.Stop();
  TACIT_RETURN_IF_ERROR(feed.status());
  return FeedReading{.records = feed.records_read(),
                     .dead = feed.records_dead(),
                     .seconds = Seconds(last.load() - begun)};
}

}  // namespace tacit::bench
