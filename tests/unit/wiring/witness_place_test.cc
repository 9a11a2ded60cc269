#include "wiring/plans/witness_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/check.h"
#include "support/process.h"
#include "wiring/assembly.h"

namespace tacit::wiring {
namespace {

namespace fs = std::filesystem;
using test::TempDir;

TEST(WitnessPlaceTest, AServiceHasNoDefault) {
  config::Store store;
  store.path = "/a/store";
  store.witness = "/a/store.witness";
  store.witness_is_default = true;
  EXPECT_TRUE(CheckWitnessChosen(store, false));
  const Status refused = CheckWitnessChosen(store, true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("store.witness"));
  store.witness_is_default = false;
  EXPECT_TRUE(CheckWitnessChosen(store, true));
}

TEST(WitnessPlaceTest, TellsFolderAndDeviceApart) {
  const TempDir dir;
  fs::create_directories(dir / "a/store");
  fs::create_directories(dir / "b");
  fs::create_directory_symlink(dir / "a", dir / "link");
  for (const char* file : {"a/witness", "b/witness"}) test::WriteFile(dir / file, "w");
  EXPECT_EQ(ClosenessOf(dir / "a/store", dir / "a/witness"), Closeness::kSameFolder);
  EXPECT_EQ(ClosenessOf(dir / "a/store", dir / "link/witness"), Closeness::kSameFolder);
  EXPECT_EQ(ClosenessOf(dir / "a/store", dir / "b/witness"), Closeness::kSameDevice);
  EXPECT_EQ(ClosenessOf(dir / "a/store", "/proc/self/stat"), Closeness::kApart);
}

TEST(WitnessPlaceTest, AReaderFindsItBesideTheStoreAndInItsOwnFolder) {
  const TempDir dir;
  fs::create_directories(dir / "data/store");
  fs::create_directories(dir / "data-witness");
  EXPECT_EQ(WitnessBeside(dir / "data/store").value(), "");
  EXPECT_EQ(WitnessBeside(dir / "data/store/none").value(), "");
  test::WriteFile(dir / "data-witness/store.witness", "w");
  EXPECT_EQ(WitnessBeside(dir / "data/store").value(), dir / "data-witness/store.witness");
  EXPECT_EQ(WitnessBeside(dir / "data/store/").value(), dir / "data-witness/store.witness");
  test::WriteFile(dir / "data/store.witness", "w");
  EXPECT_EQ(WitnessBeside(dir / "data/store").value(), dir / "data/store.witness");
}

TEST(WitnessPlaceTest, AWitnessThatMayNotBeSeenIsNoMissingOne) {
  const TempDir dir;
  fs::create_directories(dir / "data/store");
  fs::create_directories(dir / "data-witness");
  ASSERT_EQ(chmod((dir / ".").c_str(), 0755), 0);
  const bool root = geteuid() == 0;
  ASSERT_EQ(chmod((dir / "data-witness").c_str(), root ? 0700 : 0), 0);
  const auto find = [&] {
    if (root) TACIT_CHECK(seteuid(65534) == 0);
    auto found = WitnessBeside(dir / "data/store");
    if (root) TACIT_CHECK(seteuid(0) == 0);
    return found;
  };
  const auto hidden = find();
  ASSERT_FALSE(hidden);
  EXPECT_THAT(hidden.error().message,
              testing::HasSubstr(dir / "data-witness/store.witness: Permission denied"));
  // A checkpoint is an older copy by design.
  test::WriteFile(dir / "data/store/checkpoint.manifest", "");
  const auto of_checkpoint = find();
  ASSERT_TRUE(of_checkpoint) << of_checkpoint.error().message;
  EXPECT_EQ(*of_checkpoint, "");
  chmod((dir / "data-witness").c_str(), 0700);
}

}  // namespace
}  // namespace tacit::wiring
