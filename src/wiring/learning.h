#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/threads/worker_pool.h"
#include "event/codec.h"
#include "event/dead_letters.h"
#include "metrics/families.h"
#include "noise/noise.h"
#include "ops/backend.h"
#include "store/store.h"
#include "stream/source.h"
#include "train/intake.h"
#include "train/progress.h"
#include "train/trainer.h"
#include "train/watch/dead_letter_news.h"
#include "train/watch/stream_watch.h"
#include "wiring/assembly.h"

namespace tacit::wiring {

// The positions of all learners, as of the store's last commit, with the allocations of unfinished
// periods that steps of the configured noise can go on with.
Result<std::vector<stream::Position>> ReadPositions(const Assembly& assembly,
                                                    const store::Store& store);

// Says that a learner has nothing left to learn. A reader who has just corrected source or schema
// is told why: what lies before the position is not read again.
std::string NothingLeftText(const std::string& learner, const stream::Position& position);

// The outside of a Learning. What it refers to must outlive it.
struct LearningParts {
  // Makes a learner that computes on the GPU it is given; if null, on the processor.
  using MakeLearner = std::function<Result<std::unique_ptr<train::Learner>>(train::Gpu*)>;

  const Assembly& assembly;
  store::Store& store;
  stream::Source& source;
  event::DeadLetterSink& dead_letters;
  const Clock& clock;
  metrics::Registry& registry;
  train::Progress& progress;
  // Called on the commit thread after each commit; each may be empty.
  std::function<void(std::span<const stream::PartitionOffset>, const store::Snapshot&)> advise = {};
  std::function<void()> on_published = {};
  // Takes the codec that decodes records, and gives the one to decode them by; if empty, it stays.
  std::function<std::unique_ptr<event::Codec>(std::unique_ptr<event::Codec>)> decode = {};
  // Takes a learner's noise, and gives the noise that the learner draws; if empty, it stays. For
  // models that nobody is ever shown.
  std::function<std::unique_ptr<noise::NoiseSource>(std::unique_ptr<noise::NoiseSource>)> noise =
      {};
  // Chooses where a learner computes, and makes it there; if empty, on the processor.
  std::function<Result<std::unique_ptr<train::Learner>>(const LearnerPlan&, const MakeLearner&)>
      choose = {};
  // The window whose halt the operator has looked into (Breaker); 0: none.
  uint64_t past_halt = 0;
};

// The learners of a configuration at work: their intake turns the source's records into steps,
// their trainer takes these and commits. tacitd has one until it is stopped; `tacit evaluate
// --config` runs one over files.
class Learning {
 public:
  // Makes the learners as of the store's last commit. Reads nothing of the source yet.
  static Result<std::unique_ptr<Learning>> Make(LearningParts parts,
                                                const std::vector<stream::Position>& positions);
  ~Learning();
  Learning(const Learning&) = delete;
  Learning& operator=(const Learning&) = delete;

  train::Intake& intake() { return *intake_; }
  train::Trainer& trainer() { return *trainer_; }
  // Returns what is wrong with the records that come, for operators; "" if nothing is.
  std::string stream_trouble() const;
  const train::DeadLetterNews& dead_letters() const { return dead_letter_news_; }
  // Tells whether a learner's steps are computed on a GPU.
  bool on_gpu() const { return on_gpu_; }
  // The users of source.opt_out, who are never learnt from; null if there is no such file.
  const train::OptOut* opt_out() const { return opt_out_.get(); }

  // Predicts the records of files that nothing was learnt from, in steps of `once`, once the intake
  // has ended and the trainer with it.
  Status PredictHeldOut(stream::Source& files);

 private:
  struct Allowances;

  explicit Learning(LearningParts parts);
  Status MakeAll(const std::vector<stream::Position>& positions);
  Result<std::unique_ptr<train::Learner>> MakeLearner(const LearnerPlan& plan,
                                                      const store::LearnerState& state,
                                                      const stream::Position& position);
  std::optional<stream::UserOptions> Users(size_t learner);
  bool BeginsAnew(size_t learner, const stream::Position& position) const;
  train::IntakeOptions::Learner::MakeParticipation ParticipationOf(
      size_t learner, const stream::Position& position);
  stream::TopicPeriods PeriodsFor(const train::IntakeOptions& intake) const;
  ops::Backend& Backend();
  Status ReadOptOut();
  train::IntakeOptions EmptyIntake() const;

  const LearningParts parts_;
  const metrics::Counter duplicates_ = parts_.registry.AddCounter("tacit_records_repeated_total");
  const metrics::Counter opted_out_ = parts_.registry.AddCounter("tacit_records_opted_out_total");
  std::shared_ptr<const train::OptOut> opt_out_;
  train::DeadLetterNews dead_letter_news_;
  train::StreamWatch watch_;
  bool on_gpu_ = false;
  std::unique_ptr<event::Codec> codec_;
  std::unique_ptr<WorkerPool> workers_;
  std::unique_ptr<ops::Backend> backend_;
  std::vector<std::unique_ptr<Allowances>> allowances_;
  std::unique_ptr<train::Trainer> trainer_;
  std::unique_ptr<train::Intake> intake_;
};

}  // namespace tacit::wiring
