#include "daemon/daemon.h"

#include <fmt/format.h>

#include <atomic>
#include <optional>
#include <thread>

#include "base/cpu.h"
#include "base/files/log.h"
#include "base/text.h"
#include "base/threads/named_thread.h"
#include "console/stop_signals.h"
#include "daemon/allowance_census.h"
#include "daemon/budget_outlook.h"
#include "daemon/budget_spent.h"
#include "daemon/checkpoint_schedule.h"
#include "daemon/feed_sender.h"
#include "daemon/figure_recorder.h"
#include "daemon/forgetter.h"
#include "daemon/gpu_choice.h"
#include "daemon/ledger_anchorer.h"
#include "daemon/progress_line.h"
#include "daemon/scrubber.h"
#include "daemon/service.h"
#include "daemon/service_manager.h"
#include "daemon/standby_probes.h"
#include "daemon/store_opening.h"
#include "event/dead_letters.h"
#include "metrics/families.h"
#include "wiring/budget_check.h"
#include "wiring/day_table.h"
#include "wiring/dealing.h"
#include "wiring/learning.h"
#include "wiring/plans/dead_letters.h"
#include "wiring/plans/feed.h"
#include "wiring/plans/source.h"
#include "wiring/plans/witness_place.h"
#include "wiring/restore/restore.h"
#include "wiring/source_check.h"

namespace tacit::daemon {
namespace {

stream::StoreMark MarkOf(const store::Snapshot& snapshot) {
  return {.lineage = snapshot.lineage(),
          .sequence = snapshot.version().value,
          .head = ToHex(snapshot.head()),
          .term = snapshot.term() == kNoTerm ? "" : ToHex(snapshot.term())};
}

stream::StoreClaim ClaimOf(const store::Snapshot& snapshot, const store::Store& store) {
  const auto ancestors = snapshot.ancestors();
  return {MarkOf(snapshot), store.terms(), {ancestors.begin(), ancestors.end()}};
}

// A running daemon: everything it owns, in the order it is built.
class Daemon {
 public:
  Daemon(const wiring::Assembly& assembly, const Start& start, const DaemonOptions& options,
         console::StopSignals& signals)
      : assembly_(assembly),
        start_(start),
        options_(options),
        signals_(signals),
        progress_(assembly.learners.size()),
        exits_on_failure_(assembly.config.store.on_failure == config::Store::OnFailure::kExit) {}

  Result<int> Run() {
    TACIT_RETURN_IF_ERROR(
        wiring::CheckWitnessChosen(assembly_.config.store, UnderServiceManager()));
    TACIT_ASSIGN(service_, Service::Open(assembly_, start_, registry_, signals_));
    if (!assembly_.config.workers.topic.empty()) {
      TACIT_ASSIGN(dealing_, wiring::Dealing::Make(assembly_, clock_, registry_));
    }
    TACIT_RETURN_IF_ERROR(OpenSourceOfRecords());
    TACIT_ASSIGN(gpu_, GpuChoice::Make(assembly_, start_.open_gpu));
    TACIT_RETURN_IF_ERROR(OpenStore());
    if (store_ == nullptr) return int{WhenStopped()};
    TACIT_ASSIGN(positions_, wiring::ReadPositions(assembly_, *store_));
    TellWhatRuns();
    TACIT_RETURN_IF_ERROR(source_->VerifyIdentity(store_->source_identity()));
    source_->Claim(ClaimOf(*store_->Latest(), *store_));
    const bool is_new = store_->Latest()->version().value == 0;
    TACIT_RETURN_IF_ERROR(CheckBudgets(is_new));
    if (is_new) TACIT_RETURN_IF_ERROR(wiring::CheckFirstRecords(assembly_, options_.past_cut));
    TACIT_ASSIGN(anchorer_, LedgerAnchorer::Open(*store_, assembly_.config.store.anchors, clock_));
    if (assembly_.config.store.witness == "none")
      spdlog::warn("no witness of {}: an older copy put in its place would not be noticed",
                   assembly_.config.store.path);
    wiring::TellOfWitnessPlaces(assembly_.config);
    TACIT_ASSIGN(dead_letters_,
                 wiring::OpenDeadLetters(assembly_.config, store_->Latest()->lineage()));
    TACIT_RETURN_IF_ERROR(MakeLearning());
    if (dealing_)
      TACIT_RETURN_IF_ERROR(
          dealing_->SetStore(assembly_, *store_, start_.sources, learning_->opt_out()));
    checkpoints_ = std::make_unique<CheckpointSchedule>(*store_, assembly_.config.store.checkpoints,
                                                        config::DumpSchema(assembly_.config),
                                                        clock_, registry_);
    forgetter_ = std::make_unique<Forgetter>(*store_, assembly_, learning_->opt_out(), registry_);
    census_ = std::make_unique<AllowanceCensus>(assembly_, *store_, registry_);
    figures_ = std::make_unique<FigureRecorder>(assembly_, *learning_, progress_, *source_, *store_,
                                                *census_, clock_);
    scrubber_ = std::make_unique<Scrubber>(*store_, assembly_.config.store.scrub_days, registry_);
    outlook_ = std::make_unique<BudgetOutlook>(
        assembly_, [this] { return store_->Latest(); }, registry_);
    TACIT_RETURN_IF_ERROR(StartFeed());
    TACIT_RETURN_IF_ERROR(service_->Answer(MakeServices(), MakeServiceParts()));
    if (learning_->trainer().why_halted().empty())
      TACIT_RETURN_IF_ERROR(learning_->intake().Start());
    std::thread training = NamedThread("tacit-train", [this] { Train(); });
    ProgressLine line(clock_);
    bool told = false;
    stopped_by_signal_ =
        service_->Run({.ready = "training",
                       .stages = Stages(),
                       .change = [this](auto& running) { GoOnWith(running); },
                       .look = std::chrono::milliseconds(options_.until_end ? 10 : 100),
                       .goes_on = [&] { return GoesOn(&line, &told); },
                       .stop = [&] { StopTraining(&training); }});
    Close();
    return EndCode();
  }

  // Returns true if Run failed because another process holds the store.
  bool held() const { return held_; }

 private:
  const config::SourceTraits& source_traits() const { return assembly_.config.source.traits(); }

  Status OpenSourceOfRecords() {
    const wiring::LiveParts live{.kafka = assembly_.config.kafka,
                                 .until_end = options_.until_end,
                                 .clock = clock_,
                                 .registry = registry_,
                                 .share = dealing_ ? dealing_->share() : nullptr,
                                 .past_cut = options_.past_cut};
    TACIT_ASSIGN(source_, wiring::OpenSource(assembly_.config.source, &live));
    return {};
  }

  // Restores an older copy of the store in its place, if it is asked for and there is one.
  Status AcceptOlderCopy() {
    if (!options_.accept_older_copy) return {};
    const auto report = wiring::AcceptOlderCopy(assembly_);
    held_ = !report && report.error().code == ErrorCode::kUnavailable;
    if (!report) return Fail(report.error());
    if (!*report) {
      spdlog::info("store {} is no older copy: nothing had to be restored",
                   assembly_.config.store.path);
      return {};
    }
    for (const std::string& line : wiring::DescribeRestore(assembly_, **report))
      spdlog::warn("{}", line);
    return {};
  }

  // Leaves store_ null if a signal asked to stop during the opening.
  Status OpenStore() {
    TACIT_RETURN_IF_ERROR(AcceptOlderCopy());
    store::StoreOptions options = wiring::MakeStoreOptions(assembly_);
    options.open_files_most = service_->files().store;
    auto store = OpenWhileListening(std::move(options), signals_, WhenStopped());
    held_ = !store && store.error().code == ErrorCode::kUnavailable;
    if (!store) return Fail(std::move(store.error()));
    store_ = std::move(*store);
    return {};
  }

  void TellWhatRuns() const {
    std::vector<std::string> places;
    std::vector<std::vector<LogField>> of_learners;
    for (size_t i = 0; i < assembly_.learners.size(); ++i) {
      const stream::Position& position = positions_[i];
      uint64_t offsets = 0;
      for (const OffsetRange& next : position.next) offsets += next.begin;
      places.push_back(fmt::format("'{}' after step {}, {} records in", assembly_.learners[i].id,
                                   position.step, WithThousands(offsets)));
      of_learners.push_back(
          {{"learner", assembly_.learners[i].id}, {"steps", position.step}, {"records", offsets}});
    }
    const uint64_t commit = store_->Latest()->version().value;
    const std::string kernels = KernelText(ThisCpu());
    service_->TellStart(
        assembly_.config.store.path, commit,
        fmt::format("store {} at commit {}; learners {}; kernels for {}",
                    assembly_.config.store.path, commit, fmt::join(places, ", "), kernels),
        {{"kernels", kernels}, {"learners", of_learners}});
  }

  // A budget too small for a single step is a mistake, unless the store shows that the budget once
  // was larger.
  Status CheckBudgets(bool is_new) {
    std::vector<std::string> problems = wiring::FirstStepsRefused(assembly_);
    if (is_new && !problems.empty())
      return Fail(ErrorCode::kInvalidArgument, std::move(problems.front()));
    for (std::string& below : daemon::BudgetsBelowSpent(assembly_, *store_->Latest()))
      problems.push_back(std::move(below));
    for (const std::string& problem : problems) spdlog::warn("{}", problem);
    return {};
  }

  // Runs after the store is open: the store creates the folder that both lie in, and may refuse.
  Status MakeLearning() {
    wiring::LearningParts parts{.assembly = assembly_,
                                .store = *store_,
                                .source = *source_,
                                .dead_letters = *dead_letters_,
                                .clock = clock_,
                                .registry = registry_,
                                .progress = progress_};
    parts.advise = [this](std::span<const stream::PartitionOffset> reached,
                          const store::Snapshot& snapshot) {
      source_->Advise(reached, ClaimOf(snapshot, *store_));
    };
    parts.on_published = [this] {
      commits_.Tell();
      if (dealing_) feed_->PublishNow();  // workers wait for the model
    };
    parts.past_halt = options_.past_halt;
    parts.choose = [this](const auto& plan, const auto& make) { return gpu_.Learner(plan, make); };
    TACIT_ASSIGN(learning_, wiring::Learning::Make(std::move(parts), positions_));
    gpu_used_.Set(learning_->on_gpu() ? 1 : 0);
    return {};
  }

  Status StartFeed() {
    const config::Feed& feed = assembly_.config.feed;
    if (feed.topic.empty()) return {};
    TACIT_ASSIGN(feed::PublisherOptions options, wiring::MakePublisherOptions(assembly_.config));
    options.takes_over = options_.take_over_feed;
    options.check_topic = start_.check_feed;
    feed_ = std::make_unique<FeedSender>(*store_, feed, std::move(options), clock_, registry_);
    return {};
  }

  serve::Services MakeServices() {
    return {.latest = [this] { return store_->Latest(); },
            .commits = &commits_,
            .models = gpu_.ScoringModels(registry_),
            .user_hash =
                [hash = SipHash(store_->user_key())](std::string_view user) { return hash(user); },
            .readiness = [this] { return HowReady(); },
            .spent =
                [this](LearnerIndex learner) {
                  return learner.value < assembly_.learners.size()
                             ? learning_->trainer().spent(learner)
                             : privacy::Spent::kNone;
                },
            .checkpoints = checkpoints_->Commands(),
            .users = forgetter_->Commands(),
            .dashboard = {.activity = [this] { return Activity(); },
                          .figures = [this](auto back) { return figures_->Figures(back); }}};
  }

  ServiceParts MakeServiceParts() {
    const config::Config& config = assembly_.config;
    ServiceParts parts{.source = [this] { return source_->health(); },
                       .records_ahead = [this] { return learning_->intake().records_ahead(); },
                       .engine = [this] { return store_->engine_stats(); },
                       .places = {{"store", config.store.path}}};
    for (size_t i = 0; i < config.store.paths.size(); ++i)
      parts.places.push_back({fmt::format("store.paths.{}", i), config.store.paths[i]});
    if (config.store.witness != "none") parts.places.push_back({"witness", config.store.witness});
    if (!config.dead_letters.path.empty())
      parts.places.push_back({"dead_letters", config.dead_letters.path});
    return parts;
  }

  serve::Readiness HowReady() const {
    if (!failed_) return ReadyOrDegraded();
    // An error may name a file or quote a broker: operators alone are told.
    return {.ready = false,
            .reason = WhyFailed(),
            .degraded_for_operators = fmt::format("{}: {}", WhyFailed(), failure_)};
  }

  // The daemon is ready while it serves commits, even when its source or dead letters are in
  // trouble.
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
    if (const std::string damage = scrubber_->damage(); !damage.empty()) {
      readiness.degraded = "a file of the store is damaged";
      causes.push_back(readiness.degraded + ": " + damage);
    }
    // The halt was decided on a noised count that is charged: everybody may know of it.
    if (const std::string why = learning_->trainer().why_halted(); !why.empty()) {
      readiness.degraded = "training is halted";
      causes.push_back(why);
    }
    if (const std::string who = LearnersBy(privacy::Spent::kTotal); !who.empty()) {
      const std::string still = LearnersBy(privacy::Spent::kNone);
      readiness.degraded =
          still.empty() ? "the budget of all learners together is used up"
                        : "the budget of all learners together has no room for a step of " + who;
      causes.push_back(fmt::format(
          "{} (budget.epsilon {:g}): {}", readiness.degraded, assembly_.total_budget->epsilon,
          still.empty() ? "nothing more is learnt" : "still learning: " + still));
    }
    if (const std::string unpublished = feed_ ? feed_->trouble() : ""; !unpublished.empty()) {
      readiness.degraded = "the feed is not published";
      causes.push_back(readiness.degraded + ": " + unpublished);
    }
    if (const std::string alone = dealing_ ? dealing_->trouble() : ""; !alone.empty()) {
      readiness.degraded = "workers are in trouble";
      causes.push_back(readiness.degraded + ": " + alone);
    }
    if (!letters.empty()) causes.push_back("dead letters cannot be written: " + letters);
    if (const uint64_t lost = store_->stats().witnesses_lost; lost > 0)
      causes.push_back(
          fmt::format("the witness was removed {} times while in use, and written anew: find out "
                      "what removes it",
                      lost));
    if (const std::string why = anchorer_ ? anchorer_->trouble() : ""; !why.empty())
      causes.push_back("the ledger's head cannot be anchored: " + why);
    if (std::string stream = learning_->stream_trouble(); !stream.empty())
      causes.push_back(std::move(stream));
    readiness.degraded_for_operators = fmt::format("{}", fmt::join(causes, "; "));
    return readiness;
  }

  // The learners that this budget has stopped, or that learn on: "'a', 'b'".
  std::string LearnersBy(privacy::Spent spent) const {
    std::vector<std::string> names;
    for (const wiring::LearnerPlan& plan : assembly_.learners)
      if (learning_->trainer().spent(plan.index) == spent)
        names.push_back(fmt::format("'{}'", plan.id));
    return fmt::format("{}", fmt::join(names, ", "));
  }

  void Train() {
    auto outcome = learning_->trainer().Run(learning_->intake().steps());
    if (!outcome) {
      needs_change_ = outcome.error().code == ErrorCode::kInvalidArgument;
      Failed("training ends", outcome.error());
    } else if (Status intake = learning_->intake().status(); !intake) {
      Failed("the source ends", intake.error());
    } else {
      outcome_ = *outcome;
    }
    trained_ = true;
  }

  // Training is not tried again: after a failed write only a new start knows what is on the disk.
  void Failed(const char* what, const Error& error) {
    failure_ = fmt::format("{}: {}", what, error.message);
    failed_ = true;  // after what others read once they see it
    training_failed_.Set(1);
    LogEvent(spdlog::level::err, "training_failed", {{"what", what}, {"why", error.message}},
             fmt::format("{}: {}", what, error.message));
    spdlog::error(
        "training has stopped, {}. Mend the cause, then restart tacitd: it resumes from commit {} "
        "and reads again what was not committed",
        ExitsOnFailure() ? "and tacitd ends (store.on_failure: exit)"
                         : "the last commit is served on",
        store_->Latest()->version().value);
  }

  bool ExitsOnFailure() const { return exits_on_failure_; }

  std::string WhyFailed() const {
    return needs_change_ ? "training has failed: a model has stopped being numbers"
                         : "training has failed";
  }

  // Records of this run that are known so far.
  uint64_t Records() const {
    return learning_->intake().records_read() + learning_->intake().records_ahead();
  }

  std::vector<LearnerView> Views() const {
    std::vector<LearnerView> views;
    for (const wiring::LearnerPlan& plan : assembly_.learners) {
      const config::Learner& learner = assembly_.config.learners[plan.index.value];
      const bool periods =
          learner.participation.holds_periods() || !learner.model.traits().only_once.empty();
      views.push_back({.id = plan.id,
                       .view = progress_.view(plan.index.value),
                       .ranks = plan.recommends,
                       .waiting = learning_->intake().offsets_waiting(plan.index),
                       .waits_for = periods ? "period" : "step"});
    }
    return views;
  }

  // Reports "degraded" while dead letters cannot be written: commits are served and nothing is
  // learnt.
  void ShowWhetherLettersWait() {
    const std::string why = dead_letters_->trouble();
    if (why.empty() != letters_wait_) return;
    letters_wait_ = !why.empty();
    letters_waiting_.Set(letters_wait_ ? 1 : 0);
    NotifyStatus(letters_wait_ ? "degraded, dead letters cannot be written: " + why : "training");
  }

  // Takes over what may change while the daemon runs.
  void GoOnWith(const config::Config& running) {
    checkpoints_->Change(running.store.checkpoints);
    exits_on_failure_ = running.store.on_failure == config::Store::OnFailure::kExit;
  }

  // The stages whose standstill a restart would mend, beside those of the server.
  std::vector<Watchdog::Stage> Stages() const {
    std::vector<Watchdog::Stage> stages = {
        {"training", [this] { return learning_->trainer().heartbeat().Look(); }}};
    if (feed_) stages.push_back({"the feed", [this] { return feed_->heartbeat().Look(); }});
    return stages;
  }

  // Draws progress, and tells the outcome once. Returns false when it is time to stop.
  bool GoesOn(ProgressLine* line, bool* told) {
    ShowWhetherLettersWait();
    if (!trained_) {
      if (line->due()) line->Update(learning_->intake().records_read(), Records(), Views());
      return true;
    }
    if (!std::exchange(*told, true)) {
      const bool at_end = outcome_ == train::Outcome::kEndOfSource;
      line->Finish(at_end ? EventsOf(Views()) : Records(), Views());
      TellOutcome();
    }
    return !options_.until_end && !ExitWhenExhausted() && !(failed_ && ExitsOnFailure());
  }

  // Returns true if no learner may learn any more and one of the budgets that stopped them says
  // exit.
  bool ExitWhenExhausted() const {
    if (outcome_ != train::Outcome::kBudgetExhausted) return false;
    const auto& total = assembly_.config.budget;
    const bool exit_at_total = total.on_exhausted == config::Privacy::OnExhausted::kExit;
    for (const wiring::LearnerPlan& plan : assembly_.learners) {
      const privacy::Spent spent = learning_->trainer().spent(plan.index);
      if (spent == privacy::Spent::kTotal ? exit_at_total : plan.exit_when_exhausted) return true;
    }
    return false;
  }

  // Says in a few words what the daemon does. Any thread.
  std::string Activity() const {
    if (failed_) return WhyFailed() + (ExitsOnFailure() ? "; ending" : "; serving the last commit");
    if (!trained_) return "training";
    if (outcome_ == train::Outcome::kHalted) return "halted by source.halt_above; serving";
    if (outcome_ == train::Outcome::kBudgetExhausted) return "budget exhausted; serving";
    return "at the end of the log; serving";
  }

  void TellOutcome() {
    NotifyStatus(Activity());
    if (failed_) return;
    const train::Intake& intake = learning_->intake();
    const uint64_t dead = intake.records_dead();
    const bool all_dead = dead > 0 && intake.records_good() == 0;
    for (size_t i = 0; i < positions_.size(); ++i)
      if (!all_dead && outcome_ != train::Outcome::kHalted && progress_.days(i).empty() &&
          learning_->trainer().spent(assembly_.learners[i].index) == privacy::Spent::kNone)
        spdlog::info("{}", wiring::NothingLeftText(assembly_.learners[i].id, positions_[i]));
    std::string tables = wiring::LearntTables(
        assembly_, wiring::LearntDays(assembly_, progress_, learning_->trainer().step_totals()));
    if (dead > 0)
      tables += fmt::format(
          "{} of {} records could not be learnt from: see {}. The steps that they were in are "
          "charged all the same\n",
          WithThousands(dead), WithThousands(intake.records_read()),
          wiring::PlaceOfDeadLetters(assembly_.config));
    // fmt throws where standard output takes no more, and serving must not end by that.
    std::fputs(tables.c_str(), stdout);
    std::fflush(stdout);
  }

  void StopTraining(std::thread* training) {
    learning_->trainer().RequestStop();
    learning_->intake().Stop();
    training->join();
  }

  // Ends the parts that the server asked, and commits the rest.
  void Close() {
    forgetter_.reset();
    figures_.reset();
    scrubber_.reset();
    outlook_.reset();
    checkpoints_.reset();
    Status flushed = store_->Flush();
    if (!flushed && !failed_) Failed("the last commit failed", flushed.error());
    if (anchorer_) anchorer_->Finish();  // published commits are whole, even after a failure
    if (feed_) feed_->Finish(stopped_by_signal_ ? FeedSender::kOnStop : FeedSender::kAtTheEnd);
    feed_.reset();
    if (flushed)
      if (Status settled = store_->Settle(); !settled) spdlog::warn("{}", settled.error().message);
    const uint64_t commit = store_->Latest()->version().value;
    LogEvent(spdlog::level::info, "stopped", {{"commit", commit}},
             fmt::format("stopped at commit {}", commit));
  }

  console::ExitCode WhenStopped() const {
    return options_.until_end ? console::kExitFailed : console::kExitDone;
  }

  // Tells, and returns true, if the whole source gave no record that could be learnt from. A run
  // that finds nothing new behind what the store has learnt is none of these.
  bool LearntFromNothing() const {
    if (!options_.until_end || outcome_ != train::Outcome::kEndOfSource) return false;
    if (learning_->intake().records_good() > 0) return false;
    const uint64_t read = learning_->intake().records_read(),
                   dead = learning_->intake().records_dead();
    if (dead == 0 && store_->Latest()->version().value > 0) return false;
    spdlog::error(
        "nothing was learnt: {}",
        read == 0 ? "the source has no records"
                  : fmt::format("none of the {} records could be learnt from; {} has each "
                                "with the reason",
                                WithThousands(read), wiring::PlaceOfDeadLetters(assembly_.config)));
    return true;
  }

  int EndCode() const {
    if (failed_) return needs_change_ ? console::kExitUsage : console::kExitFailed;
    if (options_.until_end && outcome_ == train::Outcome::kHalted) return console::kExitHalted;
    if (LearntFromNothing()) return console::kExitFailed;
    if (!stopped_by_signal_)
      return ExitWhenExhausted() ? console::kExitBudgetExhausted : console::kExitDone;
    // A service that stops when asked has succeeded; a run with --until-end that stops early has
    // not.
    const bool cut_short = !outcome_ || *outcome_ == train::Outcome::kStopped;
    if (!options_.until_end || !cut_short) return console::kExitDone;
    spdlog::error(
        "stopped before the end of the source: what was learnt is committed, and the next start "
        "resumes from there");
    return console::kExitFailed;
  }

  const wiring::Assembly& assembly_;
  const Start& start_;
  const DaemonOptions options_;
  console::StopSignals& signals_;
  SystemClock clock_;
  metrics::Registry registry_;
  const metrics::Gauge training_failed_ = registry_.AddGauge("tacit_training_failed");
  const metrics::Gauge letters_waiting_ = registry_.AddGauge("tacit_dead_letters_waiting");
  const metrics::Gauge gpu_used_ = registry_.AddGauge("tacit_gpu_used");
  bool letters_wait_ = false;
  serve::CommitSignal commits_;
  train::Progress progress_;
  std::unique_ptr<wiring::Dealing> dealing_;  // the source asks it
  std::unique_ptr<stream::Source> source_;
  std::unique_ptr<event::DeadLetterSink> dead_letters_;
  std::unique_ptr<store::Store> store_;
  GpuChoice gpu_;                            // before the learners on it
  std::vector<stream::Position> positions_;  // per learner, as of the store's last commit
  std::unique_ptr<wiring::Learning> learning_;
  std::unique_ptr<CheckpointSchedule> checkpoints_;
  std::unique_ptr<Forgetter> forgetter_;
  std::unique_ptr<AllowanceCensus> census_;
  std::unique_ptr<FigureRecorder> figures_;
  std::unique_ptr<Scrubber> scrubber_;
  std::unique_ptr<BudgetOutlook> outlook_;
  std::unique_ptr<FeedSender> feed_;
  std::unique_ptr<LedgerAnchorer> anchorer_;
  std::unique_ptr<Service> service_;  // the last of the parts: its server asks all others
  bool held_ = false;
  std::atomic<bool> trained_ = false, failed_ = false;
  std::string failure_;                     // written once, before failed_
  std::atomic<bool> needs_change_ = false;  // it failed, and would again
  std::atomic<bool> exits_on_failure_;      // store.on_failure, as it is now
  std::optional<train::Outcome> outcome_;   // written before trained_ is set
  bool stopped_by_signal_ = false;
};

}  // namespace

Result<int> RunDaemon(wiring::Assembly assembly, const Start& start, const DaemonOptions& options) {
  console::StopSignals signals;
  for (;;) {
    auto daemon = std::make_unique<Daemon>(assembly, start, options, signals);
    Result<int> code = daemon->Run();
    if (!options.standby || !daemon->held()) return code;
    daemon.reset();
    spdlog::info("standing by: {}", code.error().message);
    metrics::Registry registry;  // of the probes' server alone
    TACIT_ASSIGN(auto probes, AnswerProbes(assembly.config.serve.standby_listen, registry));
    NotifyReady("standing by");
    TACIT_ASSIGN(const bool free, WaitUntilFree(assembly.config.store.path, signals));
    probes.reset();
    if (!free) return int{console::kExitDone};
    spdlog::info("the store is free: taking over, with the configuration as it is now");
    TACIT_ASSIGN(assembly, options.reload());
  }
}

}  // namespace tacit::daemon
