#include "event/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/criteo_schema.h"

namespace tacit::event {
namespace {

using ::testing::HasSubstr;

FeatureSchema Small() {
  const uint64_t buckets[] = {10, 20};
  return CriteoSchema(2, buckets);
}

std::string SchemaRefusal(const FeatureSchema& schema) {
  const Status status = schema.Validate();
  return status ? "accepted" : status.error().message;
}

TEST(SchemaTest, AcceptsCriteoLikeColumns) { EXPECT_TRUE(Small().Validate()); }

TEST(SchemaTest, RowSpaceHasOneTablePerCategoryInOrder) {
  const RowSpace space = Small().MakeRowSpace();
  ASSERT_EQ(space.tables().size(), 2u);
  EXPECT_EQ(space.tables()[0].name, "C1");
  EXPECT_EQ(space.tables()[1].first, 10u);
  EXPECT_EQ(space.rows(), 30u);
}

TEST(SchemaTest, RefusalsNameTheFeature) {
  EXPECT_THAT(SchemaRefusal({}), HasSubstr("no features"));
  FeatureSchema schema = Small();
  schema.categorical[1].name = "I2";
  EXPECT_THAT(SchemaRefusal(schema), HasSubstr("'I2' is there twice"));
  schema = Small();
  schema.dense[1].name.clear();
  EXPECT_THAT(SchemaRefusal(schema), HasSubstr("dense feature 2 has no name"));
  schema = Small();
  schema.categorical[0].buckets = 1;
  EXPECT_THAT(SchemaRefusal(schema), HasSubstr("'C1': buckets is 1"));
  schema = Small();
  schema.categorical[0].dim = 0;
  EXPECT_THAT(SchemaRefusal(schema), HasSubstr("'C1': dim is 0"));
  schema = Small();
  schema.categorical[1].multi_hot = true;
  schema.categorical[1].max_values = 0;
  EXPECT_THAT(SchemaRefusal(schema), HasSubstr("'C2': max_values is 0"));
}

// int(2 * v^0.25) by hand: 3^0.25 = 1.316, 1472^0.25 = 6.194, 82741^0.25 = 16.96.
TEST(SchemaTest, DefaultDimIsTwiceTheFourthRoot) {
  EXPECT_EQ(DefaultEmbeddingDim(1), 2u);
  EXPECT_EQ(DefaultEmbeddingDim(3), 2u);
  EXPECT_EQ(DefaultEmbeddingDim(16), 4u);
  EXPECT_EQ(DefaultEmbeddingDim(1472), 12u);
  EXPECT_EQ(DefaultEmbeddingDim(82741), 33u);
}

}  // namespace
}  // namespace tacit::event
