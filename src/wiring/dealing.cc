#include "wiring/dealing.h"

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "store/types/learner_record.h"
#include "wiring/build_digest.h"
#include "wiring/plans/feed.h"
#include "wiring/plans/workers.h"

namespace tacit::wiring {

Result<std::unique_ptr<Dealing>> Dealing::Make(const Assembly& assembly, const Clock& clock,
                                               metrics::Registry& registry) {
  const config::Workers& config = assembly.config.workers;
  workers::DealerOptions options;
  TACIT_ASSIGN(options.key, ReadWorkersKey(config));
  options.events = [&assembly](LearnerIndex learner, std::string_view part) {
    return assembly.learners[learner.value].model->EventsOfPart(part);
  };
  options.check = config.check;
  options.patience = std::chrono::milliseconds(config.patience_ms);
  TACIT_ASSIGN(auto properties, FeedProperties(assembly.config));
  return std::unique_ptr<Dealing>(
      new Dealing(config, std::move(properties), options, clock, registry));
}

Status Dealing::SetStore(const Assembly& assembly, const store::Store& store,
                         std::string_view sources, const train::OptOut* opt_out) {
  const Digest build =
      BuildOf({.assembly = assembly, .key = key_, .sources = sources, .opt_out = opt_out});
  TACIT_ASSIGN(const store::Release release, store.LatestRelease());
  std::map<LearnerIndex, uint16_t> keys;
  for (const store::ReleasedLearner& one : release.learners) {
    TACIT_ASSIGN(const auto record, store::DecodeLearner(one.key, one.record));
    for (const LearnerPlan& learner : assembly.learners)
      if (record.name == learner.id) keys[learner.index] = one.key;
  }
  const SipHash::Key secret = store.user_key();
  dealer_.SetStore(std::move(keys), build, std::string(secret.begin(), secret.end()));
  return {};
}

}  // namespace tacit::wiring
