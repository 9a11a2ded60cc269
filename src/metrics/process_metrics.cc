#include "metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "metrics/families.h"

namespace tacit::metrics {
namespace {

namespace fs = std::filesystem;

// Fields of /proc/self/stat behind the program's name, numbered as proc(5) does.
class StatFields {
 public:
  StatFields() {
    std::ifstream file("/proc/self/stat");
    std::stringstream text;
    text << file.rdbuf();
    // The name stands in parentheses and may hold any character.
    const std::string all = text.str();
    std::istringstream rest(all.substr(std::min(all.size(), all.rfind(')') + 1)));
    std::string field;
    for (size_t i = kFirst; i < fields_.size() && rest >> field; ++i)
      fields_[i] = std::strtod(field.c_str(), nullptr);
  }
  double operator[](size_t number) const { return fields_[number]; }

 private:
  static constexpr size_t kFirst = 3;  // the state, a letter, is read as 0
  std::array<double, 25> fields_{};
};
constexpr size_t kUserTicks = 14, kSystemTicks = 15, kThreads = 20, kStartTicks = 22,
                 kVirtualBytes = 23, kResidentPages = 24;

// Unix time at which the machine started.
double BootTime() {
  std::ifstream file("/proc/stat");
  double seconds = 0;
  for (std::string word; file >> word;)
    if (word == "btime") file >> seconds;
  return seconds;
}

double OpenFiles() {
  std::error_code error;
  double files = 0;
  for (fs::directory_iterator fd("/proc/self/fd", error), end; !error && fd != end;
       fd.increment(error))
    ++files;
  return files - 1;  // the folder itself
}

double MaxFiles() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : 0;
}

std::string NumberOf(const std::string& version) { return version.substr(version.rfind(' ') + 1); }

}  // namespace

void ShowProcess(Registry& registry, const std::string& version) {
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  registry.AddGauge("tacit_build_info", {{"version", NumberOf(version)}}).Set(1);
  registry.AddGauge("process_start_time_seconds")
      .Set(BootTime() + StatFields()[kStartTicks] / ticks);
  const auto gauge = [&](GaugeName name) { return registry.AddGauge(name); };
  const auto cpu = registry.AddCounter("process_cpu_seconds_total");
  const auto resident = gauge("process_resident_memory_bytes");
  const auto virtual_bytes = gauge("process_virtual_memory_bytes");
  const auto threads = gauge("process_threads");
  const auto open = gauge("process_open_fds");
  gauge("process_max_fds").Set(MaxFiles());
  registry.BeforeScrape([=] {
    const StatFields stat;
    cpu.RaiseTo((stat[kUserTicks] + stat[kSystemTicks]) / ticks);
    resident.Set(stat[kResidentPages] * page);
    virtual_bytes.Set(stat[kVirtualBytes]);
    threads.Set(stat[kThreads]);
    open.Set(OpenFiles());
  });
}

}  // namespace tacit::metrics
