#include "lab/audit/trained_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/files/log.h"
#include "base/threads/mutex.h"
#include "base/threads/worker_pool.h"
#include "lab/audit/audited_records.h"
#include "lab/passing_folder.h"
#include "metrics/registry.h"
#include "wiring/learning.h"

namespace tacit::lab {
namespace {

using audit::Score;
using Items = std::vector<uint32_t>;
using Histories = std::unordered_map<uint64_t, Items>;  // by the user's id

// Records that cannot be read are no part of the audit.
class UntoldLetters final : public event::DeadLetterSink {
 public:
  Status Write(std::span<const event::DeadLetter>) override { return {}; }
};

// Keeps a run's warnings of how much was learnt to itself while it lives: the records were changed.
class QuietLog {
 public:
  QuietLog() : level_(spdlog::get_level()) {
    spdlog::set_level(std::max(level_, spdlog::level::err));
  }
  ~QuietLog() { spdlog::set_level(level_); }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;

 private:
  const spdlog::level::level_enum level_;
};

// The number of items that it recommends from; 0: it recommends nothing.
uint32_t ItemsOf(const wiring::Assembly& assembly) {
  return assembly.learners.front().recommends ? assembly.items->items() : 0;
}

// Adds the items that users took to their histories. Skips records without an item or with label 0.
void AddTo(const event::Batch& batch, Histories* histories) {
  for (size_t i = 0; i < batch.size(); ++i)
    if (batch.item[i] != event::kNoItem && batch.label[i] > 0)
      (*histories)[UnitOf(batch, i, true)].push_back(batch.item[i]);
}

// The places in a history whose item comes for the first time, except the first item of all.
std::vector<size_t> Asked(const Items& items) {
  std::vector<size_t> asked;
  for (size_t i = 1; i < items.size(); ++i)
    if (std::find(items.begin(), items.begin() + static_cast<ptrdiff_t>(i), items[i]) ==
        items.begin() + static_cast<ptrdiff_t>(i))
      asked.push_back(i);
  if (asked.size() > kAskedMost)
    asked.erase(asked.begin(), asked.end() - static_cast<ptrdiff_t>(kAskedMost));
  return asked;
}

// ln of an item's share of the softmax over the items that are not in the history.
double LogShare(std::span<const float> scores, std::span<const uint32_t> history, uint32_t item) {
  std::vector<char> had(scores.size());
  for (const uint32_t before : history) had[before] = 1;
  double most = scores[item];
  for (size_t i = 0; i < scores.size(); ++i)
    if (!had[i]) most = std::max<double>(most, scores[i]);
  double sum = 0;
  for (size_t i = 0; i < scores.size(); ++i)
    if (!had[i]) sum += std::exp(scores[i] - most);
  return scores[item] - most - std::log(sum);
}

// ln of the probability that was given to a label. A probability that is 0 in f32 is no smaller
// than this.
double LogGiven(float probability, float label) {
  constexpr double kLeast = 1e-30;
  const double given = label > 0.5f ? probability : 1.0 - probability;
  return std::log(std::max(given, kLeast));
}

// A store in which a learner learns once, from the beginning to the end.
class TrainedModel {
 public:
  TrainedModel(const wiring::Assembly& assembly, const AuditParts& parts,
               const TrainedModelOptions& options)
      : assembly_(assembly), parts_(parts), options_(options) {}

  // Returns false if it was stopped.
  Result<bool> Train() {
    TACIT_ASSIGN(source_, OpenFirstRecords(assembly_.config.source, options_.records_most));
    TACIT_ASSIGN(PassingFolder folder, PassingFolder::Make());
    folder_.emplace(std::move(folder));
    store::StoreOptions store = wiring::MakeStoreOptions(assembly_);
    store.path = folder_->path() + "/store";
    store.shard_paths.clear();
    store.witness.clear();
    store.mark.clear();
    TACIT_ASSIGN(store_, store::Store::Open(std::move(store)));
    TACIT_ASSIGN(const auto positions, wiring::ReadPositions(assembly_, *store_));
    wiring::LearningParts parts{.assembly = assembly_,
                                .store = *store_,
                                .source = *source_,
                                .dead_letters = letters_,
                                .clock = clock_,
                                .registry = registry_,
                                .progress = progress_};
    parts.decode = [this](std::unique_ptr<event::Codec> codec) {
      return MakeArrangedCodec(std::move(codec), parts_, options_.reference, options_.of_users,
                               ItemsOf(assembly_));
    };
    TACIT_ASSIGN(learning_, wiring::Learning::Make(std::move(parts), positions));
    TACIT_RETURN_IF_ERROR(learning_->intake().Start());
    TACIT_ASSIGN(const bool whole, LearnWatched());
    learning_.reset();
    return whole;
  }

  Result<std::vector<Score>> ScoreClicks() {
    const auto scorer = assembly_.learners.front().model->Scores()->MakeScorer();
    const auto snapshot = store_->Latest();
    std::map<uint64_t, std::pair<double, uint64_t>> sums;
    std::vector<float> probabilities;
    TACIT_RETURN_IF_ERROR(ForScored([&](const event::Batch& batch) -> Status {
      probabilities.resize(batch.size());
      TACIT_RETURN_IF_ERROR(scorer->Score(*snapshot, batch, probabilities));
      for (size_t i = 0; i < batch.size(); ++i) {
        auto& [sum, records] = sums[UnitOf(batch, i, options_.of_users)];
        sum += LogGiven(probabilities[i], batch.label[i]);
        ++records;
      }
      return {};
    }));
    std::vector<Score> scores;
    for (const auto& [unit, sum] : sums)
      scores.push_back({unit, sum.first / static_cast<double>(sum.second), parts_.member(unit)});
    return scores;
  }

  Result<std::vector<Score>> ScoreItems() {
    Histories histories;
    TACIT_RETURN_IF_ERROR(ForScored([&](const event::Batch& batch) -> Status {
      AddTo(batch, &histories);
      return {};
    }));
    std::vector<std::pair<uint64_t, Items>> users;
    for (auto& user : histories)
      if (!Asked(user.second).empty()) users.push_back(std::move(user));
    std::ranges::sort(users);
    const auto model = assembly_.learners.front().model->Recommends();
    TACIT_ASSIGN(const auto state, model->Build(*store_->Latest(), nullptr));
    if (state == nullptr)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("learner '{}' has released nothing: the source has no whole period",
                              assembly_.learners.front().id));
    std::vector<Score> scores(users.size());
    Mutex mutex;
    Status failed;
    WorkerPool workers({.workers = assembly_.config.training.workers});
    workers.Run(users.size(), [&](size_t begin, size_t end, size_t) {
      const auto scorer = model->MakeScorer();
      for (; begin < end; ++begin) {
        auto mean = MeanOf(*scorer, *state, users[begin].second);
        if (!mean) {
          const MutexLock lock(mutex);
          failed = Fail(std::move(mean.error()));
          return;
        }
        scores[begin] = {users[begin].first, *mean, parts_.member(users[begin].first)};
      }
    });
    TACIT_RETURN_IF_ERROR(std::move(failed));
    return scores;
  }

 private:
  // Runs the trainer on a thread of its own, and tells meanwhile how far it is.
  Result<bool> LearnWatched() {
    Status status;
    std::atomic<bool> done = false;
    std::thread trainer([&] {
      const auto outcome = learning_->trainer().Run(learning_->intake().steps());
      if (!outcome) {
        status = Fail(outcome.error());
      } else if (*outcome == train::Outcome::kBudgetExhausted) {
        learning_->intake().Stop();
      }
      if (status) status = learning_->intake().status();
      done = true;
    });
    bool stopped = false;
    while (!done) {
      if (!stopped && options_.stop && options_.stop()) {
        stopped = true;
        learning_->trainer().RequestStop();
        learning_->intake().Stop();
      }
      const train::Intake& intake = learning_->intake();
      const auto read = static_cast<double>(intake.records_read());
      options_.progress(read / std::max(1.0, read + static_cast<double>(intake.records_ahead())));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    trainer.join();
    TACIT_RETURN_IF_ERROR(std::move(status));
    return !stopped;
  }

  // The records of the units to be scored, changed as they were learnt.
  Status ForScored(const TakeBatch& take) const {
    event::Batch scored;
    return ForAuditedRecords(
        assembly_, options_.of_users, options_.records_most, [&](const event::Batch& batch) {
          scored = batch;
          ArrangeRecords(
              parts_, options_.reference, options_.of_users, ItemsOf(assembly_),
              [](const AuditParts::Place& place) { return place.scored; }, &scored);
          return scored.size() == 0 ? Status() : take(scored);
        });
  }

  Result<double> MeanOf(serve::ItemScorer& scorer, const serve::ItemState& state,
                        const Items& items) const {
    // The learner remembers no more.
    const size_t remembered = assembly_.config.learners.front().history.items;
    std::vector<float> scores(ItemsOf(assembly_));
    const std::vector<size_t> asked = Asked(items);
    double sum = 0;
    for (const size_t i : asked) {
      const std::span<const uint32_t> before = std::span(items).first(i);
      TACIT_RETURN_IF_ERROR(scorer.Score(state, before.last(std::min(i, remembered)), scores));
      sum += LogShare(scores, before, items[i]);
    }
    return sum / static_cast<double>(asked.size());
  }

  const wiring::Assembly& assembly_;
  const AuditParts& parts_;
  const TrainedModelOptions& options_;
  SystemClock clock_;
  metrics::Registry registry_;
  train::Progress progress_{1};
  UntoldLetters letters_;
  std::optional<PassingFolder> folder_;
  std::unique_ptr<stream::Source> source_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<wiring::Learning> learning_;
};

}  // namespace

Result<std::vector<uint64_t>> ScorableUnits(const wiring::Assembly& assembly, bool of_users,
                                            uint64_t records_most) {
  std::vector<uint64_t> units;
  Histories histories;
  TACIT_RETURN_IF_ERROR(
      ForAuditedRecords(assembly, of_users, records_most, [&](const event::Batch& batch) -> Status {
        if (ItemsOf(assembly) > 0) {
          AddTo(batch, &histories);
          return {};
        }
        for (size_t i = 0; i < batch.size(); ++i) units.push_back(UnitOf(batch, i, of_users));
        return {};
      }));
  for (const auto& [user, items] : histories)
    if (!Asked(items).empty()) units.push_back(user);
  std::ranges::sort(units);
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units;
}

Result<std::vector<Score>> TrainAndScore(const wiring::Assembly& assembly, const AuditParts& parts,
                                         const TrainedModelOptions& options) {
  const QuietLog quiet;
  TrainedModel model(assembly, parts, options);
  TACIT_ASSIGN(const bool whole, model.Train());
  if (!whole) return std::vector<Score>();
  return ItemsOf(assembly) > 0 ? model.ScoreItems() : model.ScoreClicks();
}

}  // namespace tacit::lab
