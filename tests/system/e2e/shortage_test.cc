// A daemon that the system refuses memory or threads: it ends with a status and a sentence,
// wherever the refusal meets it, and the store goes on from what is committed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/small_run.h"

// Sanitizers want an address space and threads of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace tacit {
namespace {

namespace fs = std::filesystem;
using test::Ended;

class ShortageE2eTest : public testing::Test {
 protected:
  ShortageE2eTest() {
    test::WriteSmallLog(dir_, 2, 2000, 1);
    run_.listen = "unix:" + (dir_ / "socket");
    config_ = run_.WriteConfig(dir_);
  }

  // Runs the daemon to its end behind a command that limits it. Expects an end in order, and
  // returns whether it was an end without a failure.
  bool Runs(std::vector<std::string> limit, const std::string& tacitd = TACITD) {
    const std::string words = testing::PrintToString(limit);
    limit.insert(limit.end(), {tacitd, "--config", config_, "--until-end"});
    const Ended ended = test::Run(limit);
    EXPECT_EQ(ended.signal, 0) << words << "\n" << ended.err;
    if (ended.exit_code == 0) return true;
    // The loader of programs has a word and a status of its own.
    EXPECT_THAT(ended.exit_code, testing::AnyOf(1, 127)) << words << "\n" << ended.err;
    EXPECT_THAT(ended.err,
                testing::AnyOf(testing::HasSubstr("tacitd: the system refused"),
                               testing::HasSubstr("error while loading shared libraries"),
                               testing::ContainsRegex(
                                   "(tacitd|training ends): .*(memory|Resource temporarily)")))
        << words;
    return false;
  }

  test::TempDir dir_;
  test::SmallRun run_;
  std::string config_;
};

// Limits rise until the daemon has what it wants, on a machine of however many cores.
TEST_F(ShortageE2eTest, MemoryIsRefused) {
  size_t ran = 0, refused = 0;
  for (uint64_t bytes = 64 << 20; ran < 2; bytes += bytes / 8) {
    fs::remove_all(dir_ / "store");
    fs::remove_all(dir_ / "store.witness");
    (Runs({"/usr/bin/prlimit", "--as=" + std::to_string(bytes)}) ? ran : refused) += 1;
    ASSERT_LT(bytes, uint64_t{1} << 40);
  }
  EXPECT_GT(refused, 4u);
}

TEST_F(ShortageE2eTest, ThreadsAreRefused) {
  std::vector<std::string> as_another;
  std::string tacitd = TACITD;
  if (geteuid() == 0) {
    // No limit on threads is for root. The other user may reach no more than the test's folder.
    constexpr int kAnother = 64'322;
    tacitd = dir_ / "tacitd";
    fs::copy(TACITD, tacitd);
    ASSERT_EQ(chown(dir_.path().c_str(), kAnother, kAnother), 0);
    for (const auto& entry : fs::recursive_directory_iterator(dir_.path()))
      ASSERT_EQ(chown(entry.path().c_str(), kAnother, kAnother), 0);
    as_another = {"/usr/bin/setpriv", "--reuid=" + std::to_string(kAnother),
                  "--regid=" + std::to_string(kAnother), "--clear-groups"};
  }
  size_t ran = 0, refused = 0;
  for (int threads = 1; ran < 2; threads += 1 + threads / 8) {
    std::vector<std::string> limit = as_another;
    limit.insert(limit.end(), {"/usr/bin/prlimit", "--nproc=" + std::to_string(threads)});
    (Runs(limit, tacitd) ? ran : refused) += 1;
    ASSERT_LT(threads, 10'000);
  }
  EXPECT_GT(refused, 2u);
}

}  // namespace
}  // namespace tacit

#endif
