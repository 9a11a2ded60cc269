// A restore charges what the witness says of the lost steps, and a witness is a file that somebody
// may have changed: what no store can have written is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "service.h"
#include "store/witness/witness.h"
#include "train/learner/position.h"

namespace tacit {
namespace {

namespace fs = std::filesystem;
using test::Ended;
using testing::HasSubstr;
using Next = std::vector<OffsetRange>;

// A store that learnt a day of 1000 records, its copy, and another day learnt after that. The copy
// is at the store's path.
class ForgedWitness : public testing::Test {
 protected:
  void LoseStore() {
    test::SmallRun run;
    run.source = fmt::format(", mark: \"{}\"", mark_);
    run.participation = "{mode: once, batch: 50}";
    config_ = run.WriteConfig(dir_);
    for (const int day : {1, 2}) {
      test::WriteSmallLog(dir_, day, 1000, 1);
      ASSERT_EQ(Start({}).exit_code, 0);
      if (day == 1) fs::copy(store_, dir_ / "copy", fs::copy_options::recursive);
    }
    fs::remove_all(store_);
    fs::rename(dir_ / "copy", store_);
    fs::copy(witness_, dir_ / "whole");
  }

  Ended Start(std::vector<std::string> more) const {
    std::vector<std::string> words{TACITD, "--config", config_, "--until-end"};
    words.insert(words.end(), more.begin(), more.end());
    return test::Run(words);
  }

  // Writes the memory of the last commit anew into `path`.
  void Forge(const std::string& path,
             const std::function<void(store::WitnessRecord*)>& forge) const {
    auto sight = store::WitnessFile::Read(dir_ / "whole");
    ASSERT_TRUE(sight && *sight);
    store::WitnessRecord record = (**sight).record;
    forge(&record);
    fs::remove(path);
    const auto written = store::WitnessFile::OpenAt(path, record);
    ASSERT_TRUE(written) << written.error().message;
  }

  void ExpectRefused(const std::string& said) const {
    const Ended refused = Start({"--accept-older-copy"});
    EXPECT_EQ(refused.exit_code, 3) << said;
    EXPECT_THAT(refused.err, HasSubstr(said));
  }

  const test::TempDir dir_;
  const std::string store_ = dir_ / "store", witness_ = dir_ / "store.witness";
  const std::string mark_ = dir_ / "input.mark";
  std::string config_;
};

// Other records would be charged than those that were learnt from, or none; or some be passed over.
TEST_F(ForgedWitness, APositionThatCannotBeIsRefused) {
  LoseStore();
  fs::remove(mark_);
  const std::vector<std::pair<Next, std::string>> forgeries = {
      {{{0, 999, 999}}, " is at offset 999 of partition 0, and at 1000 in the copy"},
      {{{0, 1000, 1000}}, " is 0 offsets after the copy's, and 20 steps were charged"},
      {{{0, 2000, 2000}, {-1, 5, 5}}, " has partition -1"},
      {{{0, 2000, 2000}, {0, 5, 5}}, " has partition 0 twice"},
      {{{1, 2000, 2000}}, " has no partition 0"},
      {{{0, 2000, 2000}, {1, 5, 5}}, ": a log has one partition, 0 (got 1)"},
      {{{0, 2001, 2001}}, ": offset 2001 is past the end of the log, which has 2000 records"},
      {{{0, 2000, 2001}}, ": offset 2001 is past the end of the log, which has 2000 records"}};
  for (const auto& [next, said] : forgeries) {
    Forge(witness_, [&next](store::WitnessRecord* record) {
      std::string& stored = *record->learners.at(0).position;
      stream::Position position = *train::DecodePosition(stored);
      position.next = next;
      stored = train::EncodePosition(position);
    });
    ExpectRefused(witness_ + ": learner 'ctr': position.next" + said);
  }
  fs::copy(dir_ / "whole", witness_, fs::copy_options::overwrite_existing);
  EXPECT_EQ(Start({"--accept-older-copy"}).exit_code, 0);
}

// Its steps would not be charged.
TEST_F(ForgedWitness, ALearnerThatIsMissingIsRefused) {
  LoseStore();
  fs::remove(mark_);
  Forge(witness_,
        [](store::WitnessRecord* record) { record->learners = {{.name = "another", .steps = 0}}; });
  ExpectRefused(witness_ + ": there is no learner 'ctr', which took 20 steps in the copy");
}

// An adversary who writes one of the two alone, as a later commit, would have the other passed
// over.
TEST_F(ForgedWitness, AMarkThatContradictsTheWitnessIsRefused) {
  LoseStore();
  const auto later = [](store::WitnessRecord* record) { record->seq.value += 1; };
  Forge(mark_, [&](store::WitnessRecord* record) {
    later(record);
    record->learners.at(0).steps = 39;
  });
  ExpectRefused("learner 'ctr' has taken 39 steps by the former, and 40 by the latter");
  Forge(mark_, [&](store::WitnessRecord* record) {
    later(record);
    store::WitnessedLearner& learner = record->learners.at(0);
    store::WitnessedLearner::Priced cheaper = learner.prices.at(0);
    cheaper.charged.charge.noise_multiplier *= 100;
    cheaper.steps = 19;
    learner.prices[0].steps = 21;
    learner.prices.insert(learner.prices.begin(), cheaper);
  });
  ExpectRefused("learner 'ctr' was charged 21 steps at one of its prices by the former, and 40");
  Forge(mark_, [](store::WitnessRecord* record) { record->head[0] ^= 1; });
  ExpectRefused("their ledger heads differ");
}

}  // namespace
}  // namespace tacit
