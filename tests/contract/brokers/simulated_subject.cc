#include "contract/brokers/subject.h"
#include "sim/brokers/cluster.h"

namespace tacit::test::subject {
namespace {

sim::Cluster& TheCluster() {
  static const sim::Cluster::Owned cluster = sim::Cluster::Make();
  return *cluster;
}

void SetLine(bool sim::Cluster::Line::*state, bool value) {
  sim::OnCluster act(TheCluster());
  act->line(0).*state = value;
}

}  // namespace

std::string Bootstrap() { return TheCluster().address(); }
std::string Missing() { return ""; }
bool Required() { return false; }
std::string NewName(const std::string& stem) {
  static int number = 0;
  return stem + "-" + std::to_string(++number);
}

void CreateTopic(const std::string& name, int32_t partitions,
                 const std::vector<std::pair<std::string, std::string>>& settings) {
  sim::OnCluster(TheCluster())->CreateTopic(name, partitions, settings);
}
void GrowTopic(const std::string& name, int32_t partitions) {
  sim::OnCluster(TheCluster())->GrowTopic(name, partitions);
}
void DeleteTopic(const std::string& name) { sim::OnCluster(TheCluster())->DeleteTopic(name); }
void CreateCompacted(const std::string& name) {
  CreateTopic(name, 1, {{"cleanup.policy", "compact"}});
}
// Compaction keeps the last record, so there is another behind the tombstone.
void Compact(const std::string& name) {
  const sim::ClusterRecord filler{.key = "filler", .value = "filler"};
  sim::OnCluster act(TheCluster());
  act->Append(name, 0, {}, 0, false, {&filler, 1});
  act->Compact(name, true);
}

void GoAway() { SetLine(&sim::Cluster::Line::cut, true); }
void ComeBack() { SetLine(&sim::Cluster::Line::cut, false); }
void StandStill() { SetLine(&sim::Cluster::Line::silent, true); }
void GoOn() { SetLine(&sim::Cluster::Line::silent, false); }

}  // namespace tacit::test::subject
