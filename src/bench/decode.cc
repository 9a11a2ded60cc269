// Measures decoding records into columnar batches: each codec on the same events, on one core.
#include <fmt/format.h>

#include <limits>
#include <string_view>

#include "base/check.h"
#include "bench/bench_data.h"
#include "bench/read_whole.h"
#include "bench/suite.h"
#include "event/avro/codec.h"
#include "event/envelope.h"
#include "event/schema_books.h"
#include "stream/generator/criteo_generator.h"

namespace tacit::bench {
namespace {

constexpr auto kDecodeFor = std::chrono::milliseconds(1000);
// Keeps calls so short that a busy neighbour seldom interrupts one.
constexpr size_t kRecords = 512;
constexpr size_t kDense = 13;

// Rates of a bare parse of such an event, without its 26 bucket hashes and without columns to write
// to, measured on a machine with two Xeon cores like CI's.
constexpr double kTsvLimit = 10.9e6, kJsonLimit = 4.5e6, kPackedLimit = 13e6;

std::vector<std::string_view> Fields(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t tab; (tab = line.find('\t')) != line.npos; line.remove_prefix(tab + 1))
    fields.push_back(line.substr(0, tab));
  fields.push_back(line);
  return fields;
}

std::string JsonOf(const std::vector<std::string_view>& fields) {
  std::string features;
  for (size_t i = 1; i < fields.size(); ++i) {
    if (fields[i].empty()) continue;
    if (!features.empty()) features += ',';
    features += i <= kDense ? fmt::format(R"("I{}":{})", i, fields[i])
                            : fmt::format(R"("C{}":"{}")", i - kDense, fields[i]);
  }
  return fmt::format(R"({{"label":{},"features":{{{}}}}})", fields[0], features);
}

// Writes Protobuf's wire format, as far as schemas/interaction.proto needs it here.
class Wire {
 public:
  void Tag(uint32_t field, uint32_t type) { Varint(field << 3 | type); }
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void Bytes(uint32_t field, std::string_view bytes) {
    Tag(field, 2);
    Varint(bytes.size());
    bytes_ += bytes;
  }
  void Fixed(const void* value, size_t size) {
    bytes_.append(static_cast<const char*>(value), size);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

std::string PackedOf(const std::vector<std::string_view>& fields,
                     const event::FeatureTransform& transform) {
  Wire message, dense, buckets;
  message.Tag(5, 0);
  message.Varint(fields[0] == "1" ? 2 : 1);
  for (size_t i = 1; i <= kDense; ++i) {
    const float value = fields[i].empty() ? std::numeric_limits<float>::quiet_NaN()
                                          : std::stof(std::string(fields[i]));
    dense.Fixed(&value, sizeof(value));
  }
  for (size_t i = 0; i + kDense + 1 < fields.size(); ++i) {
    const uint64_t row = transform.Row(i, fields[kDense + 1 + i]);
    const auto bucket = static_cast<uint32_t>(row - transform.row_space().tables()[i].first);
    buckets.Fixed(&bucket, sizeof(bucket));
  }
  message.Bytes(7, dense.bytes());
  message.Bytes(8, buckets.bytes());
  return message.bytes();
}

std::string NamedOf(const std::vector<std::string_view>& fields) {
  Wire message;
  message.Tag(5, 0);
  message.Varint(fields[0] == "1" ? 2 : 1);
  for (size_t i = 1; i < fields.size(); ++i) {
    if (fields[i].empty()) continue;
    Wire feature;
    const bool dense = i <= kDense;
    feature.Bytes(1, fmt::format("{}{}", dense ? 'I' : 'C', dense ? i : i - kDense));
    if (dense) {
      const double value = std::stod(std::string(fields[i]));
      feature.Tag(2, 1);
      feature.Fixed(&value, sizeof(value));
    } else {
      feature.Bytes(3, fields[i]);
    }
    message.Bytes(6, feature.bytes());
  }
  return message.bytes();
}

// The event as an Avro record: a field for each column, which may be null.
std::string AvroSchemaOf(size_t fields) {
  std::string schema = R"({"type":"record","name":"Click","fields":[{"name":"label","type":"int"})";
  for (size_t i = 1; i < fields; ++i)
    schema += fmt::format(R"(,{{"name":"{}{}","type":["null","{}"]}})", i <= kDense ? 'I' : 'C',
                          i <= kDense ? i : i - kDense, i <= kDense ? "int" : "string");
  return schema + "]}";
}
std::string AvroOf(const std::vector<std::string_view>& fields) {
  std::string record;
  event::PutAvroLong(fields[0] == "1" ? 1 : 0, &record);
  for (size_t i = 1; i < fields.size(); ++i) {
    event::PutAvroLong(fields[i].empty() ? 0 : 1, &record);
    if (fields[i].empty()) continue;
    if (i <= kDense) {
      event::PutAvroLong(std::stol(std::string(fields[i])), &record);
    } else {
      event::PutAvroLong(static_cast<int64_t>(fields[i].size()), &record);
      record += fields[i];
    }
  }
  return record;
}

Result<std::unique_ptr<event::Codec>> MakeFlatAvroCodec(const event::FeatureTransform& transform) {
  event::AvroShape shape;
  shape.user = shape.item = shape.event_id = shape.timestamp = shape.features_at = "";
  const event::FeatureSchema& schema = transform.schema();
  TACIT_ASSIGN(auto schemas, event::AvroSchemas::Make(
                                 AvroSchemaOf(1 + schema.dense.size() + schema.categorical.size()),
                                 event::AvroPlacesOf(shape, schema)));
  return event::MakeAvroCodec(transform, shape, std::move(schemas), /*framed=*/false, {});
}

void Append(std::string_view payload, event::RawRecords* records) {
  records->bytes += payload;
  records->end.push_back(static_cast<uint32_t>(records->bytes.size()));
}

double DecodeRate(const event::Codec& codec, const event::FeatureTransform& transform,
                  const event::RawRecords& records) {
  event::Batch batch;
  std::vector<event::DeadLetter> dead;
  const double seconds = MedianSeconds(
      [&] {
        transform.StartBatch(&batch);
        codec.Decode(records, &batch, &dead);
      },
      kDecodeFor);
  TACIT_CHECK(dead.empty() && batch.size() == kRecords, "the benchmark makes bad records");
  return kRecords / seconds;
}

// Opens messages with Confluent's frame around the packed record, as a Kafka source does.
double OpenRate(const event::RawRecords& records) {
  std::vector<std::string> framed;
  for (size_t i = 0; i < records.size(); ++i)
    framed.push_back(std::string("\0\0\0\0\7\0", 6).append(records[i]));
  event::Envelope envelope({.framed = true, .kind = event::PayloadKind::kProtobuf},
                           event::MakePinnedSchemas({{event::SchemaKey(7), true}}, nullptr));
  size_t bytes = 0;
  std::string reason;
  const double seconds = MedianSeconds(
      [&] {
        for (const std::string& value : framed) {
          std::string_view payload;
          envelope.Open({.value = value, .headers = {}}, &payload, &reason);
          bytes += payload.size();
        }
      },
      kDecodeFor);
  TACIT_CHECK(bytes % records.bytes.size() == 0, "the benchmark makes bad frames");
  return kRecords / seconds;
}

// The same records again and again, from memory.
class RepeatedRecords final : public stream::Source {
 public:
  RepeatedRecords(const event::RawRecords& records, uint64_t times)
      : records_(records), times_(times) {}

  std::string topic() const override { return "memory"; }
  std::vector<int32_t> partitions() const override { return {0}; }
  Result<stream::PollOutcome> Poll(std::chrono::milliseconds, event::RawRecords* out) override {
    out->Clear();
    if (paused_) return stream::PollOutcome::kNothing;
    if (read_ == times_) return stream::PollOutcome::kEnd;
    *out = records_;
    out->first_offset = read_++ * records_.size();
    return stream::PollOutcome::kRecords;
  }
  Status Seek(std::span<const stream::PartitionOffset>) override { return {}; }
  void Pause(std::span<const int32_t>) override { paused_ = true; }
  void Resume(std::span<const int32_t>) override { paused_ = false; }
  void Advise(std::span<const stream::PartitionOffset>, const stream::StoreClaim&) override {}
  uint64_t RecordsAfter(std::span<const stream::PartitionOffset>) const override { return 0; }
  std::string Identity() const override { return ""; }
  Status VerifyIdentity(const std::string&) override { return {}; }

 private:
  const event::RawRecords& records_;
  const uint64_t times_;
  uint64_t read_ = 0;
  bool paused_ = false;
};

// The rate of the daemon's decode threads, with one and with two; they take turns.
Result<std::vector<BenchRow>> DecodeByThreads(const event::Codec& codec,
                                              const event::FeatureTransform& transform,
                                              const event::RawRecords& records) {
  constexpr int kRounds = 7;
  constexpr uint64_t kTimes = 1500;
  std::vector<double> rates[2], shares;
  for (int round = 0; round < kRounds; ++round) {
    for (const uint32_t threads : {1u, 2u}) {
      RepeatedRecords source(records, kTimes);
      TACIT_ASSIGN(const IntakeReading read, ReadWhole({.learners = {}, .decode_threads = threads},
                                                       source, codec, transform));
      rates[threads - 1].push_back(static_cast<double>(read.records) / read.seconds);
    }
    shares.push_back(rates[1].back() / rates[0].back());
  }
  return std::vector<BenchRow>{{"decode-json-1-thread", Median(rates[0]), "events/s", std::nullopt},
                               {"decode-json-2-threads",
                                Median(rates[1]),
                                "events/s",
                                std::nullopt,
                                {{"times_one_thread", Median(shares)}},
                                fmt::format("{:.2f} times one thread", Median(shares))}};
}

}  // namespace

Result<std::vector<BenchRow>> BenchDecode() {
  TACIT_ASSIGN(const BenchSetup setup, MakeBenchSetup({}));
  const event::FeatureTransform& transform = *setup.assembly.transform;
  const stream::CriteoGenerator generator({.days = 1, .rows_per_day = kRecords, .seed = 1});
  std::string lines;
  const double generate = MedianSeconds(
      [&] {
        lines.clear();
        generator.Generate(0, 0, kRecords, &lines, nullptr);
      },
      kDecodeFor);
  event::RawRecords tsv, json, packed, named, avro;
  for (size_t begin = 0, end; begin < lines.size(); begin = end + 1) {
    end = lines.find('\n', begin);
    const std::string_view line = std::string_view(lines).substr(begin, end - begin);
    const std::vector<std::string_view> fields = Fields(line);
    Append(line, &tsv);
    Append(JsonOf(fields), &json);
    Append(PackedOf(fields, transform), &packed);
    Append(NamedOf(fields), &named);
    Append(AvroOf(fields), &avro);
  }
  const double hashes = MedianSeconds(
      [&] {
        uint64_t sum = 0;
        for (size_t i = 0; i < kRecords; ++i)
          for (size_t slot = 0; slot < 26; ++slot) sum += transform.Row(slot, "68fd1e64");
        TACIT_CHECK(sum > 0);
      },
      kDecodeFor);
  const auto protobuf = event::MakeProtobufCodec(transform, {});
  const std::string unit = "events/s/core";
  TACIT_ASSIGN(const auto avro_codec, MakeFlatAvroCodec(transform));
  const auto json_codec = event::MakeJsonCodec(transform, {});
  TACIT_ASSIGN(const std::vector<BenchRow> by_threads,
               DecodeByThreads(*json_codec, transform, json));
  std::vector<BenchRow> rows{
      {"decode-criteo-tsv",
       DecodeRate(*event::MakeCriteoTsvCodec(transform), transform, tsv),
       unit,
       kTsvLimit,
       {},
       "of a bare parse"},
      {"decode-json",
       DecodeRate(*json_codec, transform, json),
       unit,
       kJsonLimit,
       {},
       "of a bare parse"},
      {"decode-protobuf-packed",
       DecodeRate(*protobuf, transform, packed),
       unit,
       kPackedLimit,
       {},
       "of a bare parse"},
      {"decode-protobuf-named", DecodeRate(*protobuf, transform, named), unit, std::nullopt},
      {"decode-avro", DecodeRate(*avro_codec, transform, avro), unit, std::nullopt},
      {"hash-26-buckets", kRecords / hashes, unit, std::nullopt, {}, "part of all but packed"},
      {"open-confluent-frames", OpenRate(packed), "messages/s/core", std::nullopt},
      {"generate-criteo", kRecords / generate, unit, std::nullopt}};
  rows.insert(rows.end(), by_threads.begin(), by_threads.end());
  return rows;
}

}  // namespace tacit::bench
