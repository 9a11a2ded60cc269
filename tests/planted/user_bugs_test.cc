// Mistakes in counting and clipping users, made on purpose. Each criterion follows from what unit
// user promises; the product meets it, and with the mistake in it does not.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "mechanism/mechanism.h"
#include "mechanism/private_step.h"
#include "mechanism/vocabulary.h"
#include "privacy/gaussian.h"
#include "privacy/ledger.h"
#include "stream/steps/participation.h"
#include "support/silent_noise.h"
#include "train/click/click_learner.h"
#include "train/click/memory_rows.h"

namespace tacit {
namespace {

constexpr SipHash::Key kKey{9};
constexpr double kClip = 0.02, kBatch = 100;

// Counts what is committed; with `forgets`, the mistake, not over a start.
class Counts final : public stream::AllowanceView {
 public:
  Result<uint64_t> Read(std::span<UserUses> users) override {
    for (UserUses& uses : users) {
      const auto found = uses_.find(uses.user);
      uses = found == uses_.end() ? UserUses{.user = uses.user} : found->second;
    }
    return step_;
  }
  void Commit(const stream::StepBatch& step) {
    for (const UserUses& uses : step.uses) uses_[uses.user] = uses;
    step_ = step.after.step;
  }
  void Forget() { uses_.clear(); }

 private:
  std::map<Hash128, UserUses> uses_;
  uint64_t step_ = 0;
};

// Records, one an offset, of these users; all alike.
void MakeRecords(const std::vector<std::string>& users, uint64_t first, event::RawRecords* frame,
                 event::Batch* batch) {
  frame->first_offset = first;
  frame->end.resize(users.size());
  batch->dense_width = 2;
  batch->slots = 1;
  for (const std::string& user : users) {
    batch->offset.push_back(first++);
    batch->timestamp_ms.push_back(0);
    batch->label.push_back(1);
    batch->dense.insert(batch->dense.end(), {1.0f, -2.0f});
    batch->row.push_back(3);
    batch->slot_end.push_back(static_cast<uint32_t>(batch->row.size()));
    batch->user.Append(user);
    batch->event_id.Append("");
  }
}

// The step that the product cuts from these records.
stream::StepBatch StepOf(const std::vector<std::string>& users) {
  Counts counts;
  stream::AllowanceBook book(counts);
  const auto once = stream::MakeOnceParticipation(
      {.offsets_per_step = users.size(),
       .start = {},
       .users = stream::UserOptions{.key = kKey, .allowances = &book, .allowance = 1}});
  event::RawRecords frame;
  event::Batch batch;
  MakeRecords(users, 0, &frame, &batch);
  stream::StepBatch taken;
  const auto take = [&](stream::StepBatch&& step) {
    taken = std::move(step);
    return true;
  };
  once->Cut(frame, batch, take);
  once->Finish(take);
  EXPECT_EQ(taken.examples.size(), users.size());
  return taken;
}

// The mistake: every record is a unit.
stream::StepBatch EveryRecordAUnit(stream::StepBatch step) {
  step.units = static_cast<uint32_t>(step.examples.size());
  step.unit_of.resize(step.units);
  std::iota(step.unit_of.begin(), step.unit_of.end(), 0u);
  return step;
}

// The distance by which a step moves a learner that adds no noise, times the public divisor: the
// length of the clipped sum of dense parameters and embedding rows together.
double LengthOfUpdate(const stream::StepBatch& step) {
  train::ClickOptions options{
      .id = "ctr",
      .index = LearnerIndex(0),
      .model = {.space = {}, .dense_width = 2, .hidden = {8}},
      .seed = 3,
      .optimizer = {
          .kind = train::OptimizerNamed("sgd"), .learning_rate = 1, .row_learning_rate = 1}};
  options.model.space.AddTable("t", 6, 3);
  WorkerPool workers({.workers = 1});
  const auto backend = ops::MakeCpuBackend(workers);
  const model::Pctr shape(options.model, *backend);
  train::MemoryRows rows(train::MakeRowLayout(options, shape));
  // Every row of the space passes: tau is below all counts.
  auto mechanism = mechanism::MakeAdaFest(options.model.space, {.sigma_selection = 1,
                                                                .sigma_gradient = 1,
                                                                .clip_selection = 1,
                                                                .clip_gradient = kClip,
                                                                .threshold = 0.1,
                                                                .expected_batch = kBatch});
  const std::vector<uint64_t> touched = {3};
  std::vector<float*> place(1);
  EXPECT_TRUE(rows.Gather(touched, place));
  const std::vector<float> row_before(place[0], place[0] + 3);
  train::ClickLearner learner(options, std::move(mechanism), std::make_unique<noise::SilentNoise>(),
                              *backend, rows, nullptr);
  const auto before = learner.CopyDense();
  const std::atomic<bool> go_on = false;
  train::StepReport report;
  const auto taken = learner.TakeStep(step, go_on, &report);
  EXPECT_TRUE(taken && *taken);
  const auto after = learner.CopyDense();
  double squared = 0;
  for (size_t i = 0; i < before->parameters.size(); ++i)
    squared += std::pow(double{after->parameters[i]} - before->parameters[i], 2);
  EXPECT_TRUE(rows.Gather(touched, place));
  for (size_t i = 0; i < row_before.size(); ++i)
    squared += std::pow(double{place[0][i]} - row_before[i], 2);
  return std::sqrt(squared) * kBatch;
}

// Nulling all records of a user moves the sum by no more than one clip.
bool OneUserIsOneClip(const std::function<stream::StepBatch(stream::StepBatch)>& units) {
  return LengthOfUpdate(units(StepOf({"ann", "ann", "ann", "ann"}))) <= kClip * (1 + 1e-4);
}

TEST(PlantedUserBugs, AUsersFourRecordsClippedAsFourUnitsAreFound) {
  const auto as_cut = [](stream::StepBatch step) { return step; };
  // The clip is what bounds it: it is reached, and by four users four times.
  EXPECT_GT(LengthOfUpdate(StepOf({"ann", "ann", "ann", "ann"})), 0.99 * kClip);
  EXPECT_GT(LengthOfUpdate(StepOf({"ann", "bob", "cem", "dan"})), 3.9 * kClip);
  EXPECT_TRUE(OneUserIsOneClip(as_cut));
  EXPECT_FALSE(OneUserIsOneClip(EveryRecordAUnit));
}

// A released histogram counts a user once, in however many previews a period is shown.
double HistogramOf(const std::vector<stream::StepBatch>& previews) {
  RowSpace space;
  space.AddTable("t", 6, 3);
  const auto vocabulary =
      mechanism::MakeVocabulary(space, {.source = mechanism::VocabularyOptions::Source::kRunning,
                                        .keep = 2,
                                        .noise_multiplier = 1,
                                        .clip = 1});
  model::ActivationIndexer indexer;
  for (const stream::StepBatch& preview : previews) {
    model::Activations activations;
    const event::Batch& batch = preview.examples;
    indexer.Index(batch.row, batch.slot_end, batch.slots, preview.unit_of, preview.units,
                  &activations);
    vocabulary->Observe(activations);
  }
  noise::SilentNoise noise;
  vocabulary->OpenPeriod(noise);
  return vocabulary->counts()[3];
}

TEST(PlantedUserBugs, AUserCountedInEveryPreviewIsFound) {
  // Ann has more records than a preview takes, and others are in between.
  std::vector<std::string> users(9000, "ann");
  for (size_t i = 0; i < users.size(); i += 3) users[i] = "u" + std::to_string(i % 5);
  Counts counts;
  stream::AllowanceBook book(counts);
  const auto poisson = stream::MakePoissonParticipation(
      {.offsets_per_period = users.size(),
       .steps_per_period = 1,
       .sampling_rate = 0.5,
       .start = {},
       .users = stream::UserOptions{.key = kKey, .allowances = &book, .allowance = 1}},
      std::make_unique<noise::SilentNoise>());
  event::RawRecords frame;
  event::Batch batch;
  MakeRecords(users, 0, &frame, &batch);
  std::vector<stream::StepBatch> previews;
  const auto take = [&](stream::StepBatch&& step) {
    if (step.preview()) previews.push_back(std::move(step));
    return true;
  };
  poisson->Cut(frame, batch, take);
  poisson->Finish(take);
  ASSERT_FALSE(previews.empty());
  EXPECT_NEAR(HistogramOf(previews), 6, 1e-3) << "six users";
  // The mistake: previews are cut in the order of arrival, and a user begins anew in each.
  std::vector<stream::StepBatch> cut;
  for (size_t begin = 0; begin < users.size(); begin += 3000)
    cut.push_back(StepOf({users.begin() + static_cast<ptrdiff_t>(begin),
                          users.begin() + static_cast<ptrdiff_t>(begin + 3000)}));
  EXPECT_NEAR(HistogramOf(cut), 18, 1e-3);
}

// Twenty steps with ann in each, the process dying after every second one. In how many is she?
uint64_t StepsOfAnn(uint64_t allowance, const std::function<void(Counts&)>& at_start) {
  Counts counts;
  stream::Position position;
  uint64_t steps = 0;
  while (position.step < 20) {
    at_start(counts);
    stream::AllowanceBook book(counts);
    const auto once = stream::MakeOnceParticipation(
        {.offsets_per_step = 2,
         .start = position,
         .users = stream::UserOptions{.key = kKey, .allowances = &book, .allowance = allowance}});
    event::RawRecords frame;
    event::Batch batch;
    MakeRecords({"ann", "bob", "ann", "bob", "ann"}, position.step * 2, &frame, &batch);
    once->Cut(frame, batch, [&](stream::StepBatch&& step) {
      counts.Commit(step);
      position = step.after;
      steps += step.units == 2;
      return true;
    });
  }
  return steps;
}

// True if the ledger's charge for ann covers the steps she was in.
bool ChargeCovers(uint64_t allowance, uint64_t steps) {
  privacy::Ledger ledger;
  privacy::Promise promise{.learner = "ctr",
                           .unit = privacy::Unit::kUser,
                           .epsilon = 100,
                           .delta = 1e-6,
                           .bounds = {.allowance = allowance}};
  EXPECT_TRUE(ledger.Declare(promise));
  const privacy::CommitCharge twenty{"ctr",
                                     {.mechanism = privacy::MechanismKind::kDpSgd,
                                      .noise_multiplier = 2,
                                      .sigma_gradient = 2,
                                      .clip_gradient = 1},
                                     20,
                                     1,
                                     "log",
                                     {{0, 0, 40}}};
  ledger.Append(CommitSeq(1), 0, {&twenty, 1}, Digest{1}, "test");
  const double truth =
      privacy::GaussianEpsilon(std::sqrt(static_cast<double>(steps)) / 2, Delta(1e-6)).value;
  return ledger.Learners()[0].epsilon >= truth * (1 - 1e-9);
}

TEST(PlantedUserBugs, AnAllowanceThatIsForgottenAtAStartIsFound) {
  const uint64_t kept = StepsOfAnn(3, [](Counts&) {});
  EXPECT_EQ(kept, 3u);
  EXPECT_TRUE(ChargeCovers(3, kept));
  const uint64_t forgotten = StepsOfAnn(3, [](Counts& counts) { counts.Forget(); });
  EXPECT_GT(forgotten, 3u);
  EXPECT_FALSE(ChargeCovers(3, forgotten));
}

}  // namespace
}  // namespace tacit
