// `tacitd --worker`.
#include "daemon/worker/worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/files/log.h"
#include "daemon/daemon.h"
#include "daemon/service.h"
#include "wiring/memory_plan.h"

namespace tacit::daemon {
namespace {

// The machine's name, and digits that no other process of it draws.
std::string NewName() {
  std::array<char, 128> host{};
  if (gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') return "worker";
  std::string name(host.data());
  std::ranges::replace_if(
      name, [](char letter) { return !workers::IsOfName(letter); }, '-');
  return fmt::format("{}-{}", name.substr(0, 80), workers::NewKeyText().substr(0, 8));
}

}  // namespace

Result<int> RunWorker(const wiring::Assembly& assembly, const Start& start) {
  console::StopSignals signals;
  metrics::Registry registry;
  TACIT_ASSIGN(const auto service, Service::OpenToServe(assembly, start, registry, signals));
  TACIT_ASSIGN(const uint64_t bytes, wiring::PlanWorker(assembly));
  spdlog::info(
      "memory: {} MiB of {} MiB at most for records and sums, and some 70 bytes a row of the model",
      bytes >> 20, assembly.config.memory_total_bytes >> 20);
  const SystemClock clock;
  const std::string name = NewName();
  const std::string& topics = assembly.config.workers.topic;
  service->TellStart("", 0, fmt::format("worker {} of {}.plan", name, topics));
  TACIT_ASSIGN(const auto worker, Worker::Open({.assembly = assembly,
                                                .clock = clock,
                                                .registry = registry,
                                                .name = name,
                                                .sources = start.sources,
                                                .check_feed = start.check_feed}));
  TACIT_RETURN_IF_ERROR(
      service->Answer({.serves = false,
                       .latest = [] { return std::shared_ptr<const store::Snapshot>(); },
                       .models = {},
                       .readiness = [&worker] { return worker->readiness(); },
                       .dashboard = {.activity = [] { return "summing for a trainer"; }}},
                      {}));
  service->Run({.ready = "summing for a trainer",
                .stages = {{"the worker", [&] { return worker->heartbeat().Look(); }}},
                .stop = [&] { worker->Stop(); }});
  return console::kExitDone;
}

}  // namespace tacit::daemon
