#include "train/sequence/sequence_engine.h"

namespace tacit::train {

std::string WhyNotOnEngine(const SequenceEngineOptions& options) {
  const model::SequenceOptions& model = options.model;
  if (model.encoder != model::SequenceOptions::Encoder::kTransformer)
    return "a recurrent encoder has no form for a GPU";
  if (!options.is_private) return "training without privacy has no form for a GPU";
  if (options.prior_has_no_table)
    return "start counts over a catalogue without a table of all pairs has no form for a GPU";
  if (options.has_carriers) return "carriers have no form for a GPU";
  if (model.negatives > 0) return "sampled negatives have no form for a GPU";
  if (options.recipe.clip == mechanism::Recipe::Clip::kPerLayer)
    return "a clip per layer has no form for a GPU";
  return "";
}

}  // namespace tacit::train
