#include "serve/answers/score_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "fake_snapshot.h"

namespace tacit::serve {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

event::Batch TwoRows(const event::FeatureTransform& transform) {
  event::Batch batch;
  transform.StartBatch(&batch);
  for (uint64_t i = 0; i < 2; ++i) {
    batch.dense.insert(batch.dense.end(), {0.5f, static_cast<float>(i)});
    for (size_t slot = 0; slot < batch.slots; ++slot) {
      const std::string text = std::to_string(10 * i + slot);
      const std::string_view view = text;
      transform.AppendRows(slot, {&view, 1}, &batch.row);
      batch.slot_end.push_back(static_cast<uint32_t>(batch.row.size()));
    }
    batch.offset.push_back(i);
    batch.timestamp_ms.push_back(0);
    batch.label.push_back(0);
  }
  return batch;
}

// The second of two learners answers, by its own parameters and promise.
TEST(ScoreOnce, AnswersAsTheServerDoes) {
  std::vector<ScoringModel> models = {SmallModel("other"), SmallModel("ctr")};
  models[1].predicts = "a \"buy\"";
  const ScoringModel& model = models[1];
  const FakeSnapshot snapshot(6, model, DenseSizeOf(SmallNetwork()));
  const event::Batch batch = TwoRows(*model.transform);
  const http::Reply reply = ScoreOnce(models, snapshot, "ctr", batch);
  ASSERT_EQ(reply.status, 200u) << reply.body;
  const json::value answer = json::parse(reply.body);
  std::vector<float> scores(2);
  ASSERT_TRUE(model.model->MakeScorer()->Score(snapshot, batch, scores));
  EXPECT_NE(scores[0], scores[1]);
  ASSERT_EQ(answer.at("scores").as_array().size(), 2u);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(static_cast<float>(answer.at("scores").at(i).to_number<double>()), scores[i]);
  EXPECT_EQ(answer.at("predicts"), "a \"buy\"");
  EXPECT_EQ(answer.at("model").at("learner"), "ctr");
  EXPECT_EQ(answer.at("model").at("version"), 6);
  EXPECT_EQ(answer.at("model").at("epsilon").to_number<double>(), 1.5);
  EXPECT_EQ(answer.at("model").at("private"), true);
}

TEST(ScoreOnce, FailuresHaveTheServersStatus) {
  const std::vector<ScoringModel> models = {SmallModel("ctr")};
  const size_t size = DenseSizeOf(SmallNetwork());
  const event::Batch batch = TwoRows(*models[0].transform);
  const http::Reply unknown = ScoreOnce(models, FakeSnapshot(1, models[0], size), "next", batch);
  EXPECT_EQ(unknown.status, 404u);
  EXPECT_THAT(unknown.body, HasSubstr("unknown learner 'next'; this route has 'ctr'"));
  EXPECT_EQ(ScoreOnce(models, FakeSnapshot(0, models[0], size), "ctr", batch).status, 503u);
  EXPECT_EQ(ScoreOnce(models, FakeSnapshot(1, models[0], size + 1), "ctr", batch).status, 500u);
}

}  // namespace
}  // namespace tacit::serve
