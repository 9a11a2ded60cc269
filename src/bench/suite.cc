#include "bench/suite.h"

namespace tacit::bench {

std::vector<Bench> AllBenches() {
  // --quick does not shorten these.
  const auto always = [](Result<std::vector<BenchRow>> (*run)()) {
    return [run](const BenchRequest&) { return run(); };
  };
  return {
      {"step", "the private pCTR step (batch 2048, 4 x 598) on one core", always(BenchStep)},
      {"carriers",
       "private steps with low-rank carriers over steps without, by rank, of both networks",
       BenchCarriers},
      {"clipping", "ways to a layer's clipped sum, by width and by rows of a unit", BenchClipping},
      {"training", "steps with commits through a store, on two cores", always(BenchTraining)},
      {"commit", "the time that training stands still for the rows of a commit", BenchCommit},
      {"vocabulary", "dense DP-SGD and AdaFEST against the size of the vocabulary",
       BenchVocabulary},
      {"accountant", "questions about privacy: epsilons, calibration, a long ledger",
       BenchAccountants},
      {"noise", "Gaussian noise into memory, in floats and on a grid", always(BenchNoise)},
      {"decode", "records of each format to columnar batches, and making them",
       always(BenchDecode)},
      {"serve", "answers over HTTP, beside a bare Beast server, with and without training",
       BenchServe},
      {"feed", "a model through the feed into a replica, and what that means for larger ones",
       BenchFeed},
      {"workers", "sums of a linear model by workers, and what that means for more of them",
       BenchWorkers},
      {"kafka", "a topic to batches, beside librdkafka alone; only when named", BenchKafka, true}};
}

}  // namespace tacit::bench
