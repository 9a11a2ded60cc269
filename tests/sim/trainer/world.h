#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/brokers/cluster.h"
#include "sim/process.h"
#include "sim/trainer/auditor.h"
#include "system/kafka/oracle.h"

namespace tacit::sim {

// A trainer as it ships, in many lives of a minute or so, on simulated brokers and a simulated
// disk: killed, without power, asked to end, its brokers away, its disk failing, its topic growing,
// while records come, good and bad, in transactions that are decided, aborted or left open. All is
// drawn from the seed. After each life the auditor looks at what is left.
class World {
 public:
  struct Options {
    uint64_t seed = 0;
    uint64_t lives = 24;
  };
  explicit World(const Options& options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Returns the complaints, empty if there is none. Call it once.
  std::string Play();

  uint64_t Digest() const { return disk_->Digest(); }
  struct Figures {
    double hours = 0;
    uint64_t kills = 0, power_losses = 0, ends = 0;  // of processes
    uint64_t disk_faults = 0, outages = 0, losses = 0, refusals = 0, growths = 0;
    uint64_t events = 0, steps = 0;

    Figures& operator+=(const Figures& other);
    std::string Text() const;
  };
  Figures figures() const;

 private:
  // The memory that processes of a run share.
  struct Shared {
    bool asked_to_end = false;
    uint64_t outages = 0, refusals = 0, events = 0;
    Told told;
    Draws draws;
  };
  class Weather;

  uint64_t Draw(uint64_t life, uint64_t what) const;
  bool OneIn(uint64_t n, uint64_t life, uint64_t what) const { return Draw(life, what) % n == 0; }
  Life Run(uint64_t life, const std::function<int()>& body) const;
  std::string Write(const std::string& config);
  std::string PlayLife(uint64_t life);
  std::string Look(uint64_t life, bool at_end);
  std::string EndWell();
  void PlanFault(uint64_t life);

  void Calm();

  // Within a trainer's process.
  void Disturb(uint64_t life);
  bool Behind();
  int Show();

  const Options options_;
  const bool users_;
  const Disk::Owned disk_ = Disk::Make();
  const Cluster::Owned cluster_;
  test::Oracle oracle_{1};
  Auditor auditor_;
  Shared& shared_;
  std::optional<Fault> fault_;  // of this life
  Figures figures_;
};

}  // namespace tacit::sim
