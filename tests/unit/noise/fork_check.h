#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support/statistics.h"

namespace tacit::noise::testing {

// Draws in a forked child and in the parent after the fork; what is wrong, or "".
inline std::string CheckFork(const std::function<uint64_t()>& next) {
  constexpr size_t kWords = 100;
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);  // one that waits for what it has not inherited
    std::vector<uint64_t> words(kWords);
    for (uint64_t& word : words) word = next();
    const auto size = static_cast<ssize_t>(kWords * sizeof(uint64_t));
    _exit(write(pipe_ends[1], words.data(), kWords * sizeof(uint64_t)) == size ? 0 : 1);
  }
  EXPECT_GT(child, 0);
  std::vector<uint64_t> ours(kWords), theirs(kWords);
  for (uint64_t& word : ours) word = next();
  const auto size = static_cast<ssize_t>(kWords * sizeof(uint64_t));
  EXPECT_EQ(read(pipe_ends[0], theirs.data(), kWords * sizeof(uint64_t)), size);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  return tacit::testing::CheckNoCommonWord(ours, theirs);
}

}  // namespace tacit::noise::testing
