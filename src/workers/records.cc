// The notation is base/bytes.h's.
//
//     NAME.plan, one partition; no key
//     plan    := "TWP" format:u8 head:digest build:digest version:u64 time:i64
//                learners:u16 (key:u16 step:u64)*learners  slices:u16 slice*slices  mark:byte*32
//     slice   := worker:string ranges:u32 range*ranges
//     range   := partition:i32 begin:u64 end:u64
// `mark` is PeriodSeal::MarkOf of all before it, under the period that begins at `head`.
//
//     NAME.sums
//     key     := 'c' head:byte*8 body:byte*8 chunk:u32 | 'h' worker        the first bytes of both
//     value   := "TWS" format:u8 hello:flag worker:string head:digest build:digest [place] sealed
//     place   := body:byte*16 bytes:u64 chunk:u32                 where hello = 0
//     sealed  := nonce:byte*12 byte* tag:byte*16                  the rest of the value
// The associated data are key:string and the value before `sealed`. Sealed in it:
//     of a chunk  its bytes of the body
//     of a hello  version:u64 plan:i64 number:u64 threads:u16 events_per_second:u64 offsets:u64
//                 done:u64 leaves:flag trouble:string
//
//     body    := ranges:u32 summed*ranges sums:byte*                       the rest
//     summed  := range before:seen last:seen dead:u64*7 opted_out:u64 empty:u64
//                `dead` by event::BadPart
//     seen    := there:flag [offset:u64 time:i64 hash:u64]                 where there = 1
//     sums    := learners:u16 (key:u16 part:string)*learners               keys ascend
#include "workers/records.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"

namespace tacit::workers {
namespace {

constexpr uint8_t kFormat = 1;
constexpr std::string_view kPlanMagic = "TWP", kSumsMagic = "TWS";
constexpr size_t kKeyPart = 8;  // bytes of head and name in a Kafka key

template <size_t n>
std::span<const uint8_t> All(const std::array<uint8_t, n>& bytes) {
  return bytes;
}

// Reads fields up to the first that is wrong, and remembers its name and offset.
class Fields {
 public:
  Fields(std::string_view what, std::string_view bytes)
      : what_(what), size_(bytes.size()), reader_(bytes) {}

  template <class T>
  T Number(std::string_view field) {
    const T value = Begin(field).Get<T>();
    Holds(reader_.ok(), "the bytes end there");
    return value;
  }
  bool Flag(std::string_view field) {
    const auto flag = Number<uint8_t>(field);
    Holds(flag <= 1, "a flag is 0 or 1");
    return flag == 1;
  }
  std::string Text(std::string_view field, size_t most) {
    const std::string_view text = Begin(field).GetString();
    Holds(reader_.ok(), "the bytes end there");
    Holds(text.size() <= most, "it is too long");
    return std::string(text);
  }
  std::string Name(std::string_view field) {
    std::string name = Text(field, kNameBytesMost);
    Holds(std::ranges::all_of(name, IsOfName), "it has other letters than a name");
    return name;
  }
  template <size_t n>
  std::array<uint8_t, n> Bytes(std::string_view field) {
    std::array<uint8_t, n> bytes{};
    Begin(field).GetArray(std::span<uint8_t>(bytes));
    Holds(reader_.ok(), "the bytes end there");
    return bytes;
  }
  // Checks the field that was read last.
  void Holds(bool holds, std::string_view otherwise) {
    if (!holds && good())
      error_ = fmt::format("is no {}: {} at byte {}: {}", what_, field_, at_, otherwise);
  }
  void Magic(std::string_view magic) {
    for (const char letter : magic)
      Holds(Number<char>("magic") == letter, "it begins with other bytes");
    const auto format = Number<uint8_t>("format");
    if (format != kFormat && good()) {
      newer_ = true;
      error_ = fmt::format(
          "is a {} of format {}, this program reads {}: it needs a newer "
          "program",
          what_, format, kFormat);
    }
  }
  void End() {
    Begin("the end");
    Holds(reader_.at_end(), "there are more bytes");
  }
  size_t at() const { return size_ - reader_.remaining(); }
  bool good() const { return error_.empty(); }
  Status Outcome() const {
    if (good()) return {};
    return Fail(newer_ ? ErrorCode::kRefused : ErrorCode::kCorruption, error_);
  }

 private:
  ByteReader& Begin(std::string_view field) {
    field_ = field;
    at_ = at();
    return reader_;
  }

  const std::string_view what_;
  const size_t size_;
  ByteReader reader_;
  std::string_view field_;
  size_t at_ = 0;
  std::string error_;
  bool newer_ = false;
};

void Put(const OffsetRange& range, ByteWriter* out) {
  out->Put(range.partition).Put(range.begin).Put(range.end);
}

OffsetRange ReadRange(const OffsetRange* before, Fields* in) {
  OffsetRange range;
  range.partition = in->Number<int32_t>("partition");
  in->Holds(range.partition >= 0, "it is below 0");
  range.begin = in->Number<uint64_t>("begin");
  range.end = in->Number<uint64_t>("end");
  in->Holds(range.begin < range.end, "the range is empty");
  if (before != nullptr) in->Holds(InOrder(*before, range), "the ranges are out of order");
  return range;
}

uint32_t ReadCount(uint32_t most, Fields* in) {
  const auto count = in->Number<uint32_t>("ranges");
  in->Holds(count >= 1 && count <= most, "there are too few or too many");
  return count;
}

Ranges ReadRanges(uint32_t most, Fields* in) {
  Ranges ranges;
  const uint32_t count = ReadCount(most, in);
  for (uint32_t i = 0; i < count && in->good(); ++i)
    ranges.push_back(ReadRange(i == 0 ? nullptr : &ranges.back(), in));
  return ranges;
}

void Put(const Seen& seen, ByteWriter* out) {
  out->Put(static_cast<uint8_t>(seen.has_value()));
  if (seen) out->Put(seen->offset).Put(seen->timestamp_ms).Put(seen->hash);
}

Seen ReadSeen(std::string_view field, uint64_t end, Fields* in) {
  if (!in->Flag(field)) return std::nullopt;
  stream::LastRecord seen;
  seen.offset = in->Number<uint64_t>(field);
  in->Holds(seen.offset < end, "the record does not lie before the end");
  seen.timestamp_ms = in->Number<int64_t>(field);
  seen.hash = in->Number<uint64_t>(field);
  return seen;
}

SummedRange ReadSummed(const SummedRange* before, Fields* in) {
  SummedRange summed{.range = ReadRange(before == nullptr ? nullptr : &before->range, in)};
  summed.before = ReadSeen("before", summed.range.begin, in);
  summed.last = ReadSeen("last", summed.range.end, in);
  const bool moved = summed.last && summed.last->offset >= summed.range.begin;
  in->Holds(moved || summed.last == summed.before, "it is not the record before the range");
  uint64_t left = summed.range.size();
  const auto part = [&](std::string_view field) {
    const auto count = in->Number<uint64_t>(field);
    in->Holds(count <= left, "it counts more offsets than the range has");
    left -= std::min(left, count);
    return count;
  };
  for (uint64_t& dead : summed.dead) dead = part("dead");
  summed.opted_out = part("opted_out");
  summed.empty = part("empty");
  in->Holds((summed.empty < summed.range.size()) == moved, "it does not go with the last record");
  return summed;
}

std::string KeyOf(const Origin& origin, const std::optional<ChunkPlace>& place) {
  if (!place) return "h" + origin.worker;
  return std::move(ByteWriter()
                       .Put('c')
                       .PutArray(All(origin.head).first(kKeyPart))
                       .PutArray(All(place->body).first(kKeyPart))
                       .Put(place->chunk))
      .Take();
}

std::string Associated(std::string_view key, std::string_view clear) {
  return std::move(ByteWriter().PutString(key)).Take().append(clear);
}

KafkaRecord Sealed(const PeriodSeal& seal, const Origin& origin,
                   const std::optional<ChunkPlace>& place, std::string_view plain) {
  ByteWriter clear;
  for (const char letter : kSumsMagic) clear.Put(letter);
  clear.Put(kFormat).Put(static_cast<uint8_t>(!place)).PutString(origin.worker);
  clear.PutArray(All(origin.head)).PutArray(All(origin.build));
  if (place) clear.PutArray(All(place->body)).Put(place->bytes).Put(place->chunk);
  KafkaRecord record{KeyOf(origin, place), clear.bytes()};
  record.value += seal.Seal(plain, Associated(record.key, clear.bytes()));
  return record;
}

// The number of bytes of a body that this chunk has.
uint64_t BytesOf(const ChunkPlace& place) {
  return std::min(kChunkBytes, place.bytes - place.chunk * kChunkBytes);
}

}  // namespace

bool IsOfName(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '.' || letter == '_' || letter == '-';
}

std::string EncodePlan(const SharedKey& key, const Plan& plan) {
  ByteWriter out;
  for (const char letter : kPlanMagic) out.Put(letter);
  out.Put(kFormat).PutArray(All(plan.head)).PutArray(All(plan.build));
  out.Put(plan.version).Put(plan.time_ms).Put(static_cast<uint16_t>(plan.learners.size()));
  for (const LearnerStep& learner : plan.learners) out.Put(learner.key).Put(learner.step);
  out.Put(static_cast<uint16_t>(plan.slices.size()));
  for (const Slice& slice : plan.slices) {
    out.PutString(slice.worker).Put(static_cast<uint32_t>(slice.ranges.size()));
    for (const OffsetRange& range : slice.ranges) Put(range, &out);
  }
  const Digest mark = PeriodSeal(key, plan.head).MarkOf(out.bytes());
  return std::move(out.PutArray(All(mark))).Take();
}

Result<Plan> DecodePlan(const SharedKey& key, std::string_view bytes) {
  Fields in("plan of workers", bytes);
  Plan plan;
  in.Magic(kPlanMagic);
  plan.head = in.Bytes<32>("head");
  plan.build = in.Bytes<32>("build");
  plan.version = in.Number<uint64_t>("version");
  plan.time_ms = in.Number<int64_t>("time");
  plan.learners.resize(in.Number<uint16_t>("learners"));
  for (LearnerStep& learner : plan.learners) {
    learner.key = in.Number<uint16_t>("key");
    learner.step = in.Number<uint64_t>("step");
  }
  plan.slices.resize(in.Number<uint16_t>("slices"));
  uint32_t left = kRangesMost;
  for (Slice& slice : plan.slices) {
    slice.worker = in.Name("worker");
    slice.ranges = ReadRanges(left, &in);
    left -= static_cast<uint32_t>(slice.ranges.size());
  }
  const std::string_view marked = bytes.substr(0, in.at());
  const auto mark = in.Bytes<32>("mark");
  in.Holds(SameMark(mark, PeriodSeal(key, plan.head).MarkOf(marked)),
           "it was made with another workers.key_file, or the plan was changed on its way");
  in.End();
  TACIT_RETURN_IF_ERROR(in.Outcome());
  return plan;
}

std::string EncodeParts(const std::vector<LearnerPart>& parts) {
  ByteWriter out;
  out.Put(static_cast<uint16_t>(parts.size()));
  for (const LearnerPart& part : parts) out.Put(part.key).PutString(part.bytes);
  return std::move(out).Take();
}

Result<std::vector<LearnerPart>> DecodeParts(std::string_view sums) {
  Fields in("list of sums", sums);
  std::vector<LearnerPart> parts;
  const auto count = in.Number<uint16_t>("learners");
  for (uint16_t i = 0; i < count && in.good(); ++i) {
    LearnerPart part{.key = in.Number<uint16_t>("key"), .bytes = {}};
    in.Holds(i == 0 || part.key > parts.back().key, "the keys are out of order");
    part.bytes = in.Text("part", kBodyBytesMost);
    parts.push_back(std::move(part));
  }
  in.End();
  TACIT_RETURN_IF_ERROR(in.Outcome());
  return parts;
}

Ranges RangesOf(const Body& body) {
  Ranges ranges;
  for (const SummedRange& summed : body.ranges) ranges.push_back(summed.range);
  return ranges;
}

event::SummedRecords RecordsOf(const Body& body) {
  event::SummedRecords records;
  for (const SummedRange& summed : body.ranges) {
    records.records += summed.range.size() - summed.empty;
    records.opted_out += summed.opted_out;
    for (size_t part = 0; part < summed.dead.size(); ++part)
      records.dead[part] += summed.dead[part];
  }
  return records;
}

std::string EncodeBody(const Body& body) {
  ByteWriter out;
  out.Put(static_cast<uint32_t>(body.ranges.size()));
  for (const SummedRange& summed : body.ranges) {
    Put(summed.range, &out);
    Put(summed.before, &out);
    Put(summed.last, &out);
    for (const uint64_t dead : summed.dead) out.Put(dead);
    out.Put(summed.opted_out).Put(summed.empty);
  }
  return std::move(out).Take() + body.sums;
}

Result<Body> DecodeBody(std::string_view bytes) {
  Fields in("body of sums", bytes);
  Body body;
  const uint32_t count = ReadCount(kRangesMost, &in);
  for (uint32_t i = 0; i < count && in.good(); ++i)
    body.ranges.push_back(ReadSummed(i == 0 ? nullptr : &body.ranges.back(), &in));
  TACIT_RETURN_IF_ERROR(in.Outcome());
  body.sums = bytes.substr(in.at());
  return body;
}

std::vector<KafkaRecord> SealBody(const SharedKey& key, const Origin& origin,
                                  std::string_view body) {
  const PeriodSeal seal(key, origin.head);
  ChunkPlace place{.body = seal.NameOf(body), .bytes = body.size()};
  std::vector<KafkaRecord> records;
  for (; place.chunk * kChunkBytes < body.size(); ++place.chunk)
    records.push_back(
        Sealed(seal, origin, place, body.substr(place.chunk * kChunkBytes, BytesOf(place))));
  return records;
}

KafkaRecord SealHello(const SharedKey& key, const Hello& hello) {
  ByteWriter plain;
  plain.Put(hello.version).Put(hello.plan_ms).Put(hello.number);
  plain.Put(hello.threads).Put(hello.events_per_second);
  plain.Put(hello.offsets).Put(hello.done).Put(static_cast<uint8_t>(hello.leaves));
  plain.PutString(hello.trouble);
  return Sealed(PeriodSeal(key, hello.origin.head), hello.origin, std::nullopt, plain.bytes());
}

Result<SealedRecord> ReadSums(std::string_view key, std::string_view value) {
  Fields in("record of sums", value);
  SealedRecord record;
  in.Magic(kSumsMagic);
  const bool hello = in.Flag("hello");
  record.origin.worker = in.Name("worker");
  in.Holds(!record.origin.worker.empty(), "it is empty");
  record.origin.head = in.Bytes<32>("head");
  record.origin.build = in.Bytes<32>("build");
  if (!hello) {
    record.place.emplace();
    record.place->body = in.Bytes<16>("body");
    record.place->bytes = in.Number<uint64_t>("bytes");
    in.Holds(record.place->bytes <= kBodyBytesMost, "the body is too long");
    record.place->chunk = in.Number<uint32_t>("chunk");
    in.Holds(record.place->chunk * kChunkBytes < record.place->bytes,
             "the chunk lies behind the body");
  }
  in.Holds(key == KeyOf(record.origin, record.place), "the record's key is another");
  TACIT_RETURN_IF_ERROR(in.Outcome());
  record.associated = Associated(key, value.substr(0, in.at()));
  record.sealed = value.substr(in.at());
  return record;
}

Result<Hello> OpenHello(const SharedKey& key, const SealedRecord& record) {
  const PeriodSeal seal(key, record.origin.head);
  TACIT_ASSIGN(const std::string plain, seal.Open(record.sealed, record.associated));
  Fields in("hello of a worker", plain);
  Hello hello{.origin = record.origin};
  hello.version = in.Number<uint64_t>("version");
  hello.plan_ms = in.Number<int64_t>("plan");
  in.Holds(hello.plan_ms >= 0 && hello.plan_ms <= kPlanTimeMost, "it is no time of a plan");
  hello.number = in.Number<uint64_t>("number");
  hello.threads = in.Number<uint16_t>("threads");
  hello.events_per_second = in.Number<uint64_t>("events_per_second");
  hello.offsets = in.Number<uint64_t>("offsets");
  hello.done = in.Number<uint64_t>("done");
  in.Holds(hello.done <= hello.offsets, "more is done than was in hand");
  hello.leaves = in.Flag("leaves");
  hello.trouble = in.Text("trouble", kTroubleBytesMost);
  in.End();
  TACIT_RETURN_IF_ERROR(in.Outcome());
  return hello;
}

Result<std::string> OpenChunk(const PeriodSeal& seal, const SealedRecord& record) {
  TACIT_ASSIGN(std::string piece, seal.Open(record.sealed, record.associated));
  if (piece.size() != BytesOf(*record.place))
    return Fail(ErrorCode::kCorruption,
                fmt::format("is no chunk of sums: chunk {} of a body of {} bytes has {}, not {}",
                            record.place->chunk, record.place->bytes, piece.size(),
                            BytesOf(*record.place)));
  return piece;
}

}  // namespace tacit::workers
