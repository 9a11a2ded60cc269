#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/routes/services.h"
#include "tape/disk_life.h"
#include "unit/stream/mock_kafka.h"

namespace tacit::tape {

// A public way out of a service, and all that came out of it.
struct Shown {
  std::string way, bytes;
};

// The public ways out of the services of one life: every route that a public listener answers,
// /metrics among them; the records of the feed; a release checkpoint, and a full one without its
// raw keys; a statement of the ledger, and the ledger itself; the run's end.
class PublicWays {
 public:
  // Changes what routes are made of, as a fault of the daemon would. May be empty.
  using Plant = std::function<void(const Running&, serve::Services*)>;

  explicit PublicWays(Plant plant = {});

  // Asks all ways of a service, each in the same words.
  void Ask(const Running& running);

  const std::vector<Shown>& shown() const { return shown_; }
  // The keys of full checkpoints that are raw by design, with their values.
  const std::string& raw() const { return raw_; }
  // Routes that have answered with status 200.
  const std::set<std::string>& answered() const { return answered_; }

 private:
  void AskRoutes(const Running& running);
  void Publish(const Running& running);
  void MakeCheckpoints(const Running& running);
  void RunCommands(const Running& running);
  void Show(std::string way, std::string bytes);

  const Plant plant_;
  stream::MockKafka kafka_;
  std::vector<Shown> shown_;
  std::string raw_;
  std::set<std::string> answered_;
};

// All routes of the table that are for the public.
std::set<std::string> PublicRoutes();

// The first way on which the lives differ, with the bytes; "" if there is none.
std::string FirstDifference(std::span<const Shown> one, std::span<const Shown> other);

// From here on OpenSSL's chance, from which lineages, keys and salts come, follows from this seed.
void StartChance(uint64_t seed);

}  // namespace tacit::tape
