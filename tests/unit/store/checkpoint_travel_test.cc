// Checkpoints that go to another disk, or to another machine as one file.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "script.h"
#include "store/checkpoint/checkpoint.h"
#include "store/checkpoint/checkpoint_archive.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class CheckpointTravelTest : public testing::Test {
 protected:
  CheckpointTravelTest()
      : options_(TestOptions(folder_)), parent_(folder_.root() + "/checkpoints") {}

  static void Train(Store& store, int commits) {
    for (int i = 0; i < commits; ++i) ASSERT_TRUE(Script::Step(store));
  }
  CheckpointMade Make(Store& store, CheckpointKind kind) {
    auto made = store.MakeCheckpoint({.kind = kind, .parent = parent_, .schema = "a schema"});
    if (!made) ADD_FAILURE() << made.error().message;
    TACIT_CHECK(made.has_value());
    return *std::move(made);
  }

  const TestFolder folder_;
  StoreOptions options_;
  std::string parent_;
};

// A place on another disk than the store's; on the same one, if there is no second.
class OtherDisk {
 public:
  OtherDisk() {
    std::string name = fs::temp_directory_path() / "tacit-other-XXXXXX";
    TACIT_CHECK(mkdtemp(name.data()) != nullptr);
    root_ = name;
  }
  ~OtherDisk() { fs::remove_all(root_); }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

uint64_t FileNumber(const std::string& path) {
  struct stat is {};
  TACIT_CHECK(stat(path.c_str(), &is) == 0);
  return is.st_ino;
}

// On the store's disk tables are the store's own files; on another one they are those of the
// checkpoint before. Either way a table takes its room once.
TEST_F(CheckpointTravelTest, SharesTheTablesOfTheOneBefore) {
  const OtherDisk other;
  const auto store = MustOpen(options_);
  Train(*store, 4);
  ASSERT_TRUE(store->Settle());
  parent_ = other.root() + "/checkpoints";
  const CheckpointMade first = Make(*store, CheckpointKind::kFull);
  EXPECT_EQ(first.files_shared, 0u);
  Train(*store, 1);
  const CheckpointMade second = Make(*store, CheckpointKind::kFull);
  size_t same = 0;
  for (const CheckpointFile& file : second.place.manifest.files) {
    const std::string before = first.place.folder + "/" + file.name;
    if (!IsTableName(file.name) || !fs::exists(before)) continue;
    EXPECT_EQ(FileNumber(second.place.folder + "/" + file.name), FileNumber(before)) << file.name;
    ++same;
  }
  EXPECT_GT(same, 0u);
  EXPECT_TRUE(CheckCheckpoint(second.place.folder, CheckpointCheck::kEveryByte));
  ASSERT_TRUE(PruneCheckpoints(parent_, 1));
  EXPECT_TRUE(CheckCheckpoint(second.place.folder, CheckpointCheck::kEveryByte));
}

TEST_F(CheckpointTravelTest, BothKindsTravelAsOneFile) {
  const auto store = MustOpen(options_);
  Train(*store, 5);
  for (const CheckpointKind kind : {CheckpointKind::kFull, CheckpointKind::kRelease}) {
    const CheckpointMade made = Make(*store, kind);
    const std::string file = folder_.root() + "/" + std::string(NameOf(kind)) + ".tar.zst";
    const Status packed = PackCheckpoint(made.place.folder, file);
    ASSERT_TRUE(packed) << packed.error().message;
    EXPECT_FALSE(PackCheckpoint(made.place.folder, file));
    const auto there = UnpackCheckpoint(file, folder_.root() + "/elsewhere");
    ASSERT_TRUE(there) << there.error().message;
    EXPECT_EQ(fs::path(there->folder).filename(), fs::path(made.place.folder).filename());
    for (const CheckpointFile& one : made.place.manifest.files)
      EXPECT_EQ(BytesOf(there->folder + "/" + one.name),
                BytesOf(made.place.folder + "/" + one.name));
    EXPECT_TRUE(OpenReadOnly(there->folder, "", options_.learners));
    const auto again = UnpackCheckpoint(file, folder_.root() + "/elsewhere");
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, ErrorCode::kRefused);
  }
}

// Other names than the one that was asked for are somebody else's.
TEST_F(CheckpointTravelTest, PackingOverwritesNoFileBesideItsOwn) {
  const auto store = MustOpen(options_);
  Train(*store, 1);
  const CheckpointMade made = Make(*store, CheckpointKind::kRelease);
  const std::string file = folder_.root() + "/one.tar.zst", other = folder_.root() + "/other";
  std::ofstream(file + ".new") << "mine";
  std::ofstream(other) << "mine too";
  // The name of work is this process's; a link there leads nowhere.
  fs::create_symlink(other, fmt::format("{}.part-{}", file, getpid()));
  const Status packed = PackCheckpoint(made.place.folder, file);
  ASSERT_TRUE(packed) << packed.error().message;
  EXPECT_EQ(BytesOf(file + ".new"), "mine");
  EXPECT_EQ(BytesOf(other), "mine too");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(file)));
  EXPECT_TRUE(UnpackCheckpoint(file, folder_.root() + "/elsewhere"));
}

// Flipped bits and cut ends leave no checkpoint, and nothing beside the folder that was named.
TEST_F(CheckpointTravelTest, ADamagedArchiveIsNotUnpacked) {
  const auto store = MustOpen(options_);
  Train(*store, 3);
  const CheckpointMade made = Make(*store, CheckpointKind::kFull);
  const std::string file = folder_.root() + "/packed.tar.zst", parent = folder_.root() + "/there";
  ASSERT_TRUE(PackCheckpoint(made.place.folder, file));
  const std::string bytes = BytesOf(file);
  std::mt19937_64 random(5);
  int refused = 0;
  for (int i = 0; i < 60; ++i) {
    std::string damaged = bytes;
    if (i % 3 == 0) {
      damaged.resize(random() % bytes.size());
    } else {
      const size_t at = random() % bytes.size();
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    }
    std::ofstream(file, std::ios::binary | std::ios::trunc) << damaged;
    const auto unpacked = UnpackCheckpoint(file, parent);
    if (!unpacked) {
      ++refused;
      EXPECT_NE(unpacked.error().code, ErrorCode::kIo) << unpacked.error().message;
      EXPECT_THAT(unpacked.error().message, HasSubstr(file));
      continue;
    }
    // The flip was in what tells nothing: padding, or a time.
    EXPECT_TRUE(CheckCheckpoint(unpacked->folder, CheckpointCheck::kEveryByte));
    fs::remove_all(parent);
  }
  EXPECT_GT(refused, 50);
  if (fs::exists(parent)) {
    const auto places = ListCheckpoints(parent, nullptr);
    EXPECT_TRUE(places->empty());
  }
}

// A few kilobytes of an archive may unpack to any number of bytes: those beyond what the manifest
// says are not written, for they could fill the store's disk.
TEST_F(CheckpointTravelTest, AMemberLargerThanTheManifestSaysIsNotWritten) {
  const auto store = MustOpen(options_);
  Train(*store, 3);
  const CheckpointMade made = Make(*store, CheckpointKind::kFull);
  const std::string name = fs::path(made.place.folder).filename();
  const CheckpointFile& large = made.place.manifest.files.front();
  constexpr uintmax_t kBytes = 64 << 20;
  fs::resize_file(made.place.folder + "/" + large.name, kBytes);
  const std::string file = folder_.root() + "/packed.tar", there = folder_.root() + "/there";
  std::string command =
      fmt::format("tar -S -C {} -cf {} {}/{}", parent_, file, name, kCheckpointManifestName);
  for (const CheckpointFile& one : made.place.manifest.files)
    command += " " + name + "/" + one.name;
  ASSERT_EQ(std::system(command.c_str()), 0);
  ASSERT_LT(fs::file_size(file), kBytes / 16);
  const auto unpacked = UnpackCheckpoint(file, there);
  ASSERT_FALSE(unpacked);
  EXPECT_EQ(unpacked.error().code, ErrorCode::kCorruption);
  EXPECT_THAT(unpacked.error().message,
              HasSubstr(fmt::format("'{}' in {} has {} bytes, and {} in the manifest", large.name,
                                    file, kBytes, large.bytes)));
}

// A member of a tar archive: its header with this type, and its bytes.
std::string TarMember(const std::string& name, std::string_view bytes, char type = '0',
                      uint64_t size = ~uint64_t{0}) {
  if (size == ~uint64_t{0}) size = bytes.size();
  std::string header(512, '\0');
  const auto put = [&](size_t at, const std::string& text) {
    header.replace(at, text.size(), text);
  };
  put(0, name);
  put(100, "0000640");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", size));
  put(136, "00000000000");
  put(148, std::string(8, ' '));
  put(156, std::string(1, type));
  if (type == '1' || type == '2') put(157, "/etc/passwd");
  put(257, "ustar");
  put(263, "00");
  put(329, "0000001");
  put(337, "0000003");
  uint32_t sum = 0;
  for (const char c : header) sum += static_cast<uint8_t>(c);
  put(148, fmt::format("{:06o}", sum) + '\0');
  std::string member = header + std::string(bytes);
  member.resize((member.size() + 511) / 512 * 512, '\0');
  return member;
}

// Links, devices and names that lead elsewhere leave nothing behind, here or there; nor does a
// member that would unpack to any size.
TEST_F(CheckpointTravelTest, AMemberThatIsNoFileOfTheManifestIsRefusedByName) {
  const auto store = MustOpen(options_);
  Train(*store, 3);
  const CheckpointMade made = Make(*store, CheckpointKind::kFull);
  const std::string name = fs::path(made.place.folder).filename(),
                    there = folder_.root() + "/there", file = folder_.root() + "/packed.tar";
  const std::vector<CheckpointFile>& files = made.place.manifest.files;
  const auto bytes_of = [&](const std::string& one) {
    return BytesOf(made.place.folder + "/" + one);
  };
  const std::string head =
      TarMember(name + "/" + kCheckpointManifestName, bytes_of(kCheckpointManifestName));
  const std::string first = name + "/" + files[0].name, whole = bytes_of(files[0].name);
  std::string rest;
  for (size_t i = 1; i < files.size(); ++i)
    rest += TarMember(name + "/" + files[i].name, bytes_of(files[i].name));
  const std::string end(1024, '\0');
  const auto unpack = [&](const std::string& archive) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << archive + end;
    return UnpackCheckpoint(file, there);
  };

  std::vector<std::pair<std::string, std::string>> refused;  // members, and words of the refusal
  for (const char type : {'1', '2', '3', '4', '5', '6'})     // links, devices, a folder, a fifo
    refused.emplace_back(TarMember(first, "", type) + rest, "'" + first);
  for (const std::string& other :
       {name + "/../outside", std::string("../outside"), there + "/outside", name + "/CURRENT/x",
        "./" + first, name + "/", std::string("other/") + files[0].name})
    refused.emplace_back(TarMember(other, whole) + rest, "'" + other);
  refused.emplace_back(TarMember(first, whole) + TarMember(first, whole) + rest,
                       "has a member '" + first + "', which its manifest has not, or twice");
  // Bombs: a known name and an unknown one of 8 GiB, and a member for the manifest.
  const uint64_t huge = (uint64_t{8} << 30) - 1;
  refused.emplace_back(TarMember(first, "", '0', huge), fmt::format("has {} bytes", huge));
  refused.emplace_back(TarMember(name + "/bomb", "", '0', huge), "'" + name + "/bomb'");
  for (const auto& [members, words] : refused) {
    const auto unpacked = unpack(head + members);
    ASSERT_FALSE(unpacked) << words;
    EXPECT_EQ(unpacked.error().code, ErrorCode::kCorruption) << unpacked.error().message;
    EXPECT_THAT(unpacked.error().message, testing::AllOf(HasSubstr(file), HasSubstr(words)));
    EXPECT_TRUE(ListCheckpoints(there, nullptr)->empty()) << words;
  }
  for (const std::string& beginning :
       {TarMember(name + "/" + kCheckpointManifestName, "", '0', huge), TarMember(first, whole),
        TarMember(name + "/" + kCheckpointManifestName, "", '2'), std::string()})
    EXPECT_THAT(unpack(beginning).error().message, HasSubstr(file + " is no packed checkpoint: "));
  EXPECT_FALSE(fs::exists(folder_.root() + "/outside"));
  EXPECT_FALSE(fs::exists(there + "/outside"));
  const auto right = unpack(head + TarMember(first, whole) + rest);
  EXPECT_TRUE(right) << right.error().message;
}

// The manifest's sizes are compared with the disk before a byte is written, in one file or in all.
TEST_F(CheckpointTravelTest, AnArchiveThatTheDiskHasNoRoomForIsRefused) {
  const auto store = MustOpen(options_);
  Train(*store, 3);
  const CheckpointMade made = Make(*store, CheckpointKind::kFull);
  const std::string name = fs::path(made.place.folder).filename(),
                    there = folder_.root() + "/there";
  for (const size_t large : {1u, 2u}) {
    CheckpointManifest manifest = made.place.manifest;
    // Two of them add up to nothing in 64 bits.
    for (size_t i = 0; i < large; ++i) manifest.files[i].bytes = uint64_t{1} << 63;
    std::ofstream(made.place.folder + "/" + kCheckpointManifestName, std::ios::trunc)
        << EncodeManifest(manifest);
    const std::string file = folder_.root() + "/packed.tar";
    std::string command =
        fmt::format("tar -C {} -cf {} {}/{}", parent_, file, name, kCheckpointManifestName);
    for (const CheckpointFile& one : manifest.files) command += " " + name + "/" + one.name;
    ASSERT_EQ(std::system(command.c_str()), 0);
    const auto unpacked = UnpackCheckpoint(file, there);
    ASSERT_FALSE(unpacked);
    EXPECT_EQ(unpacked.error().code, ErrorCode::kIo) << unpacked.error().message;
    EXPECT_THAT(unpacked.error().message, HasSubstr(file + " cannot be unpacked into " + there));
    EXPECT_THAT(unpacked.error().message, HasSubstr("make room there"));
  }
}

}  // namespace
}  // namespace tacit::store
