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

  bool Cut(const event::RawRecords&, const event::Batch&, const Emit&) override {
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

Result<IntakeReading> ReadWhole(train::IntakeOptions options, stream::Source& source,
                                const event::Codec& codec,
                                const event::FeatureTransform& transform) {
  NoDeadLetters dead_letters;
  std::atomic<Steady::time_point> last{};
  options.learners.push_back(
      {.index = LearnerIndex(0),
       .participation = [&last](const stream::Position&) -> std::unique_ptr<stream::Participation> {
         return std::make_unique<LookOn>(last);
       },
       .start = {}});
  train::Intake intake(std::move(options), source, codec, transform, dead_letters);
  TACIT_RETURN_IF_ERROR(intake.Start());
  const Steady::time_point begun = Steady::now();
  intake.steps().Pop();  // closed at the end
  intake.Stop();
  TACIT_RETURN_IF_ERROR(intake.status());
  return IntakeReading{.records = intake.records_read(),
                       .dead = intake.records_dead(),
                       .seconds = Seconds(last.load() - begun)};
}

}  // namespace tacit::bench
