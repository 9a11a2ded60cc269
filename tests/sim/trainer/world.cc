#include "sim/trainer/world.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>

#include "base/text.h"
#include "config/config.h"
#include "console/exit_code.h"
#include "daemon/daemon.h"
#include "model/pctr.h"
#include "sim/scheduler.h"
#include "store/store.h"
#include "support/process.h"
#include "wiring/assembly.h"

namespace tacit::sim {
namespace {

const std::string kConfig = "/disk/tacit.yaml", kAnchors = "/disk/anchors";
constexpr int64_t kFirstMs = 2'000'000'000'000;  // when the simulated clock begins
constexpr uint64_t kRounds = 8, kMost = 40;      // of a life, and events of a round
constexpr int32_t kPartitionsMost = 5;
constexpr uint64_t kLastWords = kPartitionsMost * (test::Oracle::kBatch + 1);
constexpr uint64_t kEventsOfLife = kRounds * kMost + kLastWords;
constexpr std::chrono::minutes kQuiet(10);  // after which all has to be learnt

// Draws of a life by their place; those of a round begin at kRound.
enum : uint64_t {
  kRun,
  kEndsPower,
  kChange,
  kLosesPower,
  kLost,
  kLeft,
  kEnding,
  kRoundsOf,
  kFault
};
constexpr uint64_t kRound = 100, kPerRound = 20;

void Sleep(uint64_t milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

int Train(bool until_end) {
  const auto read = [] { return config::Load(kConfig, {}, config::LogFiles::kUnread); };
  auto config = config::Load(kConfig, {});
  if (!config) return console::Report("tacitd", config.error());
  auto assembly = wiring::Assemble(*std::move(config));
  if (!assembly) return console::Report("tacitd", assembly.error());
  const auto code = daemon::RunDaemon(*std::move(assembly), {.config = kConfig, .read = read},
                                      {.until_end = until_end});
  return code ? *code : console::Report("tacitd", code.error());
}

}  // namespace

// Everything around a trainer in one of its lives, on a thread of its own process.
class World::Weather {
 public:
  Weather(World& world, uint64_t life)
      : world_(world), life_(life), event_((life - 1) * kEventsOfLife) {}

  // Returns once the rounds of this life are over.
  void Blow() {
    const uint64_t rounds = 1 + world_.Draw(life_, kRoundsOf) % kRounds;
    for (round_ = 0; round_ < rounds; ++round_) {
      Sleep(Draw(0, 20'000));
      WriteSome();
      if (Draw(1, 24) == 0) Grow();
      if (Draw(9, 3) == 0) Refuse();
      if (Draw(2, 3) == 0) GoAway();
    }
    Decide();
  }

  // Each partition gets the records of one more step, and the one by which that step ends.
  void WriteLast() {
    OnCluster act(*world_.cluster_);
    for (int32_t partition = 0; partition < act->Partitions("t"); ++partition)
      for (uint32_t i = 0; i <= test::Oracle::kBatch; ++i) Write(act, partition, {}, 0, false);
  }

 private:
  uint64_t Draw(uint64_t what, uint64_t below) const {
    return world_.Draw(life_, kRound + kPerRound * round_ + what) % below;
  }

  // Records of one round, plain or in a transaction that is committed, aborted, or left open until
  // the next round.
  void WriteSome() {
    Decide();
    OnCluster act(*world_.cluster_);
    const uint64_t kind = Draw(3, 8);
    const bool in_transaction = kind < 4;
    ProducerId producer;
    std::map<int32_t, int32_t> sequences;
    if (in_transaction) producer = act->InitProducer("writer", 60'000).second;
    for (uint64_t i = Draw(4, kMost + 1); i > 0; --i) {
      const size_t event = event_++;
      const auto partition = static_cast<int32_t>(Mix(event, world_.options_.seed) %
                                                  static_cast<uint64_t>(act->Partitions("t")));
      if (in_transaction) act->AddPartition("writer", producer, "t", partition);
      const std::string user = "u" + std::to_string(event % 50);
      const ClusterRecord record{
          .value = world_.users_ ? world_.oracle_.Json(event, user) : world_.oracle_.Line(event),
          .timestamp_ms = kFirstMs + static_cast<int64_t>(event)};
      act->Append("t", partition, producer, sequences[partition]++, in_transaction, {&record, 1});
      ++world_.shared_.events;
    }
    if (kind < 2) act->EndTransaction("writer", producer, kind == 0);
    if (kind == 2 || kind == 3) open_ = producer;
  }

  void Write(OnCluster& act, int32_t partition, ProducerId producer, int32_t sequence,
             bool in_transaction) {
    const size_t event = event_++;
    const std::string user = "u" + std::to_string(event % 50);
    const ClusterRecord record{
        .value = world_.users_ ? world_.oracle_.Json(event, user) : world_.oracle_.Line(event),
        .timestamp_ms = kFirstMs + static_cast<int64_t>(event)};
    act->Append("t", partition, producer, sequence, in_transaction, {&record, 1});
    ++world_.shared_.events;
  }

  // The brokers refuse it where its time was up.
  void Decide() {
    if (!open_) return;
    OnCluster(*world_.cluster_)->EndTransaction("writer", *open_, Draw(5, 2) == 0);
    open_.reset();
  }

  void Grow() {
    OnCluster act(*world_.cluster_);
    if (act->Partitions("t") < kPartitionsMost) act->GrowTopic("t", act->Partitions("t") + 1);
  }

  // The next requests of a kind meet a leader that has moved, a broker whose disk fails, or a
  // coordinator that is away.
  void Refuse() {
    static constexpr std::array kRefusals = {
        std::pair(Request::kFetch, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION),
        std::pair(Request::kFetch, RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR),
        std::pair(Request::kOffsets, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION),
        std::pair(Request::kCommitOffsets, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE)};
    const auto [request, error] = kRefusals[Draw(10, kRefusals.size())];
    const int times = 1 + static_cast<int>(Draw(11, 6));
    OnCluster(*world_.cluster_)->Plan(request, times, Fate::kRefused, error);
    world_.shared_.refusals += static_cast<uint64_t>(times);
  }

  // One broker, or all, do not answer for a while, in one of three ways.
  void GoAway() {
    static constexpr std::array kWays = {&Cluster::Line::cut, &Cluster::Line::silent,
                                         &Cluster::Line::half_open};
    bool Cluster::Line::*const way = kWays[Draw(6, kWays.size())];
    const auto set = [&](bool away) {
      OnCluster act(*world_.cluster_);
      for (int32_t broker = 0; broker < act->brokers(); ++broker)
        if (broker == 0 || Draw(8, 2) == 0) act->line(broker).*way = away;
    };
    ++world_.shared_.outages;
    set(true);
    Sleep(Draw(7, 25'000));
    set(false);
  }

  World& world_;
  const uint64_t life_;
  size_t event_;
  uint64_t round_ = 0;
  std::optional<ProducerId> open_;
};

World::World(const Options& options)
    : options_(options),
      users_(Mix(options.seed, 1000) % 2 == 0),
      cluster_(Cluster::Make(Mix(options.seed, 1001) % 3 == 0 ? 3 : 1)),
      auditor_(oracle_, users_),
      shared_(*new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) Shared) {
  for (uint64_t event = 0; event < options.lives * kEventsOfLife; ++event)
    oracle_.Invent(/*bad=*/Mix(options.seed, 5000 + event) % 40 == 0);
  cluster_->CreateTopic("t", 2);
  cluster_->CreateTopic("dead", 1);
  for (Cluster::Line* line : cluster_->lines()) line->latency_us = 500;
  RecordDraws(&shared_.draws);
}

World::~World() {
  RecordDraws(nullptr);
  munmap(&shared_, sizeof(Shared));
}

uint64_t World::Draw(uint64_t life, uint64_t what) const {
  return Mix(Mix(options_.seed, life), what);
}

Life World::Run(uint64_t life, const std::function<int()>& body) const {
  return Live({.seed = Draw(life, kRun), .disk = disk_.get()}, body);
}

std::string World::Play() {
  const Life written = Run(0, [&] {
    std::filesystem::create_directories("/disk");
    test::WriteFile(
        kConfig,
        fmt::format("source: {{kind: kafka, topic: t, format: {}}}\n"
                    "kafka: {{bootstrap.servers: \"{}\", group.id: trainer, "
                    "topic.metadata.refresh.interval.ms: 10000, "
                    "errors.deadletterqueue.topic.name: dead}}\n"
                    "store: {{path: /disk/store, commit_interval_ms: 200, on_failure: exit, "
                    "anchors: {{path: {}, every: 10s}}}}\n"
                    "serve: {{listen: \"\"}}\n"
                    "training: {{idle_priority: false, workers: 1}}\n",
                    users_ ? "json" : "criteo_tsv", cluster_->address(), kAnchors) +
            test::Oracle::Yaml(/*periods=*/false, users_));
    return 0;
  });
  disk_->SyncAll();
  std::string wrong = written.exit_code == 0 ? "" : written.words;
  for (uint64_t life = 1; life <= options_.lives && wrong.empty(); ++life) wrong = PlayLife(life);
  if (wrong.empty()) wrong = EndWell();
  return wrong.empty() ? "" : fmt::format("seed {}, {}", options_.seed, wrong);
}

std::string World::PlayLife(uint64_t life) {
  cluster_->SetWeather(Draw(life, kFault), 300, 300);
  if (OneIn(2, life, kEndsPower)) disk_->EndPowerAt(1 + Draw(life, kChange) % 250);
  if (OneIn(3, life, kFault)) PlanFault(life);
  shared_.asked_to_end = false;
  const Life trained = Run(life, [&] {
    std::thread([&] { Disturb(life); }).detach();
    return Train(false);
  });
  const bool met = fault_ && disk_->fault_calls() >= fault_->call;
  figures_.disk_faults += met ? 1 : 0;
  fault_.reset();
  disk_->Mend();
  std::string wrong = Auditor::JudgeEnd({.exit_code = trained.exit_code,
                                         .signal = trained.signal,
                                         .words = trained.words,
                                         .fault_met = met,
                                         .asked_to_end = shared_.asked_to_end});
  if (trained.exit_code == kPowerEnded && !OneIn(4, life, kLosesPower)) {
    ++figures_.power_losses;
    disk_->LosePower(Draw(life, kLost), static_cast<Left>(Draw(life, kLeft) % kLefts),
                     Left::kFirst);
  } else {
    ++(trained.exit_code == 0 ? figures_.ends : figures_.kills);
  }
  wrong += Look(life, false);
  return wrong.empty() ? "" : fmt::format("life {}:\n{}{}", life, wrong, trained.words);
}

// A call of the disk fails, once or from then on.
void World::PlanFault(uint64_t life) {
  static constexpr std::array kActs = {Act::kOpen, Act::kRead, Act::kWrite, Act::kSync, Act::kName};
  static constexpr std::array kFiles = {"/store", ".log", ".sst", "MANIFEST", "/witness"};
  static constexpr std::array kErrors = {EIO, ENOSPC};
  const auto draw = [&](uint64_t what, uint64_t below) {
    return Mix(Draw(life, kFault), what) % below;
  };
  fault_ = Fault{.act = kActs[draw(1, kActs.size())],
                 .files = kFiles[draw(2, kFiles.size())],
                 .call = 1 + draw(3, uint64_t{1} << draw(4, 8)),
                 .error = kErrors[draw(5, kErrors.size())]};
  if (fault_->act == Act::kRead) fault_->error = EIO;
  fault_->lasting = fault_->error == ENOSPC;
  disk_->Plan(*fault_);
}

// All is well from here on.
void World::Calm() {
  OnCluster act(*cluster_);
  for (Cluster::Line* line : act->lines()) line->cut = line->silent = line->half_open = false;
  act->SetWeather(0, 0, 0);
  act->InitProducer("writer", 60'000);  // ends a transaction that was left
}

// Ends the process after a while: it is killed, or asked to end, some time or once all is learnt.
void World::Disturb(uint64_t life) {
  Weather weather(*this, life);
  weather.Blow();
  const uint64_t ending = Draw(life, kEnding) % 10;
  const bool waits = ending < 2, asks = ending == 1 || ending == 2;
  if (waits) {
    Calm();
    weather.WriteLast();
  }
  for (int second = 0; waits && Behind(); ++second) {
    if (std::chrono::seconds(second) > kQuiet) std::_Exit(kBehind);
    Sleep(1000);
  }
  if (!asks) std::_Exit(kKilled);
  shared_.asked_to_end = true;
  Scheduler::current()->Terminate();
  Sleep(300'000);
  std::_Exit(kDeaf);
}

// Tells whether a whole step and a record behind it wait in a partition, by what the brokers were
// told.
bool World::Behind() {
  OnCluster act(*cluster_);
  for (int32_t partition = 0; partition < act->Partitions("t"); ++partition) {
    const auto told = act->CommittedOffset("trainer", "t", partition);
    const int64_t from = told ? told->offset : 0;
    const auto waiting = act->Fetch("t", partition, from, size_t{1} << 30, true).records;
    if (!waiting.empty() && waiting.back().offset - from >= int64_t{test::Oracle::kBatch})
      return true;
  }
  return false;
}

// The rest is learnt by a process that nothing disturbs, in ten minutes.
std::string World::EndWell() {
  Calm();
  const Life ended =
      Live({.seed = Draw(options_.lives + 1, kRun), .disk = disk_.get(), .time_most = kQuiet},
           [] { return Train(true); });
  const std::string wrong = Auditor::JudgeEnd({.exit_code = ended.exit_code,
                                               .signal = ended.signal,
                                               .words = ended.words,
                                               .asked_to_end = true}) +
                            Look(options_.lives + 1, true);
  return wrong.empty() ? "" : fmt::format("the last life:\n{}{}", wrong, ended.words);
}

std::string World::Look(uint64_t life, bool at_end) {
  shared_.told = {};
  const Life shown = Run(1'000'000 + life, [&] { return Show(); });
  if (shown.exit_code != 0)
    return fmt::format("R12: a reader ended with {}, signal {}\n{}", shown.exit_code, shown.signal,
                       shown.words);
  return auditor_.Judge(shared_.told, disk_->Contents(kAnchors).value_or(""), *cluster_,
                        shared_.draws, at_end);
}

// Reads what the store says, as a command that does not own it.
int World::Show() {
  Told& told = shared_.told;
  const auto fail = [&](const Error& error) {
    error.message.copy(told.why.data(), told.why.size() - 1);
    return 0;
  };
  auto config = config::Load(kConfig, {});
  if (!config) return fail(config.error());
  const auto assembly = wiring::Assemble(*std::move(config));
  if (!assembly) return fail(assembly.error());
  const config::Store& place = assembly->config.store;
  const auto opened =
      store::OpenReadOnly(place.path, place.witness, wiring::MakeLayouts(*assembly));
  if (!opened) return fail(opened.error());
  const store::Snapshot& snapshot = *opened->snapshot;
  told.commit = snapshot.version().value;
  if (told.commit == 0) return 0;
  told.there = true;
  ToHex(snapshot.head()).copy(told.head.data(), told.head.size() - 1);
  snapshot.lineage().copy(told.lineage.data(), told.lineage.size() - 1);
  for (const auto& learner : snapshot.learners())
    (learner.learner == "exact" ? told.exact : told.paid) = {learner.steps, learner.epsilon};
  const auto backend = ops::MakeReferenceBackend();
  const std::vector<float> first =
      model::Pctr({.space = RowSpace(), .dense_width = 1, .hidden = {4}}, *backend).InitialDense(1);
  std::ranges::copy(first, told.first.begin());
  told.numbers = static_cast<uint32_t>(first.size());
  if (const auto dense = snapshot.Dense(LearnerIndex(1)); dense != nullptr)
    std::ranges::copy(dense->parameters, told.now.begin());
  const auto applied = oracle_.AppliedIn(snapshot);
  if (!applied) return std::printf("%s\n", applied.error().message.c_str()), 1;
  std::ranges::copy(*applied, told.applied.begin());
  return 0;
}

World::Figures& World::Figures::operator+=(const Figures& other) {
  hours += other.hours;
  kills += other.kills, power_losses += other.power_losses, ends += other.ends;
  disk_faults += other.disk_faults, outages += other.outages, losses += other.losses;
  refusals += other.refusals;
  growths += other.growths, events += other.events, steps += other.steps;
  return *this;
}

std::string World::Figures::Text() const {
  return fmt::format(
      "{:.2f} simulated hours: {} kills, {} losses of power, {} orderly ends; {} failures of the "
      "disk, {} outages, {} lost requests and answers, {} refusals, {} growths; {} events, {} "
      "private "
      "steps",
      hours, kills, power_losses, ends, disk_faults, outages, losses, refusals, growths, events,
      steps);
}

World::Figures World::figures() const {
  Figures all = figures_;
  const int64_t now_ms = std::max(cluster_->now_ms(), kFirstMs);  // 0 before a client has asked
  all.hours = static_cast<double>(now_ms - kFirstMs) / 3'600'000;
  all.losses = cluster_->losses();
  all.outages = shared_.outages;
  all.refusals = shared_.refusals;
  all.events = shared_.events;
  all.steps = auditor_.steps_released();
  all.growths = static_cast<uint64_t>(cluster_->Partitions("t") - 2);
  return all;
}

}  // namespace tacit::sim
