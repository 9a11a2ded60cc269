// A daemon that the system refuses memory or threads: it ends with a status and a sentence,
// wherever the refusal meets it, and the store goes on from what is committed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <filesystem>
#include <utility>

#include "support/json.h"
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

  // The steps and the epsilon that the store ends with.
  std::pair<uint64_t, double> End() {
    const boost::json::object ledger =
        test::Json(test::Run({TACIT, "ledger", "show", "--store", dir_ / "store", "--json"}));
    const boost::json::object& learner = ledger.at("learners").at(0).as_object();
    return {learner.at("steps").to_number<uint64_t>(), learner.at("epsilon").to_number<double>()};
  }

  test::TempDir dir_;
  test::SmallRun run_;
  std::string config_;
};

// Limits rise until the daemon has what it wants, on a machine of however many cores. A store that
// it was refused memory for goes on to the exact end.
TEST_F(ShortageE2eTest, MemoryIsRefused) {
  ASSERT_TRUE(Runs({}));
  const std::pair whole = End();
  EXPECT_GT(whole.first, 10u);
  size_t ran = 0, refused = 0;
  bool fresh = true;  // a store of a run that was refused is as good
  for (uint64_t bytes = 64 << 20; ran < 3; bytes += bytes / 8) {
    if (fresh) {
      fs::remove_all(dir_ / "store");
      fs::remove_all(dir_ / "store.witness");
    }
    fresh = Runs({"/usr/bin/prlimit", "--as=" + std::to_string(bytes)});
    (fresh ? ran : refused) += 1;
    EXPECT_TRUE(!fresh || End() == whole) << bytes;
    ASSERT_LT(bytes, uint64_t{1} << 40);
  }
  EXPECT_GT(refused, 4u);
}

// A limit on the size of files is met as a failure to write: by a sentence, and the store goes on.
TEST_F(ShortageE2eTest, FilesMayNotGrow) {
  ASSERT_TRUE(Runs({}));
  const std::pair whole = End();
  fs::remove_all(dir_ / "store");
  fs::remove_all(dir_ / "store.witness");
  size_t refused = 0;
  for (const uint64_t bytes : {1 << 10, 16 << 10, 128 << 10, 512 << 10, 2 << 20}) {
    const Ended ended = test::Run({"/usr/bin/prlimit", "--fsize=" + std::to_string(bytes), TACITD,
                                   "--config", config_, "--until-end"});
    EXPECT_EQ(ended.signal, 0) << bytes << "\n" << ended.err;
    EXPECT_THAT(ended.exit_code, testing::AnyOf(0, 1)) << bytes << "\n" << ended.err;
    if (ended.exit_code == 0) continue;
    EXPECT_THAT(ended.err, testing::HasSubstr(dir_ / "store")) << bytes;
    ++refused;
  }
  EXPECT_GT(refused, 1u);
  ASSERT_TRUE(Runs({}));
  EXPECT_EQ(End(), whole);
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
