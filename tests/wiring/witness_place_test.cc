#include "wiring/witness_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

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
  EXPECT_EQ(WitnessBeside(dir / "data/store"), "");
  test::WriteFile(dir / "data-witness/store.witness", "w");
  EXPECT_EQ(WitnessBeside(dir / "data/store"), dir / "data-witness/store.witness");
  EXPECT_EQ(WitnessBeside(dir / "data/store/"), dir / "data-witness/store.witness");
  test::WriteFile(dir / "data/store.witness", "w");
  EXPECT_EQ(WitnessBeside(dir / "data/store"), dir / "data/store.witness");
}

}  // namespace
}  // namespace tacit::wiring
