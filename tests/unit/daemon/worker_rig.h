#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "daemon/worker/worker.h"
#include "feed/publisher.h"
#include "metrics/registry.h"
#include "privacy/bill.h"
#include "store/store.h"
#include "stream/kafka/topic_reader.h"
#include "support/eventually.h"
#include "support/silent_noise.h"
#include "support/temp_dir.h"
#include "train/click/memory_rows.h"
#include "train/learner/position.h"
#include "wiring/build_digest.h"
#include "wiring/plans/codec.h"
#include "wiring/plans/feed.h"
#include "wiring/plans/workers.h"
#include "workers/collector.h"

// A worker beside a broker (`Kafka`: MockKafka, or a real one), with a trainer that the test plays:
// a store of two learners with private quality beside them, its feed, and the plans. The oracle is
// one summer of one thread.
namespace tacit::daemon {

inline constexpr int32_t kEventPartitions = 3;

inline constexpr char kWorkerConfig[] = R"(
source:
  kind: kafka
  topic: events
  periods: topic
  format: json
  json: {label: /clicked, user: /who}
schema:
  features:
    - {name: ad, kind: categorical, buckets: 300}
    - {name: place, kind: categorical, buckets: 20}
    - {name: price, kind: dense}
learners:
  - id: linear
    model: {kind: linear, crosses: [ad*place]}
    mechanism: {kind: sums, whole_columns: 1000, deviations: 3}
    participation: {mode: once, batch: 1000}
    privacy: {unit: event, epsilon: 50, delta: 1.0e-6}
    quality: {steps: 2, bins: 8, epsilon: 1, delta: 1.0e-6}
  - id: fewer
    model: {kind: linear}
    mechanism: {kind: sums, whole_columns: 100, deviations: 6}
    participation: {mode: once, batch: 1000}
    privacy: {unit: event, epsilon: 50, delta: 1.0e-6}
feed: {topic: model}
workers: {topic: w}
training: {workers: 3}
)";

template <class Kafka>
class WorkerRig : public ::testing::Test {
 protected:
  void SetUp() override {
    kafka_.Create("events", kEventPartitions);
    kafka_.Create("model", 2);
    kafka_.Create("w.plan", 1);
    kafka_.Create("w.sums", 2);
    const std::string key_text = workers::NewKeyText();
    key_ = workers::KeyOfTopics(workers::ParseKey(key_text).value(), "w");
    std::ofstream(dir_ / "key") << key_text;
    ASSERT_EQ(chmod((dir_ / "key").c_str(), 0600), 0);
    std::ofstream(dir_ / "out") << "nobody\nu13\n";
    assembly_ = Assemble({});
    const auto opt_out = train::OptOut::Read(dir_ / "out", {});
    ASSERT_TRUE(opt_out) << opt_out.error().message;
    build_ = wiring::BuildOf(
        {.assembly = *assembly_, .key = key_, .sources = "s", .opt_out = &*opt_out});
    auto store = store::Store::Open(wiring::MakeStoreOptions(*assembly_));
    ASSERT_TRUE(store) << store.error().message;
    store_ = *std::move(store);
    codec_ = wiring::MakeCodec(assembly_->config.source, *assembly_->transform);
    auto options = wiring::MakePublisherOptions(assembly_->config);
    ASSERT_TRUE(options) << options.error().message;
    options->check_topic = [] { return Status(); };
    publisher_ = std::make_unique<feed::Publisher>(*store_, clock_, *std::move(options));
  }

  std::shared_ptr<const wiring::Assembly> Assemble(std::vector<std::string> more) const {
    std::vector<std::string> overrides = {"store.path=" + dir_ / "store",
                                          "store.witness=none",
                                          "dead_letters.path=" + dir_ / "letters",
                                          "source.opt_out=" + dir_ / "out",
                                          "workers.key_file=" + dir_ / "key",
                                          "kafka.bootstrap.servers=" + kafka_.bootstrap(),
                                          "kafka.group.id=g"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    auto config = config::Parse(kWorkerConfig, "c.yaml", overrides);
    EXPECT_TRUE(config) << config.error().message;
    auto assembly = wiring::Assemble(*std::move(config));
    EXPECT_TRUE(assembly) << assembly.error().message;
    return std::make_shared<const wiring::Assembly>(*std::move(assembly));
  }

  // A record: one in ten cannot be read, one in twenty is of a user who opted out.
  static std::string Record(std::mt19937_64& random) {
    if (random() % 10 == 0) return "no record";
    return fmt::format(
        R"({{"clicked": {}, "who": "u{}", "ad": "a{}", "place": "p{}", "price": {}}})",
        random() % 4 == 0 ? 1 : 0, random() % 20, random() % (random() % 90 + 1), random() % 9,
        static_cast<double>(random() % 900) / 100);
  }
  void WriteEvents(int count, std::mt19937_64& random) {
    for (int i = 0; i < count; ++i)
      kafka_.Write("events", static_cast<int32_t>(random() % kEventPartitions), Record(random));
    kafka_.Flush();
  }
  // All records of the topic, by partition and offset.
  struct Event {
    std::string value;
    stream::LastRecord mark;
  };
  using Partition = std::map<uint64_t, Event>;
  std::map<int32_t, Partition> Events() const {
    std::map<int32_t, Partition> events;
    const Status read = stream::ReadKafkaTail(
        properties(), "events", 1'000'000, test::kPatience,
        [&](const stream::KafkaTopicRecord& record) -> Status {
          const std::string value(*record.value);
          events[record.partition][record.offset] = {
              value, {record.offset, record.timestamp_ms, BucketHash(value, 0)}};
          return {};
        });
    EXPECT_TRUE(read) << read.error().message;
    return events;
  }
  // The last record before an offset.
  static workers::Seen Before(const Partition& events, uint64_t offset) {
    const auto at = events.lower_bound(offset);
    return at == events.begin() ? workers::Seen() : workers::Seen(std::prev(at)->second.mark);
  }
  stream::KafkaProperties properties() const {
    return {{{"bootstrap.servers", kafka_.bootstrap()}, {"linger.ms", "1"}}};
  }

  // Decodes and filters a range as the product does, into a step of its own. Counts what is left
  // out.
  stream::StepBatch StepOf(const OffsetRange& range, workers::SummedRange* counts) const {
    const auto all = Events();
    const Partition& events = all.at(range.partition);
    event::RawRecords records;
    records.partition = range.partition;
    records.first_offset = range.begin;
    for (auto at = events.lower_bound(range.begin); at != events.lower_bound(range.end); ++at) {
      records.bytes += at->second.value;
      records.end.push_back(static_cast<uint32_t>(records.bytes.size()));
    }
    stream::StepBatch step;
    std::vector<event::DeadLetter> dead;
    assembly_->transform->StartBatch(&step.examples);
    codec_->Decode(records, &step.examples, &dead);
    event::Batch kept = EmptyLike(step.examples);
    for (size_t i = 0; i < step.examples.size(); ++i)
      if (step.examples.user[i] != "u13") kept.AppendRange(step.examples, i, i + 1);
    *counts = {.range = range,
               .before = Before(events, range.begin),
               .last = Before(events, range.end),
               .opted_out = step.examples.size() - kept.size(),
               .empty = range.size() - records.size()};
    for (const event::DeadLetter& letter : dead) ++counts->dead[static_cast<size_t>(letter.part)];
    step.examples = std::move(kept);
    for (uint32_t i = 0; i < step.examples.size(); ++i) step.unit_of.push_back(i);
    step.units = static_cast<uint32_t>(step.examples.size());
    return step;
  }

  // Learns a period of these ranges and commits it, with a window of the first learner's quality.
  void Learn(const workers::Ranges& ranges) {
    stream::Position position;
    position.step = ++steps_;
    store::CommitRequest request;
    for (size_t i = 0; i < assembly_->learners.size(); ++i) {
      const wiring::LearnerPlan& plan = assembly_->learners[i];
      if (learners_.size() <= i) learners_.push_back(MakeLearner(plan));
      TakeStep(*learners_[i], ranges);
      privacy::Bill bill(plan.id, "events");
      bill.Add({.ranges = ranges}, learners_[i]->charge(), std::nullopt);
      request.learners.push_back({.learner = plan.index,
                                  .rows = store_->working_rows(plan.index).TakeDelta(),
                                  .position = train::EncodePosition(position),
                                  .charges = bill.Take(),
                                  .released = learners_[i]->TakeReleased()});
    }
    const wiring::QualityPlan& quality = assembly_->qualities.at(0);
    privacy::Bill window(quality.promise.learner, "events");
    window.Add({.ranges = ranges}, quality.charge, std::nullopt);
    request.learners.push_back({.learner = quality.index,
                                .position = train::EncodePosition(position),
                                .charges = window.Take(),
                                .released = std::make_shared<std::string>("a window")});
    ASSERT_TRUE(store_->Commit(std::move(request), [](const Status& done) { EXPECT_TRUE(done); }));
    ASSERT_TRUE(store_->Flush());
  }
  std::unique_ptr<train::Learner> MakeLearner(const wiring::LearnerPlan& plan) {
    auto learner = plan.model->Make({.noise = std::make_unique<noise::SilentNoise>(),
                                     .backend = [this]() -> ops::Backend& { return *backend_; },
                                     .workers = pool_,
                                     .rows = store_->working_rows(plan.index)});
    EXPECT_TRUE(learner) << learner.error().message;
    return *std::move(learner);
  }
  void TakeStep(train::Learner& learner, const workers::Ranges& ranges) const {
    train::StepReport report;
    stream::StepBatch last;
    for (const OffsetRange& range : ranges) {
      workers::SummedRange counts;
      stream::StepBatch part = StepOf(range, &counts);
      part.kind = stream::StepBatch::Kind::kPreview;
      EXPECT_TRUE(learner.Preview(part, &report));
      last.examples = EmptyLike(part.examples);
    }
    const std::atomic<bool> go_on = false;
    EXPECT_TRUE(learner.TakeStep(last, go_on, &report));
  }
  void Publish() {
    ASSERT_TRUE(test::Eventually("a version is published", [&] {
      const auto published = publisher_->Publish();
      return published && *published;
    }));
  }

  // The bytes that a worker should send for the slice: one thread, each range in one piece, by the
  // trainer's own rows.
  workers::Body BodyOf(const workers::Ranges& ranges) {
    workers::Body body;
    std::vector<workers::LearnerPart> parts;
    for (const wiring::LearnerPlan& plan : assembly_->learners) {
      const store::RowLayout layout = plan.model->Rows();
      train::MemoryRows rows(layout);
      for (uint64_t row = 0; row < layout.space.rows(); ++row) {
        float *from = nullptr, *to = nullptr;
        EXPECT_TRUE(store_->working_rows(plan.index).Gather({&row, 1}, {&from, 1}));
        EXPECT_TRUE(rows.Gather({&row, 1}, {&to, 1}));
        std::copy_n(from, layout.RowFloats(0), to);
      }
      WorkerPool one({.workers = 1});
      const auto summer = plan.model->MakeSummer(rows, one);
      EXPECT_TRUE(summer->Load(*store_->Latest()->Released(plan.index)));
      body.ranges.clear();
      for (const OffsetRange& range : ranges) {
        workers::SummedRange counts;
        EXPECT_TRUE(summer->Add(StepOf(range, &counts)));
        body.ranges.push_back(counts);
      }
      parts.push_back({plan.index.value, summer->Take()});
    }
    body.sums = workers::EncodeParts(parts);
    return body;
  }

  std::unique_ptr<Worker> Start(const std::string& name, std::vector<std::string> more = {}) {
    started_.push_back(Assemble(std::move(more)));
    auto worker = Worker::Open({.assembly = *started_.back(),
                                .clock = clock_,
                                .registry = registry_,
                                .name = name,
                                .sources = "s",
                                .check_feed = [] { return Status(); }});
    EXPECT_TRUE(worker) << worker.error().message;
    return *std::move(worker);
  }
  workers::Plan PlanOf(const workers::Ranges& ranges, const std::string& worker) const {
    return {.head = store_->Latest()->head(),
            .build = build_,
            .version = store_->Latest()->version().value,
            .learners = {{.key = 0, .step = steps_}, {.key = 1, .step = steps_}},
            .slices = {{worker, ranges}}};
  }
  // Writes the plan, as the newest one. Returns its bytes.
  std::string Announce(workers::Plan plan) {
    plan.time_ms = ++plan_ms_;
    std::string bytes = workers::EncodePlan(key_, plan);
    WritePlan(bytes);
    return bytes;
  }
  void WritePlan(const std::string& bytes) {
    kafka_.Write("w.plan", 0, bytes);
    kafka_.Flush();
  }
  workers::Period PeriodOf(const workers::Ranges& ranges) const {
    workers::Period period{
        .head = store_->Latest()->head(), .build = build_, .ranges = ranges, .before = {}};
    const auto events = Events();
    for (const OffsetRange& range : ranges)
      if (const auto seen = Before(events.at(range.partition), range.begin))
        period.before[range.partition] = *seen;
    return period;
  }

  // The whole topic as it is, a range a partition.
  workers::Ranges All() const {
    auto reader = stream::KafkaTopicReader::Open(properties(), "events");
    EXPECT_TRUE(reader);
    workers::Ranges ranges;
    const auto spans = (*reader)->Spans(test::kPatience);
    EXPECT_TRUE(spans);
    for (const stream::PartitionSpan& span : *spans)
      ranges.push_back({span.partition, span.begin, span.end});
    return ranges;
  }
  void AwaitReady(const Worker& worker, bool ready, const std::string& reason) {
    ASSERT_TRUE(test::Eventually("the worker says what it waits for", [&] {
      const serve::Readiness now = worker.readiness();
      return now.ready == ready && now.reason.find(reason) != std::string::npos;
    })) << worker.readiness().reason;
  }
  // Waits for this number of whole bodies of the period.
  std::vector<workers::Body> AwaitBodies(const workers::Period& period, size_t bodies = 1) {
    std::vector<workers::Body> counted;
    std::map<workers::Outcome, int> outcomes;
    EXPECT_TRUE(test::Eventually("a body counts", [&] {
      counted = Collect(period, &outcomes);
      return counted.size() == bodies;
    }));
    return counted;
  }
  // Writes events and has a slice of them summed, of ranges at random: its body has to be that of
  // one thread over the same records, bit for bit. Then the trainer learns the slice.
  void SumAtRandom(const std::string& worker, std::mt19937_64& random) {
    WriteEvents(600, random);
    workers::Ranges ranges = All();
    for (OffsetRange& range : ranges) {
      range.begin = random() % range.end;
      range.end = range.begin + 1 + random() % (range.end - range.begin);
    }
    if (random() % 2 == 0) ranges.erase(ranges.begin());
    Announce(PlanOf(ranges, worker));
    const auto bodies = AwaitBodies(PeriodOf(ranges));
    ASSERT_EQ(bodies.size(), 1u);
    const workers::Body expected = BodyOf(ranges);
    EXPECT_EQ(bodies[0].ranges, expected.ranges);
    EXPECT_TRUE(bodies[0].sums == expected.sums);
    const auto parts = workers::DecodeParts(bodies[0].sums);
    ASSERT_TRUE(parts && parts->size() == learners_.size());
    uint64_t counted = 0;
    for (size_t i = 0; i < learners_.size(); ++i) {
      const auto figures = learners_[i]->AddPart((*parts)[i].bytes);
      ASSERT_TRUE(figures) << figures.error().message;
      counted = figures->examples;
    }
    const event::SummedRecords records = workers::RecordsOf(expected);
    for (const workers::SummedRange& range : expected.ranges) {
      counted += range.empty;
      empty_ += range.empty;
    }
    counted += records.all_dead() + records.opted_out;
    left_out_ += records.all_dead() + records.opted_out;
    records_ += records.records;
    EXPECT_EQ(counted, workers::CountOffsets(ranges));
    Learn(ranges);  // another head, and weights that have moved
    Publish();
  }

  // Everything in NAME.sums so far.
  struct Sums {
    std::vector<std::pair<std::string, std::string>> chunks;  // key and value
    std::vector<workers::Hello> hellos;
  };
  Sums ReadSums() const {
    Sums sums;
    const Status read =
        stream::ReadKafkaTail(properties(), "w.sums", 1'000'000, test::kPatience,
                              [&](const stream::KafkaTopicRecord& record) -> Status {
                                const auto sealed = workers::ReadSums(*record.key, *record.value);
                                EXPECT_TRUE(sealed) << sealed.error().message;
                                if (sealed->place) {
                                  sums.chunks.emplace_back(*record.key, *record.value);
                                } else {
                                  auto hello = workers::OpenHello(key_, *sealed);
                                  EXPECT_TRUE(hello) << hello.error().message;
                                  sums.hellos.push_back(*std::move(hello));
                                }
                                return {};
                              });
    EXPECT_TRUE(read) << read.error().message;
    return sums;
  }
  // Collects the period from what workers have sent, and returns the bodies that count.
  std::vector<workers::Body> Collect(const workers::Period& period,
                                     std::map<workers::Outcome, int>* outcomes) const {
    workers::Collector collector(key_, uint64_t{1} << 30);
    collector.Begin(period);
    std::vector<workers::Body> bodies;
    outcomes->clear();
    for (const auto& [key, value] : ReadSums().chunks) {
      workers::Taken taken = collector.Take(workers::ReadSums(key, value).value());
      ++(*outcomes)[taken.outcome];
      if (taken.outcome == workers::Outcome::kCounted) bodies.push_back(std::move(taken.body));
    }
    return bodies;
  }

  const test::TempDir dir_;
  mutable Kafka kafka_;
  const SystemClock clock_;
  metrics::Registry registry_;
  workers::SharedKey key_{};
  Digest build_{};
  std::shared_ptr<const wiring::Assembly> assembly_;
  std::vector<std::shared_ptr<const wiring::Assembly>> started_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<event::Codec> codec_;
  WorkerPool pool_{{.workers = 1}};
  std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(pool_);
  std::vector<std::unique_ptr<train::Learner>> learners_;
  std::unique_ptr<feed::Publisher> publisher_;
  uint64_t steps_ = 0;
  int64_t plan_ms_ = 0;
  uint64_t left_out_ = 0, empty_ = 0, records_ = 0;  // offsets of the slices so far
};

}  // namespace tacit::daemon
