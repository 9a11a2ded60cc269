// The list of what crosses the border between a program and the C library.
#include "sim/border.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "sim/simulation.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace tacit::sim {
namespace {

const std::string kList = TACIT_SOURCE_DIR "/tests/sim/calls.txt";

// Returns whether a list with these words in place of others brings such a complaint.
bool Complains(const std::string& words, const std::string& instead, const std::string& complaint) {
  const test::TempDir folder;
  std::string text = test::ReadFile(kList);
  const size_t at = text.find(words);
  EXPECT_NE(at, std::string::npos);
  text.replace(at, words.size(), instead);
  const std::string path = folder.path() + "/calls.txt";
  test::WriteFile(path, text);
  for (const std::string& made : CheckBorder(path))
    if (made.starts_with(complaint)) return true;
  return false;
}

TEST(Border, EachCallIsInTheListAndOursAreOurs) {
  for (const std::string& complaint : CheckBorder(kList)) ADD_FAILURE() << complaint;
}

TEST(Border, AForgottenCallAndOneThatPassesByAreSeen) {
  EXPECT_TRUE(Complains("pthread_join", "", "pthread_join, which "));
  EXPECT_FALSE(Complains("pthread_join", "pthread_join", "pthread_join"));
  EXPECT_TRUE(Complains("[simulated]", "[simulated]\nmemcpy", "memcpy of "));
}

TEST(BorderDeathTest, AProcessThatASimulatedThreadStartsEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(Simulate({.seed = 1}, [] { fork(); }), "a simulated thread calls fork");
}

}  // namespace
}  // namespace tacit::sim
