#include "lab/next_item/stream_start.h"

#include <cmath>
#include <limits>
#include <utility>

#include "lab/next_item/trained_model.h"
#include "model/sequence/counted_logits.h"
#include "train/item_histogram.h"
#include "train/transitions_release.h"

namespace tacit::lab {
namespace {

tl::unexpected<Error> RefuseStart(std::string why) {
  return Fail(ErrorCode::kInvalidArgument, std::move(why));
}

// Releases one histogram per period and adds them up.
class PopularStart final : public StreamStart {
 public:
  explicit PopularStart(const SequenceSetting& setting)
      : histogram_share_(setting.trained.histogram_share),
        forget_(setting.transitions.forget),
        is_prior_(setting.trained.popularity_start),
        running_(setting.catalogue->items()),
        logits_(setting.catalogue->items()) {}

  double share() const override { return histogram_share_ * histogram_share_; }

  Result<double> Learn(const StreamPeriod& period, double mu, double users,
                       noise::NoiseSource& noise, WorkerPool&) override {
    const train::ItemHistogram histogram =
        train::ReleaseItems(period.histories, period.known, std::numeric_limits<size_t>::max(),
                            histogram_share_ * mu, noise);
    running_.Add(histogram, users, forget_);
    logits_.Set(running_.Logits());
    return histogram.charge.MuSquared();
  }

  const model::LogitPrior* prior() const override { return is_prior_ ? &logits_ : nullptr; }
  std::vector<float> ItemShares() const override { return running_.Shares(); }

 private:
  const double histogram_share_, forget_;
  const bool is_prior_;
  train::RunningItems running_;
  model::ItemLogits logits_;
};

// Releases the shaped count model, which carries its own state from period to period.
class CountedStreamStart final : public StreamStart {
 public:
  CountedStreamStart(const SequenceSetting& setting, WorkerPool& workers)
      : counts_share_(setting.trained.counts_share),
        weight_(setting.trained.counts_weight),
        model_(*setting.catalogue, setting.transitions, workers),
        logits_(setting.catalogue->items(), setting.transitions.recent_decay) {}

  double share() const override { return counts_share_; }

  Result<double> Learn(const StreamPeriod& period, double mu, double, noise::NoiseSource& noise,
                       WorkerPool& workers) override {
    TACIT_ASSIGN(const auto charge, train::ReleaseTransitionsPeriod(
                                        {.histories = period.histories, .known = period.known},
                                        std::sqrt(counts_share_) * mu, noise, workers, &model_));
    logits_.Set(model::CountedLogits(model_.estimate(), model_.options(), weight_, workers));
    return charge.MuSquared();
  }

  const model::LogitPrior* prior() const override { return &logits_; }

 private:
  const double counts_share_, weight_;
  model::transitions::ReleasedModel model_;
  model::DecayedLogits logits_;
};

}  // namespace

Result<std::unique_ptr<StreamStart>> MakeStreamStart(std::string_view name,
                                                     const SequenceSetting& setting,
                                                     bool is_private, WorkerPool& workers) {
  const TrainedConstants& c = setting.trained;
  if (BeginsWithCounts(name)) {
    TACIT_RETURN_IF_ERROR(CheckCounts(c));
    TACIT_RETURN_IF_ERROR(
        model::CheckCountedLogits(setting.catalogue->items(), setting.transitions));
    return std::make_unique<CountedStreamStart>(setting, workers);
  }
  const bool corrects = is_private && TrainingOf(name, c, is_private).model.re_attention.kappa > 0;
  if (!c.popularity_start && !corrects) return nullptr;
  TACIT_RETURN_IF_ERROR(CheckHistogramShare(c));
  if (c.popularity_start && c.label_smoothing > 0)
    return RefuseStart(
        "popularity_start: labels that are smoothed are of no popularity; set one of it and "
        "label_smoothing off");
  return std::make_unique<PopularStart>(setting);
}

}  // namespace tacit::lab
