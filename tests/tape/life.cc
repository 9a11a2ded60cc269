#include "tape/life.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "support/fixed_noise.h"
#include "tape/follow_noise.h"
#include "tape/forwarding_learner.h"

namespace tacit::tape {
namespace {

// Tells a learner's noise where its steps begin and end.
class TapedLearner final : public ForwardingLearner {
 public:
  TapedLearner(const Subject& subject, std::unique_ptr<Learner> inner, const Taper::Tape& tape,
               Life* life)
      : ForwardingLearner(std::move(inner)), subject_(subject), tape_(tape), life_(*life) {}

  Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                        train::StepReport* report) override {
    static const TapedStep kNone;
    life_.tape.emplace_back();
    TapedStep& own = life_.tape.back();
    const size_t n = life_.tape.size();
    if (tape_.leads) tape_.leads->Lead(tape_.source);
    if (tape_.follows)
      tape_.follows->Follow(n <= tape_.by->tape.size() ? tape_.by->tape[n - 1] : kNone);
    auto taken = inner().TakeStep(step, abandon, report);
    if (auto released = inner().TakeReleased()) released_ = last_released_ = std::move(released);
    if (tape_.follows) {
      if (const std::string strayed = tape_.follows->End(); !strayed.empty())
        life_.strayed.push_back(fmt::format("step {}: {}", n, strayed));
      for (const auto& [query, moved] : tape_.follows->moved())
        life_.moved[query] = std::max(life_.moved[query], moved);
    }
    if (tape_.leads) {
      own.queries.assign(tape_.leads->queries().begin(), tape_.leads->queries().end());
      own.calls.assign(tape_.leads->calls().begin(), tape_.leads->calls().end());
      if (last_released_) own.vocabulary = subject_.VocabularyOf(*last_released_);
    }
    return taken;
  }
  std::shared_ptr<const std::string> TakeReleased() override {
    return std::exchange(released_, nullptr);
  }
  Status LoadReleased(std::string_view bytes) override {
    last_released_ = std::make_shared<const std::string>(bytes);
    return inner().LoadReleased(bytes);
  }

 private:
  const Subject& subject_;
  const Taper::Tape tape_;
  Life& life_;
  std::shared_ptr<const std::string> released_, last_released_;
};

// The price of what a step asked: the squares of bound over deviation.
double PriceOf(const TapedStep& step) {
  std::vector<double> deviation(step.queries.size());
  for (const lab::TwinNoise::Call& call : step.calls)
    if (call.kind == lab::TwinNoise::Call::Kind::kGrid && call.query < deviation.size())
      deviation[call.query] = call.asked;
  double price = 0;
  for (size_t q = 0; q < deviation.size(); ++q)
    if (deviation[q] > 0) price += std::pow(step.queries[q].bound / deviation[q], 2);
  return price;
}

std::string UnpaidOf(const Life& life) {
  if (life.commits.size() != life.tape.size())
    return fmt::format("{} commits of {} steps", life.commits.size(), life.tape.size());
  for (size_t i = 0; i < life.tape.size(); ++i)
    if (std::string unpaid = Unpaid(std::span(life.tape).first(i + 1), life.commits[i].mu_squared);
        !unpaid.empty())
      return fmt::format("commit {}: {}", i + 1, unpaid);
  return "";
}

}  // namespace

std::string Unpaid(std::span<const TapedStep> steps, double paid) {
  double asked = 0;
  for (const TapedStep& step : steps) asked += PriceOf(step);
  if (asked <= paid * (1 + 1e-9)) return "";
  return fmt::format("the bill is mu^2 = {:.6g}, and {:.6g} was asked", paid, asked);
}

Taper::Taper(const Subject& subject, const Circumstances& circumstances, Life* life)
    : subject_(subject), circumstances_(circumstances), life_(*life) {}

std::unique_ptr<noise::NoiseSource> Taper::Noise() {
  tape_ = {.by = circumstances_.leads};
  if (circumstances_.leads == nullptr) {
    source_ = std::make_unique<noise::FixedNoise>(
        static_cast<uint8_t>(circumstances_.seed + life_.tape.size()));
    auto leads = std::make_unique<lab::TwinNoise>();
    tape_.leads = leads.get();
    tape_.source = source_.get();
    return leads;
  }
  auto follows = std::make_unique<FollowNoise>(AskedRows{
      subject_.plan().model->Rows().space, subject_.configured().mechanism.whole_columns});
  tape_.follows = follows.get();
  return follows;
}

std::unique_ptr<train::Learner> Taper::Taped(std::unique_ptr<train::Learner> learner) {
  return std::make_unique<TapedLearner>(subject_, std::move(learner), tape_, &life_);
}

Life Live(const Subject& subject, const Records& records, const Circumstances& circumstances,
          const Planted& planted) {
  Life life;
  Taper taper(subject, circumstances, &life);
  Service service(subject, records.batch(),
                  {.seed = circumstances.seed,
                   .budget = circumstances.budget,
                   .lets_all_in = planted.lets_all_in,
                   .after_gap = planted.after_gap,
                   .plant = planted.step});
  WorldStore& store = service.store();
  const auto make = [&](uint64_t steps_taken) -> std::unique_ptr<train::Learner> {
    std::unique_ptr<noise::NoiseSource> noise = taper.Noise();
    if (planted.noise) noise = planted.noise(std::move(noise));
    wiring::LearnerParts parts = service.Parts(
        std::move(noise), store.working_rows(LearnerIndex(0)), store.histories(), steps_taken);
    auto made = planted.learner ? planted.learner(subject, std::move(parts))
                                : subject.plan().model->Make(std::move(parts));
    EXPECT_TRUE(made) << made.error().message;
    auto learner = taper.Taped(*std::move(made));
    if (store.released() != nullptr) {
      EXPECT_TRUE(learner->LoadReleased(*store.released()));
    }
    return planted.pair ? planted.pair(std::move(learner)) : std::move(learner);
  };
  life.end = service.Run(make);
  life.commits.assign(store.shown().begin(), store.shown().end());
  if (circumstances.leads == nullptr) life.unpaid = UnpaidOf(life);
  return life;
}

std::string Difference(const Life& one, const Life& other) {
  for (size_t i = 0; i < std::min(one.commits.size(), other.commits.size()); ++i) {
    const ShownCommit &a = one.commits[i], &b = other.commits[i];
    const auto of = [i](std::string_view part) {
      return fmt::format("commit {}: the worlds differ in {}", i + 1, part);
    };
    if (a.bill != b.bill) return of("the bill: " + a.bill + " and " + b.bill);
    if (a.position != b.position) return of("the position");
    if (a.released != b.released) return of("the released state");
    if (a.dense != b.dense) return of("parameters or optimiser");
    if (a.rows != b.rows) return of("rows");
  }
  if (one.commits.size() != other.commits.size())
    return fmt::format("{} commits, and {}", one.commits.size(), other.commits.size());
  if (one.end != other.end) return fmt::format("the ends '{}' and '{}'", one.end, other.end);
  return other.strayed.empty() ? "" : other.strayed[0];
}

}  // namespace tacit::tape
