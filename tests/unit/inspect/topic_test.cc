// Tests how a sample of a topic is chosen and read, against librdkafka's mock of a broker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "inspect/sample.h"
#include "inspect/topic_records.h"
#include "inspect/topic_report.h"
#include "stream/kafka/topic_sample.h"
#include "unit/inspect/logs.h"
#include "unit/stream/mock_kafka.h"

namespace tacit::inspect {
namespace {

using std::chrono::milliseconds;
using stream::KafkaSpread;
using stream::PartitionSpan;
using testing::HasSubstr;

constexpr milliseconds kLong(20'000);

uint64_t SizeOf(const std::vector<OffsetRange>& ranges) {
  uint64_t size = 0;
  for (const OffsetRange& range : ranges) size += range.size();
  return size;
}

// The oracle is what must hold of any choice: within what is there, in order, without overlap, and
// each partition by its share.
TEST(TopicSampleTest, EachPartitionGivesItsShare) {
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<PartitionSpan> spans;
    uint64_t all = 0;
    for (int32_t p = 0; p < static_cast<int32_t>(1 + random() % 6); ++p) {
      const uint64_t begin = random() % 1000, size = random() % 3 == 0 ? 0 : random() % 5000;
      spans.push_back({p, begin, begin + size});
      all += size;
    }
    const uint64_t most = 1 + random() % 6000;
    for (const KafkaSpread spread : {KafkaSpread::kFirst, KafkaSpread::kEvenly}) {
      const auto chosen = stream::ChooseStretches(spans, most, spread);
      EXPECT_LE(SizeOf(chosen), std::min(all, most + spans.size())) << trial;
      if (all <= most) {
        EXPECT_EQ(SizeOf(chosen), all);
      }
      for (const PartitionSpan& span : spans) {
        uint64_t size = 0, last = span.begin, first = span.end;
        for (const OffsetRange& range : chosen) {
          if (range.partition != span.partition) continue;
          EXPECT_GE(range.begin, last) << "in order, and no offset twice";
          EXPECT_LE(range.end, span.end);
          EXPECT_LT(range.begin, range.end);
          first = std::min(first, range.begin);
          last = range.end;
          size += range.size();
        }
        const double share = static_cast<double>(span.end - span.begin) /
                             static_cast<double>(std::max<uint64_t>(1, all));
        const double wanted = std::min(static_cast<double>(most), static_cast<double>(all)) * share;
        EXPECT_NEAR(static_cast<double>(size), wanted, 1.001) << trial;
        if (size > 0) {
          EXPECT_EQ(first, span.begin);
        }
        // Evenly, the last stretch begins in the last part of what is there.
        if (spread == KafkaSpread::kEvenly && size >= 40) {
          EXPECT_GE(last, span.begin + (span.end - span.begin) / 10 * 9) << trial;
        }
      }
    }
  }
}

class TopicReadTest : public testing::Test {
 protected:
  TopicAsked Asked(const std::string& topic) const {
    TopicAsked asked{.topic = topic, .wait = kLong};
    asked.kafka.properties.push_back(
        {.name = "bootstrap.servers", .value = {.text = kafka_.bootstrap(), .place = ""}});
    return asked;
  }
  static std::shared_ptr<const Records> Read(const TopicAsked& asked) {
    auto found = FindTopic(asked);
    EXPECT_TRUE(found) << found.error().message;
    if (!found) return nullptr;
    auto records = ReadTopic(asked, *std::move(found));
    EXPECT_TRUE(records) << records.error().message;
    return records ? *records : nullptr;
  }
  struct Seen {
    std::string place, text, fault;
  };
  static std::vector<Seen> Walked(const Records& records) {
    std::vector<Seen> seen;
    EXPECT_TRUE(records.ForEach(0, [&](const Record& record) {
      seen.push_back({fmt::format("{}:{}", record.origin, record.number), std::string(record.text),
                      std::string(record.fault)});
      return true;
    }));
    return seen;
  }

  stream::MockKafka kafka_;
};

TEST_F(TopicReadTest, RecordsComeInTheOrderOfTheirTimesAndOfOffsets) {
  kafka_.Create("t", 2);
  for (int i = 0; i < 20; ++i)
    kafka_.WriteKeyed("t", i % 2, "k", std::to_string(i), 1'700'000'000'000 + i);
  // An older time behind a newer one does not overtake its own partition.
  kafka_.WriteKeyed("t", 0, "k", "late", 1'600'000'000'000);
  kafka_.Flush();
  const auto records = Read(Asked("t"));
  ASSERT_NE(records, nullptr);
  const auto seen = Walked(*records);
  ASSERT_EQ(seen.size(), 21u);
  for (size_t i = 0; i < 19; ++i) {
    EXPECT_EQ(seen[i].text, std::to_string(i));
    EXPECT_EQ(seen[i].place, fmt::format("t[{}]:{}", i % 2, i / 2));
  }
  EXPECT_EQ(seen[19].text, "late") << "behind record 18 of its partition, and before 19's time";
  EXPECT_EQ(Walked(*records).size(), 21u) << "each walk shows the same";
  EXPECT_EQ(records->topic()->raw.keyless, 0u);
}

TEST_F(TopicReadTest, AFirstPartAndStretchesAreReadAsChosen) {
  kafka_.Create("t", 1);
  kafka_.WriteNumbers("t", 0, 0, 1000);
  TopicAsked asked = Asked("t");
  asked.rows_most = 100;
  const auto first = Walked(*Read(asked));
  ASSERT_EQ(first.size(), 100u);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(first[i].text, std::to_string(i));
  asked.spread = KafkaSpread::kEvenly;
  const auto records = Read(asked);
  const auto evenly = Walked(*records);
  ASSERT_EQ(evenly.size(), 100u);
  for (size_t i = 0; i < 100; ++i)
    EXPECT_EQ(evenly[i].text, std::to_string(50 * (i / 5) + i % 5)) << "20 stretches of 5";
  EXPECT_EQ(records->places_beyond(), 900u);
  double share = 0;
  EXPECT_TRUE(records->ForEach(
      0, [](const Record&) { return true; }, &share));
  EXPECT_DOUBLE_EQ(share, 0.1);
}

TEST_F(TopicReadTest, TombstonesAndLongRecordsAreToldByTheirOffsets) {
  kafka_.Create("t", 1);
  kafka_.Write("t", 0, "{\"a\":1}");
  kafka_.Write("t", 0, std::nullopt);
  kafka_.Write("t", 0, std::string(2000, 'x'));
  kafka_.Flush();
  const TopicAsked asked = Asked("t");
  auto found = FindTopic(asked);
  ASSERT_TRUE(found) << found.error().message;
  found->record_bytes_most = 1999;
  const auto records = ReadTopic(asked, *std::move(found));
  ASSERT_TRUE(records) << records.error().message;
  const auto seen = Walked(**records);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[1].fault, "null value");
  EXPECT_EQ(seen[2].place, "t[0]:2");
  EXPECT_THAT(seen[2].fault, HasSubstr("2000 bytes are more than the 1999"));
  EXPECT_EQ((*records)->topic()->raw.tombstones, 1u);
  // The trial holds this many long records.
  EXPECT_EQ(TopicRecordBytesMost(1), kRecordBytesMost);
  EXPECT_LE(TopicRecordBytesMost(1'000'000) * 1'000'000, uint64_t{4} << 30);
}

TEST_F(TopicReadTest, KeysAreComparedWithFields) {
  kafka_.Create("t", 1);
  for (int i = 0; i < 50; ++i)
    kafka_.WriteKeyed("t", 0, fmt::format("\"u{}\"", i % 7),
                      fmt::format(R"({{"x":"u{}","y":"i{}","n":{}}})", i % 7, i % 5, i));
  kafka_.Flush();
  auto sample = ReadSample(Read(Asked("t")), {});
  ASSERT_TRUE(sample) << sample.error().message;
  EXPECT_EQ(FieldOfKeys(*sample), "/x") << "a key in JSON's quotes is the same text";
  sample->key_of_row[3] ^= 1;
  sample->key_of_row[4] ^= 1;
  EXPECT_EQ(FieldOfKeys(*sample), "");
}

class FoundAlone final : public Records {
 public:
  explicit FoundAlone(TopicFound found) : found_(std::move(found)) {}
  const std::vector<std::string>& origins() const override { return names_; }
  const std::vector<std::string>& parts() const override { return names_; }
  bool may_have_headers() const override { return false; }
  Status ForEach(size_t, const Use&, double*) const override { return {}; }
  const TopicFound* topic() const override { return &found_; }

 private:
  const TopicFound found_;
  const std::vector<std::string> names_ = {"t[0]"};
};

Sample SampleOf(const TopicFound& found) {
  Sample sample;
  sample.records = std::make_shared<FoundAlone>(found);
  return sample;
}

// Secrets stay where they are: one by reference is named again, one in the open is not copied.
TEST(TopicYamlTest, SecretsAreNotCopied) {
  using config::Secret;
  TopicFound found;
  found.topic = "t";
  found.kafka.properties = {{.name = "bootstrap.servers", .value = {.text = "h:1", .place = ""}},
                            {.name = "group.id", .value = {.text = "trainer", .place = ""}},
                            {.name = "errors.tolerance", .value = {.text = "all", .place = ""}},
                            {.name = "ssl.key.password", .value = {Secret::Kind::kFile, "/k", ""}},
                            {.name = "sasl.password", .value = {.text = "geheim", .place = ""}}};
  const std::string yaml = KafkaYaml(found);
  EXPECT_THAT(yaml, HasSubstr("  bootstrap.servers: \"h:1\"\n"));
  EXPECT_THAT(yaml, HasSubstr("  ssl.key.password: {file: \"/k\"}\n"));
  EXPECT_THAT(yaml, HasSubstr("  sasl.password:  # to be filled in"));
  EXPECT_THAT(yaml, HasSubstr("  group.id: \"tacit-t\"\n"));
  for (const char* absent : {"geheim", "trainer", "errors."})
    EXPECT_THAT(yaml, testing::Not(HasSubstr(absent)));
  const auto open = TopicOpenKeys(SampleOf(found));
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].first, "kafka.sasl.password");
}

// Two topics that differ in one framed record: a private look says the same of both.
TEST(TopicYamlTest, APrivateLookSaysOfSchemasWhatFramingSays) {
  const auto said = [](bool framed, bool has_schema, const std::string& noised) {
    TopicFound found;
    found.topic = "t";
    found.framed = framed;
    if (has_schema) found.raw.schemas["id 7"] = {1, "t[0]:0"};
    Sample sample = SampleOf(found);
    sample.noised = noised;
    std::string all = TopicSourceYaml(sample);
    for (const auto& [key, value] : TopicOpenKeys(sample)) all += key + '=' + value + '\n';
    return all;
  };
  EXPECT_EQ(said(true, true, "paid"), said(true, false, "paid"));
  EXPECT_THAT(said(true, false, "paid"), HasSubstr("source.registry.url=http"));
  EXPECT_EQ(said(false, true, "paid"), said(false, false, "paid"));
  EXPECT_NE(said(true, true, ""), said(true, false, "")) << "a raw look tells them";
}

}  // namespace
}  // namespace tacit::inspect
