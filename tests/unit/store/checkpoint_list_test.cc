// The list of checkpoints in a folder, and those of them that give way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "script.h"
#include "store/checkpoint/checkpoint.h"
#include "store/disk/folder.h"
#include "support/stranger.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class CheckpointListTest : public testing::Test {
 protected:
  std::string parent() const { return folder_.root() + "/checkpoints"; }
  // Puts a checkpoint there that has a manifest alone, and returns its name.
  std::string Put(uint64_t commit, int64_t time_ms, char lineage = '1',
                  CheckpointKind kind = CheckpointKind::kFull) const {
    CheckpointManifest manifest;
    manifest.kind = kind;
    manifest.commit = CommitSeq(commit);
    manifest.time_ms = time_ms;
    manifest.lineage = std::string(32, lineage);
    manifest.head.fill(static_cast<uint8_t>(lineage));
    manifest.files = {{"CURRENT", 16, Digest{}}};
    const std::string name = manifest.FolderName();
    fs::create_directories(parent() + "/" + name);
    std::ofstream(ManifestIn(name), std::ios::binary) << EncodeManifest(manifest);
    return name;
  }
  std::string ManifestIn(const std::string& name) const {
    return parent() + "/" + name + "/" + kCheckpointManifestName;
  }
  std::vector<std::string> Listed(std::vector<std::string>* unreadable = nullptr) const {
    const auto places = ListCheckpoints(parent(), unreadable);
    EXPECT_TRUE(places) << places.error().message;
    std::vector<std::string> names;
    if (places)
      for (const CheckpointPlace& place : *places)
        names.push_back(fs::path(place.folder).filename());
    return names;
  }

  const TestFolder folder_;
};

// Threads list checkpoints that nobody watches: with anything in a manifest's place they go on.
TEST_F(CheckpointListTest, AFolderOrAPipeInAManifestsPlaceIsNamed) {
  const std::string good = Put(7, 1'000);
  fs::create_directories(ManifestIn("broken"));
  std::vector<std::string> unreadable;
  EXPECT_THAT(Listed(&unreadable), ElementsAre(good));
  EXPECT_THAT(unreadable,
              ElementsAre(AllOf(HasSubstr(ManifestIn("broken")), HasSubstr("is a directory"))));
  const auto read = ReadManifest(parent() + "/broken");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kIo);

  fs::remove_all(parent() + "/broken");
  fs::create_directories(parent() + "/piped");
  ASSERT_EQ(mkfifo(ManifestIn("piped").c_str(), 0600), 0);
  unreadable.clear();
  EXPECT_THAT(Listed(&unreadable), ElementsAre(good));
  EXPECT_THAT(unreadable, ElementsAre(HasSubstr(ManifestIn("piped"))));

  const auto none = ReadManifest(parent());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message, HasSubstr("is no checkpoint"));
}

// A clock that was ahead gives a checkpoint no longer life than the commits after it.
// A checkpoint that this user may not look at is there all the same, and its folder is not empty.
TEST_F(CheckpointListTest, ClosedFoldersAreNotTakenForMissingOnes) {
  const std::string open = Put(7, 1'000), closed = Put(8, 2'000);
  constexpr fs::perms kOpen{0755};
  for (const std::string& path : {folder_.root(), parent(), parent() + "/" + open})
    fs::permissions(path, kOpen);
  fs::permissions(parent() + "/" + closed, fs::perms::none);
  std::vector<std::string> unreadable;
  {
    const test::Stranger stranger;
    EXPECT_THAT(Listed(&unreadable), ElementsAre(open));
  }
  EXPECT_THAT(unreadable, ElementsAre(AllOf(HasSubstr(closed), HasSubstr("Permission denied"))));
  fs::permissions(folder_.root(), fs::perms::owner_all);
  const test::Stranger stranger;
  const auto none = ListCheckpoints(parent(), nullptr);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, AllOf(HasSubstr(parent()), HasSubstr("Permission denied")));
  EXPECT_FALSE(PruneCheckpoints(parent(), 1));
}

// The tables hold histories and keys: a new folder is for its owner and group alone.
TEST_F(CheckpointListTest, NoStrangerMayEnterANewFolder) {
  const mode_t before = umask(022);
  const std::string made = folder_.root() + "/above/made", there = folder_.root() + "/there";
  fs::create_directory(there);
  for (const std::string& path : {made, made + "/", there}) EXPECT_FALSE(MakeOwnFolder(path));
  std::ofstream(folder_.root() + "/file") << "x";
  EXPECT_EQ(MakeOwnFolder(folder_.root() + "/file"), std::errc::file_exists);
  EXPECT_TRUE(MakeOwnFolder(folder_.root() + "/file/below"));
  const auto others = [](const std::string& path) {
    return fs::status(path).permissions() & fs::perms::others_all;
  };
  EXPECT_EQ(others(made), fs::perms::none);
  EXPECT_NE(others(there), fs::perms::none) << "it stays as it was";
  StoreOptions options = TestOptions(folder_);
  MustOpen(options);
  EXPECT_EQ(others(options.path), fs::perms::none);
  umask(before);
}

TEST_F(CheckpointListTest, NewestIsTheLastCommitOfALineageWhateverTheClockSaid) {
  constexpr int64_t kNow = 1'700'000'000'000, kAhead = 4'000'000'000'000;
  const std::string early = Put(1, kAhead), second = Put(2, kNow), third = Put(3, kNow + 1),
                    other = Put(9, kNow - 1, '2'),
                    release = Put(1, kNow, '1', CheckpointKind::kRelease);
  EXPECT_THAT(Listed(), testing::UnorderedElementsAre(early, second, third, other, release));
  const auto removed = PruneCheckpoints(parent(), 2);
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_THAT(*removed, ElementsAre(parent() + "/" + early));
  EXPECT_THAT(Listed(), testing::UnorderedElementsAre(second, third, other, release));
  ASSERT_TRUE(PruneCheckpoints(parent(), 1));
  EXPECT_THAT(Listed(), testing::UnorderedElementsAre(third, other, release));
}

}  // namespace
}  // namespace tacit::store
