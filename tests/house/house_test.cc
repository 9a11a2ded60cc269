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
TEST(House, RandomnessComesFromNoise) { EXPECT_THAT(CheckRandomness(kRoot), IsEmpty()); }
TEST(House, NothingIsBuiltForThisMachineOnly) { EXPECT_THAT(CheckCompileFlags(kRoot), IsEmpty()); }
TEST(House, FilesAreReadable) { EXPECT_THAT(CheckFiles(kRoot), IsEmpty()); }

// Rules that find nothing anywhere would pass for ever: a small house with one fault planted at a
// time.
class PlantedHouse : public testing::Test {
 protected:
  PlantedHouse() : root_(fs::path(testing::TempDir()) / FolderName()) {
    fs::remove_all(root_);
    Write("CMakeLists.txt", "project(planted)\n");
    for (const char* room :
         {"base", "ops", "store", "serve", "app", "config", "mechanism", "model", "privacy"}) {
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
  Write("src/app/a.cc", "#include \"store/outer.h\"\n");
  EXPECT_THAT(CheckIncludes(root_),
              ElementsAre("src/app/a.cc:1: store/outer.h brings <rocksdb/db.h> out of its room"));
}

TEST_F(PlantedHouse, UnknownRoomsAreFound) {
  Write("src/attic/a.cc", "#include <vector>\n");
  Write("src/ops/b.cc", "#include \"helper.h\"\n");
  EXPECT_THAT(CheckIncludes(root_), ElementsAre("src/attic/a.cc: attic is no room of the house",
                                                "src/ops/b.cc:1: \"helper.h\" is in no room"));
}

TEST_F(PlantedHouse, UnfurnishedRoomIsFound) {
  fs::remove(root_ / "src/ops/README.md");
  EXPECT_THAT(CheckRooms(root_), ElementsAre("src/ops: has no README.md"));
}

TEST_F(PlantedHouse, StrangeTopLevelIsFound) {
  Write("notes/x.md", "x");
  Write(".github/x", "x");
  EXPECT_THAT(CheckTopLevel(root_), ElementsAre("notes: does not belong at the top"));
}

TEST_F(PlantedHouse, ForeignRandomnessIsFound) {
  Write("src/ops/a.cc", "// std::normal_distribution is slow\nstd::mt19937_64 random;\n");
  EXPECT_THAT(CheckRandomness(root_),
              ElementsAre("src/ops/a.cc:2: mt19937: randomness comes from the noise room"));
}

TEST_F(PlantedHouse, NativeFlagsAreFound) {
  Write("src/ops/CMakeLists.txt", "target_compile_options(ops PRIVATE -march=native)\n");
  EXPECT_THAT(CheckCompileFlags(root_),
              ElementsAre("src/ops/CMakeLists.txt:1: march=native: a shipped binary must run on "
                          "other machines than this"));
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
