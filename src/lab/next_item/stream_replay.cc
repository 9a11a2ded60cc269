#include "lab/next_item/stream_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "lab/next_item/sequence_ranking.h"
#include "model/ranking/place.h"
#include "privacy/mu.h"

namespace tacit::lab {
namespace {

class Replay {
 public:
  Replay(const SequenceStream& stream, const StreamPlan& plan, StreamMethod& method,
         noise::NoiseSource& noise, WorkerPool& workers)
      : stream_(stream),
        plan_(plan),
        method_(method),
        noise_(noise),
        workers_(workers),
        before_(stream.data.histories.units()),
        upto_(before_.size()),
        periods_(before_.size()),
        spent_(before_.size()) {
    TACIT_CHECK(plan.period_events > 0 && plan.user_periods > 0);
    out_.tenths.resize(kTenths);
  }

  Result<StreamOutcome> Run(const std::function<void(double)>& tell) &&;

 private:
  // An event, identified by its user and the number of his items before it.
  struct Question {
    uint32_t user = 0, at = 0;
    size_t tenth = 0;
  };

  // Marks the items that first appear in the last tenth.
  void FindCold();

  void Ask(const std::vector<Question>& questions);
  Status Learn(const std::vector<Question>& questions);
  void Average(SequenceTenth* tenth) const;

  const SequenceStream& stream_;
  const StreamPlan plan_;
  StreamMethod& method_;
  noise::NoiseSource& noise_;
  WorkerPool& workers_;
  std::vector<uint32_t> before_, upto_;  // per user: items before the period, and up to its end
  std::vector<uint32_t> periods_;        // per user: periods learnt from
  std::vector<double> spent_;            // per user: mu^2
  std::vector<uint8_t> cold_;            // per item
  StreamOutcome out_;
};

void Replay::FindCold() {
  const model::Histories& histories = stream_.data.histories;
  const size_t events = stream_.user.size();
  cold_.assign(histories.catalogue, 1);
  std::vector<uint32_t> at(histories.units());
  for (size_t i = 0; i < events; ++i) {
    const uint32_t user = stream_.user[i];
    if (i * kTenths / events + 1 < kTenths) cold_[histories.Of(user)[at[user]]] = 0;
    ++at[user];
  }
}

void Replay::Ask(const std::vector<Question>& questions) {
  const model::Histories& histories = stream_.data.histories;
  std::vector<size_t> places(questions.size());  // 0: not asked about
  workers_.Run(questions.size(), [&](size_t begin, size_t end, size_t) {
    std::vector<float> scores(histories.catalogue);
    for (size_t i = begin; i < end; ++i) {
      const auto items = histories.Of(questions[i].user);
      const auto history = items.first(questions[i].at);
      const uint32_t answer = items[questions[i].at];
      if (history.empty() || std::ranges::find(history, answer) != history.end()) continue;
      method_.Score(history, scores);
      places[i] = model::PlaceOf(answer, history, scores);
    }
  });
  for (size_t i = 0; i < questions.size(); ++i) {
    if (places[i] == 0) continue;
    const Credit credit = CreditOf(places[i]);
    const uint32_t answer = histories.Of(questions[i].user)[questions[i].at];
    for (SequenceTenth* part : {&out_.all, &out_.tenths[questions[i].tenth], &out_.cold}) {
      if (part == &out_.cold && cold_[answer] == 0) continue;
      ++part->events;
      part->ndcg10 += credit.ndcg10;
      part->hit10 += credit.hit10;
    }
  }
}

Status Replay::Learn(const std::vector<Question>& questions) {
  const model::Histories& all = stream_.data.histories;
  std::vector<uint32_t> users;
  for (const Question& question : questions)
    if (question.at == before_[question.user] && periods_[question.user] < plan_.user_periods)
      users.push_back(question.user);
  model::Histories histories;
  histories.catalogue = all.catalogue;
  std::vector<uint32_t> known;
  for (const uint32_t user : users) {
    known.push_back(std::min(before_[user], plan_.context));
    const auto items = all.Of(user).first(upto_[user]).subspan(before_[user] - known.back());
    histories.items.insert(histories.items.end(), items.begin(), items.end());
    histories.end.push_back(histories.items.size());
    histories.id.push_back(all.IdOf(user));
  }
  TACIT_ASSIGN(const privacy::Spending spending,
               method_.Learn({.histories = histories, .known = known}, plan_.mu, noise_, workers_));
  const double mu_squared = spending.mu_squared;
  if (!(mu_squared <= plan_.mu * plan_.mu * privacy::kMuMargin))
    return Fail(ErrorCode::kRefused, fmt::format("a period may spend a mu of {} and spent {}",
                                                 plan_.mu, std::sqrt(mu_squared)));
  for (const uint32_t user : users) {
    out_.user_periods_most = std::max<uint64_t>(out_.user_periods_most, ++periods_[user]);
    out_.mu_squared = std::max(out_.mu_squared, spent_[user] += mu_squared);
  }
  return {};
}

void Replay::Average(SequenceTenth* tenth) const {
  const double events = static_cast<double>(std::max<uint64_t>(1, tenth->events));
  tenth->ndcg10 /= events;
  tenth->hit10 /= events;
}

Result<StreamOutcome> Replay::Run(const std::function<void(double)>& tell) && {
  const SystemClock clock;
  const size_t events = stream_.user.size();
  FindCold();
  std::vector<Question> questions;
  for (size_t begin = 0; begin < events; begin += plan_.period_events) {
    const size_t end = std::min<size_t>(events, begin + plan_.period_events);
    questions.clear();
    for (size_t i = begin; i < end; ++i)
      questions.push_back({stream_.user[i], upto_[stream_.user[i]]++, i * kTenths / events});
    const auto start = clock.Now();
    if (begin > 0) Ask(questions);
    const auto asked = clock.Now();
    out_.ask_seconds += Seconds(asked - start);
    if (end < events) TACIT_RETURN_IF_ERROR(Learn(questions));
    out_.learn_seconds += Seconds(clock.Now() - asked);
    before_ = upto_;
    tell(static_cast<double>(end) / static_cast<double>(events));
  }
  Average(&out_.all);
  Average(&out_.cold);
  for (SequenceTenth& tenth : out_.tenths) Average(&tenth);
  return std::move(out_);
}

}  // namespace

Result<StreamOutcome> ReplayStream(const SequenceStream& stream, const StreamPlan& plan,
                                   StreamMethod& method, noise::NoiseSource& noise,
                                   WorkerPool& workers, const std::function<void(double)>& tell) {
  return Replay(stream, plan, method, noise, workers).Run(tell);
}

}  // namespace tacit::lab
