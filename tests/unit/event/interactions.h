#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "event/codec.h"

namespace tacit::event {

// A small schema with every kind of feature, and what came of records decoded by it.
class InteractionTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kFirstOffset = 700;

  struct Decoded {
    Batch batch;
    std::vector<DeadLetter> dead;
  };
  // An example in its own words.
  struct Told {
    std::string event_id = {}, user = {};
    int64_t timestamp_ms = 0;
    float label = 0;
    double n1 = 0, n2 = 0;
    std::string c1 = {};
    std::vector<std::string_view> set = {};
  };

  virtual std::unique_ptr<Codec> MakeCodec(const InteractionOptions& options) const = 0;

  static FeatureSchema Schema() {
    return {.dense = {{"n1", DenseTransform::kSignedLog1p}, {"n2", DenseTransform::kIdentity}},
            .categorical = {
                {.name = "c1", .buckets = 1000, .dim = 2},
                {.name = "set", .buckets = 500, .dim = 2, .multi_hot = true, .max_values = 3}}};
  }

  static RawRecords Records(const std::vector<std::string>& payloads) {
    RawRecords records;
    records.partition = 3;
    records.first_offset = kFirstOffset;
    records.origin = "clicks";
    for (const std::string& payload : payloads) {
      records.bytes += payload;
      records.end.push_back(static_cast<uint32_t>(records.bytes.size()));
    }
    return records;
  }

  Decoded Decode(const RawRecords& records, const InteractionOptions& options = {}) const {
    Decoded decoded;
    transform_.StartBatch(&decoded.batch);
    MakeCodec(options)->Decode(records, &decoded.batch, &decoded.dead);
    const Batch& batch = decoded.batch;
    EXPECT_EQ(batch.size() + decoded.dead.size(), records.size());
    EXPECT_EQ(batch.offset.size(), batch.size());
    EXPECT_EQ(batch.timestamp_ms.size(), batch.size());
    EXPECT_EQ(batch.user.size(), batch.size());
    EXPECT_EQ(batch.event_id.size(), batch.size());
    EXPECT_EQ(batch.item.size(), options.items ? batch.size() : 0);
    EXPECT_EQ(batch.dense.size(), 2 * batch.size());
    EXPECT_EQ(batch.slot_end.size(), 2 * batch.size());
    EXPECT_EQ(batch.row.size(), batch.size() == 0 ? 0 : batch.slot_end.back());
    return decoded;
  }
  Decoded Decode(const std::vector<std::string>& payloads,
                 const InteractionOptions& options = {}) const {
    return Decode(Records(payloads), options);
  }

  static std::shared_ptr<const ItemCatalogue> Items(const std::string& text) {
    auto items = ItemCatalogue::Parse(text, "items.dat");
    EXPECT_TRUE(items.has_value());
    return std::make_shared<const ItemCatalogue>(std::move(*items));
  }

  void ExpectExample(const Batch& batch, size_t i, const Told& told) const {
    EXPECT_EQ(batch.event_id[i], told.event_id);
    EXPECT_EQ(batch.user[i], told.user);
    EXPECT_EQ(batch.timestamp_ms[i], told.timestamp_ms);
    EXPECT_EQ(batch.label[i], told.label);
    EXPECT_EQ(batch.dense[2 * i], transform_.Dense(0, told.n1));
    EXPECT_EQ(batch.dense[2 * i + 1], transform_.Dense(1, told.n2));
    EXPECT_EQ(Rows(batch, i, 0), (std::vector<uint64_t>{transform_.Row(0, told.c1)}));
    std::vector<uint64_t> set;
    transform_.AppendRows(1, told.set, &set);
    EXPECT_EQ(Rows(batch, i, 1), set);
  }

  // The same except for where they stood.
  static void ExpectSameExample(const Batch& batch, size_t a, size_t b) {
    EXPECT_EQ(batch.event_id[a], batch.event_id[b]);
    EXPECT_EQ(batch.user[a], batch.user[b]);
    EXPECT_EQ(batch.timestamp_ms[a], batch.timestamp_ms[b]);
    EXPECT_EQ(batch.label[a], batch.label[b]);
    for (size_t feature = 0; feature < 2; ++feature) {
      EXPECT_EQ(batch.dense[2 * a + feature], batch.dense[2 * b + feature]);
      EXPECT_EQ(Rows(batch, a, feature), Rows(batch, b, feature));
    }
  }

  const FeatureTransform transform_{Schema()};

 private:
  static std::vector<uint64_t> Rows(const Batch& batch, size_t i, size_t slot) {
    const auto rows = batch.Slot(i, slot);
    return {rows.begin(), rows.end()};
  }
};

}  // namespace tacit::event
