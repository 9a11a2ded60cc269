// Versions side by side: which one answers, and that the answer is what it says it is.
#include "serve/versions/versions.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <functional>

#include "fake_snapshot.h"
#include "infer_rig.h"
#include "recommend_fakes.h"
#include "serve/answers/score_answer.h"
#include "serve/scoring/score_request.h"
#include "support/json.h"

namespace tacit::serve {
namespace {

namespace json = boost::json;
using test::ParseJson;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// All that is wrong with an assignment of callers to a canary: a caller who changes sides, or a
// share of `callers` that is further from `share` than five deviations, which a right one is with
// probability below 1e-6.
std::string JudgeCanary(const std::function<bool(std::string_view caller)>& is_canary, double share,
                        int callers = 20'000) {
  int taken = 0;
  for (int i = 0; i < callers; ++i) {
    const std::string caller = fmt::format("caller-{}", i);
    const bool side = is_canary(caller);
    for (int again = 0; again < 3; ++again)
      if (is_canary(caller) != side) return caller + " changes sides";
    taken += side;
  }
  const double deviation = std::sqrt(callers * share * (1 - share));
  if (std::fabs(taken - callers * share) <= 5 * deviation) return "";
  return fmt::format("a share of {:.4f}, wanted is {}", taken / double(callers), share);
}

TEST(CanaryTest, CallersStayOnTheirSideAndTheShareIsKept) {
  for (const double share : {0.01, 0.1, 0.5, 0.93})
    EXPECT_EQ(JudgeCanary(
                  [&](std::string_view caller) {
                    return IsOfCanary({9, share}, "line", caller);
                  },
                  share),
              "");
  EXPECT_TRUE(IsOfCanary({9, 1}, "line", ""));
  // Two planted faults.
  int asked = 0;
  EXPECT_THAT(JudgeCanary([&](std::string_view) { return asked++ % 10 == 0; }, 0.1),
              HasSubstr("changes sides"));
  for (const double factor : {2.0, 0.5})
    EXPECT_THAT(JudgeCanary(
                    [&](std::string_view caller) {
                      return IsOfCanary({9, 0.01 * factor}, "line", caller);
                    },
                    0.01),
                HasSubstr("a share of"));
}

TEST(CanaryTest, ALargerShareKeepsItsCallersAndAnotherCanaryDrawsAnew) {
  int both = 0, first = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string caller = fmt::format("caller-{}", i);
    const bool few = IsOfCanary({9, 0.1}, "line", caller);
    if (few) {
      EXPECT_TRUE(IsOfCanary({9, 0.2}, "line", caller));
    }
    first += few;
    both += few && IsOfCanary({10, 0.1}, "line", caller);
  }
  // Independent draws have a tenth of a tenth in common: 200, with a deviation of 14.
  EXPECT_NEAR(both, 200, 75);
  EXPECT_GT(first, 1000);
}

constexpr const char* kRow = R"({"learner":"ctr","rows":[{"features":{"I1":3,"C1":"68fd1e64"}}]})";

class VersionsTest : public testing::Test {
 protected:
  VersionsTest() { Open({3, 5}, 5); }

  void Open(const std::vector<uint64_t>& versions, uint64_t serving,
            std::optional<Canary> canary = {}) {
    VersionTable::Contents contents{.open = {}, .serving = serving, .canary = canary};
    for (const uint64_t version : versions) {
      std::shared_ptr<const ServedVersion> held;
      for (const auto& open : open_)
        if (open->number() == version) held = open;
      if (held == nullptr)
        held = std::make_shared<const ServedVersion>(std::make_shared<Both>(version, model_),
                                                     std::vector<RecommendModel>{next_}, registry_);
      contents.open.push_back(held);
    }
    open_ = contents.open;
    if (table_ == nullptr)
      table_ = std::make_shared<VersionTable>(std::move(contents));
    else
      table_->Set(std::move(contents));
    if (rig_ != nullptr) return;
    Services services;
    services.latest = [table = table_] { return table->Newest(); };
    services.versions = table_;
    services.models = {model_};
    services.recommenders = {next_};
    rig_ = std::make_unique<InferRig>(std::move(services));
  }

  // A commit of both kinds of learner.
  class Both final : public FakeSnapshot {
   public:
    Both(uint64_t version, const ScoringModel& model)
        : FakeSnapshot(version, model, DenseSizeOf(SmallNetwork())),
          released_(std::make_shared<const std::string>(fmt::format("release {}", version))) {}
    std::shared_ptr<const std::string> Released(LearnerIndex learner) const override {
      return learner == LearnerIndex(0) ? released_ : nullptr;
    }

   private:
    const std::shared_ptr<const std::string> released_;
  };

  static ScoringModel Scoring() {
    ScoringModel model = SmallModel();
    model.index = LearnerIndex(1);
    model.model = MakeClickModel(model.index, "ctr", model.transform, SmallNetwork());
    return model;
  }

  // The version whose scores an answer has, by asking each alone.
  uint64_t VersionOfScores(const std::string& body) {
    const json::value scores = json::parse(body).at("scores");
    for (const auto& open : open_) {
      event::Batch batch;
      ScoreRequestParser parser({{"ctr", model_.transform}}, {});
      EXPECT_TRUE(parser.Parse(kRow, &batch));
      const http::Reply alone = ScoreOnce({model_}, *open->snapshot(), "ctr", batch);
      if (json::parse(alone.body).at("scores") == scores) return open->number();
    }
    return 0;
  }
  static uint64_t Named(const std::string& body) {
    return json::parse(body).at("model").at("version").to_number<uint64_t>();
  }
  // Says what is wrong with an answer that should be of `version`.
  std::string JudgeAnswer(const std::string& body, uint64_t version) {
    if (Named(body) != version) return fmt::format("names {}, not {}", Named(body), version);
    const uint64_t of = VersionOfScores(body);
    return of == version ? "" : fmt::format("names {}, has scores of {}", version, of);
  }

  metrics::Registry registry_;
  const ScoringModel model_ = Scoring();
  const RecommendModel next_ = SomeRecommender(12);
  std::vector<std::shared_ptr<const ServedVersion>> open_;
  std::shared_ptr<VersionTable> table_;
  std::unique_ptr<InferRig> rig_;
};

TEST_F(VersionsTest, ARequestNamesItsVersion) {
  EXPECT_EQ(JudgeAnswer(rig_->Ask("POST", "/v1/score", kRow).body, 5), "");
  EXPECT_EQ(JudgeAnswer(rig_->Ask("POST", "/v1/score?version=5", kRow).body, 5), "");
  const std::string older = rig_->Ask("POST", "/v1/score?version=3", kRow).body;
  EXPECT_EQ(JudgeAnswer(older, 3), "");
  // A planted fault: the scores of one version under the name of the other.
  std::string wrong = older;
  wrong.replace(wrong.find("\"version\":3"), 11, "\"version\":5");
  EXPECT_EQ(JudgeAnswer(wrong, 5), "names 5, has scores of 3");

  const std::string sequence = R"({"learner":"next","sequence":["a1"]})";
  const auto items = [&](const std::string& path) {
    return ParseJson(rig_->Ask("POST", path, sequence).body);
  };
  EXPECT_EQ(items("/v1/recommend?version=3").at("model").at("version"), 3);
  EXPECT_EQ(items("/v1/recommend").at("model").at("version"), 5);
  EXPECT_NE(items("/v1/recommend?version=3").at("items"), items("/v1/recommend").at("items"));
  const http::Reply rows = rig_->Ask("POST", "/v1/lookup?version=3",
                                     R"({"learner":"ctr","rows":[{"feature":"C1","value":"x"}]})");
  EXPECT_EQ(Named(rows.body), 3u);
}

TEST_F(VersionsTest, TheProtocolNamesThemInItsPaths) {
  const std::string inputs =
      R"({"inputs":[{"name":"I1","shape":[1],"datatype":"FP32","data":[3]}]})";
  for (const char* version : {"3", "5"}) {
    const http::Reply reply =
        rig_->Ask("POST", fmt::format("/v2/models/ctr/versions/{}/infer", version), inputs);
    ASSERT_EQ(reply.status, 200u) << reply.body;
    EXPECT_EQ(ParseJson(reply.body).at("model_version"), version);
  }
  EXPECT_THAT(rig_->Ask("GET", "/v2/models/ctr").body, HasSubstr(R"("versions":["5","3"])"));
  EXPECT_THAT(rig_->Ask("GET", "/v2/models/ctr/versions/3").body, HasSubstr(R"("versions":["3"])"));
  EXPECT_EQ(rig_->Ask("GET", "/v2/models/next/versions/3/ready").status, 200u);
  EXPECT_EQ(rig_->Ask("GET", "/v2/models/next/versions/4/ready").status, 404u);
  const json::value index = json::parse(rig_->Ask("POST", "/v2/repository/index").body);
  EXPECT_EQ(index.as_array().size(), 4u);
}

TEST_F(VersionsTest, AVersionThatIsNotThereIsNotFoundAndTheOthersAreNamed) {
  for (const char* path : {"/v1/score?version=4", "/v2/models/ctr/versions/4/infer"}) {
    const http::Reply reply = rig_->Ask(
        "POST", path,
        path[2] == '1' ? kRow
                       : R"({"inputs":[{"name":"I1","shape":[1],"datatype":"FP32","data":[3]}]})");
    EXPECT_EQ(reply.status, 404u) << path;
    EXPECT_THAT(reply.body, HasSubstr("there is no version 4: open here are 3, 5")) << path;
  }
  EXPECT_EQ(rig_->Ask("POST", "/v1/score?version=x", kRow).status, 400u);
  EXPECT_THAT(rig_->Ask("POST", "/v1/score?verson=3", kRow).body, HasSubstr("there is version"));
}

// The canary's answers are its own, and a caller's key, the request's id or the body decides.
TEST_F(VersionsTest, ACanaryAnswersItsShare) {
  Open({3, 5}, 3, Canary{5, 0.25});
  const auto version_for = [&](const std::string& field, std::string_view key) {
    const std::string body = rig_->Ask("POST", "/v1/score", kRow, {{field, std::string(key)}}).body;
    const uint64_t version = Named(body);
    EXPECT_EQ(JudgeAnswer(body, version), "");
    return version;
  };
  for (const char* field : {"X-Canary-Key", "X-Request-Id"})
    EXPECT_EQ(
        JudgeCanary([&](std::string_view key) { return version_for(field, key) == 5; }, 0.25, 400),
        "");
  // The key goes before the id; a version that is named goes before both.
  std::string key = "k";
  while (!IsOfCanary({5, 0.25}, "line-1", key)) key += 'k';
  std::string other = "o";
  while (IsOfCanary({5, 0.25}, "line-1", other)) other += 'o';
  const auto ask = [&](const std::string& path) {
    return Named(
        rig_->Ask("POST", path, kRow, {{"X-Canary-Key", key}, {"X-Request-Id", other}}).body);
  };
  EXPECT_EQ(ask("/v1/score"), 5u);
  EXPECT_EQ(ask("/v1/score?version=3"), 3u);
  // The charges are told as of the newest, when any answers.
  EXPECT_EQ(ParseJson(rig_->Ask("GET", "/v1/privacy").body).at("version"), 5);
}

TEST_F(VersionsTest, MetricsAreByVersionAndGoWithIt) {
  rig_->Ask("POST", "/v1/score?version=3", kRow);
  rig_->Ask("POST", "/v1/score", kRow);
  rig_->Ask("POST", "/v1/score", kRow);
  const auto scrape = [&] { return registry_.Scrape(metrics::Audience::kPublic); };
  EXPECT_THAT(scrape(),
              HasSubstr(R"(tacit_version_answers_total{outcome="answered",version="3"} 1)"));
  EXPECT_THAT(scrape(),
              HasSubstr(R"(tacit_version_answers_total{outcome="answered",version="5"} 2)"));
  EXPECT_THAT(scrape(), HasSubstr(R"(tacit_version_answer_seconds_count{version="5"} 2)"));
  std::shared_ptr<const ServedVersion> in_flight = open_[0];
  Open({5, 7}, 7);
  EXPECT_THAT(scrape(), HasSubstr(R"(version="3")"));  // a request still has it
  const std::weak_ptr<const ServedVersion> closed = in_flight;
  in_flight.reset();
  EXPECT_TRUE(closed.expired());
  EXPECT_THAT(scrape(), Not(HasSubstr(R"(version="3")")));
  EXPECT_EQ(rig_->Ask("POST", "/v1/score?version=3", kRow).status, 404u);
}

// A live model has the one version that was committed last.
TEST(LiveVersionTest, AnotherVersionIsNotFound) {
  const ScoringModel model = SmallModel();
  FakeStore store(model);
  store.Commit(6);
  Services services;
  services.latest = [&] { return store.Latest(); };
  services.models = {model};
  InferRig rig(std::move(services));
  EXPECT_EQ(rig.Ask("POST", "/v1/score?version=6", kRow).status, 200u);
  const http::Reply refused = rig.Ask("POST", "/v1/score?version=5", kRow);
  EXPECT_EQ(refused.status, 404u);
  EXPECT_THAT(refused.body, HasSubstr("version 6 is served"));
}

}  // namespace
}  // namespace tacit::serve
