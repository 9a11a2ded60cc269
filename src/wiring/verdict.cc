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

// Tells whether predictions are better than their baseline: recommendations by more than chance
// gives, and by the places of their hits.
bool BeatsBaseline(bool recommends, const train::PredictedFigures& figures) {
  if (!recommends) return train::EntropyOf(figures) < 1;
  const double model = figures.ranked.model.gain, popular = figures.ranked.popular.gain;
  return model - popular > std::sqrt(model + popular) && !train::IsBelowPopularity(figures.ranked);
}

std::string FigureOf(bool recommends, const train::PredictedFigures& figures) {
  if (!recommends) return fmt::format("NE {:.4f}", train::EntropyOf(figures));
  return fmt::format("NDCG@10 {:.4f}", figures.ranked.Ndcg(figures.ranked.model));
}

// Says how a learner without noise did beside the one with it.
std::string BesidePlain(const LearnerDays& learner, bool better) {
  const auto plain = JudgedOf(learner.plain);
  if (!plain) return ".\n";
  const std::string figure = FigureOf(learner.recommends, *plain);
  if (better) return fmt::format("; without privacy {}.\n", figure);
  if (!BeatsBaseline(learner.recommends, *plain))
    return fmt::format(", and neither does it without privacy ({}).\n", figure);
  uint64_t records = 0;
  for (const train::DayRow& day : learner.days) records += day.held_out ? 0 : day.events;
  return fmt::format(
      "; without privacy it does better ({}): {} records are too few for {} at this epsilon.\n",
      figure, WithThousands(records),
      learner.recommends ? "the pairs of " + Counted(learner.items, "item")
                         : std::string("its features"));
}

}  // namespace

std::optional<train::PredictedFigures> JudgedOf(const std::vector<train::DayRow>& days) {
  const bool held_out = std::ranges::any_of(days, &train::DayRow::held_out);
  std::optional<train::PredictedFigures> judged;
  for (const train::DayRow& day : days) {
    const train::PredictedFigures* const figures = day.Judged();
    if (figures == nullptr || day.held_out != held_out) continue;
    if (!judged) {
      judged = *figures;
      continue;
    }
    judged->Merge(*figures);
    judged->auc = judged->auc_deviation = NAN;
  }
  return judged;
}

std::string Verdict(const LearnerDays& learner) {
  const auto judged = JudgedOf(learner.days);
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
      "{} does {} {} ({}{}){}", subject, better ? "better than" : "no better than",
      learner.recommends ? "the most popular items" : "the best constant",
      FigureOf(learner.recommends, *judged),
      learner.recommends ? fmt::format(", theirs {:.4f}", ranked.Ndcg(ranked.popular)) : "",
      BesidePlain(learner, better));
}

std::string PlainTable(const LearnerDays& learner) {
  const auto judged = JudgedOf(learner.days), plain = JudgedOf(learner.plain);
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
    lines.push_back({"", "NE", "AUC", "95 %"});
    const auto add = [&](const std::string& name, const train::PredictedFigures& figures) {
      lines.push_back({name, Figure(train::EntropyOf(figures)), Figure(figures.auc),
                       Range(figures.AucInterval())});
    };
    add("as configured", *judged);
    add("without privacy", *plain);
    lines.push_back({"best constant", Figure(1), Figure(0.5), "-"});
  }
  return "\nBeside it without privacy, with its periods, constants and rows, and no noise. Nothing "
         "of that model is kept.\n" +
         console::LayOut(lines, {0});
}

}  // namespace tacit::wiring
