#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/worker_pool.h"
#include "model/histories.h"
#include "model/transitions/buckets.h"
#include "model/transitions/catalogue.h"
#include "model/transitions/estimate.h"
#include "model/transitions/options.h"
#include "model/transitions/prior.h"

namespace tacit::model::transitions {

// All that the shaped count model has released so far, period by period, and what follows from it:
// what a Scorer is made of, what is stored, and what the next period's queries are shaped by. Made
// of released numbers alone, so that keeping, storing and showing it is free.
//
// Sums of popularity and of tables are added up over the periods, and so is the variance of their
// noise. The bins of popularity (Buckets::kRanks) follow from the sums so far, anew in every
// period, and the table's sums stay with their buckets: a bucket says how often what ranks so is
// followed by what ranks so, whichever items that was, and bins of equal popularity hold equal
// shares of it at any time. Bins fixed at first would leave every item that is new in the last.
// Measurements are combined in the first one's units (Estimate). Each period, what earlier ones
// told counts for Options::forget of what it did.
//
// The catalogue and the workers must outlive it. Not thread-safe while it is written to.
class ReleasedModel {
 public:
  // Nothing was released.
  ReleasedModel(const Catalogue& catalogue, const Options& options, WorkerPool& workers);
  ReleasedModel(ReleasedModel&&) = default;
  ReleasedModel& operator=(ReleasedModel&&) = default;

  // The form that is stored (README.md); what is decoded from it encodes to the same bytes.
  // REQUIRES that no period is under way.
  std::string Encode() const;
  // kCorruption where the bytes are damaged; kInvalidArgument where they are of another catalogue
  // or of other constants, saying what differs.
  static Result<ReleasedModel> Decode(std::string_view bytes, const Catalogue& catalogue,
                                      const Options& options, WorkerPool& workers);

  uint64_t periods() const { return periods_; }
  bool noiseless() const { return estimate_ != nullptr && estimate_->measured().noiseless; }
  const Catalogue& catalogue() const { return *catalogue_; }
  const Options& options() const { return options_; }
  // REQUIRES a period. Positive: what noise has drowned is raised.
  std::span<const double> popularity() const { return estimate_->prior().popularity(); }
  const Estimate& estimate() const { return *estimate_; }
  // The sums over all periods, and the deviation of all their noise.
  const ReleasedTable& popularity_sums() const { return popularity_; }
  std::span<const ReleasedTable> tables() const { return tables_; }

  // Of mu, what the next period's popularity has: it follows from what was released.
  double PopularityShare() const;

  // A period is these calls, in this order, each with what was released.

  // Of every item; `mu` is what the whole period spends, infinite where there is no noise.
  void AddPopularity(std::span<const float> sums, double deviation, double mu);
  // What this period's tables count by.
  const Buckets& buckets() const { return next_->buckets; }
  void AddTables(std::span<const ReleasedTable> tables);
  // The cells that a stage measures, as places in estimate().cells(), ascending: the first stage's
  // are the best of all there are, the others' the best of those.
  std::vector<uint32_t> Choose(size_t stage);
  // Without noise there is one stage, of these.
  std::vector<uint32_t> ChooseSeen(const Cells& seen);
  // The sums of the places that were chosen; the last stage ends the period.
  void Measure(size_t stage, std::span<const uint32_t> places, std::span<const float> sums,
               double deviation);

 private:
  // The prior, and the bins that it goes by.
  struct Fitted {
    Fitted(const Catalogue& catalogue, std::vector<double> popularity, uint32_t rank_bins);
    Fitted(const Catalogue& catalogue, std::vector<double> popularity, uint32_t rank_bins,
           std::vector<std::vector<float>> factors);
    Buckets buckets;
    Prior prior;
  };

  // Of what was released of it.
  std::vector<double> Popularity() const;
  uint64_t StageCells(size_t stage) const;
  // The new prior takes the place of the last one.
  void UseNext();

  const Catalogue* catalogue_;
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
