#include "wiring/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "console/text_table.h"
#include "train/learner/baseline.h"
#include "wiring/day_table.h"

namespace tacit::wiring {
namespace {

// Tells whether predictions are better than their baseline, by more than chance gives: labels by
// the interval of NE, recommendations by the places of their hits.
bool BeatsBaseline(bool recommends, const train::PredictedFigures& figures) {
  if (!recommends) return figures.EntropyInterval().high < 1;
  const double model = figures.ranked.model.gain, popular = figures.ranked.popular.gain;
  return model - popular > std::sqrt(model + popular) && !train::IsBelowPopularity(figures.ranked);
}

std::string FigureOf(bool recommends, const train::PredictedFigures& figures) {
  if (!recommends)
    return fmt::format("NE {:.4f}, 95 % {}", train::EntropyOf(figures),
                       Range(figures.EntropyInterval()));
  return fmt::format("NDCG@10 {:.4f}", figures.ranked.Ndcg(figures.ranked.model));
}

// A value of fewer records in a period does not stand out of the noise.
uint64_t HiddenRecords(const LearnerDays& learner) {
  constexpr double kStandsOut = 2;  // deviations
  return static_cast<uint64_t>(std::ceil(kStandsOut * learner.noise_in_units));
}
// True if one value in a hundred is hidden in every period, and so most of what features tell.
bool IsHiddenByConstants(const LearnerDays& learner) {
  constexpr uint64_t kPart = 100;
  return learner.longest_period > 0 && kPart * HiddenRecords(learner) > learner.longest_period;
}

// Says how a learner without noise did beside the one with it.
std::string BesidePlain(const LearnerDays& learner, bool better) {
  const auto& plain = learner.plain_judged;
  if (!plain) return "";
  const std::string figure = FigureOf(learner.recommends, *plain);
  if (better) return fmt::format("; without privacy {}", figure);
  uint64_t learnt = 0;
  for (const train::DayRow& day : learner.days) learnt += day.held_out ? 0 : day.events;
  const std::string records = WithThousands(learnt);
  const bool plain_better = BeatsBaseline(learner.recommends, *plain);
  // The held-out records ask the model of the last period alone: of whole ones it may be good.
  const bool held_out = std::ranges::any_of(learner.days, &train::DayRow::held_out);
  if (plain_better && held_out && 2 * learner.last_period < learner.longest_period)
    return fmt::format(
        "; without privacy it does better ({}): the last period before the held-out records is "
        "short ({} records, the longest {}), so noise counts more in it: try another --held-out",
        figure, WithThousands(learner.last_period), WithThousands(learner.longest_period));
  if (plain_better)
    return fmt::format(
        "; without privacy it does better ({}): {} records are too few for {} at this epsilon",
        figure, records,
        learner.recommends ? "the pairs of " + Counted(learner.items, "item")
                           : std::string("its features"));
  std::string neither = fmt::format(", and neither does it without privacy ({})", figure);
  // The constants of a small epsilon pass over values that do not stand out of its noise, whether
  // there is noise or not.
  if (!learner.recommends && IsHiddenByConstants(learner))
    return fmt::format(
        "{}, whose constants are those of this epsilon: they take values of fewer than some {} of "
        "a "
        "period's {} for noise. A larger epsilon or longer periods show more",
        neither, WithThousands(HiddenRecords(learner)), Counted(learner.longest_period, "record"));
  if (learner.recommends || plain->AucInterval().low > .5) return neither;
  // A wide interval holds good models too.
  constexpr double kAucOfUse = .53;
  const uint64_t rarer = std::min(plain->clicks, plain->events - plain->clicks);
  if (plain->AucInterval().high > kAucOfUse)
    return fmt::format("{}: {} of the rarer kind are too few to tell", neither,
                       Counted(rarer, "label"));
  return fmt::format("{}: its features tell nothing of this label in {} records", neither, records);
}

}  // namespace

std::string Verdict(const LearnerDays& learner) {
  const auto& judged = learner.judged;
  const auto untold = [&](std::string_view why) {
    return fmt::format("Nothing tells yet how good learner '{}' is: {}.\n", learner.id, why);
  };
  if (!judged)
    return untold(
        "all that it predicted came before its first release (`tacit evaluate --config X\n"
        "--held-out 20%` judges it on the last records of files)");
  if (learner.recommends && judged->ranked.asked == 0)
    return untold("nobody was asked for a next item");
  if (!learner.recommends && std::isnan(train::EntropyOf(*judged)))
    return untold("all labels were the same");
  const std::string subject =
      std::isfinite(learner.promised)
          ? fmt::format("At epsilon {:g} learner '{}'", learner.promised, learner.id)
          : fmt::format("Without privacy learner '{}'", learner.id);
  const bool better = BeatsBaseline(learner.recommends, *judged);
  const train::RankTotals& ranked = judged->ranked;
  return fmt::format(
      "{} does {} {} ({}{}){}.\n{}", subject, better ? "better than" : "no better than",
      learner.recommends ? "the most popular items" : "the best constant",
      FigureOf(learner.recommends, *judged),
      learner.recommends ? fmt::format(", theirs {:.4f}", ranked.Ndcg(ranked.popular)) : "",
      BesidePlain(learner, better),
      judged->IsTooGood() ? fmt::format("Its AUC is {:.4f}: does a feature hold what is known only "
                                        "after the label?\n",
                                        judged->auc)
                          : "");
}

std::string PlainTable(const LearnerDays& learner) {
  const auto &judged = learner.judged, &plain = learner.plain_judged;
  if (!judged || !plain) return "";
  console::TextLines lines;
  if (learner.recommends) {
    lines.push_back({"", "HIT@10", "95 %", "NDCG@10"});
    const auto add = [&](const std::string& name, const train::RankTotals& ranked,
                         const train::RankScore& score) {
      lines.push_back({name, Figure(ranked.Hit(score)), Range(ranked.HitInterval(score)),
                       Figure(ranked.Ndcg(score))});
    };
    add("as configured", judged->ranked, judged->ranked.model);
    add("without privacy", plain->ranked, plain->ranked.model);
    add("popularity", judged->ranked, judged->ranked.popular);
    add("successor", judged->ranked, judged->ranked.successor);
  } else {
    lines.push_back({"", "NE", "95 %", "AUC", "95 %"});
    const auto add = [&](const std::string& name, const train::PredictedFigures& figures) {
      lines.push_back({name, Figure(train::EntropyOf(figures)), Range(figures.EntropyInterval()),
                       Figure(figures.auc), Range(figures.AucInterval())});
    };
    add("as configured", *judged);
    add("without privacy", *plain);
    lines.push_back({"best constant", Figure(1), "-", Figure(0.5), "-"});
  }
  return "\nBeside it without privacy, with its periods, constants and rows, and no noise. Nothing "
         "of that model is kept.\n" +
         console::LayOut(lines, {0});
}

}  // namespace tacit::wiring
