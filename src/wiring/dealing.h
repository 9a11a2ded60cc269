#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "metrics/registry.h"
#include "store/store.h"
#include "stream/kafka/period_share.h"
#include "train/opt_out.h"
#include "wiring/assembly.h"
#include "wiring/trainer_topics.h"
#include "workers/dealer.h"

namespace tacit::wiring {

// A trainer's dealer over the topics of its brokers, as a configuration with workers has it.
class Dealing {
 public:
  // kInvalidArgument: the key file, or settings of the brokers. Asks no broker yet. REQUIRES
  // workers.topic. The references must outlive it.
  static Result<std::unique_ptr<Dealing>> Make(const Assembly& assembly, const Clock& clock,
                                               metrics::Registry& registry);

  stream::PeriodShare* share() { return &dealer_; }
  // Tells the dealer of the learners' store, before the source begins. The build is of `sources`
  // and `opt_out` (BuildParts).
  Status SetStore(const Assembly& assembly, const store::Store& store, std::string_view sources,
                  const train::OptOut* opt_out);
  // Says what is wrong with workers and their topics; empty if nothing is. Any thread.
  std::string trouble() const { return dealer_.trouble(); }

 private:
  Dealing(const config::Workers& config, stream::KafkaProperties properties,
          const workers::DealerOptions& options, const Clock& clock, metrics::Registry& registry)
      : key_(options.key),
        topics_(config, std::move(properties)),
        dealer_(options, topics_, clock, registry) {}

  const workers::SharedKey key_;
  KafkaTrainerTopics topics_;
  workers::Dealer dealer_;
};

}  // namespace tacit::wiring
