// Kills a store's owner again and again, at random and at every named moment, while it commits,
// folds, makes and removes checkpoints, forgets, cuts shards anew, repairs, restores and grows. The
// oracle is this process: it hears what the owner was promised, and knows script.h.
//   TACIT_KILLS=N           kills at random: 40 without it
//   TACIT_KILLS_AT_POINT=N  kills at every named moment: 1 without it
//   TACIT_KILLS_SECONDS=N   ends after this time, and leaves the rest to another run
//   TACIT_KILLS_STATE=FILE  counts that go on from run to run
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include "growth_script.h"
#include "recovered.h"
#include "store/care/repair.h"
#include "support/files_below.h"
#include "support/process.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using test::Ended;
using test::Process;

constexpr uint64_t kCommitsOfAStore = 60;
constexpr const char* kAtRandom = "at random";

uint64_t NumberFrom(const char* variable, uint64_t otherwise) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

// Reads the names of all moments at which a store's code may be killed from its sources, so that
// none can be left out. A replica's moments are replica_store_test.cc's.
std::vector<std::string> NamedPoints() {
  std::vector<std::string> points;
  const std::regex call("CrashPoint\\(\"([a-z_.]+)\"\\)");
  for (const fs::path& file : test::FilesBelow(fs::path(TACIT_SOURCE_DIR) / "src" / "store")) {
    if (file.filename() == "replica_store.cc") continue;
    const std::string source = test::ReadFile(file);
    for (std::sregex_iterator it(source.begin(), source.end(), call), end; it != end; ++it)
      points.push_back((*it)[1]);
  }
  std::ranges::sort(points);
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

// The kills that are wanted and those that were made.
class Kills {
 public:
  Kills() : points_(NamedPoints()) {
    wanted_[kAtRandom] = NumberFrom("TACIT_KILLS", 40);
    for (const std::string& point : points_) wanted_[point] = NumberFrom("TACIT_KILLS_AT_POINT", 1);
    std::ifstream in(StateFile());
    for (std::string line; std::getline(in, line);)
      if (const size_t tab = line.find('\t'); tab != std::string::npos)
        made_[line.substr(0, tab)] = std::strtoull(line.c_str() + tab, nullptr, 10);
  }

  const std::vector<std::string>& points() const { return points_; }
  void Count(const std::string& what) { ++made_[what]; }
  // One of the moments of this part of a story that have been killed too rarely, or nothing.
  enum class Part { kWalk, kRestore, kGrowth };
  std::string Wanting(Part part, std::mt19937_64& random) const {
    std::vector<std::string> left;
    for (const std::string& point : points_)
      if (PartOf(point) == part && Left(point) > 0) left.push_back(point);
    return left.empty() ? "" : left[random() % left.size()];
  }
  uint64_t Left(const std::string& what) const {
    const auto made = made_.find(what);
    const uint64_t so_far = made == made_.end() ? 0 : made->second;
    return std::max(wanted_.at(what), so_far) - so_far;
  }
  bool AllMade() const {
    return std::ranges::all_of(wanted_, [&](const auto& one) { return Left(one.first) == 0; });
  }
  std::string Table() const {
    std::string table;
    for (const auto& [what, wanted] : wanted_) {
      const auto made = made_.find(what);
      table +=
          fmt::format("{:28} {:5} of {}\n", what, made == made_.end() ? 0 : made->second, wanted);
    }
    return table;
  }
  void Keep() const {
    if (StateFile().empty()) return;
    std::ofstream out(StateFile() + ".new", std::ios::trunc);
    for (const auto& [what, made] : made_) out << what << '\t' << made << '\n';
    out.close();
    fs::rename(StateFile() + ".new", StateFile());
  }

 private:
  static Part PartOf(std::string_view point) {
    if (point.starts_with("restore.")) return Part::kRestore;
    return point.starts_with("growth.") ? Part::kGrowth : Part::kWalk;
  }
  static std::string StateFile() {
    const char* const file = std::getenv("TACIT_KILLS_STATE");
    return file == nullptr ? "" : file;
  }
  const std::vector<std::string> points_;
  std::map<std::string, uint64_t> wanted_, made_;
};

// The epsilon of every commit of the script, from a store that nobody kills.
const std::vector<double>& Epsilons() {
  static const std::vector<double> epsilons = [] {
    const TestFolder folder;
    const auto store = MustOpen(TestOptions(folder));
    std::vector<double> all{store->Latest()->total().epsilon};
    while (all.size() < 8 * kCommitsOfAStore) {
      EXPECT_TRUE(Script::Step(*store));
      all.push_back(store->Latest()->total().epsilon);
    }
    return all;
  }();
  return epsilons;
}

// One store, from its making until it has enough commits: all that its owner has been promised.
class Story {
 public:
  Story(Kills& kills, std::mt19937_64& random) : kills_(kills), random_(random) {}

  // Lets the owner live until it is killed, and looks at what it left.
  void Live() {
    const std::string point = random_() % 2 == 0 ? kills_.Wanting(Kills::Part::kWalk, random_) : "";
    Hear(Killed({"walk", folder_.root(), std::to_string(random_() >> 1), LikedFor(point)}, point));
    if (testing::Test::HasFailure()) return;
    if (!fs::exists(folder_.store()) || fs::is_empty(folder_.store())) {
      ASSERT_EQ(promised_, 0u);
      return;
    }
    if (lost_name_ && !fs::exists(folder_.store() + "/CURRENT")) {
      const auto repair = RepairStore(folder_.store(), {.witness = folder_.witness()});
      ASSERT_TRUE(repair) << repair.error().message;
    }
    ExpectRecovered(folder_.root(), [&](Store& store) {
      const uint64_t version = store.Latest()->version().value;
      EXPECT_GE(version, promised_) << "a commit is lost";
      EXPECT_EQ(store.Latest()->total().epsilon, Epsilons()[version]) << "at commit " << version;
      for (const uint64_t u : asked_)
        if (store.Forgotten({u, ~u})) forgotten_.insert(u);
      asked_.clear();
      for (const uint64_t u : forgotten_)
        EXPECT_TRUE(store.Forgotten({u, ~u})) << "user " << u << " is remembered again";
      return forgotten_;
    });
    const auto places = ExpectWholeCheckpoints(folder_.root() + "/checkpoints");
    for (size_t kind = 0; kind < 2; ++kind)
      EXPECT_GE(std::ranges::count_if(places,
                                      [&](const auto& place) {
                                        return place.manifest.kind ==
                                               (kind == 0 ? CheckpointKind::kFull
                                                          : CheckpointKind::kRelease);
                                      }),
                static_cast<ptrdiff_t>(checkpoints_[kind]))
          << "a checkpoint is lost";
    const auto witness = WitnessFile::Read(folder_.witness());
    if (witness && *witness) promised_ = (*witness)->record.seq.value;
  }
  bool IsLong() const { return promised_ >= kCommitsOfAStore; }

  // Loses the store and restores its newest full checkpoint, killed on the way; all that was spent
  // since is charged, and who was forgotten stays so.
  void LoseAndRestore() {
    const auto places = ExpectWholeCheckpoints(folder_.root() + "/checkpoints");
    uint64_t from = 0;
    for (const CheckpointPlace& place : places)
      if (place.manifest.kind == CheckpointKind::kFull)
        from = std::max(from, place.manifest.commit.value);
    if (from == 0) return;
    fs::rename(folder_.store(), folder_.root() + "/lost");
    std::vector<std::string> words{"restore", folder_.root(), std::to_string(from),
                                   std::to_string(promised_)};
    for (const uint64_t u : forgotten_) words.push_back(std::to_string(u));
    // However slow the machine is, one of them comes to its end.
    for (uint64_t times = 1; !fs::exists(folder_.store()); times *= 2) {
      Killed(words, kills_.Wanting(Kills::Part::kRestore, random_), "", times);
      if (testing::Test::HasFailure()) return;
    }
    StoreOptions options = TestOptions(folder_);
    options.shards = 0;
    const auto store = Store::Open(options);
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ((*store)->Latest()->version().value, from + (promised_ > from ? 1 : 0));
    EXPECT_EQ((*store)->Latest()->total().epsilon, Epsilons()[promised_]);
    std::vector<UserUses> users;
    std::vector<UserHistory> histories;
    for (uint64_t u = 0; u < Script::kUsers; ++u) {
      users.push_back({.user = {u, ~u}});
      histories.push_back({.user = {u, ~u}, .items = {}});
    }
    ASSERT_TRUE((*store)->ReadAllowances(LearnerIndex(0), users));
    ASSERT_TRUE((*store)->ReadHistories(LearnerIndex(0), histories));
    for (uint64_t u = 0; u < Script::kUsers; ++u) {
      EXPECT_GE(users[u].used, Script::UsesOf(u, promised_).used) << "user " << u;
      EXPECT_EQ(histories[u].items, Script::RememberedOf(u, from, forgotten_)) << "user " << u;
    }
  }

  // Takes a model over, killed on the way: the store has one of the two.
  void Grow() {
    const uint64_t commits = 1 + random_() % 12;
    const LearnerLayout before = GrowthScript::Before(), after = GrowthScript::After();
    Killed({"grow", folder_.root(), std::to_string(commits)},
           kills_.Wanting(Kills::Part::kGrowth, random_), "growing");
    RowModel model(&before.rows);
    for (uint64_t seq = 1; seq <= commits; ++seq)
      for (const uint64_t row : Script::RowsOf(seq)) {
        auto floats = model.Row(row);
        Script::Change(seq, floats);
        model.Set(row, floats);
      }
    GrowthScript::Rows was;
    for (uint64_t row = 0; row < before.rows.space.rows(); ++row) was.push_back(model.Row(row));
    StoreOptions options = GrowthScript::Options(folder_.root(), after);
    options.may_lose = true;
    const auto store = Store::Open(options);
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ((*store)->Latest()->version().value, commits + 1);
    GrowthScript::ExpectChain(**store);
    EXPECT_EQ(
        std::ranges::count_if(GrowthScript::Entries(**store), &privacy::LedgerEntry::is_growth), 1);
    EXPECT_EQ(GrowthScript::RowsOf(**store, after.rows),
              GrowthScript::Grown(was, before.rows, after.rows));
  }

 private:
  // Names what the owner does when it comes to this moment.
  std::string LikedFor(std::string_view point) const {
    const std::string_view part = point.substr(0, point.find('.'));
    if (point == "checkpoint.removing") return "prune";
    if (point == "checkpoint.manifest_written") return "forget";
    if (part == "checkpoint") return random_() % 2 == 0 ? "full" : "release";
    if (part == "fold") return "commit";
    return std::string(part);
  }

  // Runs the owner with these words, kills it at this moment or, without one, at random after it
  // has said `after`, and returns its end. It has this many times as long as it needs elsewhere.
  Ended Killed(std::vector<std::string> words, const std::string& point,
               std::string_view after = "", uint64_t times = 1) {
    words.insert(words.begin(), TACIT_KILLS_CHILD);
    std::vector<std::string> environment;
    if (!point.empty())
      environment.push_back(
          fmt::format("TACIT_TEST_CRASH_AT={}:{}", point, 1 + random_() % MostHits(point)));
    Process owner(words, environment);
    const auto has_said = [&] { return owner.Out().find(after) != std::string::npos; };
    while (point.empty() && !after.empty() && !has_said() && !owner.WaitFor(milliseconds(1))) {
    }
    // An owner that does not come to the moment in time is killed all the same.
    const milliseconds patience(point.empty() ? random_() % (times * (after.empty() ? 120 : 20))
                                              : times * 5000);
    auto ended = owner.WaitFor(patience);
    bool by_point = ended && !point.empty();
    if (!ended) {
      owner.Signal(SIGKILL);
      ended = owner.Wait();
    }
    if (!ended) {
      ADD_FAILURE() << "the owner cannot be killed";
      return {};
    }
    if (ended->signal == SIGKILL) {
      kills_.Count(by_point ? point : kAtRandom);
    } else if (ended->exit_code != 0) {
      ADD_FAILURE() << fmt::format("the owner failed: {} (signal {})", ended->err, ended->signal);
    }
    return *ended;
  }
  static uint64_t MostHits(std::string_view point) {
    if (point.starts_with("restore.") || point.starts_with("growth.")) return 1;
    return point.starts_with("commit.") ? 12 : 3;
  }

  // Notes what the owner said.
  void Hear(const Ended& ended) {
    std::istringstream lines(ended.out);
    std::string what;
    lost_name_ = false;
    for (uint64_t number = 0; lines >> what >> number;) {
      if (what == "committed") promised_ = number;
      if (what == "full") ++checkpoints_[0];
      if (what == "release") ++checkpoints_[1];
      if (what == "pruning")
        for (uint64_t& most : checkpoints_) most = std::min(most, number);
      if (what == "forgetting") asked_.insert(number);
      if (what == "forgot") forgotten_.insert(number);
      if (what == "unnamed") lost_name_ = true;
      if (what == "named") lost_name_ = false;
    }
  }

  Kills& kills_;
  std::mt19937_64& random_;
  const TestFolder folder_;
  uint64_t promised_ = 0;
  std::array<uint64_t, 2> checkpoints_{};  // that must be there: full ones, releases
  Script::Forgotten forgotten_, asked_;
  bool lost_name_ = false;
};

TEST(KillsTest, NothingThatWasPromisedIsLost) {
  Kills kills;
  EXPECT_GT(kills.points().size(), 25u);
  const uint64_t seconds = NumberFrom("TACIT_KILLS_SECONDS", 0);
  const auto begun = std::chrono::steady_clock::now();
  const auto out_of_time = [&] {
    return seconds > 0 && std::chrono::steady_clock::now() - begun > std::chrono::seconds(seconds);
  };
  for (uint64_t seed = std::random_device()(); !kills.AllMade() && !out_of_time(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    Story story(kills, random);
    if (random() % 8 == 0 || !kills.Wanting(Kills::Part::kGrowth, random).empty()) {
      story.Grow();
    } else {
      while (!story.IsLong() && !HasFailure() && !kills.AllMade()) story.Live();
      if (!HasFailure()) story.LoseAndRestore();
    }
    if (HasFailure()) break;
    kills.Keep();
  }
  fmt::print("{}", kills.Table());
  if (seconds == 0) {
    EXPECT_TRUE(kills.AllMade());
  }
}

}  // namespace
}  // namespace tacit::store
