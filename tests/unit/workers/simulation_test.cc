// A trainer, its clone and workers over topics in memory, on a clock of the test's: kills, pauses,
// lost, doubled and late messages, zombies, topics made anew, restores. All follows from the seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <set>

#include "base/text.h"
#include "metrics/families.h"
#include "simulation_auditor.h"
#include "toy_topic.h"
#include "workers/dealer.h"

namespace tacit::workers {
namespace {

using ::testing::IsEmpty;

// A fault that is put in on purpose.
enum class Fault {
  kNothing,
  kRangeTwice,     // a worker adds a record twice
  kRangeLost,      // a worker leaves a record out and calls it covered
  kStaleHead,      // a worker sums with the model before the plan's
  kCopyAdded,      // the trainer adds a body that was covered before
  kForeignChunk,   // a worker sends chunks of one body under another's name
  kOtherTopic,     // a worker reads another topic
  kEarlyDeletion,  // the trainer deletes sums before its commit
  kReplays,        // a stranger writes into both topics again what has lain there
  kWrongBit,       // a worker's sums have another bit
};

constexpr int32_t kPartitions = 4;
constexpr uint64_t kOffsets = 400;
constexpr size_t kCommits = 8;
constexpr int64_t kTickMs = 100, kLimitMs = 60 * 60 * 1000;
// A message is late by this much at most; so long after its end a worker may seem to be there.
constexpr int64_t kLateMostMs = 60'000, kSeemsThereMs = kLateMostMs + 4000;
constexpr SharedKey kSimulationKey{42};
constexpr Digest kBuild{1};

Clock::TimePoint TimeOf(int64_t ms) { return Clock::TimePoint(std::chrono::milliseconds(ms)); }

// Both topics, and what is on its way to them.
struct Brokers {
  std::vector<std::string> plans;
  std::vector<KafkaRecord> sums;
  size_t begin = 0;  // sums before it are deleted
  std::multimap<int64_t, KafkaRecord> coming;
};

struct World {
  World(uint64_t seed, Fault planted, double checked)
      : random(seed),
        fault(planted),
        check(checked),
        events(seed, kPartitions, kOffsets),
        other_events(events.MadeAnew(seed + 1'000'000)),
        auditor(events) {}

  bool Chance(double share) { return std::uniform_real_distribution<double>(0, 1)(random) < share; }
  int64_t Upto(int64_t most) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(most + 1));
  }
  bool Faulty(Fault one) { return fault == one && Chance(0.5); }
  // Most messages come at once; some late, some twice, some never.
  void Send(const KafkaRecord& record) {
    if (Chance(0.05)) return;
    for (int copies = Chance(0.1) ? 2 : 1; copies > 0; --copies)
      brokers.coming.emplace(now + (Chance(0.1) ? Upto(kLateMostMs) : Upto(200)), record);
  }

  std::mt19937_64 random;
  const Fault fault;
  const double check;  // the share of bodies that the trainer sums up too
  const ToyTopic events, other_events;
  Auditor auditor;
  Brokers brokers;
  int64_t now = 0;
  uint8_t heads = 2;              // each commit has a head of its own: noise is drawn anew
  std::map<Digest, Ranges> cuts;  // by the head that a period begins at
  Digest feed{2}, feed_before{};
  std::map<std::string, int64_t> alive;  // when each worker was last at work
};

class Worker {
 public:
  Worker(World& world, int number)
      : world_(world), origin_{"w-" + std::to_string(number), {}, kBuild} {
    if (world.Chance(0.05)) origin_.build = Digest{9};
    pace_ms_ = 10 + world.Upto(100);
  }

  void Tick() {
    world_.alive[origin_.worker] = world_.now;
    if (world_.now < paused_until_) return;
    if (world_.Chance(0.001)) paused_until_ = world_.now + world_.Upto(20'000);
    const bool leaves = world_.Chance(0.0005);
    if (leaves || world_.now >= next_hello_) Greet(leaves);
    gone = leaves;
    while (!out_.empty() && out_.front().first <= world_.now) {
      world_.Send(out_.front().second);
      out_.pop_front();
    }
    const std::vector<std::string>& plans = world_.brokers.plans;
    for (plans_read_ = std::min(plans_read_, plans.size()); plans_read_ < plans.size();) {
      Plan plan = DecodePlan(kSimulationKey, plans[plans_read_++]).value();
      if (plan.time_ms > plan_.time_ms) plan_ = std::move(plan);
    }
    Follow(plan_);
    if (job_ && world_.now >= job_->done_at) Deliver();
  }

  bool gone = false;

 private:
  struct Job {
    Digest head;
    Ranges ranges;
    int64_t done_at = 0;
  };

  void Greet(bool leaves) {
    next_hello_ = world_.now + 1000;
    Hello hello{.origin = origin_, .plan_ms = plan_.time_ms, .number = ++hellos_};
    hello.origin.head = world_.feed;
    hello.events_per_second = world_.Chance(0.5) ? 0 : static_cast<uint64_t>(1000 / pace_ms_);
    if (job_) hello.offsets = hello.done = static_cast<uint64_t>(world_.now);  // it goes on
    hello.leaves = leaves;
    world_.Send(SealHello(kSimulationKey, hello));
  }

  void Follow(const Plan& plan) {
    const bool known = plan.head == world_.feed || world_.fault == Fault::kStaleHead;
    if (!known || plan.build != origin_.build) return;
    if (job_ && job_->head != plan.head) job_.reset();
    for (const Slice& slice : plan.slices) {
      if (job_ || slice.worker != origin_.worker) continue;
      if (!done_.insert({plan.head, slice.ranges[0].partition, slice.ranges[0].begin}).second)
        continue;
      const auto offsets = static_cast<int64_t>(CountOffsets(slice.ranges));
      job_ = {plan.head, slice.ranges, world_.now + offsets * pace_ms_};
    }
  }

  void Deliver() {
    const bool stale = world_.Faulty(Fault::kStaleHead);
    const bool other = world_.Faulty(Fault::kOtherTopic);
    Body body = ToyBody(other ? world_.other_events : world_.events,
                        stale ? world_.feed_before : job_->head, job_->ranges);
    if (world_.Faulty(Fault::kRangeTwice)) Add(+1, &body);
    if (world_.Faulty(Fault::kRangeLost)) Add(-1, &body);
    origin_.head = job_->head;
    auto records = SealBody(kSimulationKey, origin_, EncodeBody(body));
    if (world_.Faulty(Fault::kForeignChunk)) records = Mixed(body);
    if (world_.Faulty(Fault::kWrongBit)) records = WithWrongBit(body);
    int64_t at = world_.now;
    for (KafkaRecord& record : records) out_.emplace_back(at += world_.Upto(300), record);
    job_.reset();
  }

  // Adds the last record of the first range once more, or takes it out.
  void Add(int sign, Body* body) {
    if (!body->ranges[0].last) return;
    const uint64_t offset = body->ranges[0].last->offset;
    const uint64_t* value = world_.events.At(body->ranges[0].range.partition, offset);
    ToySums sums, one;
    auto parts = DecodeParts(body->sums).value();
    sums.Add(parts[0].bytes);
    one.Add(job_->head, offset, *value);
    const auto times = static_cast<uint64_t>(sign);
    ByteWriter out;
    out.Put(sums.weighted + times * one.weighted).Put(sums.placed + times * one.placed);
    out.Put(sums.count + times * one.count);
    parts[0].bytes.replace(0, out.size(), out.bytes());
    body->sums = EncodeParts(parts);
  }

  // Sums with a bit that no count tells of.
  std::vector<KafkaRecord> WithWrongBit(Body body) {
    auto parts = DecodeParts(body.sums).value();
    parts[0].bytes[5] ^= 16;
    body.sums = EncodeParts(parts);
    return SealBody(kSimulationKey, origin_, EncodeBody(body));
  }

  // Sealed as a chunk of `body`, with other sums inside.
  std::vector<KafkaRecord> Mixed(Body body) {
    const std::string bytes = EncodeBody(body);
    KafkaRecord record = SealBody(kSimulationKey, origin_, bytes)[0];
    const auto read = ReadSums(record.key, record.value).value();
    body.sums.back() ^= 1;
    std::string piece = EncodeBody(body).substr(0, kChunkBytes);
    record.value.resize(record.value.size() - read.sealed.size());
    record.value += PeriodSeal(kSimulationKey, origin_.head).Seal(piece, read.associated);
    return {record};
  }

  World& world_;
  Origin origin_;
  uint64_t hellos_ = 0;
  int64_t pace_ms_ = 0, next_hello_ = 0, paused_until_ = 0;
  size_t plans_read_ = 0;
  Plan plan_;
  std::optional<Job> job_;
  std::set<std::tuple<Digest, int32_t, uint64_t>> done_;
  std::deque<std::pair<int64_t, KafkaRecord>> out_;
};

// The topics as a trainer has them: one is out of reach now and then.
class Topics final : public TrainerTopics {
 public:
  Topics(World& world, std::function<void(const KafkaRecord&)> shown)
      : world_(world), shown_(std::move(shown)) {}

  Status ReadSums(std::chrono::milliseconds, const Show& show) override {
    const Brokers& brokers = world_.brokers;
    if (world_.Chance(0.001)) end_.reset();
    if (world_.Chance(0.001)) return Fail(ErrorCode::kUnavailable, "no broker answers");
    if (!end_) {
      read_ = brokers.begin;
      end_ = brokers.sums.size();
    }
    for (read_ = std::max(read_, brokers.begin); read_ < brokers.sums.size();) {
      const KafkaRecord& record = brokers.sums[read_++];
      show(record.key, record.value);
      shown_(record);
    }
    return {};
  }
  bool caught_up() const override { return end_ && read_ >= *end_; }
  void WritePlan(std::string plan) override {
    const Plan told = DecodePlan(kSimulationKey, plan).value();
    for (const Slice& slice : told.slices)
      if (!slice.worker.empty() && world_.alive[slice.worker] < world_.now - kSeemsThereMs)
        world_.auditor.complaints.push_back("a worker that is gone holds a slice");
    full_ = world_.Chance(0.02);
    if (!full_ && !world_.Chance(0.1)) world_.brokers.plans.push_back(std::move(plan));
  }
  bool plan_written() const override { return !full_; }
  Status plan_status() const override {
    return full_ ? Fail(ErrorCode::kUnavailable, "no broker answers") : Status();
  }
  Status DeleteShown() override {
    Brokers& brokers = world_.brokers;
    for (; brokers.begin < read_; ++brokers.begin) deletes(brokers.sums[brokers.begin]);
    return {};
  }

  std::function<void(const KafkaRecord&)> deletes;

 private:
  World& world_;
  const std::function<void(const KafkaRecord&)> shown_;
  size_t read_ = 0;
  bool full_ = false;
  std::optional<size_t> end_;
};

class WorldClock final : public Clock {
 public:
  explicit WorldClock(const World& world) : world_(world) {}
  TimePoint Now() const override { return TimeOf(world_.now); }
  int64_t UnixMillis() const override { return world_.now; }

 private:
  const World& world_;
};

class Trainer {
 public:
  // `feeds`: its commits are the workers' model.
  Trainer(World& world, Store& store, bool feeds) : world_(world), store_(store), feeds_(feeds) {
    topics_.deletes = [this](const KafkaRecord& record) {
      world_.auditor.SeesDeletion(store_, record);
    };
    dealer_.SetStore({{LearnerIndex(0), 0}}, kBuild, "");
    if (feeds_) Publish();
    BeginPeriod();
  }

  // Returns false where the trainer has died.
  bool Tick() {
    if (done() || !stopped.empty()) return true;
    if (own_ && world_.now >= own_->second) ReadOwn();
    const auto piece = dealer_.Next(std::chrono::milliseconds(0));
    if (!piece) {
      stopped = piece.error().message;
      return true;
    }
    switch (piece->kind) {
      case PeriodPiece::Kind::kNothing:
        break;
      case PeriodPiece::Kind::kRanges:
        own_.emplace(piece->ranges,
                     world_.now + 25 * static_cast<int64_t>(CountOffsets(piece->ranges)));
        recounts_ = piece->recount;
        break;
      case PeriodPiece::Kind::kSums:
        if (!piece->recount)
          sums_.Add(piece->sums[0].bytes);
        else if (EncodeParts({{.key = 0, .bytes = piece->sums[0].bytes}}) != recounted_)
          stopped = "sums of " + piece->from + " are not those of their records";
        break;
      case PeriodPiece::Kind::kEnd:
        return CommitPeriod();
    }
    return true;
  }

  bool done() const { return store_.commits.size() >= kCommits; }
  // A metric of the dealer's.
  int Count(metrics::CounterName name, const metrics::Labels& labels = {}) {
    return static_cast<int>(registry_.AddCounter(name, labels).value());
  }

  std::string stopped;  // why learning has stopped

 private:
  using PeriodPiece = stream::PeriodPiece;

  // After a restart the cut is the same one, or another one, as on a topic that grows.
  void BeginPeriod() {
    Ranges& cut = world_.cuts[store_.head];
    if (world_.Chance(0.2)) cut.clear();
    while (cut.empty())
      for (const auto& [partition, position] : store_.positions)
        if (const auto most = static_cast<int64_t>(std::min<uint64_t>(60, kOffsets - position));
            const uint64_t size = static_cast<uint64_t>(world_.Upto(most)))
          cut.push_back({partition, position, position + size});
    ranges_ = cut;
    sums_ = {};
    own_.reset();
    dealer_.Begin(
        {.store = {.lineage = "a", .sequence = store_.version, .head = ToHex(store_.head)},
         .before = store_.last,
         .step = store_.version,
         .learners = {LearnerIndex(0)},
         .ranges = cut});
  }

  void ReadOwn() {
    const Body body = ToyBody(world_.events, store_.head, own_->first);
    std::vector<std::optional<stream::LastRecord>> last;
    for (const SummedRange& summed : body.ranges) {
      const bool within = summed.last && summed.last->offset >= summed.range.begin;
      last.push_back(within ? summed.last : std::nullopt);
    }
    own_.reset();
    if (Status read = dealer_.HaveRead(last); !read) stopped = read.error().message;
    if (recounts_) recounted_ = body.sums;
    Add(body);
  }

  void Add(const Body& body) { sums_.Add(DecodeParts(body.sums).value()[0].bytes); }

  void Shown(const KafkaRecord& record) {
    const int before = std::exchange(repeated_, Count("tacit_slices_repeated_total"));
    if (world_.fault == Fault::kCopyAdded && repeated_ > before)
      AddCopy(ReadSums(record.key, record.value).value());
  }

  void AddCopy(const SealedRecord& record) {
    const PeriodSeal seal(kSimulationKey, store_.head);
    const auto piece = OpenChunk(seal, record);
    if (!piece || record.place->bytes > kChunkBytes) return;
    if (const auto body = DecodeBody(*piece)) Add(*body);
  }

  bool Dies() { return world_.Chance(0.03); }

  bool CommitPeriod() {
    if (world_.fault == Fault::kEarlyDeletion) (void)topics_.DeleteShown();
    if (Dies()) return false;
    store_.commits.push_back({store_.head, ranges_, sums_});
    store_.last = dealer_.Last();
    for (const OffsetRange& range : ranges_) store_.positions[range.partition] = range.end;
    store_.head = Digest{++world_.heads};
    ++store_.version;
    world_.auditor.Audit(store_);
    if (Dies()) return false;
    if (feeds_) Publish();
    if (done()) return true;
    BeginPeriod();
    return !Dies();
  }

  void Publish() {
    if (world_.feed == store_.head) return;
    world_.feed_before = world_.feed;
    world_.feed = store_.head;
  }

  World& world_;
  Store& store_;
  const bool feeds_;
  const WorldClock clock_{world_};
  metrics::Registry registry_;
  Topics topics_{world_, [this](const KafkaRecord& record) { Shown(record); }};
  Dealer dealer_{{.key = kSimulationKey,
                  .patience = std::chrono::seconds(2),
                  .check = world_.check,
                  .held_bytes_most = 4 * kChunkBytes},
                 topics_,
                 clock_,
                 registry_};
  Ranges ranges_;
  ToySums sums_;
  int repeated_ = 0;
  std::optional<std::pair<Ranges, int64_t>> own_;
  bool recounts_ = false;  // a worker has summed them up too
  std::string recounted_;
};

// Messages of workers that were taken, or not.
struct Messages {
  int counted = 0, repeated = 0, build = 0, seal = 0, topic = 0, period = 0;

  void Add(Trainer& trainer) {
    const auto refused = [&](const char* why) {
      return trainer.Count("tacit_slices_refused_total", {{"why", why}});
    };
    counted += trainer.Count("tacit_slices_total", {{"by", "workers"}});
    repeated += trainer.Count("tacit_slices_repeated_total");
    build += refused("build");
    seal += refused("seal");
    topic += refused("topic");
    period += refused("period");
  }
};

struct Report {
  std::vector<std::string> complaints;
  Messages messages;
  std::string stopped;
  size_t commits = 0;
};

class Simulation {
 public:
  Simulation(uint64_t seed, Fault fault, double check = 0.05) : world_(seed, fault, check) {
    for (int32_t partition = 0; partition < kPartitions; ++partition) {
      store_.positions[partition] = kBegin;
      store_.last[partition] = *world_.events.Before(partition, kBegin);
    }
    older_ = store_;
  }

  Report Play() {
    for (; world_.now < kLimitMs && !over(); world_.now += kTickMs) Tick();
    world_.auditor.Audit(store_);
    if (clone_store_) world_.auditor.Audit(*clone_store_);
    if (trainer_) Keep(*trainer_);
    return {world_.auditor.complaints, messages_, stopped_, store_.commits.size()};
  }

 private:
  bool over() const {
    return !stopped_.empty() || (store_.commits.size() >= kCommits && trainer_ != nullptr);
  }

  void Tick() {
    while (workers_.size() < 4) workers_.emplace_back(world_, ++started_);
    for (Worker& worker : workers_) worker.Tick();
    std::erase_if(workers_, [&](const Worker& one) { return one.gone || world_.Chance(0.001); });
    Brokers& brokers = world_.brokers;
    while (!brokers.coming.empty() && brokers.coming.begin()->first <= world_.now)
      brokers.sums.push_back(brokers.coming.extract(brokers.coming.begin()).mapped());
    if (world_.Chance(0.0003)) brokers.begin = brokers.sums.size();  // NAME.sums is made anew
    if (world_.Chance(0.0003)) brokers.plans.clear();
    if (world_.fault == Fault::kReplays) Replay();
    TickTrainer(&trainer_, &starts_at_, store_, /*feeds=*/true);
    if (trainer_ && world_.Chance(0.0003) && !clone_store_) clone_store_ = store_;
    if (clone_store_) TickTrainer(&clone_, &clone_starts_at_, *clone_store_, /*feeds=*/false);
  }

  void Replay() {
    auto& [plans, sums, begin, coming] = world_.brokers;
    if (!sums.empty()) sums.push_back(KafkaRecord(sums[world_.random() % sums.size()]));
    if (!plans.empty()) plans.push_back(std::string(plans[world_.random() % plans.size()]));
  }

  void TickTrainer(std::unique_ptr<Trainer>* trainer, int64_t* starts_at, Store& store,
                   bool feeds) {
    if (*trainer == nullptr) {
      if (world_.now < *starts_at || store.commits.size() >= kCommits) return;
      if (feeds && world_.Chance(0.1)) Restore();
      *trainer = std::make_unique<Trainer>(world_, store, feeds);
    }
    if ((*trainer)->Tick() && !world_.Chance(0.008)) {
      if (feeds) stopped_ = (*trainer)->stopped;
      return;
    }
    Keep(**trainer);
    trainer->reset();
    *starts_at = world_.now + world_.Upto(1500);
  }

  // An older copy is put back; a store that is opened from a copy has a head of its own.
  void Restore() {
    store_ = older_;
    store_.head = Digest{++world_.heads};
    older_ = store_;
  }

  void Keep(Trainer& trainer) {
    messages_.Add(trainer);
    if (world_.Chance(0.3)) older_ = store_;
  }

  World world_;
  Store store_, older_;
  std::optional<Store> clone_store_;
  std::unique_ptr<Trainer> trainer_, clone_;
  int64_t starts_at_ = 0, clone_starts_at_ = 0;
  std::list<Worker> workers_;
  int started_ = 0;
  Messages messages_;
  std::string stopped_;
};

TEST(WorkersSimulationTest, EachRecordIsInExactlyOneRelease) {
  int counted = 0, repeated = 0, build = 0, period = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Report report = Simulation(seed, Fault::kNothing).Play();
    EXPECT_THAT(report.complaints, IsEmpty());
    EXPECT_EQ(report.stopped, "");
    EXPECT_EQ(report.commits, kCommits) << "the run has come to a standstill";
    EXPECT_EQ(report.messages.seal, 0);
    EXPECT_EQ(report.messages.topic, 0);
    counted += report.messages.counted;
    repeated += report.messages.repeated;
    build += report.messages.build;
    period += report.messages.period;
  }
  // The seeds have led to all that may happen to honest messages.
  for (const int seen : {counted, repeated, build, period}) EXPECT_GT(seen, 20);
}

// Nothing of it counts twice, and no worker that is gone holds a slice for long.
TEST(WorkersSimulationTest, AStrangerWhoWritesAllOfItAgainChangesNothing) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Report report = Simulation(seed, Fault::kReplays).Play();
    EXPECT_THAT(report.complaints, IsEmpty());
    EXPECT_EQ(report.stopped, "");
    EXPECT_EQ(report.commits, kCommits) << "the run has come to a standstill";
  }
}

class PlantedFaults : public ::testing::Test {
 protected:
  // Plays seeds with the fault, without checks: the auditor sees it, or a refusal keeps it out of
  // the releases. In some seeds it may have had no occasion.
  void Expect(Fault fault, const std::string& complaint, int Messages::*refused) {
    int seen = 0;
    for (uint64_t seed = 0; seed < 5; ++seed) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed);
      Report report = Simulation(seed, fault, /*check=*/0).Play();
      if (refused != nullptr) {
        EXPECT_THAT(report.complaints, IsEmpty());
        seen += report.messages.*refused > 0;
      } else {
        seen += std::ranges::count(report.complaints, complaint) > 0;
      }
    }
    EXPECT_GE(seen, 3);
  }
  static constexpr char kWrong[] = "a release is not the sum of its records";
};

TEST_F(PlantedFaults, ARangeTwice) { Expect(Fault::kRangeTwice, kWrong, nullptr); }
TEST_F(PlantedFaults, ARangeLostAndCalledCovered) { Expect(Fault::kRangeLost, kWrong, nullptr); }
TEST_F(PlantedFaults, AStaleHead) { Expect(Fault::kStaleHead, kWrong, nullptr); }
TEST_F(PlantedFaults, AZombiesCopyAdded) { Expect(Fault::kCopyAdded, kWrong, nullptr); }
TEST_F(PlantedFaults, AChunkOfAnotherBody) { Expect(Fault::kForeignChunk, "", &Messages::period); }
TEST_F(PlantedFaults, ARecordOfAnotherTopic) { Expect(Fault::kOtherTopic, "", &Messages::topic); }
TEST_F(PlantedFaults, AWrongBitWithoutChecks) { Expect(Fault::kWrongBit, kWrong, nullptr); }
// A check finds it before anything is released, and names the worker.
TEST_F(PlantedFaults, AWrongBitIsFoundByChecks) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Report report = Simulation(seed, Fault::kWrongBit, /*check=*/1).Play();
    EXPECT_THAT(report.complaints, IsEmpty());
    EXPECT_THAT(report.stopped, ::testing::StartsWith("sums of w-"));
  }
}
TEST_F(PlantedFaults, DeletionBeforeTheCommit) {
  Expect(Fault::kEarlyDeletion, "sums were deleted before their commit", nullptr);
}

}  // namespace
}  // namespace tacit::workers
