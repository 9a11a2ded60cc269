// Fuzzes what the topics between a trainer and its workers hold. Plans are marked, and plain texts
// sealed, with the right key, so that what lies behind is reached: a worker with a fault does that
// too.
#include "fuzz.h"
#include "workers/collector.h"
#include "workers/records.h"

namespace tacit::workers {
namespace {

constexpr SharedKey kKey{1};

void ReadPlan(std::string_view bytes) {
  fuzz::DemandGoodError(DecodePlan(kKey, bytes));
  constexpr size_t kHeadAt = 4;
  Digest head{};
  if (bytes.size() >= kHeadAt + head.size())
    std::copy_n(bytes.begin() + kHeadAt, head.size(), head.begin());
  const Digest mark = PeriodSeal(kKey, head).MarkOf(bytes);
  const std::string marked = std::string(bytes).append(mark.begin(), mark.end());
  const auto plan = DecodePlan(kKey, marked);
  fuzz::DemandGoodError(plan);
  if (plan) fuzz::Demand(EncodePlan(kKey, *plan) == marked, "a plan has one form");
}

void ReadBody(std::string_view bytes) {
  const auto body = DecodeBody(bytes);
  fuzz::DemandGoodError(body);
  if (!body) return;
  fuzz::Demand(EncodeBody(*body) == bytes, "a body has one form");
  const auto parts = DecodeParts(body->sums);
  fuzz::DemandGoodError(parts);
  if (parts) fuzz::Demand(EncodeParts(*parts) == body->sums, "parts have one form");
}

void ReadRecord(std::string_view bytes) {
  const size_t key_bytes = std::min<size_t>(fuzz::TakeChoice(&bytes), bytes.size());
  const auto record = ReadSums(bytes.substr(0, key_bytes), bytes.substr(key_bytes));
  fuzz::DemandGoodError(record);
  if (!record) return;
  if (!record->place)
    fuzz::DemandGoodError(OpenHello(kKey, *record));
  else
    fuzz::DemandGoodError(OpenChunk(PeriodSeal(kKey, record->origin.head), *record));
}

void ReadHello(std::string_view plain) {
  const KafkaRecord form = SealHello(kKey, {.origin = {"w", {}, {}}});
  SealedRecord record = ReadSums(form.key, form.value).value();
  const std::string sealed = PeriodSeal(kKey, {}).Seal(plain, record.associated);
  record.sealed = sealed;
  const auto hello = OpenHello(kKey, record);
  fuzz::DemandGoodError(hello);
  if (!hello) return;
  const KafkaRecord again = SealHello(kKey, *hello);
  fuzz::Demand(again.value.size() - form.value.size() == hello->trouble.size() &&
                   OpenHello(kKey, ReadSums(again.key, again.value).value()) == *hello,
               "a hello comes through");
}

// Bodies of a small period, each behind its length.
void Collect(std::string_view bytes) {
  const Period period{.head = {}, .build = {}, .ranges = {{0, 0, 20}, {1, 5, 9}}, .before = {}};
  Collector collector(kKey, 1 << 20);
  collector.Begin(period);
  uint64_t covered = 0;
  while (!bytes.empty()) {
    const size_t size = std::min<size_t>(fuzz::TakeChoice(&bytes), bytes.size());
    for (const KafkaRecord& sent : SealBody(kKey, {"w", {}, {}}, bytes.substr(0, size))) {
      const Taken taken = collector.Take(ReadSums(sent.key, sent.value).value());
      if (taken.outcome != Outcome::kCounted) continue;
      covered += CountOffsets(RangesOf(taken.body));
    }
    bytes.remove_prefix(size);
  }
  fuzz::Demand(CountOffsets(collector.Gaps()) + covered == CountOffsets(period.ranges),
               "each offset is covered once, or a gap");
  fuzz::Demand(collector.complete() == collector.Gaps().empty(), "a period without gaps is whole");
}

}  // namespace
}  // namespace tacit::workers

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tacit;
  std::string_view bytes = fuzz::TextOf(data, size);
  switch (fuzz::TakeChoice(&bytes) % 5) {
    case 0:
      workers::ReadPlan(bytes);
      break;
    case 1:
      workers::ReadBody(bytes);
      break;
    case 2:
      workers::ReadRecord(bytes);
      break;
    case 3:
      workers::ReadHello(bytes);
      break;
    default:
      workers::Collect(bytes);
  }
  return 0;
}
