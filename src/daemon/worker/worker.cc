#include "daemon/worker/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/files/log.h"
#include "base/text.h"
#include "metrics/families.h"
#include "train/opt_out.h"
#include "wiring/build_digest.h"
#include "wiring/plans/codec.h"
#include "wiring/plans/dead_letters.h"
#include "wiring/plans/feed.h"
#include "wiring/plans/kafka.h"
#include "wiring/plans/workers.h"

namespace tacit::daemon {
namespace {

using std::chrono::milliseconds;

// The looks of an idle worker at the feed and the plan; and those between which it sums.
constexpr milliseconds kIdleLook(25), kSumming(100), kAnswer(2000);
constexpr Clock::Duration kBetweenHellos = std::chrono::seconds(1);
// Between two tries of what cannot be reached, and of what is refused.
constexpr Clock::Duration kAgain = std::chrono::milliseconds(500);
constexpr Clock::Duration kRefusedAgain = std::chrono::seconds(5);
constexpr Clock::Duration kProducerPauseMost = std::chrono::seconds(30);
// The newest plan is the last record of its topic; behind it stand marks of transactions.
constexpr uint64_t kPlansBack = 16;

std::string Short(const Digest& digest) { return ToHex(std::span(digest).first(6)); }

}  // namespace

Worker::Worker(const WorkerParts& parts)
    : parts_(parts),
      pool_({.workers = parts.assembly.config.training.workers}),
      news_(parts.clock, parts.registry, wiring::PlaceOfDeadLetters(parts.assembly.config)),
      watch_(parts.assembly.transform->schema(), parts.clock, parts.registry),
      sent_(parts.registry.AddCounter("tacit_slices_sent_total")),
      letters_waiting_(parts.registry.AddGauge("tacit_dead_letters_waiting")) {}

Result<std::unique_ptr<Worker>> Worker::Open(const WorkerParts& parts) {
  std::unique_ptr<Worker> worker(new Worker(parts));
  TACIT_RETURN_IF_ERROR(worker->Init());
  worker->ShowReadiness();
  worker->thread_.Start("tacit-worker", [self = worker.get()] { self->Loop(); });
  return worker;
}

Status Worker::Init() {
  const config::Config& config = parts_.assembly.config;
  TACIT_ASSIGN(key_, wiring::ReadWorkersKey(config.workers));
  TACIT_RETURN_IF_ERROR(ReadOptOut());
  build_ = wiring::BuildOf({.assembly = parts_.assembly,
                            .key = key_,
                            .sources = parts_.sources,
                            .opt_out = filter_.opt_out.get()});
  TACIT_ASSIGN(properties_, wiring::KafkaPropertiesOf(config.kafka));
  const wiring::LiveParts live{
      .kafka = config.kafka, .clock = parts_.clock, .registry = parts_.registry};
  TACIT_ASSIGN(source_, wiring::OpenRanges(config.source, live));
  TACIT_RETURN_IF_ERROR(OpenProducer());
  codec_ = wiring::MakeCodec(config.source, *parts_.assembly.transform, parts_.assembly.items);
  return {};
}

Status Worker::ReadOptOut() {
  const std::string& path = parts_.assembly.config.source.opt_out;
  if (path.empty()) return {};
  SipHash::Key hash{};
  TACIT_ASSIGN(const workers::SharedKey drawn, workers::ParseKey(workers::NewKeyText()));
  std::copy_n(drawn.begin(), hash.size(), hash.begin());
  auto opt_out = train::OptOut::Read(path, hash);
  if (!opt_out) return Fail(std::move(opt_out.error()).Context("source.opt_out"));
  filter_.opt_out = std::make_shared<const train::OptOut>(*std::move(opt_out));
  filter_.opted_out = parts_.registry.AddCounter("tacit_records_opted_out_total");
  return {};
}

void Worker::Loop() {
  ForgetModel();
  while (!thread_.stopping()) {
    heartbeat_.Work();
    const milliseconds look = slice_ ? milliseconds(0) : kIdleLook;
    FollowFeed(look);
    ReadPlan(look);
    ChooseSlice();
    if (slice_) Sum(kSumming);
    if (parts_.clock.Now() >= hello_due_) SayHello(/*leaves=*/false);
    ShowReadiness();
  }
  // First of all: to end a slice takes a while, in which the trainer would wait for it.
  producer_again_ = {};
  SayHello(/*leaves=*/true);
  DropSlice();
  if (const Status sent = producer_ ? producer_->Flush(kAnswer) : producer_failure_; !sent)
    spdlog::warn("the trainer was not told that this worker leaves: {}", sent.error().message);
  heartbeat_.Rest();
}

// ---- the model

void Worker::ForgetModel() {
  const config::Config& config = parts_.assembly.config;
  replica_.reset();
  loaded_.reset();
  summers_.clear();
  std::vector<store::LearnerLayout> layouts = wiring::MakeLayouts(parts_.assembly);
  // Behind the learners come accounts of their quality, which no version's mark is of.
  layouts.erase(layouts.begin() + std::ssize(parts_.assembly.learners), layouts.end());
  model_ = std::make_unique<WorkerModel>(layouts, wiring::FeedMarkKey(key_));
  replica_ = std::make_unique<feed::Replica>(
      *model_, std::move(layouts),
      feed::ReplicaSource{.properties = properties_,
                          .topic = config.feed.topic,
                          .check_topic = parts_.check_feed,
                          .moves = feed::Assembler::Moves::kNeeded});
  for (size_t i = 0; i < parts_.assembly.learners.size(); ++i)
    summers_.push_back(parts_.assembly.learners[i].model->MakeSummer(model_->rows(i), pool_));
}

void Worker::FollowFeed(milliseconds timeout) {
  if (parts_.clock.Now() < feed_again_) return;
  const auto stepped = replica_->Step(timeout);
  feed_again_ = Note("the feed", stepped ? Status() : Status(Fail(stepped.error())));
  if (stepped || stepped.error().code == ErrorCode::kUnavailable) return;
  // Nothing but the topic is needed to begin anew.
  DropSlice();
  ForgetModel();
}

std::optional<Digest> Worker::head() const {
  const auto latest = model_->Latest();
  return latest ? std::optional(latest->head()) : std::nullopt;
}

// ---- the plan

void Worker::ReadPlan(milliseconds timeout) {
  if (parts_.clock.Now() < plan_again_) return;
  const Status read = ReadPlanOnce(timeout);
  plan_again_ = Note("the topic of plans", read);
  if (!read) plans_.reset();
}

Status Worker::ReadPlanOnce(milliseconds timeout) {
  const std::string topic = parts_.assembly.config.workers.plan_topic();
  if (plans_ == nullptr) {
    TACIT_ASSIGN(auto reader, stream::KafkaTopicReader::Open(properties_, topic));
    TACIT_ASSIGN(const auto spans, reader->Spans(kAnswer));
    if (spans.size() != 1)
      return Fail(
          ErrorCode::kRefused,
          fmt::format("topic '{}' has {} partitions, and plans are in one", topic, spans.size()));
    const uint64_t back = std::min(kPlansBack, spans[0].end - spans[0].begin);
    const stream::PartitionOffset from{.partition = 0, .offset = spans[0].end - back};
    TACIT_RETURN_IF_ERROR(reader->Seek({&from, 1}));
    plans_ = std::move(reader);
  }
  Status refused;
  bool came = false;
  TACIT_RETURN_IF_ERROR(
      plans_->Read(timeout, [&](const stream::KafkaTopicRecord& record) -> Status {
        auto plan = workers::DecodePlan(key_, record.value.value_or(""));
        came = true;
        refused = {};
        if (!plan) {
          refused = Fail(std::move(plan.error()).Context(fmt::format("offset {}", record.offset)));
          return {};
        }
        if (plan_ && plan->time_ms <= plan_->time_ms) return {};
        if (!plan_ || plan_->head != plan->head) done_.clear();
        plan_ = *std::move(plan);
        if (plan_->slices.empty()) hello_due_ = {};  // the trainer asks who is there
        return {};
      }));
  if (came) Note("the plan", refused);
  if (const std::string why = plans_->trouble(); !why.empty())
    return Fail(ErrorCode::kUnavailable, why);
  return {};
}

const workers::Slice* Worker::Announced() const {
  if (!plan_ || plan_->build != build_ || head() != plan_->head) return nullptr;
  const auto slice = std::ranges::find_if(plan_->slices, [&](const workers::Slice& one) {
    return one.worker == parts_.name && std::ranges::find(done_, one.ranges) == done_.end();
  });
  return slice == plan_->slices.end() ? nullptr : &*slice;
}

// ---- the slice in hand

// The end of a run ends a write of dead letters that waits, and all later ones.
void Worker::DropSlice() {
  slice_.reset();
  dead_letters_.reset();
}

// A slice whose head has passed is of no more use. One that the newest plan has for nobody, or for
// another worker, may still be the first that is delivered.
void Worker::ChooseSlice() {
  const workers::Slice* const announced = Announced();
  if (slice_ && (head() != slice_->head || (plan_ && plan_->head != slice_->head) ||
                 (announced != nullptr && announced->ranges != slice_->run->ranges())))
    DropSlice();
  if (slice_ || announced == nullptr || parts_.clock.Now() < slice_again_) return;
  const Status begun = BeginSlice(*announced);
  if (!begun) slice_again_ = Note("the slice", begun);
}

// Summers have the model of this head from here on.
Result<std::vector<SummedLearner>> Worker::LoadLearners() {
  std::vector<SummedLearner> learners;
  for (const workers::LearnerStep& step : plan_->learners) {
    const auto place = model_->PlaceOf(step.key);
    if (!place || summers_[*place] == nullptr)
      return Fail(
          ErrorCode::kRefused,
          fmt::format("learner {} of the plan has no model here that can be summed by", step.key));
    const auto released = model_->released(*place);
    if (loaded_ != plan_->head)
      TACIT_RETURN_IF_ERROR(
          summers_[*place]->Load(released == nullptr ? std::string_view() : *released));
    learners.push_back({step.key, summers_[*place].get()});
  }
  loaded_ = plan_->head;
  std::ranges::sort(learners, {}, &SummedLearner::key);
  return learners;
}

Status Worker::BeginSlice(const workers::Slice& slice) {
  const config::Config& config = parts_.assembly.config;
  if (dead_letters_ == nullptr) {
    TACIT_ASSIGN(dead_letters_, wiring::OpenDeadLetters(config, model_->Latest()->lineage()));
  }
  loaded_.reset();  // a slice before may have left a part
  TACIT_ASSIGN(std::vector<SummedLearner> learners, LoadLearners());
  TACIT_ASSIGN(auto run, SliceRun::Begin(
                             {.source = *source_,
                              .codec = *codec_,
                              .transform = *parts_.assembly.transform,
                              .dead_letters = *dead_letters_,
                              .news = news_,
                              .watch = watch_,
                              .learners = std::move(learners),
                              .filter = filter_,
                              .decode_threads = config.source.decode_threads,
                              .offsets_per_part = wiring::OffsetsPerPart(config.training.workers)},
                             slice.ranges));
  slice_.emplace(Slice{plan_->head, std::move(run), parts_.clock.Now()});
  return {};
}

void Worker::Sum(milliseconds timeout) {
  const auto body = slice_->run->Continue(timeout);
  if (!body) {
    slice_again_ = Note("the slice", Fail(body.error()));
    DropSlice();
  }
  if (!body || !*body) return;
  const double seconds = tacit::Seconds(parts_.clock.Now() - slice_->begun);
  if (seconds > 0)
    events_per_second_ =
        static_cast<uint64_t>(static_cast<double>(slice_->run->offsets()) / seconds);
  const Status delivered = Deliver(**body);
  slice_again_ = Note("the slice", delivered);
  // A body that cannot be sent is not summed again.
  if (delivered || delivered.error().code == ErrorCode::kRefused)
    done_.push_back(slice_->run->ranges());
  slice_.reset();
}

Status Worker::Deliver(const workers::Body& body) {
  const std::string bytes = workers::EncodeBody(body);
  if (bytes.size() > workers::kBodyBytesMost)
    return Fail(ErrorCode::kRefused,
                fmt::format("it has {} bytes, more than a message may have", bytes.size()));
  const workers::Origin origin{parts_.name, slice_->head, build_};
  for (const workers::KafkaRecord& record : workers::SealBody(key_, origin, bytes)) {
    heartbeat_.Work();  // a large body takes a while
    TACIT_RETURN_IF_ERROR(Send(record, kAnswer, /*of_body=*/true));
  }
  sent_.Add();
  return {};
}

// ---- hellos, and what people are told

Status Worker::OpenProducer() {
  TACIT_ASSIGN(producer_,
               stream::KafkaProducer::Open({.properties = properties_,
                                            .topic = parts_.assembly.config.workers.sums_topic()}));
  return {};
}

Status Worker::Send(const workers::KafkaRecord& record, milliseconds timeout, bool of_body) {
  if (producer_ == nullptr) {
    if (parts_.clock.Now() < producer_again_) return producer_failure_;
    TACIT_RETURN_IF_ERROR(OpenProducer());
  }
  Status sent =
      producer_->Send({.key = record.key, .value = record.value, .tag = of_body}, timeout);
  if (sent || sent.error().code == ErrorCode::kUnavailable) return sent;
  if (producer_->records_acked() > 0) producer_pause_ = {};
  producer_pause_ = std::clamp<Clock::Duration>(2 * producer_pause_, kAgain, kProducerPauseMost);
  producer_again_ = parts_.clock.Now() + producer_pause_;
  producer_failure_ = std::move(sent);
  producer_.reset();
  done_.clear();
  return producer_failure_;
}

Status Worker::TakeFailures() {
  if (producer_ == nullptr) return producer_failure_;
  producer_->Wait(milliseconds(0));
  Status last;
  for (const stream::FailedDelivery& failed : producer_->TakeFailures()) {
    last = Fail(ErrorCode::kIo, failed.reason);
    if (failed.tag == 0 || failed.too_large) continue;  // a hello, or it would fail again
    done_.clear();
    slice_again_ = parts_.clock.Now() + kRefusedAgain;
  }
  return last;
}

void Worker::SayHello(bool leaves) {
  hello_due_ = parts_.clock.Now() + kBetweenHellos;
  const auto latest = model_->Latest();
  workers::Hello hello{.origin = {parts_.name, latest ? latest->head() : Digest{}, build_},
                       .version = latest ? latest->version().value : 0,
                       .plan_ms = plan_ ? plan_->time_ms : 0,
                       .number = ++hellos_,
                       .threads = static_cast<uint16_t>(parts_.assembly.config.training.workers),
                       .events_per_second = events_per_second_,
                       .leaves = leaves,
                       .trouble = Trouble().substr(0, workers::kTroubleBytesMost)};
  if (slice_) {
    hello.offsets = slice_->run->offsets();
    hello.done = slice_->run->done();
  }
  Status sent = Send(workers::SealHello(key_, hello), milliseconds(0), /*of_body=*/false);
  if (Status failed = TakeFailures(); !failed) sent = std::move(failed);
  Note("the topic of sums", sent);
}

Clock::TimePoint Worker::Note(const std::string& what, const Status& outcome) {
  if (outcome) {
    troubles_.erase(what);
    return {};
  }
  troubles_[what] = outcome.error().message;
  const bool may_pass = outcome.error().code == ErrorCode::kUnavailable;
  return parts_.clock.Now() + (may_pass ? kAgain : kRefusedAgain);
}

std::string Worker::Trouble() const {
  std::string all;
  for (const auto& [what, why] : troubles_)
    all += fmt::format("{}{}: {}", all.empty() ? "" : "; ", what, why);
  const std::string letters = dead_letters_ ? dead_letters_->trouble() : "";
  if (!letters.empty())
    all += fmt::format("{}dead letters cannot be written: {}", all.empty() ? "" : "; ", letters);
  const std::string held = slice_ ? source_->health().alert : "";
  for (const std::string& seen : {held, news_.trouble(), watch_.trouble()})
    if (!seen.empty()) all += (all.empty() ? "" : "; ") + seen;
  return all;
}

std::string Worker::WaitsFor() const {
  if (!plan_) return "no plan was read yet";
  if (plan_->build != build_)
    return fmt::format(
        "the plan is of build {}, this program with its configuration and files is build {}",
        Short(plan_->build), Short(build_));
  return head() ? "" : "the feed has no version yet";
}

// Between two periods it is so for a moment.
std::string Worker::OtherHead() const {
  if (!plan_) return "";
  const auto has = head();
  if (!has || *has == plan_->head) return "";
  return fmt::format("the plan is of head {}, the feed has {}", Short(plan_->head), Short(*has));
}

void Worker::ShowReadiness() {
  const std::string waits_for = WaitsFor();
  serve::Readiness readiness{.ready = waits_for.empty(), .reason = waits_for};
  const std::string trouble = Trouble();
  letters_waiting_.Set(dead_letters_ && !dead_letters_->trouble().empty() ? 1 : 0);
  readiness.degraded_for_operators = trouble;
  for (const std::string& why : {waits_for, OtherHead()})
    if (readiness.degraded_for_operators.empty()) readiness.degraded_for_operators = why;
  const MutexLock lock(mutex_);
  if (readiness_.reason != readiness.reason || readiness_.ready != readiness.ready)
    spdlog::info("worker {}: {}", parts_.name,
                 readiness.ready ? "sums up slices" : "waits: " + readiness.reason);
  if (readiness_.degraded_for_operators != readiness.degraded_for_operators && !trouble.empty())
    spdlog::warn("worker {}: {}", parts_.name, trouble);
  readiness_ = std::move(readiness);
}

serve::Readiness Worker::readiness() const {
  const MutexLock lock(mutex_);
  return readiness_;
}

}  // namespace tacit::daemon
