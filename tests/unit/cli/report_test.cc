// A statement of privacy out of a ledger: its figures are those of the accountant, and what is
// printed holds; in every form it says the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <fstream>

#include "cli/ledger/comparison.h"
#include "cli/ledger/document.h"
#include "cli/ledger/registry.h"
#include "cli/ledger/statement.h"
#include "privacy/gaussian.h"
#include "support/temp_dir.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::Not;

constexpr double kDelta = 1e-7;

privacy::Charge ChargeOf(double noise, double rate) {
  return {.mechanism = privacy::MechanismKind::kDpSgd,
          .noise_multiplier = noise,
          .sigma_gradient = noise,
          .clip_gradient = 4,
          .sampling_rate = rate};
}

class StatementTest : public testing::Test {
 protected:
  void Declare(const std::string& learner, privacy::ParticipationMode mode) {
    const privacy::Promise promise{
        .learner = learner, .participation = mode, .epsilon = 8, .delta = kDelta};
    ASSERT_TRUE(ledger_.Declare(promise));
  }
  void Step(const std::string& learner, const privacy::Charge& charge, uint64_t steps,
            uint64_t from) {
    const privacy::CommitCharge step{.learner = learner,
                                     .charge = charge,
                                     .steps = steps,
                                     .steps_per_offset = charge.sampling_rate < 1 ? steps : 1,
                                     .topic = "t",
                                     .ranges = {{0, from, from + 1000}}};
    ++commits_;
    ledger_.Append(CommitSeq(commits_), int64_t{86'400'000} * static_cast<int64_t>(commits_),
                   {&step, 1}, Digest{9}, "tacit 1.2");
  }
  LedgerCopy Copy() const {
    LedgerCopy copy;
    copy.entries = ledger_.entries();
    copy.head = ledger_.head();
    for (const char* learner : {"plain", "sampled"})
      copy.promises.learners.push_back({.learner = learner, .epsilon = 8, .delta = kDelta});
    return copy;
  }
  void Learn() {
    Declare("plain", privacy::ParticipationMode::kOnce);
    Declare("sampled", privacy::ParticipationMode::kPoisson);
    Step("plain", ChargeOf(0.7, 1), 1, 0);
    Step("sampled", ChargeOf(1.1, 0.01), 200, 0);
    Step("plain", ChargeOf(0.9, 1), 1, 0);
  }

  privacy::Ledger ledger_;
  uint64_t commits_ = 0;
};

TEST_F(StatementTest, SaysWhatTheAccountantsSay) {
  Learn();
  const Statement statement = MakeStatement(Copy()).value();
  ASSERT_EQ(statement.learners.size(), 2u);
  const StatedLearner &plain = statement.learners[0], &sampled = statement.learners[1];

  // Two looks at the same records: one Gaussian, in closed form.
  const double mu = std::sqrt(1 / (0.7 * 0.7) + 1 / (0.9 * 0.9));
  ASSERT_TRUE(plain.mu);
  EXPECT_NEAR(plain.mu->lower, mu, 1e-12);
  EXPECT_NEAR(plain.mu->upper, mu, 1e-12);
  EXPECT_EQ(plain.runs.size(), 2u);
  ASSERT_EQ(plain.epsilons.size(), 5u);
  for (const StatedEpsilon& stated : plain.epsilons) {
    const double epsilon = privacy::GaussianEpsilon(mu, Delta(stated.delta)).value;
    EXPECT_NEAR(stated.upper, epsilon, 1e-9 * epsilon) << stated.delta;
  }

  privacy::PldAccountant accountant(privacy::Adjacency::kAddRemove);
  ASSERT_TRUE(accountant.Add(privacy::Event::PoissonGaussian(1.1, 0.01), 200));
  const auto certified = accountant.Epsilon(Delta(kDelta)).value();
  EXPECT_GE(sampled.epsilons[0].upper, certified.lower);
  EXPECT_LE(*sampled.epsilons[0].lower, certified.upper);
  EXPECT_NEAR(sampled.epsilons[0].upper, certified.upper, 0.02 * certified.upper);
  ASSERT_TRUE(sampled.mu);
  EXPECT_LT(sampled.mu->lower, sampled.mu->upper);
  EXPECT_GE(privacy::GaussianEpsilon(sampled.mu->upper, Delta(kDelta)).value,
            sampled.epsilons[0].upper * (1 - 1e-9));

  // One unit may be in both.
  EXPECT_GT(statement.together.total.epsilon, plain.total.epsilon);
  EXPECT_GT(statement.together.total.epsilon, sampled.total.epsilon);
  EXPECT_GE(statement.together.total.epsilon, ledger_.Total().epsilon * (1 - 1e-9));
  EXPECT_FALSE(statement.together.epsilons[0].lower);
  // Looking at all learners tells no less than looking at one.
  for (const StatedLearner& learner : statement.learners)
    EXPECT_GT(statement.together.total.AdvantageAtMost(), learner.total.AdvantageAtMost());
  EXPECT_GE(statement.together.total.AdvantageAtMost(),
            ledger_.Total().AdvantageAtMost() * (1 - 1e-9));
}

// A budget of 8 is usual; the same ledger under a budget of 100 is warned of, in
// every form.
TEST_F(StatementTest, APromiseThatProtectsLittleIsNamed) {
  Learn();
  LedgerCopy copy = Copy();
  EXPECT_THAT(MakeStatement(copy)->warnings, testing::IsEmpty());
  copy.promises.learners[1].epsilon = 100;
  const auto statement = MakeStatement(copy);
  ASSERT_TRUE(statement);
  ASSERT_THAT(statement->warnings, testing::SizeIs(1));
  const std::string warning = statement->warnings[0];
  EXPECT_THAT(warning, HasSubstr("sampled: epsilon: 100 hides next to nothing"));
  EXPECT_THAT(ToMarkdown(*statement), HasSubstr(warning));
  EXPECT_THAT(ToHtml(*statement), HasSubstr("100 hides next to nothing"));
  EXPECT_EQ(json::parse(ToJson(*statement)).at("warnings").at(0).as_string(), warning);
}

// The ledger's own total is the better one where records were not shared.
TEST_F(StatementTest, TakesTheLedgersTotalWhereItSaysLess) {
  Declare("plain", privacy::ParticipationMode::kOnce);
  Declare("sampled", privacy::ParticipationMode::kPoisson);
  Step("plain", ChargeOf(0.7, 1), 1, 0);
  Step("sampled", ChargeOf(1.1, 0.01), 200, 5000);
  LedgerCopy copy = Copy();
  const double bound = MakeStatement(copy).value().together.total.epsilon;
  copy.total = ledger_.Total();
  EXPECT_LT(copy.total->epsilon, bound);
  EXPECT_EQ(MakeStatement(copy).value().together.total.epsilon, copy.total->epsilon);
}

// A record that was cheap at one delta may be dear at another: then nothing is said of others.
TEST_F(StatementTest, SaysNothingOfDeltasAtWhichAnotherRecordMayBeTheWorst) {
  Declare("sampled", privacy::ParticipationMode::kPoisson);
  Step("sampled", ChargeOf(1.1, 0.01), 200, 0);
  Step("sampled", ChargeOf(0.8, 0.002), 300, 1000);
  LedgerCopy copy = Copy();
  Statement statement = MakeStatement(copy).value();
  EXPECT_EQ(statement.learners.back().epsilons.size(), 1u);
  EXPECT_TRUE(statement.together.epsilons.empty());
  EXPECT_THAT(ToMarkdown(statement), HasSubstr("not known without the store"));
  copy.total = ledger_.Total();
  statement = MakeStatement(copy).value();
  ASSERT_EQ(statement.together.epsilons.size(), 1u);
  EXPECT_EQ(statement.together.total.epsilon, ledger_.Total().epsilon);
}

TEST_F(StatementTest, IsNotMadeOfADamagedLedger) {
  Learn();
  LedgerCopy copy = Copy();
  copy.entries[1].steps += 1;
  auto made = MakeStatement(copy);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kCorruption);
  copy = Copy();
  copy.entries[2].epsilon *= 0.5;
  copy.entries[2].head = copy.entries[2].ComputeHead();
  made = MakeStatement(copy);
  ASSERT_FALSE(made) << "a lower epsilon, linked as it should be";
}

// The cells of a Markdown table's row, without blanks.
std::vector<std::string> CellsOf(const std::string& markdown, const std::string& first) {
  const size_t begin = markdown.find("| " + first + " |");
  if (begin == std::string::npos) return {};
  std::vector<std::string> cells;
  std::string cell;
  for (const char c : markdown.substr(begin + 1, markdown.find('\n', begin) - begin - 1)) {
    if (c != '|') {
      cell += c;
      continue;
    }
    cells.push_back(cell.substr(1, cell.size() - 2));
    cell.clear();
  }
  return cells;
}

TEST_F(StatementTest, PrintsBoundsThatHold) {
  Learn();
  const Statement statement = MakeStatement(Copy()).value();
  const std::string markdown = ToMarkdown(statement);
  for (const StatedLearner& learner : statement.learners) {
    const std::vector<std::string> cells = CellsOf(markdown, learner.name);
    ASSERT_EQ(cells.size(), 7u) << markdown;
    const std::string& spent = cells[4];
    const size_t to = spent.find(" to ");
    const double upper = std::stod(to == std::string::npos ? spent : spent.substr(to + 4));
    EXPECT_GE(upper, learner.epsilons[0].upper * (1 - 1e-9)) << spent;
    EXPECT_LE(upper, learner.epsilons[0].upper * 1.001) << spent;
    if (to != std::string::npos) {
      EXPECT_LE(std::stod(spent), *learner.epsilons[0].lower) << spent;
    }
  }
}

TEST_F(StatementTest, SaysTheSameInEveryForm) {
  Learn();
  Statement statement = MakeStatement(Copy()).value();
  statement.place = "store a<b";
  const std::string markdown = ToMarkdown(statement), html = ToHtml(statement);
  const json::value object = json::parse(ToJson(statement));
  EXPECT_EQ(object.at("place"), "store a<b");
  EXPECT_EQ(object.at("head"), json::value(statement.head));
  EXPECT_EQ(object.at("learners").as_array().size(), 2u);
  EXPECT_EQ(object.at("learners").at(0).at("epsilon").as_double(),
            statement.learners[0].epsilons[0].upper);
  EXPECT_EQ(object.at("learners").at(1).at("event").at("class_name"), "SelfComposedDpEvent");
  EXPECT_EQ(object.at("learners").at(0).at("runs").as_array().size(), 2u);
  for (const std::string& text : {markdown, html}) {
    for (const std::string& sentence : NotPromised()) EXPECT_THAT(text, HasSubstr(sentence));
    EXPECT_THAT(text, HasSubstr(statement.head));
    EXPECT_THAT(text, HasSubstr("200 steps of dp-sgd, noise multiplier 1.1000"));
    EXPECT_THAT(text, HasSubstr("each unit in a step by a coin of 0.01"));
    EXPECT_THAT(text, HasSubstr("1970-01-02 00:00"));
    EXPECT_THAT(text, HasSubstr("nulled in one of them"));
    EXPECT_THAT(text, HasSubstr("No witness was at hand"));
  }
  EXPECT_THAT(html, HasSubstr("store a&lt;b"));
  EXPECT_THAT(html, HasSubstr("<svg"));
  // Nothing is loaded from anywhere, and nothing runs.
  for (const char* out : {"src=", "href=", "url(", "@import", "<script"})
    EXPECT_THAT(html, Not(HasSubstr(out)));
  statement.witnessed = true;
  EXPECT_THAT(ToMarkdown(statement), HasSubstr("agrees with its witness"));
}

TEST_F(StatementTest, OfNothingSaysSo) {
  const Statement statement = MakeStatement(Copy()).value();
  EXPECT_THAT(ToMarkdown(statement), HasSubstr("Nothing has been learnt from anybody yet."));
  EXPECT_THAT(ToHtml(statement), Not(HasSubstr("<svg")));
  EXPECT_EQ(json::parse(ToJson(statement)).at("total").at("epsilon").to_number<double>(), 0);
}

// Writes the statement of now where a later one finds it.
std::string Filed(const test::TempDir& dir, const LedgerCopy& copy) {
  std::string path = dir.path() + "/old.json";
  std::ofstream(path) << ToJson(MakeStatement(copy).value());
  return path;
}

Result<Comparison> CompareNow(const std::string& path, const LedgerCopy& copy) {
  return CompareWith(path, ToJson(MakeStatement(copy).value()), copy);
}

TEST_F(StatementTest, AnOlderStatementIsContinued) {
  Learn();
  LedgerCopy copy = Copy();
  copy.promises.learners.push_back({.learner = "idle", .epsilon = 1, .delta = kDelta});
  const test::TempDir dir;
  const std::string old = Filed(dir, copy);
  EXPECT_THAT(CompareNow(old, copy)->changes, testing::IsEmpty());
  // The last run goes on, so that its head moves; a learner gets another name, another is gone.
  Step("plain", ChargeOf(0.9, 1), 1, 5000);
  const privacy::Ledger::Heir heir = {
      .promise = {.learner = "fresh", .epsilon = 8, .delta = kDelta}, .before = "plain"};
  ASSERT_TRUE(ledger_.TakeOver(CommitSeq(++commits_), int64_t{86'400'000} * 9, {&heir, 1}, "next"));
  copy = Copy();
  copy.promises.learners[0] = heir.promise;
  copy.promises.learners[0].epsilon = 9;
  const auto compared = CompareNow(old, copy);
  ASSERT_TRUE(compared) << compared.error().message;
  EXPECT_EQ(compared->not_in_chain, "");
  EXPECT_THAT(compared->changes,
              testing::ElementsAre("idle: is gone", "fresh: was called plain",
                                   "fresh: budget is 9, and was 8", "fresh: steps is 3, and was 2",
                                   "all together: steps is 203, and was 202"));
}

TEST_F(StatementTest, AnotherLedgerDoesNotContinueAnOlderStatement) {
  Learn();
  const test::TempDir dir;
  const std::string old = Filed(dir, Copy());
  ledger_ = {};
  commits_ = 0;
  Declare("plain", privacy::ParticipationMode::kOnce);
  Step("plain", ChargeOf(0.7, 1), 1, 0);
  // It was rolled back; then it went on in another way.
  EXPECT_THAT(CompareNow(old, Copy())->not_in_chain, HasSubstr("commit 3"));
  for (const double noise : {0.8, 0.9}) Step("plain", ChargeOf(noise, 1), 1, 0);
  Statement statement = MakeStatement(Copy()).value();
  statement.compared = CompareNow(old, Copy()).value();
  EXPECT_NE(statement.compared->not_in_chain, "");
  EXPECT_THAT(ToMarkdown(statement), HasSubstr("statement of privacy\n\nTHE LEDGER OF "));
  EXPECT_THAT(ToHtml(statement), HasSubstr("IS NOT CONTINUED BY THIS ONE"));
}

TEST_F(StatementTest, NothingIsRegisteredBeforeALearnerHasLearnt) {
  Declare("plain", privacy::ParticipationMode::kOnce);
  for (const bool inspected : {false, true}) {
    privacy::Charge charge = ChargeOf(3, 1);
    charge.mechanism = privacy::MechanismKind::kInspection;
    if (inspected) Step("plain", charge, 1, 0);
    const auto record = MakeRegistryRecord(MakeStatement(Copy()).value(), nullptr);
    ASSERT_FALSE(record);
    EXPECT_EQ(record.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(record.error().message, HasSubstr("nothing has been learnt yet"));
  }
  Step("plain", ChargeOf(3, 1), 1, 0);
  const auto record = MakeRegistryRecord(MakeStatement(Copy()).value(), nullptr);
  ASSERT_TRUE(record) << record.error().message;
  // The inspection was a day earlier.
  EXPECT_THAT(record->yaml, HasSubstr("publication_date: \"1970-01-03\""));
  EXPECT_THAT(record->yaml, HasSubstr("An inspection of the data was made with noise"));
}

TEST(Document, EscapesWhatIsNotItsOwn) {
  Document document;
  document.title = "a & b";
  document.Table({{"head"}, {"<script>|\""}});
  document.List({"1 < 2"});
  document.Code("x > y");
  EXPECT_THAT(RenderHtml(document), HasSubstr("<h1>a &amp; b</h1>"));
  EXPECT_THAT(RenderHtml(document), HasSubstr("<td>&lt;script&gt;|&quot;</td>"));
  EXPECT_THAT(RenderHtml(document), HasSubstr("<li>1 &lt; 2</li>"));
  EXPECT_THAT(RenderHtml(document), HasSubstr("<pre>x &gt; y</pre>"));
  EXPECT_EQ(RenderMarkdown(document),
            "# a & b\n\n| head |\n|---|\n| <script>\\|\" |\n\n- 1 < 2\n\n```\nx > y\n```\n");
}

}  // namespace
}  // namespace tacit::cli
