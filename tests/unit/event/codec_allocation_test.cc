// In a program that counts what operator new is asked for.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "counted_new.h"
#include "event/codec.h"

namespace tacit::event {
namespace {

const FeatureTransform& Transform() {
  static const FeatureTransform transform(
      FeatureSchema{.dense = {{"n", DenseTransform::kIdentity}},
                    .categorical = {{.name = "c", .buckets = 100, .dim = 2}}});
  return transform;
}

RawRecords Records(const std::vector<std::string>& payloads, size_t size) {
  RawRecords records;
  for (size_t i = 0; i < size; ++i) {
    records.bytes += payloads[i % payloads.size()];
    records.end.push_back(static_cast<uint32_t>(records.bytes.size()));
  }
  return records;
}

// A run's working memory is that of any run; the batch has grown before.
size_t AllocationsOf(const Codec& codec, const RawRecords& records) {
  Batch batch;
  Transform().StartBatch(&batch);
  std::vector<DeadLetter> dead;
  codec.Decode(records, &batch, &dead);
  batch.Clear();
  const size_t before = test::Allocations();
  codec.Decode(records, &batch, &dead);
  const size_t made = test::Allocations() - before;
  EXPECT_EQ(batch.item.size(), records.size());
  EXPECT_TRUE(dead.empty());
  return made;
}

TEST(CodecAllocation, NoneForARecordAndItsItem) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += fmt::format("an-item-whose-id-is-rather-long-{:04}\n", i);
  auto parsed = ItemCatalogue::Parse(text, "items");
  ASSERT_TRUE(parsed.has_value());
  const InteractionOptions options{.items =
                                       std::make_shared<const ItemCatalogue>(std::move(*parsed))};
  // The last is of no catalogue. Protobuf: user (2), item (3), outcome (5).
  std::vector<std::string> json, protobuf;
  for (const char* item :
       {"an-item-whose-id-is-rather-long-0007", "an-item-whose-id-is-rather-long-0999",
        "no-item-of-the-catalogue-here"}) {
    json.push_back(fmt::format(
        R"({{"user":"somebody-with-a-long-name","item":"{}","label":1,"features":{{"n":1,"c":"x"}}}})",
        item));
    const std::string id(item);
    protobuf.push_back("\x12\x04user\x1a" + std::string(1, static_cast<char>(id.size())) + id +
                       "\x28\x02");
  }
  const auto json_codec = MakeJsonCodec(Transform(), options);
  EXPECT_EQ(AllocationsOf(*json_codec, Records(json, 3000)),
            AllocationsOf(*json_codec, Records(json, 30)));
  const auto protobuf_codec = MakeProtobufCodec(Transform(), options);
  EXPECT_EQ(AllocationsOf(*protobuf_codec, Records(protobuf, 3000)),
            AllocationsOf(*protobuf_codec, Records(protobuf, 30)));
}

}  // namespace
}  // namespace tacit::event
