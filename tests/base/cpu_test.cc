#include "base/cpu.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

namespace tacit {
namespace {

// The kernel's account; it asks the processor by itself.
std::set<std::string> KernelFlags() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}

class CpuTest : public testing::Test {
 protected:
  // The campaign runs this test too.
  void SetUp() override {
    const char* value = getenv(kSwitch);
    was_set_ = value != nullptr;
    unsetenv(kSwitch);
  }
  void TearDown() override { was_set_ ? setenv(kSwitch, "1", 1) : unsetenv(kSwitch); }

  static constexpr char kSwitch[] = "TACIT_TEST_NO_AVX512";
  bool was_set_ = false;
};

TEST_F(CpuTest, SaysWhatTheKernelSays) {
  const std::set<std::string> flags = KernelFlags();
  if (flags.empty()) GTEST_SKIP() << "this kernel does not tell of the processor";
  const auto has = [&](const char* flag) { return flags.contains(flag); };
  const bool avx512 = has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
  EXPECT_EQ(ThisCpu().avx512, avx512);
  EXPECT_EQ(ThisCpu().avx512_bf16, avx512 && has("avx512_bf16"));
  EXPECT_EQ(ThisCpu().vaes, avx512 && has("aes") && has("vaes"));
}

TEST_F(CpuTest, TheSwitchTakesEverythingAway) {
  for (const char* value : {"1", "0", ""}) {
    setenv(kSwitch, value, 1);
    EXPECT_FALSE(ThisCpu().avx512 || ThisCpu().avx512_bf16 || ThisCpu().vaes) << value;
  }
}

TEST(Cpu, TheLogSaysWhichKernelsRun) {
  EXPECT_EQ(KernelText({}), "AVX2");
  EXPECT_EQ(KernelText({.avx512 = true}), "AVX-512");
  EXPECT_EQ(KernelText({.avx512 = true, .avx512_bf16 = true, .vaes = true}),
            "AVX-512, bf16 products, vector AES");
}

}  // namespace
}  // namespace tacit
