#include "lab/next_item/counted_start.h"

#include <utility>

#include "model/sequence/counted_logits.h"
#include "train/transitions_release.h"

namespace tacit::lab {

Result<CountedStart> ReleaseCountedStart(const model::Histories& train,
                                         const model::transitions::PublicItems& catalogue,
                                         const model::transitions::Options& options, double weight,
                                         double mu, noise::NoiseSource& noise, WorkerPool& workers,
                                         const std::function<void(double)>& progress) {
  TACIT_RETURN_IF_ERROR(model::CheckCountedLogits(train.catalogue, options));
  TACIT_ASSIGN(const auto release,
               train::ReleaseTransitions(train, catalogue, options, mu, noise, workers, progress));
  auto prior = std::make_unique<model::DecayedLogits>(train.catalogue, options.recent_decay);
  prior->Set(model::CountedLogits(release.estimate(), options, weight, workers));
  return CountedStart{std::move(prior), release.MuSquared()};
}

}  // namespace tacit::lab
