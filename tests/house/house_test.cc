#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "house_rules.h"

namespace tacit::house {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

const fs::path kRoot = TACIT_SOURCE_DIR;

TEST(House, IncludesFollowThePlan) { EXPECT_THAT(CheckIncludes(kRoot), IsEmpty()); }
TEST(House, RoomsAreFurnished) { EXPECT_THAT(CheckRooms(kRoot), IsEmpty()); }
TEST(House, TopLevelIsThePlan) { EXPECT_THAT(CheckTopLevel(kRoot), IsEmpty()); }
TEST(House, NoFoldersOfARoomIncludeEachOther) { EXPECT_THAT(FoldersInCircles(), IsEmpty()); }
TEST(House, RandomnessComesFromNoise) { EXPECT_THAT(CheckRandomness(kRoot), IsEmpty()); }
TEST(House, EveryDrawOfNoiseIsListedWithItsQuery) { EXPECT_THAT(CheckDraws(kRoot), IsEmpty()); }
TEST(House, TheProcessorIsAskedInOnePlace) { EXPECT_THAT(CheckProcessor(kRoot), IsEmpty()); }
TEST(House, LocksAreChecked) { EXPECT_THAT(CheckLocks(kRoot), IsEmpty()); }
TEST(House, FilesAreReadInOnePlace) { EXPECT_THAT(CheckReading(kRoot), IsEmpty()); }
TEST(House, NothingIsBuiltForThisMachineOnly) { EXPECT_THAT(CheckCompileFlags(kRoot), IsEmpty()); }
TEST(House, NoFolderIsCrowded) { EXPECT_THAT(CheckFolders(kRoot), IsEmpty()); }
TEST(House, SourcesAreListedOneALine) { EXPECT_THAT(CheckSourceLists(kRoot), IsEmpty()); }
TEST(House, FilesThatAreCompiledTogetherShareNoPrivateName) {
  EXPECT_THAT(CheckPrivateNames(kRoot), IsEmpty());
}
TEST(House, RoomsHaveTheirOwnNamespaces) { EXPECT_THAT(CheckNamespaces(kRoot), IsEmpty()); }
TEST(House, SignpostsLeadSomewhere) { EXPECT_THAT(CheckSignposts(kRoot), IsEmpty()); }
TEST(House, CommentsHaveASubject) {
  EXPECT_THAT(HeadlessComments(kRoot, {"src", "cuda", "tests"}), IsEmpty());
}
TEST(House, WordsAreOfTheField) { EXPECT_THAT(CheckWords(kRoot), IsEmpty()); }
TEST(House, ChecksAreClassed) { EXPECT_THAT(CheckChecks(kRoot), IsEmpty()); }
TEST(House, FilesAreReadable) { EXPECT_THAT(CheckFiles(kRoot), IsEmpty()); }

// Rules that find nothing anywhere would pass for ever: a small house with one fault planted at a
// time.
class PlantedHouse : public testing::Test {
 protected:
  PlantedHouse() : root_(fs::path(testing::TempDir()) / FolderName()) {
    fs::remove_all(root_);
    Write("CMakeLists.txt", "project(planted)\n");
    for (const char* room :
         {"base", "ops", "store", "serve", "wiring", "config", "mechanism", "model", "privacy"}) {
      Write(std::string("src/") + room + "/README.md", "a room\n");
      Write(std::string("src/") + room + "/CMakeLists.txt", "tacit_room()\n");
    }
    Write("src/base/x.h", "#pragma once\n#include <vector>\n");
    Write("src/store/store.h", "#pragma once\n#include \"base/x.h\"\n#include <fmt/format.h>\n");
    Write("src/store/store.cc", "#include \"store/store.h\"\n#include <rocksdb/db.h>\n");
  }
  ~PlantedHouse() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  fs::path root_;

 private:
  static std::string FolderName() { return "tacit-house-" + std::to_string(getpid()); }
};

TEST_F(PlantedHouse, IsInOrder) { EXPECT_THAT(CheckHouse(root_), IsEmpty()); }

TEST_F(PlantedHouse, ForbiddenArrowIsFound) {
  Write("src/ops/a.cc", "#include <vector>\n#include \"store/store.h\"\n");
  Write("src/store/b.h", "#pragma once\n# include \"config/config.h\"\n");
  Write("src/serve/c.cc", "#include \"train/trainer.h\"\n");
  EXPECT_THAT(CheckIncludes(root_),
              ElementsAre("src/ops/a.cc:2: ops may not include store/store.h",
                          "src/serve/c.cc:1: serve may not include train/trainer.h",
                          "src/store/b.h:2: store may not include config/config.h"));
}

TEST_F(PlantedHouse, MechanismSeesOneHeaderOfPrivacy) {
  Write("src/mechanism/a.cc",
        "#include \"model/gradient.h\"\n#include \"privacy/charge.h\"\n"
        "#include \"privacy/ledger.h\"\n#include \"model/pctr.h\"\n");
  EXPECT_THAT(CheckIncludes(root_),
              ElementsAre("src/mechanism/a.cc:3: mechanism may not include privacy/ledger.h",
                          "src/mechanism/a.cc:4: mechanism may not include model/pctr.h"));
}

TEST_F(PlantedHouse, LibraryOutOfItsRoomIsFound) {
  Write("src/ops/a.cc",
        "#include <rocksdb/db.h>\n#include <folly/Range.h>\n#include <sys/mman.h>\n");
  EXPECT_THAT(CheckIncludes(root_),
              ElementsAre("src/ops/a.cc:1: <rocksdb/db.h> is not at home in ops",
                          "src/ops/a.cc:2: <folly/Range.h> is a stranger"));
}

TEST_F(PlantedHouse, HeaderThatLeadsOutALibraryIsFound) {
  Write("src/store/inner.h", "#pragma once\n#include <rocksdb/db.h>\n");
  Write("src/store/outer.h", "#pragma once\n#include \"store/inner.h\"\n");
  Write("src/store/a.cc", "#include \"store/outer.h\"\n");
  Write("src/wiring/a.cc", "#include \"store/outer.h\"\n");
  EXPECT_THAT(
      CheckIncludes(root_),
      ElementsAre("src/wiring/a.cc:1: store/outer.h brings <rocksdb/db.h> out of its room"));
}

TEST_F(PlantedHouse, UnknownRoomsAreFound) {
  Write("src/attic/a.cc", "#include <vector>\n");
  Write("src/ops/b.cc", "#include \"helper.h\"\n");
  EXPECT_THAT(CheckIncludes(root_), ElementsAre("src/attic/a.cc: attic is no room of the house",
                                                "src/ops/b.cc:1: \"helper.h\" is in no room"));
}

TEST_F(PlantedHouse, RoomsOfCudaHaveArrowsOfTheirOwn) {
  Write("src/noise/grid_portable.h", "#pragma once\n");
  Write("src/noise/keystream.h", "#pragma once\n");
  Write("cuda/device/runtime.cc", "#include <cuda_runtime_api.h>\n#include \"base/x.h\"\n");
  Write("cuda/device/b.cc",
        "#include \"cuda/kernels/noise/noise.h\"\n#include \"noise/keystream.h\"\n");
  Write("cuda/kernels/noise/noise.cu",
        "#include \"cuda/device/kernel.h\"\n#include \"noise/grid_portable.h\"\n"
        "#include \"noise/keystream.h\"\n#include <cuda_runtime.h>\n");
  Write("src/ops/a.cc", "#include \"cuda/device/device.h\"\n");
  Write("cuda/attic/a.cu", "\n");
  Write("cuda/absent.cc", "#include \"cuda/learn/gpu.h\"\n");
  EXPECT_THAT(
      CheckIncludes(root_),
      ElementsAre("cuda/attic/a.cu: cuda/attic is no room of the house",
                  "cuda/device/b.cc:1: cuda/device may not include cuda/kernels/noise/noise.h",
                  "cuda/device/b.cc:2: cuda/device may not include noise/keystream.h",
                  "cuda/kernels/noise/noise.cu:3: cuda/kernels may not include noise/keystream.h",
                  "cuda/kernels/noise/noise.cu:4: <cuda_runtime.h> is not at home in cuda/kernels",
                  "src/ops/a.cc:1: ops may not include cuda/device/device.h"));
}

TEST_F(PlantedHouse, ForbiddenArrowsBetweenFoldersAreFound) {
  Write("src/store/disk/a.cc", "#include \"store/disk/a.h\"\n#include \"store/store.h\"\n");
  Write("src/store/rows/b.h", "#pragma once\n#include \"store/users/c.h\"\n");
  Write("src/store/care/d.cc", "#include \"store/store.h\"\n");
  Write("src/store/attic/e.cc", "#include <vector>\n");
  EXPECT_THAT(CheckIncludes(root_),
              ElementsAre("src/store/attic/e.cc: store/attic is no folder of the room",
                          "src/store/disk/a.cc:2: store/disk may not include store/store.h",
                          "src/store/rows/b.h:2: store/rows may not include store/users/c.h"));
}

TEST_F(PlantedHouse, UnfurnishedRoomIsFound) {
  fs::remove(root_ / "src/ops/README.md");
  Write("cuda/device/a.cc", "\n");
  EXPECT_THAT(CheckRooms(root_),
              ElementsAre("cuda/device: has no README.md", "src/ops: has no README.md"));
}

TEST_F(PlantedHouse, LongReadmeOfARoomIsFound) {
  std::string lines;
  for (int i = 0; i < 60; ++i) lines += "a line\n";
  Write("src/store/README.md", lines);
  EXPECT_THAT(CheckRooms(root_), IsEmpty());
  Write("src/ops/README.md", lines + "and one more\n");
  Write("cuda/README.md", lines + "and one more\n");
  EXPECT_THAT(
      CheckRooms(root_),
      ElementsAre("cuda/README.md: 61 lines, more than 60: docs/internals has the details",
                  "src/ops/README.md: 61 lines, more than 60: docs/internals has the details"));
}

TEST_F(PlantedHouse, StrangeTopLevelIsFound) {
  Write("notes/x.md", "x");
  Write(".github/x", "x");
  EXPECT_THAT(CheckTopLevel(root_), ElementsAre("notes: does not belong at the top"));
}

TEST_F(PlantedHouse, ForeignRandomnessIsFound) {
  Write("src/ops/a.cc", "// std::normal_distribution is slow\nstd::mt19937_64 random;\n");
  Write("cuda/kernels/b.cu", "minstd_rand seed;\n");
  EXPECT_THAT(CheckRandomness(root_),
              ElementsAre("src/ops/a.cc:2: mt19937: randomness comes from the noise room",
                          "cuda/kernels/b.cu:1: minstd_rand: randomness comes from the noise "
                          "room"));
}

TEST_F(PlantedHouse, DrawsThatAreNotListedOrDeclareNothingAreFound) {
  const std::string drawn =
      "  const noise::Declaration declared(noise, {\"gradient\", 1});\n"
      "  noise.AddGridGaussian(1, sums);  // noise.Uniform()\n";
  Write("docs/internals/noise.md", "| src/ops/a.cc | 1 | gradient |\n");
  Write("src/ops/a.cc", drawn);
  EXPECT_THAT(CheckDraws(root_), IsEmpty());
  Write("src/ops/a.cc", drawn + "  mechanism::Release(grid, 1, noise, sums, out);\n");
  Write("src/ops/b.cc", "  Release(grid_, 1, noise, sums, out);\n  noise->AddGaussian(1, out);\n");
  EXPECT_THAT(CheckDraws(root_),
              ElementsAre(testing::HasSubstr("src/ops/a.cc: draws noise in 2 places"),
                          testing::HasSubstr("src/ops/b.cc:2: a float with noise"),
                          testing::HasSubstr("src/ops/b.cc: draws noise in 1 places")));
  Write("src/ops/a.cc", "  noise.AddGridGaussian(1, sums);\n");
  Write("src/ops/b.cc", "");
  EXPECT_THAT(CheckDraws(root_), ElementsAre("src/ops/a.cc: declares no query \"gradient\" for "
                                             "its draws"));
  Write("src/ops/a.cc", "");
  EXPECT_THAT(CheckDraws(root_),
              ElementsAre(testing::HasSubstr("in 0 places"), testing::HasSubstr("declares no")));
}

TEST_F(PlantedHouse, AskingTheProcessorElsewhereIsFound) {
  Write("src/base/cpu.cc", "bool a = __builtin_cpu_supports(\"avx512f\");\n");
  Write("src/ops/a.cc", "bool a = __builtin_cpu_supports(\"avx512f\");\n");
  EXPECT_THAT(CheckProcessor(root_),
              ElementsAre("src/ops/a.cc:1: __builtin_cpu: base/cpu.h says what the processor has"));
}

TEST_F(PlantedHouse, AMutexThatClangDoesNotCheckIsFound) {
  Write("src/base/threads/mutex.h", "#pragma once\nstd::mutex mutex_;\n");
  Write("src/ops/a.cc", "Mutex mutex_;\nstd::condition_variable changed_;\n");
  Write("cuda/device/b.cc", "std::recursive_mutex mutex_;\n");
  const std::string why = ": clang checks the locks of base/threads/mutex.h alone";
  EXPECT_THAT(CheckLocks(root_), ElementsAre("src/ops/a.cc:2: std::condition_variable" + why,
                                             "cuda/device/b.cc:1: std::recursive_mutex" + why));
}

TEST_F(PlantedHouse, AReadThatThrowsIsFound) {
  Write("src/ops/a.cc", "const std::string text{std::istreambuf_iterator<char>(file), {}};\n");
  EXPECT_THAT(CheckReading(root_), ElementsAre("src/ops/a.cc:1: istreambuf_iterator: "
                                               "base/files/regular_file.h reads files"));
  // A stream waits for the writer of a pipe.
  Write("src/ops/a.cc", "std::ifstream file(\"/proc/stat\");\n");
  Write("src/config/a.cc", "std::ifstream file(path);\n");
  EXPECT_THAT(CheckReading(root_), ElementsAre("src/config/a.cc:1: ifstream: "
                                               "base/files/regular_file.h reads files"));
}

TEST_F(PlantedHouse, PrivateNamesThatMeetAreFound) {
  const auto with = [](const std::string& declared) {
    return "namespace tacit::ops {\nnamespace {\n" + declared + "}  // namespace\n}\n";
  };
  Write("src/ops/a.cc", with("constexpr int kLimit = 3;\nusing Rows = int;\nstruct Part {\n};\n"));
  // Another room, another namespace, the same alias, a member and what is declared elsewhere are
  // fine.
  Write("src/model/a.cc", with("constexpr int kLimit = 3;\n"));
  Write("src/ops/b.cc", "namespace tacit::ops::more {\nnamespace {\nstruct Part {\n};\n");
  Write("src/ops/c.cc",
        with("using Rows = int;\nstruct Part;\nclass Other {\n  int kLimit = 1;\n};\n"));
  EXPECT_THAT(CheckPrivateNames(root_), IsEmpty());
  Write("src/ops/sub/d.cc",
        with("constexpr size_t kLimit = 3;\nclass Part {\n};\nusing Rows = long;\n"));
  const std::string why = ", and a room is compiled together";
  EXPECT_THAT(CheckPrivateNames(root_),
              ElementsAre("src/ops/sub/d.cc:3: kLimit is private to src/ops/a.cc:3 too" + why,
                          "src/ops/sub/d.cc:4: Part is private to src/ops/a.cc:5 too" + why,
                          "src/ops/sub/d.cc:6: Rows is private to src/ops/a.cc:4 too" + why));
}

TEST_F(PlantedHouse, NamespacesOfOtherRoomsAreFound) {
  Write("src/base/a.h", "namespace tacit {\n");
  Write("src/serve/a.h", "namespace tacit::serve {\nnamespace tacit::serve::more {\n");
  Write("src/serve/b.h", "namespace tacit::store {\nclass Row;\n}  // namespace tacit::store\n");
  EXPECT_THAT(CheckNamespaces(root_), IsEmpty());
  Write("src/serve/a.h",
        "namespace tacit::store {\nnamespace tacit::server {\nnamespace tacit {\n");
  const std::string why = ": the namespace of serve is tacit::serve";
  EXPECT_THAT(CheckNamespaces(root_), ElementsAre("src/serve/a.h:1" + why, "src/serve/a.h:2" + why,
                                                  "src/serve/a.h:3" + why));
}

TEST_F(PlantedHouse, SignpostsThatLeadNowhereAreFound) {
  Write("src/store/store.h", "#pragma once\nclass Store { void Open(); };\n");
  Write("src/README.md",
        "`store/store.h`, `store.h`: `Store::Open` opens it. `--key`, `store.path`, `/v1/score`\n"
        "`store/shop.h` and `shop.h`: `Store::Close`, `Shop`\n");
  Write("src/ops/README.md", "`../store/store.h`\n`inner/deep.h`\n");
  Write("src/ops/inner/there.h", "#pragma once\n");
  Write("docs/internals/ops.md", "`inner/there.h`\n`inner/deep.h`\n");
  EXPECT_THAT(CheckSignposts(root_),
              ElementsAre("src/README.md:2: there is no file store/shop.h",
                          "src/README.md:2: there is no file shop.h",
                          "src/README.md:2: there is no name Store::Close",
                          "src/README.md:2: there is no name Shop",
                          "src/ops/README.md:2: there is no file inner/deep.h",
                          "docs/internals/ops.md:2: there is no file inner/deep.h"));
}

TEST_F(PlantedHouse, ChecksThatNobodyClassedAreFound) {
  Write(
      "src/ops/a.cc",
      "  TACIT_CHECK(a);\n// TACIT_CHECK(b)\n#define TACIT_CHECK(c)\n  for (;;) TACIT_CHECK(d,\n");
  Write("docs/checks.md", "| src/ops | 1 | 1 | 0 | sizes |\n| src/store | 0 | 0 | 0 | |\n");
  EXPECT_THAT(CheckChecks(root_), IsEmpty());
  Write("src/ops/b.h", "inline int F() { TACIT_CHECK(e); }\n");
  EXPECT_THAT(CheckChecks(root_),
              ElementsAre(testing::HasSubstr("has 2 checks of src/ops, and there are 3")));
  Write("docs/checks.md", "| src/store | 1 | 0 | 0 | |\n| src/ops | 3 | 0 | 0 | |\n");
  EXPECT_THAT(CheckChecks(root_),
              ElementsAre(testing::HasSubstr("has 1 checks of src/store, and there are 0")));
}

TEST_F(PlantedHouse, HeadlessCommentsAreFound) {
  Write("src/ops/a.cc",
        "// What is kept.\nint a;\n// It is kept.\n// Of its own.\nint b;  // of b\n"
        "  // Whose it is.\n// Offers are taken.\n");
  Write("cuda/device/b.cu", "int a;\n// Of the device.\n");
  EXPECT_THAT(HeadlessComments(root_, {"src", "cuda"}),
              ElementsAre("src/ops/a.cc:1", "src/ops/a.cc:6", "cuda/device/b.cu:2"));
  Write("src/ops/a.cc", "//\n\n// Whose it is.\n");
  EXPECT_THAT(HeadlessComments(root_, {"src", "cuda"}),
              ElementsAre("src/ops/a.cc:3", "cuda/device/b.cu:2"));
  EXPECT_THAT(HeadlessComments(root_, {"cuda"}), ElementsAre("cuda/device/b.cu:2"));
}

TEST_F(PlantedHouse, WordsOfTheHousesDialectAreFound) {
  Write("src/ops/a.h",
        "#pragma once\n// Whoever asks.\nint a;  // so many; null: none\nint whatever;\n"
        "// A whole, thricefold, tacit::Null::Of, {\"x\": null}.\n");
  Write("cuda/device/b.cu", "int* p;  // Null: none\nconst char* s = \"// whatever\";\n");
  Write("tests/unit/c_test.cc", "// All but for the first.\n// nullopt: unknown.\n");
  Write("docs/a.md", "Likewise here.\nNot `thrice` here.\nWhichever, {\"y\": null}\n");
  Write("tests/bench/history/a.md", "likewise\n");
  Write("CONTRIBUTING.md", "thrice\n");
  EXPECT_THAT(CheckWords(root_),
              ElementsAre("src/ops/a.h:2: whoever", "src/ops/a.h:3: so many",
                          "cuda/device/b.cu:1: null:", "tests/unit/c_test.cc:1: but for",
                          "tests/unit/c_test.cc:2: nullopt:", "docs/a.md:1: likewise",
                          "docs/a.md:3: whichever", "CONTRIBUTING.md:1: thrice"));
}

TEST_F(PlantedHouse, NativeFlagsAreFound) {
  Write("src/ops/CMakeLists.txt", "target_compile_options(ops PRIVATE -march=native)\n");
  EXPECT_THAT(CheckCompileFlags(root_),
              ElementsAre("src/ops/CMakeLists.txt:1: march=native: a shipped binary must run on "
                          "other machines than this"));
}

TEST_F(PlantedHouse, CrowdedFoldersAreFound) {
  for (int i = 0; i < 31; ++i) Write("src/ops/a" + std::to_string(i) + ".h", "#pragma once\n");
  EXPECT_THAT(CheckFolders(root_), ElementsAre("src/ops: 31 units, more than 30"));
}

TEST_F(PlantedHouse, CrowdedSourceListsAreFound) {
  Write("src/ops/CMakeLists.txt",
        "tacit_room(ops\n  SOURCES\n    b.cc\n    a.cc  # not in order\n    ${more}/0.cc\n"
        "    c.cc d.cu)\n");
  EXPECT_THAT(CheckSourceLists(root_),
              ElementsAre("src/ops/CMakeLists.txt:4: a.cc stands after b.cc",
                          "src/ops/CMakeLists.txt:6: more than one source"));
}

TEST_F(PlantedHouse, UnreadableFilesAreFound) {
  std::string text;
  for (int i = 0; i < 601; ++i) text += "\n";
  Write("src/ops/long.cc", text);
  Write("src/ops/bare.h", "int x;\n");
  Write("src/ops/later.cc",
        "\n// TO"
        "DO(me)\n");
  EXPECT_THAT(CheckFiles(root_), ElementsAre("src/ops/bare.h: has no #pragma once",
                                             "src/ops/later.cc:2: leaves something for later",
                                             "src/ops/long.cc: 601 lines, more than 600"));
}

}  // namespace
}  // namespace tacit::house
