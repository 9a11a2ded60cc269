// The figures of the process are what the kernel says in other words.
#include "metrics/process_metrics.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <vector>

namespace tacit::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

double ValueOf(const std::string& scrape, const std::string& name) {
  const size_t at = scrape.find("\n" + name + " ");
  EXPECT_NE(at, std::string::npos) << name << " in\n" << scrape;
  return at == std::string::npos ? -1 : std::strtod(&scrape[at + name.size() + 2], nullptr);
}

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class ProcessMetricsTest : public testing::Test {
 protected:
  ProcessMetricsTest() { ShowProcess(registry_, "tacit 1.2.3"); }
  double Value(const std::string& name) {
    return ValueOf(registry_.Scrape(Audience::kOperator), name);
  }
  Registry registry_;
};

TEST_F(ProcessMetricsTest, TheyAreWhatTheKernelSays) {
  const double before = ProcessorSeconds();
  const double cpu = Value("process_cpu_seconds_total");
  constexpr double kTwoTicks = 0.02;  // user and system time are each rounded down to a tick
  EXPECT_GE(cpu, before - kTwoTicks);
  EXPECT_LE(cpu, ProcessorSeconds() + kTwoTicks);
  const double resident = Value("process_resident_memory_bytes");
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);  // after it, since the peak grows
  const double peak = static_cast<double>(usage.ru_maxrss) * 1024;
  EXPECT_LE(resident, peak);
  EXPECT_GT(resident, peak / 4);
  EXPECT_GT(Value("process_virtual_memory_bytes"), Value("process_resident_memory_bytes"));
  EXPECT_GE(Value("process_threads"), 1);
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(Value("process_max_fds"), static_cast<double>(limit.rlim_cur));
  const auto now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_LE(Value("process_start_time_seconds"), now + 1);
  EXPECT_GT(Value("process_start_time_seconds"), now - 3600) << "a test of this room is short";
}

TEST_F(ProcessMetricsTest, OpenFilesAreCounted) {
  const double before = Value("process_open_fds");
  std::vector<int> files;
  for (int i = 0; i < 7; ++i) files.push_back(open("/dev/null", O_RDONLY));
  EXPECT_EQ(Value("process_open_fds"), before + 7);
  for (const int file : files) close(file);
  EXPECT_EQ(Value("process_open_fds"), before);
}

TEST_F(ProcessMetricsTest, WhatDependsOnRecordsIsTheOperators) {
  const std::string seen = registry_.Scrape(Audience::kPublic);
  EXPECT_THAT(seen, HasSubstr("tacit_build_info{version=\"1.2.3\"} 1\n"));
  EXPECT_THAT(seen, HasSubstr("process_start_time_seconds "));
  for (const char* name : {"cpu", "memory", "fds", "threads"})
    EXPECT_THAT(seen, Not(HasSubstr(name)));
}

}  // namespace
}  // namespace tacit::metrics
