#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/threads/worker_pool.h"
#include "model/histories.h"
#include "model/transitions/buckets.h"
#include "model/transitions/estimate.h"
#include "model/transitions/options.h"
#include "model/transitions/prior.h"
#include "model/transitions/public_items.h"

namespace tacit::model::transitions {

// All that the shaped count model has released so far, period by period, and what follows from it:
// the input of a Scorer, the stored form, and the shape of the next period's queries. Made of
// released numbers alone, so that keeping, storing and showing it is free.
//
// Sums of popularity and of tables are added up over the periods, and so is the variance of their
// noise. The bins of popularity (Buckets::kRanks) follow from the sums so far, anew in every
// period, and the table's sums stay with their buckets: a bucket says how often items of one rank
// are followed by items of another. The items may change: bins of equal popularity hold
// equal shares of it at any time. Bins fixed at first would leave every new item in the last bin.
// Measurements are combined in units of the first one (Estimate). In each period, the numbers of
// earlier periods count for Options::forget of what they did.
//
// The catalogue and the workers must outlive it. Not thread-safe while it is written to.
class ReleasedModel {
 public:
  // A model of which nothing was released.
  ReleasedModel(const PublicItems& catalogue, const Options& options, WorkerPool& workers);
  ReleasedModel(ReleasedModel&&) = default;
  ReleasedModel& operator=(ReleasedModel&&) = default;

  // Returns the stored form (released_bytes.cc); a model decoded from it encodes to the same bytes.
  // REQUIRES that no period is under way.
  std::string Encode() const;
  // kCorruption: the bytes are damaged. kInvalidArgument: they are of another catalogue or of other
  // constants; the error says what differs.
  static Result<ReleasedModel> Decode(std::string_view bytes, const PublicItems& catalogue,
                                      const Options& options, WorkerPool& workers);

  // The same model of a catalogue that has this one's items, item i at places[i]; without places it
  // begins with them. Nothing is known of the others. kRefused: they bring kinds of items that the
  // tables do not have, or items are described and akin by their order. The catalogue must outlive
  // it. REQUIRES a place for each item, all different.
  Result<ReleasedModel> Grown(const PublicItems& larger,
                              std::span<const uint32_t> places = {}) const;

  uint64_t periods() const { return periods_; }
  bool noiseless() const { return estimate_ != nullptr && estimate_->measured().noiseless; }
  const PublicItems& catalogue() const { return *catalogue_; }
  const Options& options() const { return options_; }
  // REQUIRES a period. Positive: popularity that noise has drowned is raised.
  std::span<const double> popularity() const { return estimate_->prior().popularity(); }
  const Estimate& estimate() const { return *estimate_; }
  // The sums over all periods, and the deviation of all their noise.
  const ReleasedTable& popularity_sums() const { return popularity_; }
  std::span<const ReleasedTable> tables() const { return tables_; }

  // The share of mu that the next period's popularity has: it follows from released numbers. Before
  // the first period nothing is known, and it is that of a first look.
  double PopularityShare() const;

  // The same of a table. REQUIRES that the next period's popularity was added.
  double TableShare(Buckets::Table table) const;

  // A period is these calls, in this order, each with what was released.

  // `sums` has every item; `mu` is what the whole period spends, infinite if there is no noise.
  void AddPopularity(std::span<const float> sums, double deviation, double mu);
  // The buckets that this period's tables count by.
  const Buckets& buckets() const { return next_->buckets; }
  void AddTables(std::span<const ReleasedTable> tables);
  // Chooses the cells that a stage measures, as places in estimate().cells(), ascending: the first
  // stage has the best of all cells, the others the best of those.
  std::vector<uint32_t> Choose(size_t stage);
  // Chooses these cells: without noise there is one stage.
  std::vector<uint32_t> ChooseSeen(const Cells& seen);
  // Takes the sums of the chosen places; the last stage ends the period.
  void Measure(size_t stage, std::span<const uint32_t> places, std::span<const float> sums,
               double deviation);

 private:
  // A prior, and the buckets that it uses.
  struct Fitted {
    Fitted(const PublicItems& catalogue, std::vector<double> popularity, uint32_t rank_bins);
    Fitted(const PublicItems& catalogue, std::vector<double> popularity, uint32_t rank_bins,
           std::vector<std::vector<float>> factors);
    Buckets buckets;
    Prior prior;
  };

  // Returns the popularity of every item, from the released sums.
  std::vector<double> Popularity() const;
  uint64_t StageCells(size_t stage) const;
  // Replaces the last prior by the new one.
  void UseNext();

  const PublicItems* catalogue_;
  Options options_;
  WorkerPool* workers_;
  uint64_t periods_ = 0;
  double signal_ = 0;  // mu times the noisy sum of popularity, over all periods
  ReleasedTable popularity_;
  std::vector<ReleasedTable> tables_;
  std::unique_ptr<Fitted> fitted_, next_;  // of the estimate; of the period under way
  std::unique_ptr<Estimate> estimate_;     // none before the first period
};

}  // namespace tacit::model::transitions
