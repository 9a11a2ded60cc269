#pragma once

#include <cstdint>

// The defaults that were tuned, each with its origin: the configuration of tacitd and the constants
// of `tacit evaluate` both begin from these. All were chosen on public data sets, before any user's
// data is seen, and cost no privacy. tests/bench/history/2026-11.md has the runs, under the titles
// named here. The constants of the shaped count model itself are in model/transitions/options.h,
// where both read them too.
namespace tacit::tuned {

// A trained model of the next item. MovieLens-1M, `transformer` at epsilon 10, six runs ranking
// items before the last: "the private transformer, and counts with it".
inline constexpr uint32_t kLength = 50, kWidth = 32;
// The share of an item's first embedding that follows from the item's description: "embeddings that
// begin as their items are described", items before the last.
inline constexpr double kDescribedShare = 0.8;
inline constexpr bool kItemBias = true, kMaskSeen = true, kRandomCrops = true;
inline constexpr double kAverageDecay = 0.95, kWarmUp = 0.1;

// The pace of its training.
struct Pace {
  double epochs = 0;  // a private period of a stream: steps, each with every user
  double batch = 0;   // users of a step; a private period of a stream: the public divisor
  double learning_rate = 0, dropout = 0;
};
// All histories at once: MovieLens-1M, items before the last, epsilon 10: "embeddings that begin as
// their items are described". Without privacy one block is as good as two.
inline constexpr uint32_t kAtOnceLength = 100, kAtOnceBlocks = 1;
inline constexpr Pace kAtOncePrivate = {60, 2048, 0.015, 0}, kAtOncePlain = {20, 256, 0.005, 0.1};
// Period by period: MovieLens latest small in periods of 20,000 records, at epsilon 5 and without
// privacy: "trained learners on the same stream".
inline constexpr Pace kStreamPrivate = {20, 256, 0.003, 0}, kStreamPlain = {40, 16, 0.002, 0.5};

// The share of mu for the histogram of items that a period opens with; with the paces above.
inline constexpr double kHistogramShareAtOnce = 0.1, kHistogramShareOfStream = 0.85;
// A start by counts: their share of mu^2, and the weight of their logits. MovieLens-1M, as above.
// The table of shares, "What a private residual adds to counts", is a prototype's; no run that
// tells the weight was kept.
inline constexpr double kCountsShare = 0.9, kCountsWeight = 3;

// The ranker above counts: its share of mu^2, steps of a period, candidates that it learns on and
// that it orders, last items asked of a user, focus and rate of its loss. MovieLens-1M, items
// before the last, epsilon 1, 5 and 10: "counts and a private ranker".
inline constexpr double kRankerShare = 0.05;
inline constexpr double kRankerTablesSignal = 20e3;  // of the counts beside it
inline constexpr uint32_t kRankerSteps = 200;
inline constexpr uint32_t kRankerCandidates = 100, kRankerOrders = 200;
// Both where items are not described. All that the ranker knows there comes from counts, and
// answers that lie far down in their order teach it to undo the order of the first ones: "a ranker
// of items that are not described".
inline constexpr uint32_t kRankerCandidatesUndescribed = 20;
inline constexpr uint32_t kRankerLastItems = 6;
inline constexpr double kRankerFocus = 0.3, kRankerLearningRate = 0.03;

// The linear click model: records of a period at epsilon 1, and at any epsilon at least and at
// most; deviations of noise from which a value of a large column is released. Generated streaming
// logs, seeds 1 to 3, epsilon 1, 3 and 8: "the click model out of noised sums".
inline constexpr double kPeriodAtEpsilonOne = 150'000, kPeriodLeast = 50'000,
                        kPeriodMost = 1'000'000;
// Records of its first period where none is configured, and of a transitions model's period.
inline constexpr uint64_t kPeriodFirst = 10'000, kCountsPeriod = 250'000;
inline constexpr double kSumsDeviations = 5.5;

}  // namespace tacit::tuned
