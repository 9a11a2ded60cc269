#include "base/cpu.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "support/scoped_variable.h"

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

// The campaign without AVX-512 runs these tests too.
constexpr char kSwitch[] = "TACIT_TEST_NO_AVX512";

TEST(Cpu, IsWhatTheKernelSays) {
  const test::ScopedVariable off(kSwitch, std::nullopt);
  const std::set<std::string> flags = KernelFlags();
  if (flags.empty()) GTEST_SKIP() << "this kernel does not tell of the processor";
  const auto has = [&](const char* flag) { return flags.contains(flag); };
  const bool avx512 = has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
  EXPECT_EQ(ThisCpu().avx512, avx512);
  EXPECT_EQ(ThisCpu().avx512_bf16, avx512 && has("avx512_bf16"));
  EXPECT_EQ(ThisCpu().vaes, avx512 && has("aes") && has("vaes"));
}

TEST(Cpu, TheSwitchTakesEverythingAway) {
  for (const char* value : {"1", "0", ""}) {
    const test::ScopedVariable off(kSwitch, value);
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
