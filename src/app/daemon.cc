#include "app/daemon.h"

#include <fmt/format.h>

#include <atomic>
#include <optional>
#include <thread>

#include "app/budget_check.h"
#include "app/formats.h"
#include "app/kafka.h"
#include "app/mechanism_factory.h"
#include "app/service.h"
#include "app/terminal.h"
#include "base/log.h"
#include "base/text.h"
#include "event/dead_letters.h"
#include "metrics/registry.h"
#include "serve/api.h"
#include "serve/server.h"
#include "train/feed.h"
#include "train/ledger_metrics.h"
#include "train/position.h"
#include "train/trainer.h"

namespace tacit::app {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kTick(100);
constexpr milliseconds kDrain(2000);
constexpr milliseconds kStandby(250);

stream::StoreMark MarkOf(const store::Snapshot& snapshot) {
  return {.lineage = snapshot.lineage(),
          .sequence = snapshot.version().value,
          .head = ToHex(snapshot.head())};
}

// Starts the server, or nothing when the configuration names no address.
Result<std::unique_ptr<serve::Server>> StartServer(const config::Serve& config,
                                                   serve::Services services,
                                                   metrics::Registry& registry) {
  serve::ServerOptions options;
  if (!config.listen.empty()) options.listeners.push_back({config.listen, serve::Role::kPublic});
  if (!config.operator_listen.empty())
    options.listeners.push_back({config.operator_listen, serve::Role::kOperator});
  if (options.listeners.empty()) return std::unique_ptr<serve::Server>();
  options.threads = config.threads;
  options.max_body_bytes = config.max_body_bytes;
  auto server =
      serve::Server::Start(std::move(options), serve::MakeApi(std::move(services)), registry);
  if (!server) {
    // A busy port is not a store that refuses: scripts tell them apart by the exit code.
    return Fail(ErrorCode::kIo, std::move(server.error().message));
  }
  for (const std::string& address : (*server)->addresses()) spdlog::info("serving on {}", address);
  return server;
}

void WarnOfNoWitness(const std::string& store) {
  spdlog::warn("no witness of {}: an older copy put in its place would not be noticed", store);
}

// What users have used, as the store has it, and what is cut since.
class StoredAllowances final : public stream::AllowanceView {
 public:
  StoredAllowances(const store::EmbeddingStore& store, LearnerIndex learner)
      : store_(store), learner_(learner) {}
  stream::AllowanceBook& book() { return book_; }
  Result<uint64_t> Read(std::span<UserUses> users) override {
    return store_.ReadAllowances(learner_, users);
  }

 private:
  const store::EmbeddingStore& store_;
  const LearnerIndex learner_;
  stream::AllowanceBook book_{*this};
};

// A daemon at work: everything it owns, in the order it is built.
class Daemon {
 public:
  Daemon(const Assembly& assembly, const DaemonOptions& options)
      : assembly_(assembly), options_(options), progress_(assembly.learners.size()) {}

  Result<int> Run() {
    TACIT_RETURN_IF_ERROR(OpenSourceOfRecords());
    TACIT_ASSIGN(store_, OpenStore());
    if (store_ == nullptr) return int{kExitDone};
    TACIT_RETURN_IF_ERROR(source_->VerifyIdentity(store_->source_identity()));
    source_->Claim(MarkOf(*store_->Latest()));
    TACIT_RETURN_IF_ERROR(CheckBudgets(store_->Latest()->version().value == 0));
    if (assembly_.config.store.witness == "none") WarnOfNoWitness(assembly_.config.store.path);
    TACIT_RETURN_IF_ERROR(OpenDeadLetters());
    TACIT_RETURN_IF_ERROR(MakeTrainer());
    TACIT_ASSIGN(server_, StartServer(assembly_.config.serve, MakeServices(), registry_));
    TACIT_RETURN_IF_ERROR(feed_->Start());
    std::thread training([this] { Train(); });
    NotifyReady("training");
    Watch();
    Stop(&training);
    return ExitCode();
  }

 private:
  bool from_kafka() const { return assembly_.config.source.kind == config::Source::Kind::kKafka; }

  Status OpenSourceOfRecords() {
    if (from_kafka()) {
      TACIT_ASSIGN(source_, OpenKafka(assembly_.config, options_.until_end, clock_, registry_));
    } else {
      TACIT_ASSIGN(source_, OpenSource(assembly_.config.source));
    }
    return {};
  }

  // Null: asked to stop while another daemon had the store.
  Result<std::unique_ptr<store::EmbeddingStore>> OpenStore() {
    for (bool told = false;;) {
      store::StoreOptions options = MakeStoreOptions(assembly_);
      options.accept_missing_witness = options_.accept_missing_witness;
      auto store = store::EmbeddingStore::Open(std::move(options));
      const bool held = !store && store.error().code == ErrorCode::kUnavailable;
      if (!held || !options_.standby) {
        if (store && told) spdlog::info("the store is free: taking over");
        return store;
      }
      if (!std::exchange(told, true)) {
        spdlog::info("standing by: {}", store.error().message);
        NotifyReady("standing by");
      }
      if (signals_.WaitFor(kStandby)) return std::unique_ptr<store::EmbeddingStore>();
    }
  }

  // A budget that not one step fits in is a mistake, unless the store shows that it once was
  // larger.
  Status CheckBudgets(bool is_new) {
    std::vector<std::string> problems = FirstStepsRefused(assembly_);
    if (is_new && !problems.empty())
      return Fail(ErrorCode::kInvalidArgument, std::move(problems.front()));
    for (std::string& below : BudgetsBelowSpent(assembly_, *store_->Latest()))
      problems.push_back(std::move(below));
    for (const std::string& problem : problems) spdlog::warn("{}", problem);
    return {};
  }

  // Before anything is served: what was released goes on under the mechanism that released it only.
  Status CheckReleased(const LearnerPlan& plan, const store::LearnerState& state,
                       train::Learner& learner) {
    if (!state.mechanism_state) return {};
    const Status loaded = learner.LoadMechanismState(*state.mechanism_state);
    if (loaded) return {};
    return Fail(ErrorCode::kRefused,
                fmt::format("{}; go on with {}, or train under another id or in another store",
                            loaded.error().message,
                            plan.transitions ? "the store's own model and catalogue"
                                             : "the store's own mechanism.kind, clipping, "
                                               "vocabulary.source and vocabulary.query"));
  }

  Result<std::unique_ptr<train::Learner>> MakeLearner(size_t i, const store::LearnerState& state,
                                                      const stream::Position& position) {
    const LearnerPlan& plan = assembly_.learners[i];
    auto noise = noise::MakeNoiseSource(*workers_);
    const auto histories = [this, index = plan.options.index](std::span<store::UserHistory> users) {
      return store_->ReadHistories(index, users);
    };
    std::unique_ptr<train::Learner> learner;
    if (plan.sequence) {
      train::SequenceLearnerOptions options = *plan.sequence;
      options.histories.user_key = store_->user_key();
      options.histories.clock = &clock_;
      learner =
          std::make_unique<train::SequenceLearner>(std::move(options), histories, std::move(noise),
                                                   *backend_, state.dense.get(), position.step);
    } else if (plan.transitions) {
      train::TransitionsLearnerOptions options = *plan.transitions;
      options.histories.user_key = store_->user_key();
      options.histories.clock = &clock_;
      learner = std::make_unique<train::TransitionsLearner>(std::move(options), histories,
                                                            std::move(noise), *workers_);
    } else {
      TACIT_ASSIGN(auto mechanism, MakeMechanism(assembly_.config, i, plan.options.model.space));
      learner = std::make_unique<train::ClickLearner>(
          plan.options, std::move(mechanism), std::move(noise), *backend_,
          store_->working_rows(plan.options.index), state.dense.get());
    }
    TACIT_RETURN_IF_ERROR(CheckReleased(plan, state, *learner));
    return learner;
  }

  // Behind the store, which makes the folder that both lie in, and may be refused.
  Status OpenDeadLetters() {
    TACIT_ASSIGN(dead_letters_,
                 app::OpenDeadLetters(assembly_.config, store_->Latest()->lineage()));
    codec_ = MakeCodec(assembly_.config.source, *assembly_.transform, assembly_.items);
    return {};
  }

  Status MakeTrainer() {
    const config::Training& training = assembly_.config.training;
    workers_ = std::make_unique<WorkerPool>(
        WorkerPool::Options{.workers = training.workers, .idle_priority = training.idle_priority});
    backend_ = ops::MakeCpuBackend(*workers_);
    train::FeedOptions feed{
        .learners = {},
        .filter = {.dedupe_window = assembly_.config.source.dedupe_window,
                   .dedupe_partitions = assembly_.config.source.dedupe_partitions,
                   .key = store_->user_key(),
                   .duplicates = duplicates_},
        .passes = assembly_.config.source.passes};
    if (from_kafka()) feed.queued_records_max = kKafkaRunsQueued;
    std::vector<std::unique_ptr<train::Learner>> learners;
    for (size_t i = 0; i < assembly_.learners.size(); ++i) {
      const LearnerPlan& plan = assembly_.learners[i];
      const store::LearnerState state = store_->State(plan.options.index);
      TACIT_ASSIGN(stream::Position position, train::DecodePosition(state.position));
      TACIT_ASSIGN(auto made, MakeLearner(i, state, position));
      learners.push_back(std::move(made));
      const config::Learner& learner = assembly_.config.learners[i];
      std::optional<stream::UserOptions> users;
      if (learner.privacy.of_users()) {
        feed.filter.needs_user = true;
        allowances_.push_back(std::make_unique<StoredAllowances>(*store_, plan.options.index));
        users = UsersOf(learner, assembly_.config.source, store_->user_key(),
                        allowances_.back()->book());
      }
      feed.learners.push_back(
          {.index = plan.options.index,
           .participation = MakeParticipationOf(learner.participation, !from_kafka(), users),
           .start = std::move(position)});
    }
    train::TrainerOptions trainer = MakeTrainerOptions(assembly_, source_->topic());
    trainer.advise = [this](std::span<const stream::PartitionOffset> reached,
                            const store::Snapshot& snapshot) {
      source_->Advise(reached, MarkOf(snapshot));
    };
    trainer.on_exhausted = [this](LearnerIndex learner) { feed_->Retire(learner); };
    trainer_ = std::make_unique<train::Trainer>(std::move(trainer), std::move(learners), *store_,
                                                clock_, registry_, progress_);
    feed_ = std::make_unique<train::Feed>(std::move(feed), *source_, *codec_, *assembly_.transform,
                                          *dead_letters_);
    return {};
  }

  serve::Services MakeServices() {
    return {.latest = [this] { return store_->Latest(); },
            .models = MakeScoringModels(assembly_),
            .recommenders = MakeRecommendModels(assembly_),
            .user_hash =
                [hash = SipHash(store_->user_key())](std::string_view user) { return hash(user); },
            .readiness =
                [this] {
                  if (failed_) return serve::Readiness{false, "training has failed"};
                  return ReadyOrDegraded();
                },
            .budget_exhausted =
                [this](LearnerIndex learner) {
                  return trainer_->spent(learner) != train::Spent::kNone;
                },
            .total_budget = assembly_.total_budget,
            .metrics = &registry_};
  }

  // What is committed is served on.
  serve::Readiness ReadyOrDegraded() const {
    serve::Readiness readiness{.ready = true, .reason = ""};
    const stream::SourceHealth source = source_->health();
    const std::string letters = dead_letters_->trouble();
    std::vector<std::string> causes;
    if (!source.connected) {
      readiness.degraded = "the source of interactions is out of reach";
      causes.push_back(readiness.degraded + ": " + source.alert);
    } else if (!source.alert.empty()) {
      causes.push_back("a part of the source cannot be read at present: " + source.alert);
    }
    if (!letters.empty()) causes.push_back("dead letters cannot be written: " + letters);
    readiness.degraded_for_operators = fmt::format("{}", fmt::join(causes, "; "));
    return readiness;
  }

  void Train() {
    auto outcome = trainer_->Run(feed_->steps());
    if (!outcome) {
      Failed("training ends", outcome.error());
    } else if (Status feed = feed_->status(); !feed) {
      Failed("the source ends", feed.error());
    } else {
      outcome_ = *outcome;
    }
    trained_ = true;
  }

  // There is no second try: after a write that failed only a new start knows what is on the disk.
  void Failed(const char* what, const Error& error) {
    failed_ = true;
    training_failed_.Set(1);
    spdlog::error("{}: {}", what, error.message);
    spdlog::error(
        "nothing more is learnt, the last commit is served on. Mend the cause, then start tacitd "
        "anew: it goes on from commit {} and reads again what was not committed",
        store_->Latest()->version().value);
  }

  // Of this run, as far as is known.
  uint64_t Records() const { return feed_->records_read() + feed_->records_ahead(); }

  std::vector<LearnerView> Views() const {
    std::vector<LearnerView> views;
    for (const LearnerPlan& plan : assembly_.learners)
      views.push_back(
          {plan.options.id, progress_.view(plan.options.index.value), plan.recommends()});
    return views;
  }

  // Degraded: what is committed is served on, and nothing is learnt until they are written.
  void ShowWhetherLettersWait() {
    const std::string why = dead_letters_->trouble();
    if (why.empty() != letters_wait_) return;
    letters_wait_ = !why.empty();
    letters_waiting_.Set(letters_wait_ ? 1 : 0);
    NotifyStatus(letters_wait_ ? "degraded, dead letters cannot be written: " + why : "training");
  }

  // Draws progress until it is time to stop.
  void Watch() {
    ProgressLine line(clock_);
    bool told = false;
    while (!signals_.WaitFor(kTick)) {
      ShowWhetherLettersWait();
      if (!trained_) {
        line.Update(Records(), Views());
        continue;
      }
      if (!told) {
        const bool at_end = outcome_ == train::Outcome::kEndOfSource;
        line.Finish(at_end ? EventsOf(Views()) : Records(), Views());
        TellOutcome();
        told = true;
      }
      if (options_.until_end || ExitWhenExhausted()) return;
    }
    stopped_by_signal_ = true;
  }

  // Nobody may learn any more, and one of the budgets that stopped them says so.
  bool ExitWhenExhausted() const {
    if (outcome_ != train::Outcome::kBudgetExhausted) return false;
    const auto& total = assembly_.config.budget;
    const bool exit_at_total = total.on_exhausted == config::Privacy::OnExhausted::kExit;
    for (const LearnerPlan& plan : assembly_.learners) {
      const train::Spent spent = trainer_->spent(plan.options.index);
      if (spent == train::Spent::kTotal ? exit_at_total : plan.exit_when_exhausted) return true;
    }
    return false;
  }

  void TellOutcome() {
    if (failed_) {
      NotifyStatus("training has failed; serving the last commit");
      return;
    }
    const bool spent = outcome_ == train::Outcome::kBudgetExhausted;
    NotifyStatus(spent ? "budget exhausted; serving" : "at the end of the log; serving");
    const auto best = ReadBestAuc(assembly_.config.source.files);
    for (const LearnerPlan& plan : assembly_.learners) {
      const auto days = progress_.days(plan.options.index.value);
      if (days.empty()) {
        spdlog::info("learner '{}' has nothing left to learn", plan.options.id);
        continue;
      }
      const double epsilon = progress_.view(plan.options.index.value).epsilon;
      fmt::print("\nlearner {}\n{}", plan.options.id,
                 plan.recommends() ? RankedDayTable(days, epsilon, plan.promise)
                                   : DayTable(days, best, epsilon, plan.promise));
    }
    if (feed_->records_dead() > 0)
      fmt::print("{} of {} records could not be learnt from: see {}\n",
                 WithThousands(feed_->records_dead()), WithThousands(feed_->records_read()),
                 PlaceOfDeadLetters(assembly_.config));
    std::fflush(stdout);
  }

  void Stop(std::thread* training) {
    NotifyStopping();
    trainer_->RequestStop();
    feed_->Stop();
    training->join();
    if (server_) server_->Stop(kDrain);
    if (Status status = store_->Flush(); !status && !failed_)
      Failed("the last commit failed", status.error());
    spdlog::info("stopped at commit {}", store_->Latest()->version().value);
  }

  int ExitCode() const {
    if (failed_) return kExitFailed;
    if (!stopped_by_signal_) return ExitWhenExhausted() ? kExitBudgetExhausted : kExitDone;
    // A service is asked to stop, and has. Whoever asked for the whole stream has not got it.
    const bool cut_short = !outcome_ || *outcome_ == train::Outcome::kStopped;
    if (!options_.until_end || !cut_short) return kExitDone;
    spdlog::error(
        "stopped before the end of the source: what was learnt is committed, and the next start "
        "goes on from there");
    return kExitFailed;
  }

  const Assembly& assembly_;
  const DaemonOptions options_;
  StopSignals signals_;
  SystemClock clock_;
  metrics::Registry registry_;
  const metrics::Gauge training_failed_ =
      registry_.AddGauge(metrics::Audience::kPublic, "tacit_training_failed",
                         "Whether training has ended with an error; restart tacitd to go on");
  const metrics::Counter duplicates_ =
      registry_.AddCounter(metrics::Audience::kOperator, "tacit_records_repeated_total",
                           "Records whose event id was there before, in source.dedupe.window");
  const metrics::Gauge letters_waiting_ = registry_.AddGauge(
      metrics::Audience::kOperator, "tacit_dead_letters_waiting",
      "Whether reading waits for dead letters that cannot be written at present");
  bool letters_wait_ = false;
  train::Progress progress_;
  std::unique_ptr<stream::Source> source_;
  std::unique_ptr<event::DeadLetterSink> dead_letters_;
  std::unique_ptr<event::Codec> codec_;
  std::unique_ptr<store::EmbeddingStore> store_;
  std::unique_ptr<WorkerPool> workers_;
  std::unique_ptr<ops::Backend> backend_;
  std::vector<std::unique_ptr<StoredAllowances>> allowances_;
  std::unique_ptr<train::Trainer> trainer_;
  std::unique_ptr<train::Feed> feed_;
  std::unique_ptr<serve::Server> server_;
  std::atomic<bool> trained_ = false, failed_ = false;
  std::optional<train::Outcome> outcome_;  // written before trained_ is set
  bool stopped_by_signal_ = false;
};

}  // namespace

Result<int> RunDaemon(const Assembly& assembly, const DaemonOptions& options) {
  Daemon daemon(assembly, options);
  return daemon.Run();
}

Result<int> ServeCheckpoint(const Assembly& assembly, const std::string& directory) {
  StopSignals signals;
  metrics::Registry registry;
  const std::string witness = WitnessBeside(directory);
  if (witness.empty()) WarnOfNoWitness(directory);
  TACIT_ASSIGN(const store::ReadOnlyStore store,
               store::OpenReadOnly(directory, witness, MakeLayouts(assembly)));
  std::vector<train::LedgerMetrics::Learner> promised;
  for (const LearnerPlan& plan : assembly.learners)
    promised.push_back({plan.options.id, plan.promise.epsilon, plan.promise.delta});
  train::LedgerMetrics(registry, promised, assembly.total_budget).Show(*store.snapshot);
  TACIT_ASSIGN(const auto server,
               StartServer(assembly.config.serve,
                           {.latest = [snapshot = store.snapshot] { return snapshot; },
                            .models = MakeScoringModels(assembly),
                            .recommenders = MakeRecommendModels(assembly),
                            .readiness =
                                [] {
                                  return serve::Readiness{true, ""};
                                },
                            .budget_exhausted = [](LearnerIndex) { return false; },
                            .total_budget = assembly.total_budget,
                            .metrics = &registry},
                           registry));
  if (!server) return Fail(ErrorCode::kInvalidArgument, "serve.listen is empty: nobody could ask");
  NotifyReady("serving a checkpoint");
  while (!signals.WaitFor(milliseconds(1000))) {
  }
  NotifyStopping();
  server->Stop(kDrain);
  return kExitDone;
}

}  // namespace tacit::app
