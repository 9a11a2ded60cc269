#include "train/hit_at_10.h"

#include <numeric>
#include <vector>

namespace tacit::train {

void AskForNext(const StepHistories& step, size_t most, size_t items, const ScoreHistory& score,
                WorkerPool& workers, StepReport* report) {
  std::vector<size_t> asked;
  std::vector<uint32_t> answers;
  for (size_t u = 0; u < step.units() && asked.size() < most; ++u) {
    const auto answer = FirstUnseen(step.Before(u), step.New(u));
    if (step.before[u] == 0 || !answer) continue;
    asked.push_back(u);
    answers.push_back(*answer);
  }
  std::vector<uint8_t> hit(asked.size());
  workers.Run(asked.size(), [&](size_t begin, size_t end, size_t) {
    std::vector<float> scores(items);
    for (size_t i = begin; i < end; ++i) {
      score(step.Before(asked[i]), scores);
      hit[i] = IsAmongBest(scores, step.Before(asked[i]), answers[i]);
    }
  });
  report->asked = asked.size();
  report->hits = std::accumulate(hit.begin(), hit.end(), uint64_t{0});
}

}  // namespace tacit::train
