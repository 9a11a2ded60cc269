#include "system/accidents/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "http/client.h"
#include "support/eventually.h"

namespace tacit::test {
namespace {

using Steady = std::chrono::steady_clock;
constexpr int kPartitions = 4;
constexpr auto kTick = std::chrono::milliseconds(50);

double SecondsSince(Steady::time_point begin) {
  return std::chrono::duration<double>(Steady::now() - begin).count();
}

}  // namespace

Scenario::Scenario(const Options& options)
    : options_(options), stream_(options.seed, options.happening, options.size) {
  kafka_.Create("shop", kPartitions);
  WriteFile(dir_ / "shop.yaml", Configuration());
  process_ =
      std::make_unique<Process>(std::vector<std::string>{TACITD, "--config", dir_ / "shop.yaml"});
}

std::string Scenario::Configuration() const {
  return fmt::format(
      "source:\n  kind: kafka\n  topic: shop\n  format: json\n  json: {}\n"
      "kafka: {{bootstrap.servers: \"{}\", group.id: tacit}}\n{}"
      "learners:\n  - id: clicks\n    model: {{kind: linear}}\n    mechanism: {{kind: sums}}\n"
      "    participation: {{mode: once, batch: 20000}}\n"
      "    privacy: {{unit: event, epsilon: 8, delta: 1.0e-6}}\n"
      "training: {{idle_priority: false, workers: 1}}\n"
      "serve: {{listen: \"unix:{}\", operator_listen: \"unix:{}\"}}\n"
      "store: {{path: \"{}\"}}\n",
      stream_.SourceJson(), kafka_.bootstrap(), stream_.Schema(), dir_ / "public",
      dir_ / "operators", dir_ / "store");
}

std::optional<std::string> Scenario::Ask(const std::string& path) const {
  const auto answer =
      http::Fetch("unix:" + (dir_ / "operators") + ":" + path, "GET", "", kPatience);
  if (!answer) return std::nullopt;
  return answer->body;
}

bool Scenario::Begin() {
  return static_cast<bool>(
             Eventually("the daemon answers",
                        [&] {
                          return Ask("/healthz").has_value() ||
                                 process_->WaitFor(std::chrono::milliseconds(0)).has_value();
                        })) &&
         Ask("/healthz").has_value();
}

void Scenario::Write(size_t count, bool happens, double since) {
  records_.clear();
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  while (records_.size() < count) stream_.Next(happens, since, now.count(), &records_);
  for (std::string& record : records_) {
    const auto partition = static_cast<int32_t>(static_cast<uint64_t>(written_) % kPartitions);
    kafka_.Write("shop", partition, std::move(record));
    ++written_;
  }
}

std::optional<double> Scenario::Pass(double seconds, bool happens) {
  const Steady::time_point begin = Steady::now();
  double due = 0, last = 0;
  for (int tick = 0;; ++tick) {
    const double since = SecondsSince(begin);
    if (since > seconds) return std::nullopt;
    longest_gap_ = std::max(longest_gap_, since - last);
    due += (since - last) * options_.records_a_second * stream_.Pace(happens, since);
    last = since;
    const auto count = static_cast<size_t>(due);
    due -= static_cast<double>(count);
    Write(count, happens, since);
    if (tick % 4 == 0) {
      ready_ = Ask("/readyz").value_or("no answer");
      if (ready_.find("changed at once") != std::string::npos ||
          ready_.find("could not be learnt from") != std::string::npos)
        return SecondsSince(begin);
    }
    // The stream has a pace, and a tick of it is what is waited for.
    std::this_thread::sleep_for(kTick);
  }
}

double Scenario::RecordsRead() const {
  const std::string page = Ask("/metrics").value_or("");
  const std::string name = "\ntacit_records_read_total ";
  const size_t at = page.find(name);
  return at == std::string::npos ? 0 : std::atof(page.c_str() + at + name.size());
}

}  // namespace tacit::test
