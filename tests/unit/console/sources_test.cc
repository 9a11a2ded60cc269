// A build names its sources.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files/regular_file.h"
#include "base/hash.h"
#include "base/text.h"
#include "console/version_text.h"

namespace tacit::console {
namespace {

std::string Sum(const std::string& text) { return ToHex(Sha256().Update(text).Finish()); }

TEST(SourcesTest, ABuildHasADigestOfEachFileOfTheProgram) {
  const std::filesystem::path root = TACIT_SOURCE_DIR;
  std::vector<std::string> files = {"CMakeLists.txt"};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "src"))
    if (entry.is_regular_file()) files.push_back(std::filesystem::relative(entry.path(), root));
  std::ranges::sort(files);
  std::string sums;
  for (const std::string& file : files) {
    const auto bytes = ReadRegularFile(root / file);
    ASSERT_TRUE(bytes) << bytes.error().message;
    sums += Sum(*bytes) + "  " + file + "\n";
  }
  EXPECT_EQ(ThisBuild().sources, Sum(sums));
}

}  // namespace
}  // namespace tacit::console
