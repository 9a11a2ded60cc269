#include "tape/run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>

#include "support/fixed_noise.h"
#include "tape/records.h"
#include "tape/service.h"
#include "train/click/memory_rows.h"
#include "wiring/plans/mechanism_factory.h"

namespace tacit::tape {
namespace {

using privacy::ParticipationMode;
using privacy::Query;

wiring::Assembly Assembled(const Case& tried, const std::string& folder) {
  auto config = Configure(tried, folder);
  EXPECT_TRUE(config) << tried.name() << ": " << config.error().message;
  auto assembly = wiring::Assemble(*std::move(config));
  EXPECT_TRUE(assembly) << tried.name() << ": " << assembly.error().message;
  return *std::move(assembly);
}

std::unique_ptr<mechanism::Mechanism> ReaderOf(const wiring::Assembly& assembly) {
  if (!assembly.config.learners[0].mechanism.observes_periods()) return nullptr;
  auto made = wiring::MakeMechanism({.config = assembly.config}, assembly.transform->row_space());
  EXPECT_TRUE(made);
  return *std::move(made);
}

class Runner {
 public:
  Runner(const Subject& subject, uint64_t seed, const Planted& planted)
      : subject_(subject),
        planted_(planted),
        seed_(seed),
        records_(subject, seed),
        service_(
            subject, records_.batch(),
            {.seed = seed, .lets_all_in = planted.lets_all_in, .after_gap = planted.after_gap}) {}

  Reading Read() && {
    const std::string why = service_.Run([this](uint64_t steps) { return MakePair(steps); });
    if (!why.empty()) reading_.Wrong(why);
    CompareBill();
    CompareUses();
    return std::move(reading_);
  }

 private:
  std::unique_ptr<train::Learner> MakePair(uint64_t steps_taken) {
    WorldStore& store = service_.store();
    auto pair = std::make_unique<PairLearner>(
        MakeWorld(store.working_rows(LearnerIndex(0)), steps_taken, histories_[0]),
        MakeWorld(other_rows_, steps_taken, histories_[1]),
        PairLearner::Options{.unit = records_.unit(),
                             .covered = !subject_.tried().of_items() &&
                                        subject_.tried().query != Query::kRepresentation,
                             .plant = planted_.step,
                             .leads = planted_.leads},
        planted_.source
            ? planted_.source()
            : std::make_unique<noise::FixedNoise>(static_cast<uint8_t>(seed_ + steps_taken)),
        &reading_);
    if (steps_taken == 0 && (pair->charge() != subject_.plan().charge ||
                             pair->opening_charge() != subject_.plan().opening_charge))
      reading_.Wrong("the learner's price is not the one that was planned");
    return planted_.pair ? planted_.pair(std::move(pair)) : std::move(pair);
  }

  World MakeWorld(store::WorkingRows& rows, uint64_t steps_taken,
                  const std::shared_ptr<Histories>& histories) {
    const wiring::ModelPlan& model = *subject_.plan().model;
    auto tape = std::make_unique<lab::TwinNoise>();
    World world{.noise = tape.get()};
    std::unique_ptr<noise::NoiseSource> noise = std::move(tape);
    if (planted_.noise) noise = planted_.noise(std::move(noise));
    wiring::LearnerParts parts = service_.Parts(std::move(noise), rows, *histories, steps_taken);
    auto made = planted_.learner ? planted_.learner(subject_, std::move(parts))
                                 : model.Make(std::move(parts));
    EXPECT_TRUE(made) << made.error().message;
    world.learner = *std::move(made);
    if (reading_.released) {
      EXPECT_TRUE(world.learner->LoadReleased(*reading_.released));
    }
    world.settle = [histories, learner = world.learner.get()] {
      histories->Take(learner->TakeHistories());
      return learner->Settle();
    };
    world.rows = [&rows, layout = model.Rows()] { return AllRows(rows, layout); };
    return world;
  }

  // The bill up to each commit, one for each step, covers what was declared until then.
  void CompareBill() {
    const std::span<const ShownCommit> commits = service_.store().shown();
    if (!reading_.parted && commits.size() != reading_.steps)
      reading_.Wrong(fmt::format("{} commits of {} steps", commits.size(), reading_.steps));
    double declared = 0, charged = 0;
    for (size_t i = 0; i < std::min(reading_.declared.size(), commits.size()); ++i) {
      declared += reading_.declared[i];
      charged = commits[i].mu_squared;
      if (declared > charged * (1 + 1e-9))
        reading_.Wrong(fmt::format("the bill of commit {} is mu^2 = {:.6g}, and {:.6g} was asked",
                                   i + 1, charged, declared));
    }
    if (reading_.choices > 0 && commits.back().rho == 0)
      reading_.Wrong("a choice by score is not on the bill");
    // The other way round: nothing is charged that was not asked.
    if (!reading_.parted && declared < charged * 0.99)
      reading_.Wrong(
          fmt::format("the bill is mu^2 = {:.6g}, and {:.6g} was asked", charged, declared));
  }

  // The unit is in no more steps than its promise counts.
  void CompareUses() {
    const Case& tried = subject_.tried();
    const config::Participation& p = subject_.configured().participation;
    const uint64_t of_period =
        tried.mode == ParticipationMode::kAllocate ? p.blocks : p.PeriodSteps();
    uint64_t most = tried.mode == ParticipationMode::kOnce ? 1 : of_period;
    if (tried.of_users()) {
      const uint64_t allowance = subject_.plan().promise.bounds.allowance;
      most = tried.mode == ParticipationMode::kOnce ? allowance
                                                    : allowance / p.PeriodSteps() * of_period;
    }
    if (reading_.steps_with_unit > most)
      reading_.Wrong(fmt::format("the unit is in {} steps, and {} are counted",
                                 reading_.steps_with_unit, most));
  }

  const Subject& subject_;
  const Planted& planted_;
  const uint64_t seed_;
  const Records records_;
  Service service_;
  train::MemoryRows other_rows_{subject_.plan().model->Rows()};
  const std::array<std::shared_ptr<Histories>, 2> histories_ = {std::make_shared<Histories>(),
                                                                std::make_shared<Histories>()};
  Reading reading_;
};

}  // namespace

Subject::Subject(const Case& tried, const std::string& folder)
    : tried_(tried),
      assembly_(Assembled(tried, folder.empty() ? dir_.path() : folder)),
      reader_(ReaderOf(assembly_)) {}

std::vector<uint64_t> Subject::VocabularyOf(std::string_view released) const {
  if (reader_ == nullptr) return {};
  EXPECT_TRUE(reader_->LoadState(released));
  const auto recipe = reader_->recipe();
  return {recipe->vocabulary.begin(), recipe->vocabulary.end()};
}

Reading ReadTape(const Subject& subject, uint64_t seed, const Planted& planted) {
  return Runner(subject, seed, planted).Read();
}

}  // namespace tacit::tape
