#include "inspect/trial.h"

#include <algorithm>
#include <utility>

#include "event/codec.h"
#include "event/feature_transform.h"
#include "wiring/assembly.h"
#include "wiring/plans/codec.h"

namespace tacit::inspect {
namespace {

constexpr size_t kTrialLines = 1024, kTrialBytes = 1 << 20;

class Tester {
 public:
  Tester(const Sample& sample, const event::Codec& codec, const event::FeatureTransform& transform)
      : sample_(sample), codec_(codec), transform_(transform) {}

  Status Read() {
    const Records& records = *sample_.records;
    for (size_t part = 0; part < records.parts().size() && left() > 0; ++part) {
      TACIT_RETURN_IF_ERROR(records.ForEach(part, [&](const Record& record) {
        const bool header = sample_.shape.format == Format::kCsv && sample_.shape.header;
        if (!header || record.number != 1) Take(record);
        return left() > 0;
      }));
    }
    if (run_.size() > 0) Decode();
    return {};
  }

  Trial trial;
  std::vector<Outcome>* outcomes = nullptr;

 private:
  uint64_t left() const { return sample_.lines - std::min(sample_.lines, taken_); }

  void Take(const Record& record) {
    if (run_.size() == kTrialLines || run_.bytes.size() >= kTrialBytes) Decode();
    if (run_.size() == 0) {
      run_.first_offset = taken_;
      run_.origin = record.origin;
    }
    if (!record.fault.empty())
      run_.faults.push_back({static_cast<uint32_t>(run_.size()), std::string(record.fault)});
    else
      run_.bytes += record.text;
    run_.end.push_back(static_cast<uint32_t>(run_.bytes.size()));
    if (sample_.topic() != nullptr) run_.timestamp_ms.push_back(record.timestamp_ms);
    places_.emplace_back(record.origin, record.number);
    ++taken_;
  }

  // Decodes the records that were taken. Their offsets are their places among all.
  void Decode() {
    event::Batch batch;
    transform_.StartBatch(&batch);
    std::vector<event::DeadLetter> dead;
    codec_.Decode(run_, &batch, &dead);
    const auto note = [&](uint64_t offset, Outcome outcome) {
      if (outcomes == nullptr) return;
      outcomes->resize(std::max(outcomes->size(), taken_), Outcome::kUnread);
      (*outcomes)[offset] = outcome;
    };
    for (const event::DeadLetter& letter : dead) {
      note(letter.offset, Outcome::kBad);
      const auto& [origin, number] = places_[letter.offset - run_.first_offset];
      trial.complaints.Add(origin, number, letter.reason);
    }
    for (size_t i = 0; i < batch.size(); ++i) {
      const bool is_one = batch.label[i] > 0;
      note(batch.offset[i], is_one ? Outcome::kOne : Outcome::kZero);
      const bool early = batch.offset[i] * 2 < sample_.lines;
      (early ? trial.first : trial.second) += 1;
      (early ? trial.first_positives : trial.second_positives) += is_one ? 1 : 0;
    }
    trial.good += batch.size();
    run_.Clear();
    places_.clear();
  }

  const Sample& sample_;
  const event::Codec& codec_;
  const event::FeatureTransform& transform_;
  event::RawRecords run_;
  std::vector<std::pair<std::string, uint64_t>> places_;  // of the run's records
  uint64_t taken_ = 0;
};

}  // namespace

Result<Trial> TryOut(const Sample& sample, const config::Config& config,
                     std::vector<Outcome>* outcomes) {
  config::Source source = config.source;
  // The sample shows Avro as JSON.
  if (source.format == config::FormatKind::kAvro) {
    source.format = config::FormatKind::kJson;
    source.json = source.avro;
  }
  TACIT_ASSIGN(event::FeatureSchema schema, wiring::PlanReading(&source, config.features));
  const event::FeatureTransform transform(std::move(schema));
  const auto codec = wiring::MakeCodec(source, transform);
  Tester tester(sample, *codec, transform);
  tester.outcomes = outcomes;
  TACIT_RETURN_IF_ERROR(tester.Read());
  return std::move(tester.trial);
}

}  // namespace tacit::inspect
