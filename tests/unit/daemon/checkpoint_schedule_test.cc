// Scheduled checkpoints where the system's clock was ahead for a while.
#include "daemon/checkpoint_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "store/checkpoint/checkpoint.h"
#include "support/eventually.h"
#include "unit/store/script.h"

namespace tacit::daemon {
namespace {

namespace fs = std::filesystem;
using store::CheckpointKind;

constexpr int64_t kNowMs = 1'700'000'000'000, kHourMs = 3'600'000;

class FixedTime final : public Clock {
 public:
  TimePoint Now() const override { return SystemClock().Now(); }
  int64_t UnixMillis() const override { return kNowMs; }
};

class CheckpointScheduleTest : public testing::Test {
 protected:
  CheckpointScheduleTest() : options_(store::TestOptions(folder_)) {
    store_ = store::MustOpen(options_);
    Step();
    schedule_.every_s = 3600;
    schedule_.path = folder_.root() + "/checkpoints";
    schedule_.kinds = {"full"};
    schedule_.keep = 9;
  }

  void Step() {
    const Status step = store::Script::Step(*store_);
    ASSERT_TRUE(step) << step.error().message;
  }
  // Makes a full checkpoint whose manifest says that it was made then.
  void MakeAt(int64_t time_ms) {
    auto made = store_->MakeCheckpoint({.kind = CheckpointKind::kFull, .parent = schedule_.path});
    ASSERT_TRUE(made) << made.error().message;
    store::CheckpointManifest manifest = made->place.manifest;
    manifest.time_ms = time_ms;
    const std::string path = made->place.folder + "/" + store::kCheckpointManifestName;
    fs::remove(path);
    std::ofstream(path, std::ios::binary) << store::EncodeManifest(manifest);
  }
  std::vector<uint64_t> FullCommits() const {
    std::vector<uint64_t> commits;
    const auto places = store::ListCheckpoints(schedule_.path, nullptr);
    EXPECT_TRUE(places);
    if (places)
      for (const store::CheckpointPlace& place : *places)
        if (place.manifest.kind == CheckpointKind::kFull)
          commits.push_back(place.manifest.commit.value);
    return commits;
  }
  // Asks for two others, one after the other. The schedule looks at what is due between them.
  void LetItLook(CheckpointSchedule& schedule) {
    const serve::CheckpointCommands commands = schedule.Commands();
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(test::Eventually("it takes a request", [&] {
        return commands.start(CheckpointKind::kRelease).has_value();
      }));
      ASSERT_TRUE(test::Eventually("it is made", [&] {
        const auto report = commands.report();
        return report && report->last && report->last->kind == CheckpointKind::kRelease &&
               report->last->state == serve::CheckpointJob::State::kDone;
      }));
    }
  }

  const store::TestFolder folder_;
  store::StoreOptions options_;
  std::unique_ptr<store::Store> store_;
  config::Checkpoints schedule_;
  const FixedTime clock_;
  metrics::Registry registry_;
};

TEST_F(CheckpointScheduleTest, OneOfATimeAheadHoldsNoOtherBack) {
  MakeAt(kNowMs + 1000 * kHourMs);
  Step();
  CheckpointSchedule schedule(*store_, schedule_, "", clock_, registry_);
  EXPECT_TRUE(test::Eventually("one is made of the last commit", [&] {
    return testing::Value(FullCommits(), testing::UnorderedElementsAre(1u, 2u));
  }));
}

// A store that has not changed gets none, and neither does one whose last was made just now.
TEST_F(CheckpointScheduleTest, NoneIsMadeOfACommitThatHasOneOrSoonAfter) {
  MakeAt(kNowMs + 1000 * kHourMs);
  {
    CheckpointSchedule schedule(*store_, schedule_, "", clock_, registry_);
    LetItLook(schedule);
  }
  EXPECT_THAT(FullCommits(), testing::ElementsAre(1u));
  MakeAt(kNowMs - kHourMs / 2);
  Step();
  metrics::Registry other;
  {
    CheckpointSchedule schedule(*store_, schedule_, "", clock_, other);
    LetItLook(schedule);
  }
  EXPECT_THAT(FullCommits(), testing::ElementsAre(1u));
}

}  // namespace
}  // namespace tacit::daemon
