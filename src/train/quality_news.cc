#include "train/quality_news.h"

#include <fmt/format.h>

#include "base/files/log.h"

namespace tacit::train {

bool TellBelowBaseline(const std::string& learner, const std::string& when,
                       const QualityPoint& predicted) {
  if (const double entropy = EntropyOf(predicted); entropy > 1) {
    LogEvent(spdlog::level::warn, "below_baseline",
             {{"learner", learner}, {"day", when}, {"normalised_entropy", entropy}},
             fmt::format("learner '{}', {}: its log loss, {:.4f}, is {:.3f} of that of the best "
                         "constant: it has learnt less than how often the label is 1",
                         learner, when, predicted.loss_sum / static_cast<double>(predicted.events),
                         entropy));
    return true;
  }
  const RankTotals& ranked = predicted.ranked;
  if (!IsBelowPopularity(ranked)) return false;
  const double own = ranked.Ndcg(ranked.model), popular = ranked.Ndcg(ranked.popular);
  LogEvent(spdlog::level::warn, "below_baseline",
           {{"learner", learner},
            {"day", when},
            {"asked", ranked.asked},
            {"hit_at_10", ranked.Hit(ranked.model)},
            {"ndcg_at_10", own},
            {"popularity_hit_at_10", ranked.Hit(ranked.popular)},
            {"popularity_ndcg_at_10", popular}},
           fmt::format("learner '{}', {}: of {} next items {} were among its ten best (NDCG@10 "
                       "{:.4f}), and {} among the ten most popular ({:.4f}): it has learnt less "
                       "than what is popular",
                       learner, when, ranked.asked, ranked.model.hits, own, ranked.popular.hits,
                       popular));
  return true;
}

void TellTooGood(const std::string& learner, const std::string& when,
                 const PredictedFigures& predicted) {
  if (!predicted.IsTooGood()) return;
  LogEvent(spdlog::level::warn, "too_good",
           {{"learner", learner}, {"day", when}, {"auc", predicted.auc}},
           fmt::format("learner '{}', {}: its AUC is {:.4f}: does a feature hold what is known "
                       "only after the label?",
                       learner, when, predicted.auc));
}

}  // namespace tacit::train
