#include "train/counts/next_item_exam.h"

#include <algorithm>

#include "model/ranking/place.h"

namespace tacit::train {
namespace {

constexpr size_t kLookedAt = 16;

}  // namespace

std::optional<uint32_t> FirstUnseen(std::span<const uint32_t> before,
                                    std::span<const uint32_t> fresh) {
  for (const uint32_t item : fresh.first(std::min(fresh.size(), kLookedAt)))
    if (std::ranges::find(before, item) == before.end()) return item;
  return std::nullopt;
}

Status NextItemExam::Ask(const StepHistories& step, const Model& model, StepReport* report) {
  if (most_ == 0) return {};
  if (!baselines_) baselines_.emplace(items_);
  TACIT_RETURN_IF_ERROR(Question(step, most_, model, &report->ranked));
  baselines_->Learn(step);
  return {};
}

Status NextItemExam::AskHeldOut(const StepHistories& step, const Model& model, StepReport* report) {
  if (!baselines_) baselines_.emplace(items_);
  return Question(step, step.units(), model, &report->ranked);
}

Status NextItemExam::Question(const StepHistories& step, size_t most, const Model& model,
                              RankTotals* ranked) {
  if (model == nullptr) {
    ranked->without_model += step.units();
    return {};
  }
  std::vector<std::span<const uint32_t>> histories;
  std::vector<uint32_t> answers;
  for (size_t u = 0; u < step.units() && answers.size() < most; ++u) {
    const auto before = step.Before(u);
    const auto answer = FirstUnseen(before, step.New(u));
    if (before.empty() || !answer) {
      ++(before.empty() ? ranked->without_history : ranked->without_news);
      continue;
    }
    histories.push_back(before);
    answers.push_back(*answer);
  }
  std::vector<size_t> places(answers.size());
  TACIT_RETURN_IF_ERROR(model(histories, [&](size_t i, std::span<const float> scores) {
    places[i] = model::PlaceOf(answers[i], histories[i], scores);
  }));
  for (size_t i = 0; i < answers.size(); ++i) {
    const auto baseline = baselines_->PlacesOf(answers[i], histories[i]);
    ranked->model.Add(places[i]);
    ranked->popular.Add(baseline.popular);
    ranked->successor.Add(baseline.successor);
  }
  ranked->asked += answers.size();
  return {};
}

Status ScoreByWorkers(WorkerPool& workers, size_t items, NextItemExam::Histories histories,
                      const ScoreHistory& score, const NextItemExam::Take& take) {
  workers.Run(histories.size(), [&](size_t begin, size_t end, size_t) {
    std::vector<float> scores(items);
    for (size_t i = begin; i < end; ++i) {
      score(histories[i], scores);
      take(i, scores);
    }
  });
  return {};
}

}  // namespace tacit::train
