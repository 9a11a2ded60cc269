#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include "script.h"
#include "store/disk/rocks.h"

namespace tacit::store {
namespace {

TEST(AllowanceTest, UsersAreCountedUnderTheSameSecretAtEveryStart) {
  const TestFolder folder;
  SipHash::Key key;
  {
    const auto store = MustOpen(TestOptions(folder));
    key = store->user_key();
    ASSERT_TRUE(Script::Step(*store));
    ASSERT_TRUE(Script::Step(*store));
    Script::ExpectStore(*store);
  }
  const auto store = MustOpen(TestOptions(folder));
  EXPECT_EQ(store->user_key(), key);
  Script::ExpectStore(*store);
  // Another learner's users are counted by themselves.
  std::vector<UserUses> uses{Script::UsesOf(1, 2)};
  ASSERT_GT(uses[0].used, 0u);
  EXPECT_EQ(*store->ReadAllowances(LearnerIndex(1), uses), 0u);
  EXPECT_EQ(uses[0].used, 0u);
  const TestFolder other;
  EXPECT_NE(MustOpen(TestOptions(other))->user_key(), key);
}

// Users are counted by what each of them has used, also by a process that does not own the store.
TEST(AllowanceTest, UsersAreCountedByWhatTheyHaveUsed) {
  const TestFolder folder;
  const auto store = MustOpen(TestOptions(folder));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Script::Step(*store));
  const auto counted = store->CountUsers(LearnerIndex(0), {});
  ASSERT_TRUE(counted);
  // The oracle: all users that the script can have named, asked one by one.
  UsersByUses expected;
  for (uint64_t u = 0; u < Script::kUsers; ++u) ++expected[Script::UsesOf(u, 5).used];
  ASSERT_GT(expected.size(), 1u);
  EXPECT_EQ(*counted, expected);
  EXPECT_TRUE(store->CountUsers(LearnerIndex(1), {})->empty());
  const auto seen = OpenReadOnly(folder.store(), folder.witness(), {});
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_EQ(*seen->count_users("ctr"), expected);
  EXPECT_TRUE(seen->count_users("nobody")->empty());
}

void DeleteUserKey(const TestFolder& folder) {
  auto rocks = Rocks::Open(folder.store(), uint64_t{32} << 20, std::make_shared<FailureLatch>());
  ASSERT_TRUE(rocks);
  rocksdb::WriteBatch batch;
  batch.Delete((*rocks)->family(Family::kMeta), AsSlice(meta::kUserKey));
  ASSERT_TRUE((*rocks)->WriteSynced(batch));
}

// Under another secret every user would begin anew.
TEST(AllowanceTest, ALostSecretIsRefused) {
  const TestFolder folder;
  MustOpen(TestOptions(folder));
  DeleteUserKey(folder);
  const auto refused = Store::Open(TestOptions(folder));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kCorruption);
  EXPECT_NE(refused.error().message.find("'user_key' is missing"), std::string::npos);
}

}  // namespace
}  // namespace tacit::store
