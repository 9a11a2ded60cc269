// Audits of trained models whose units are users with many records: models of the next item and
// click models. What keeps no promise is seen through, what keeps it is not accused, and planted
// faults are.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "lab/audit/audit_report.h"
#include "lab/audit/audited_records.h"
#include "lab/audit/score_audit.h"
#include "lab/audit/trained_model.h"
#include "lab/audit/trained_scores.h"
#include "privacy/gaussian.h"
#include "support/process.h"
#include "unit/lab/audit/kept_scores.h"

namespace tacit::lab {
namespace {

using test::TempDir;
using testing::HasSubstr;

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr int kUsers = 600, kRecordsOfAUser = 12, kItems = 40;

struct Kind {
  std::string name, model, mechanism, participation;
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

std::string Once(int passes) {
  return fmt::format("{{mode: once, batch: {}, max_participations: {}}}", kUsers * kRecordsOfAUser,
                     passes);
}
const std::string kHeld =
    "{mode: poisson, batch: 300, sampling_rate: 0.5, steps_per_period: 150, period_files: 1, "
    "max_participations: 150}";
std::vector<Kind> Kinds() {
  return {
      {"counts", "{kind: transitions}", "{kind: counts}", Once(1)},
      {"ranker", "{kind: transitions, ranker: true, ranker_users: 300}", "{kind: counts}", Once(1)},
      {"sequence", "{kind: sequence, width: 16, length: 12, blocks: 1, item_bias: true}",
       "{kind: dp-sgd, clipping: automatic}", kHeld},
      {"clicks", "{kind: pctr, hidden: [16]}", "{kind: dp-sgd}", kHeld},
      {"sums", "{kind: linear}", "{kind: sums}",
       fmt::format("{{mode: once, batch: {}, max_participations: 8}}",
                   kUsers * kRecordsOfAUser / 8)}};
}

// Users who take items at random, or click all the time or never, so that a model without privacy
// knows them, and no other model can foresee them. A file has `records` of each user.
void WriteShop(const TempDir& dir, bool clicks, int records = kRecordsOfAUser) {
  std::ofstream items(dir / "items.dat");
  for (int i = 0; i < kItems; ++i) items << 'i' << i << "::Title " << i << "::A\n";
  std::ofstream log(dir / "day-0.jsonl");
  std::mt19937_64 random(7);
  for (int r = 0; r < records; ++r)
    for (unsigned user = 0; user < kUsers; ++user) {
      const bool clicked = !clicks || (user * 2654435761u >> 7) % 2 == 1;
      log << fmt::format(
                 R"({{"label":{},"user":"u{}","item":"i{}","timestamp_ms":{},"features":{{"who":"u{}","what":"w{}"}}}})",
                 clicked ? 1 : 0, user, random() % kItems, 1000 + r, user, random() % 50)
          << '\n';
    }
}

std::string ConfigOf(const TempDir& dir, const Kind& kind, int passes = 1) {
  return fmt::format(
      "source: {{kind: log, format: json, files: [\"{0}\"], passes: {6}}}\n"
      "catalogue: {{file: {1}}}\n"
      "schema:\n  features:\n    - {{name: who, kind: categorical, buckets: 5000, dim: 4}}\n"
      "    - {{name: what, kind: categorical, buckets: 50, dim: 2}}\n"
      "learners:\n  - id: a\n    model: {2}\n    mechanism: {3}\n    participation: {4}\n"
      "    privacy: {{unit: user, epsilon: 8, delta: 1.0e-5}}\n{5}"
      "store: {{path: {0}.store, witness: none}}\nmemory: {{total_bytes: 2GiB}}\n",
      dir / "day-0.jsonl", dir / "items.dat", kind.model, kind.mechanism, kind.participation,
      kind.model.find("transitions") != std::string::npos || kind.name == "sums"
          ? ""
          : "    optimizer: {kind: adam, learning_rate: 0.02}\n",
      passes);
}

// The area under the curve of the best attack on a Gaussian mechanism.
double AreaOfMu(double mu) { return std::erfc(-mu / 2) / 2; }

class TrainedUsers : public testing::TestWithParam<Kind> {
 protected:
  TrainedUsers() {
    WriteShop(dir_, GetParam().name == "clicks" || GetParam().name == "sums");
    std::ofstream(dir_ / "audit.yaml") << ConfigOf(dir_, GetParam());
  }
  TrainedAuditOptions Options(TrainedAudit kind, std::vector<double> epsilons) {
    TrainedAuditOptions options;
    options.kind = kind;
    options.epsilons = std::move(epsilons);
    options.canaries = 400;
    options.key = "this";
    options.state = dir_ / "scores.jsonl";
    options.load = [this](const std::vector<std::string>& overrides) {
      return config::Load(dir_ / "audit.yaml", overrides);
    };
    return options;
  }
  AuditReport Run(const TrainedAuditOptions& options) {
    auto report = RunTrainedAudits(options);
    EXPECT_TRUE(report.has_value()) << report.error().message;
    return report ? *std::move(report) : AuditReport();
  }

  const TempDir dir_;
};

INSTANTIATE_TEST_SUITE_P(, TrainedUsers, testing::ValuesIn(Kinds()),
                         [](const auto& info) { return info.param.name; });

// A user is a member with all his records, by one coin; scores carry the user's id.
TEST_P(TrainedUsers, PrivacyHidesWhoWasLearntFrom) {
  const AuditReport report = Run(Options(TrainedAudit::kMembership, {kUnbounded, 1}));
  ASSERT_EQ(report.audited.size(), 2u);
  const auto &none = report.audited[0].judged, &one = report.audited[1].judged;
  // No attack on a Gaussian of this promise has a larger area, and one between as many scores goes
  // beyond its own by this much once in 100,000 runs.
  const auto& losses = *report.audited[1].losses;
  const double members = static_cast<double>(losses.members),
               others = static_cast<double>(losses.others);
  EXPECT_NEAR(members, kUsers / 3.0, 60);
  EXPECT_NEAR(others, kUsers / 3.0, 60);
  const double chance = 4.3 * std::sqrt((members + others + 1) / (12 * members * others));
  const double most = AreaOfMu(privacy::GaussianMu(Epsilon{1}, Delta{1e-5})) + chance;
  EXPECT_LT(one.area, most) << ToText(report);
  EXPECT_GT(none.area, most) << ToText(report);
  EXPECT_FALSE(report.exceeds());
  // The charge is the promise's: nothing else was charged for in this one period.
  EXPECT_LE(one.charged_epsilon, 1.0001);
  EXPECT_GT(one.charged_epsilon, 0.98);
  EXPECT_THAT(ToText(report), HasSubstr("membership of its users"));
}

// Planted: a learner that was charged for epsilon .3, and added no noise.
TEST_P(TrainedUsers, NoiseThatIsMissingIsAccused) {
  const auto run = [&](double epsilon) {
    TrainedAuditOptions options = Options(TrainedAudit::kOneRun, {epsilon});
    options.canaries = kUsers;  // as many as there are: chance must not hide the fault
    return Run(options);
  };
  ASSERT_EQ(run(kUnbounded).audited.size(), 1u);
  test_scores::Pretend(dir_ / "scores.jsonl", "a at none", "a at 0.3");
  const AuditReport report = run(0.3);
  EXPECT_TRUE(report.exceeds()) << ToText(report);
}

// Scores of a learner of this kind, at the seam below the report.
class ScoresOfUsers {
 public:
  ScoresOfUsers(const TempDir& dir, const Kind& kind) : dir_(dir) {
    std::ofstream(dir_ / "audit.yaml") << ConfigOf(dir_, kind);
  }
  wiring::Assembly Assembled(const std::vector<std::string>& overrides) const {
    auto config = config::Load(dir_ / "audit.yaml", overrides);
    EXPECT_TRUE(config.has_value()) << config.error().message;
    auto assembly = wiring::Assemble(*std::move(config));
    EXPECT_TRUE(assembly.has_value()) << assembly.error().message;
    return *std::move(assembly);
  }
  static std::vector<std::string> WithoutPrivacy() {
    return {"learners.0.mechanism={kind: none}", "learners.0.privacy.epsilon=.inf"};
  }
  // Canaries' scores by the model that these keys make, less those of one without them.
  std::vector<audit::Score> Of(const std::vector<std::string>& overrides) const {
    const auto units = ScorableUnits(Assembled({}), /*of_users=*/true, kAll);
    const AuditParts parts(TrainedAudit::kOneRun, 1, 400, units.value());
    const auto scores = [&](const std::vector<std::string>& keys, bool reference) {
      auto made = TrainAndScore(Assembled(keys), parts,
                                {.of_users = true, .reference = reference, .records_most = kAll});
      EXPECT_TRUE(made.has_value()) << made.error().message;
      return *std::move(made);
    };
    return audit::Less(scores(overrides, false), scores(WithoutPrivacy(), true)).value();
  }
  static bool Exceeds(const std::vector<audit::Score>& scores, double epsilon) {
    const privacy::LedgerTotal charged{.learner = "a", .epsilon = epsilon, .delta = 1e-5};
    return AuditScores(scores, scores.size() / 10, charged, 0.05).value().exceeds();
  }

 private:
  static constexpr uint64_t kAll = 1'000'000;
  const TempDir& dir_;
};

// Planted: records of a user that are clipped one by one, each with the noise for a user. The
// model's unit is the event then; the canaries are users.
TEST(TrainedUsersFaults, RecordsThatAreClippedOneByOneAreAccused) {
  const TempDir dir;
  WriteShop(dir, true, 40);
  const ScoresOfUsers users(dir, Kinds()[4]);
  const std::string once = "learners.0.participation={mode: once, batch: 24000, ";
  EXPECT_FALSE(users.Exceeds(
      users.Of({once + "max_participations: 1}", "learners.0.privacy.epsilon=1"}), 1));
  EXPECT_TRUE(
      users.Exceeds(users.Of({once + "max_participations: 1}", "learners.0.privacy.epsilon=1",
                              "learners.0.privacy.unit=event"}),
                    1));
}

// Scores that know nothing of the coins: 400 audits of a model's scores, with fresh coins in each.
TEST_P(TrainedUsers, CoinsThatScoresKnowNothingOfAccuseAtTheStatedRate) {
  const ScoresOfUsers users(dir_, GetParam());
  std::vector<audit::Score> scores = users.Of({"learners.0.privacy.epsilon=8"});
  std::mt19937_64 random(3);
  int accused = 0;
  constexpr int kAudits = 400;
  constexpr double kAlpha = 0.05;
  for (int i = 0; i < kAudits; ++i) {
    for (audit::Score& score : scores) score.member = (random() & 1) == 1;
    accused += ScoresOfUsers::Exceeds(scores, 1e-6) ? 1 : 0;
  }
  EXPECT_LE(accused, kAlpha * kAudits + 4 * std::sqrt(kAlpha * kAudits));
  // Planted: a tenth of the coins is known.
  for (audit::Score& score : scores)
    if (score.id % 10 == 0) score.value = score.member ? 1e3 : -1e3;
  EXPECT_TRUE(ScoresOfUsers::Exceeds(scores, 1e-6));
}

// Records that are left out keep their offsets, so that nobody else moves to another step; a
// canary's records have drawn items, the same in what is learnt and in what is scored.
TEST(AuditedRecords, LeaveTheirPlacesAndAreDrawnOnce) {
  event::Batch batch;
  for (uint64_t i = 0; i < 300; ++i) {
    batch.offset.push_back(1000 + i);
    batch.timestamp_ms.push_back(0);
    batch.label.push_back(static_cast<float>(i % 2));
    batch.item.push_back(7);
    batch.user.Append(fmt::format("u{}", i % 30));
    batch.event_id.Append("");
  }
  std::vector<uint64_t> units;
  for (size_t i = 0; i < 30; ++i) units.push_back(UnitOf(batch, i, true));
  const AuditParts parts(TrainedAudit::kOneRun, 5, 20, units);
  const auto arranged = [&](bool learnt, bool reference) {
    event::Batch made = batch;
    ArrangeRecords(
        parts, reference, true, 50,
        [&](const AuditParts::Place& place) { return learnt ? place.learnt : place.scored; },
        &made);
    return made;
  };
  const event::Batch learnt = arranged(true, false), scored = arranged(false, false);
  EXPECT_EQ(scored.size(), 200u);  // 20 canaries
  EXPECT_EQ(arranged(true, true).size(), 100u);
  std::set<uint64_t> members, drawn;
  for (size_t i = 0, s = 0; i < learnt.size(); ++i) {
    const uint64_t unit = UnitOf(learnt, i, true);
    EXPECT_EQ(unit, units[(learnt.offset[i] - 1000) % 30]);
    if (!parts.scored(unit)) {
      EXPECT_EQ(learnt.item[i], 7u);
      continue;
    }
    EXPECT_TRUE(parts.member(unit));
    members.insert(unit);
    drawn.insert(learnt.item[i]);
    while (scored.offset[s] < learnt.offset[i]) ++s;
    EXPECT_EQ(scored.item[s], learnt.item[i]);
    EXPECT_EQ(learnt.label[i], 1);
  }
  EXPECT_GT(members.size(), 4u);
  EXPECT_LT(members.size(), 16u);
  EXPECT_GT(drawn.size(), 3u);
  EXPECT_EQ(learnt.size(), 100 + 10 * members.size());
}

}  // namespace
}  // namespace tacit::lab
