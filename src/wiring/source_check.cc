#include "wiring/source_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "stream/kafka/topic_sample.h"
#include "train/record_filter.h"
#include "train/watch/dead_letter_news.h"
#include "wiring/plans/codec.h"
#include "wiring/plans/kafka.h"
#include "wiring/plans/source.h"
#include "wiring/signal.h"

namespace tacit::wiring {
namespace {

using std::chrono::milliseconds;
using LookClock = std::chrono::steady_clock;

// A machine without a way to the brokers has its answer soon, and a daemon that is stopped
// meanwhile ends within 5 s.
constexpr milliseconds kAnswerWithin(1500), kReadWithin(2000), kReadSlice(100);
constexpr std::string_view kUnknownItem = "item: is not in the catalogue";
constexpr uint64_t kLookedAt = 1000, kFewestJudged = 100, kOneIn = 100;

bool IsTopic(const config::Source& source) { return source.traits().keys.has("topic"); }

// The source's first records, as a start decodes them.
class FirstRecords {
 public:
  explicit FirstRecords(const Assembly& assembly)
      : assembly_(assembly),
        codec_(MakeCodec(assembly.config.source, *assembly.transform, assembly.items)),
        filter_({.needs_user = std::ranges::any_of(
                     assembly.config.learners,
                     [](const config::Learner& learner) { return learner.privacy.of_users(); })}),
        needs_item_(assembly.items != nullptr &&
                    std::ranges::all_of(assembly.learners, &LearnerPlan::recommends)) {}

  // Fails where not one record could be read.
  Status Read(const std::string& past_cut) {
    const SystemClock clock;
    metrics::Registry registry;
    const LiveParts live{.kafka = assembly_.config.kafka,
                         .until_end = true,
                         .clock = clock,
                         .registry = registry,
                         .past_cut = past_cut};
    TACIT_ASSIGN(const auto source, OpenSource(assembly_.config.source, &live));
    std::vector<stream::PartitionOffset> starts;
    for (const int32_t partition : source->partitions())
      starts.push_back({.partition = partition, .from_beginning = true});
    TACIT_RETURN_IF_ERROR(source->Seek(starts));
    const auto begin = LookClock::now();
    event::RawRecords records;
    while (read_ < kLookedAt) {
      const auto outcome = source->Poll(kReadSlice, &records);
      if (!outcome && read_ == 0) return Fail(outcome.error());
      if (!outcome || *outcome == stream::PollOutcome::kEnd) break;
      if (IsTopic(assembly_.config.source) && LookClock::now() - begin > kReadWithin) break;
      if (*outcome == stream::PollOutcome::kRecords) Take(&records);
    }
    return {};
  }

  // The records of the first file, if it ends among those that were read.
  std::optional<uint64_t> first_file() const { return first_file_; }
  bool can_hardly_be_read() const { return read_ >= kFewestJudged && good_ * kOneIn < read_; }
  // "of the first 1,000 records 3 can be learnt from. ..."
  std::string Text() const {
    std::string text = fmt::format(
        "of the first {}, read as format {}, {} can be learnt from", Counted(read_, "record"),
        assembly_.config.source.format_traits().name, WithThousands(good_));
    const auto most =
        std::ranges::max_element(bad_, {}, [](const auto& reason) { return reason.second.count; });
    if (most == bad_.end()) return text;
    const event::DeadLetter& first = most->second.first;
    return text + fmt::format(". The most frequent reason, of {}: {}; the first is {}. See {}",
                              Counted(most->second.count, "record"), first.reason,
                              train::PlaceOf(first), KeysOf(first));
  }

 private:
  struct Bad {
    event::DeadLetter first;
    uint64_t count = 0;
  };

  void Take(event::RawRecords* records) {
    if (!first_file_ && !records->cuts.empty() && !IsTopic(assembly_.config.source))
      first_file_ = records->cuts.front().offset;
    records->end.resize(std::min<uint64_t>(records->size(), kLookedAt - read_));
    assembly_.transform->StartBatch(&batch_);
    dead_.clear();
    codec_->Decode(*records, &batch_, &dead_);
    filter_.Apply(*records, &batch_, &dead_);
    read_ += batch_.size() + dead_.size();
    good_ += batch_.size();
    if (needs_item_) PassOverUnknownItems(*records);
    for (const event::DeadLetter& letter : dead_) {
      Bad& bad = bad_[letter.reason];
      if (bad.count++ == 0) bad.first = letter;
    }
  }

  void PassOverUnknownItems(const event::RawRecords& records) {
    for (size_t i = 0; i < batch_.size(); ++i) {
      if (batch_.item[i] != event::kNoItem) continue;
      const uint64_t index = batch_.offset[i] - records.first_offset;
      dead_.push_back({.origin = records.origin,
                       .line = records.origin_line == 0 ? 0 : records.origin_line + index,
                       .partition = records.partition,
                       .offset = batch_.offset[i],
                       .reason = std::string(kUnknownItem)});
      --good_;
    }
  }

  // The keys to look at.
  std::string KeysOf(const event::DeadLetter& letter) const {
    const config::Source& source = assembly_.config.source;
    using enum config::FormatKind;
    const bool has_places = source.format == kJson || source.format == kCsv;
    const auto place = [&](std::string_view key) {
      return has_places ? fmt::format("source.{}.{}", source.format_traits().name, key)
                        : "source.format";
    };
    if (letter.reason == kUnknownItem) return place("item") + " and catalogue.file";
    switch (letter.part) {
      case event::BadPart::kValue:
        return "source.max_record_bytes, and what the producer writes";
      case event::BadPart::kSchema:
        return "source.framing and source.registry";
      case event::BadPart::kSyntax:
        return "source.format";
      case event::BadPart::kLabel:
        return place("label") + (has_places ? ", label_values and label_at_least" : "");
      case event::BadPart::kField:
        return "schema.features and " + place("features");
      case event::BadPart::kUser:
        return place("user") + ", and privacy.unit";
      case event::BadPart::kTime:
        return place("timestamp") + (has_places ? " and timestamp_unit" : "");
    }
    return "source";
  }

  const Assembly& assembly_;
  const std::unique_ptr<event::Codec> codec_;
  train::RecordFilter filter_;
  const bool needs_item_;  // no learner learns from a record without one
  event::Batch batch_;
  std::vector<event::DeadLetter> dead_;
  uint64_t read_ = 0, good_ = 0;
  std::optional<uint64_t> first_file_;
  std::map<std::string, Bad> bad_;  // by reason
};

std::string FoundText(const stream::KafkaTopicFacts& facts) {
  std::string text =
      fmt::format("has {} of {} and {} now", Counted(facts.partitions.size(), "partition"),
                  Counted(facts.replicas, "replica"), Counted(facts.retained(), "offset"));
  const std::string policy = facts.Setting("cleanup.policy");
  if (policy.find("compact") != std::string::npos)
    text += fmt::format(
        ". WARNING: its cleanup.policy is {}: of each key its brokers keep the newest record "
        "alone, "
        "so that interactions vanish, read or not",
        policy);
  return text;
}

// Warns of learners whose periods are too short where all files are as long as the first one.
std::string ShortFilesText(const Assembly& assembly, std::optional<uint64_t> first_file) {
  const bool one_file = assembly.config.source.files.size() == 1;
  std::string text;
  for (size_t i = 0; first_file && i < assembly.learners.size(); ++i) {
    const config::Learner& learner = assembly.config.learners[i];
    const LearnerPlan& plan = assembly.learners[i];
    const std::string few = TooFewRecords(learner, plan, first_file, one_file);
    if (!few.empty() && TooFewRecords(learner, plan, std::nullopt).empty())
      text += fmt::format("# WARNING: by the {} file, {}\n", one_file ? "only" : "first", few);
  }
  return text;
}

Result<stream::KafkaTopicFacts> AskTopic(const config::Config& config) {
  auto properties = KafkaPropertiesOf(config.kafka);
  if (!properties)
    return Fail(properties.error().code,
                fmt::format("was not asked about: {}", properties.error().message));
  auto facts = stream::AskTopic(*properties, config.source.topic, kAnswerWithin);
  if (facts) return facts;
  if (facts.error().code == ErrorCode::kNotFound)
    return Fail(ErrorCode::kNotFound,
                "is NOT THERE: its brokers know no such topic. tacitd would wait until it is made");
  return Fail(facts.error().code, fmt::format("was not seen: {}", facts.error().message));
}

}  // namespace

namespace {

Status Judge(const Assembly& assembly, const FirstRecords& first) {
  if (assembly.breaker || assembly.config.source.accept_unreadable || !first.can_hardly_be_read())
    return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("source: {}. That is fewer than 1 in 100, so nothing is learnt and "
                          "nothing is charged. Correct the keys; if the stream is as it should "
                          "be, source.accept_unreadable: true learns without this look",
                          first.Text()));
}

}  // namespace

SourceLook LookAtSource(const Assembly& assembly) {
  const config::Source& source = assembly.config.source;
  SourceLook look;
  if (IsTopic(source)) {
    const auto facts = AskTopic(assembly.config);
    look.text = fmt::format("# topic {}: {}\n", source.topic,
                            Printable(facts ? FoundText(*facts) : facts.error().message));
    if (!facts || facts->retained() == 0) return look;
  } else if (!source.files_found) {
    return look;
  }
  FirstRecords first(assembly);
  if (const Status read = first.Read(/*past_cut=*/""); !read) {
    look.text += fmt::format("# no record was read: {}\n", Printable(read.error().message));
    return look;
  }
  look.first_start = Judge(assembly, first);
  look.text +=
      fmt::format("# {}{}{}\n", look.first_start ? "" : "WARNING: ", Printable(first.Text()),
                  look.first_start ? "" : ". A first start ends with status 2 here");
  look.text += ShortFilesText(assembly, first.first_file());
  return look;
}

Status CheckFirstRecords(const Assembly& assembly, const std::string& past_cut) {
  const config::Source& source = assembly.config.source;
  if (assembly.breaker || source.accept_unreadable) return {};
  if (IsTopic(source)) {
    const auto facts = AskTopic(assembly.config);
    if (!facts || facts->retained() < kFewestJudged) return {};
  } else if (!source.files_found) {
    return {};
  }
  FirstRecords first(assembly);
  if (!first.Read(past_cut)) return {};
  return Judge(assembly, first);
}

}  // namespace tacit::wiring
