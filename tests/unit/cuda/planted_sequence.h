#pragma once

// Faults in the kernels of a transformer's parts, planted where tests ask for them.
namespace tacit::cuda::testing {

enum class SequenceFault {
  kNone,
  kNoMask,             // what was seen stays possible
  kTargetsMasked,      // what follows is made impossible, too
  kNoPrior,            // the prior's logits are zeros
  kPriorWithoutDecay,  // older items count as much as the last
  kPriorOfOthers,      // a prior of single items is read one item further on
  kOneCoinForAll,      // sites are not told apart
  kOtherCoinsBehind,   // no two draws of a site are the same
  kDroppedOnce,        // where a variance wants to be dropped from twice
  kNoEmbedded,         // items' own variance is left out
  kEmbeddedUnscaled,   // the scale of embeddings is left out of it
  kNoOwn,              // the noise of layers' own weights is left out
  kOwnWithoutBias,     // and that of biases alone
  kNoNormVariance,     // a normalised layer leaves variances as they are
  kNoReluVariance,     // a ReLU does
  kNoCorrection,       // attention is not corrected
  kUncapped,           // it is, as far as it goes
  kNoAttended,         // the variance of what is attended to is left out
  kNotCausal,          // a query sees the keys behind it
  kKeyTileLeftOut,     // the last tile of a query's keys is
  kQueryTileLeftOut,   // the first tile of a key's queries is
  kTilesNotAwaited,    // tiles are read before all of their rows are there
  kTilesNotReleased,   // and written while other warps read them
};
void PlantInLogits(SequenceFault fault);
void PlantInDropout(SequenceFault fault);
void PlantInVariance(SequenceFault fault);
void PlantInAttention(SequenceFault fault);
void PlantInAttentionTiles(SequenceFault fault);

}  // namespace tacit::cuda::testing
