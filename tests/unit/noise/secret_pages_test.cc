#include "noise/secret_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "noise/keystream.h"

namespace tacit::noise {
namespace {

// The kernel's flags of the mapping that holds `address`, "" when there is none: proc(5), smaps.
std::string FlagsOf(const void* address) {
  std::ifstream smaps("/proc/self/smaps");
  const auto at = reinterpret_cast<uintptr_t>(address);
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) inside = begin <= at && at < end;
    if (inside && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

// True if a page can be locked here at all: not beyond the limit of an unprivileged process, and
// not under a sanitizer, which answers mlock with success and does nothing.
bool MayLock() {
  alignas(4096) static char page[4096];
  if (mlock(page, sizeof(page)) != 0) return false;
  const bool locked = FlagsOf(page).find(" lo ") != std::string::npos;
  munlock(page, sizeof(page));
  return locked;
}

TEST(SecretPages, AreLockedLeftOutOfDumpsAndWipedOnFork) {
  bool wiped_on_fork = false;
  const auto secret = MakeSecretPages<std::array<uint64_t, 100>>(&wiped_on_fork);
  for (const uint64_t word : *secret) EXPECT_EQ(word, 0u);
  const std::string flags = FlagsOf(secret.get());
  EXPECT_NE(flags.find(" dd "), std::string::npos) << flags;
  EXPECT_EQ(flags.find(" wf ") != std::string::npos, wiped_on_fork) << flags;
  EXPECT_EQ(flags.find(" lo ") != std::string::npos, MayLock()) << flags;
  const auto plain = std::make_unique<std::array<uint64_t, 100>>();
  for (const char* flag : {" dd ", " wf ", " lo "})
    EXPECT_EQ(FlagsOf(plain.get()).find(flag), std::string::npos) << "the test sees nothing";
}

TEST(SecretPages, AForkedChildSeesZeros) {
  bool wiped_on_fork = false;
  const auto secret = MakeSecretPages<std::array<uint64_t, 100>>(&wiped_on_fork);
  secret->fill(~uint64_t{0});
  const pid_t child = fork();
  if (child == 0) {
    uint64_t seen = 0;
    for (const uint64_t word : *secret) seen |= word;
    _exit(seen == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status == 0, wiped_on_fork);
  EXPECT_EQ(secret->front(), ~uint64_t{0});
}

TEST(SecretPages, AreGivenBack) {
  bool wiped_on_fork = false;
  auto secret = MakeSecretPages<std::array<uint64_t, 100>>(&wiped_on_fork);
  const void* address = secret.get();
  ASSERT_NE(FlagsOf(address), "");
  secret.reset();
  EXPECT_EQ(FlagsOf(address).find(" wf "), std::string::npos);
}

// Drawn numbers lie there too: keystream that is not used yet is as good as the key.
TEST(SecretPages, HoldTheKeystream) {
  Keystream stream;
  const std::string flags = FlagsOf(stream.Take(2).data());
  EXPECT_NE(flags.find(" dd "), std::string::npos) << flags;
}

}  // namespace
}  // namespace tacit::noise
