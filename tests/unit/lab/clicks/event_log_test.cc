#include "lab/clicks/event_log.h"

#include <gtest/gtest.h>

#include "support/small_run.h"
#include "wiring/plans/codec.h"

namespace tacit::lab {
namespace {

using test::TempDir;

struct Seen {
  std::vector<uint64_t> offset, row;
  std::vector<float> label, dense;
  std::vector<uint64_t> cuts;
  uint64_t records = 0;
  friend bool operator==(const Seen&, const Seen&) = default;
};

class Log : public ::testing::Test {
 protected:
  Log() {
    test::WriteSmallLog(dir_, 3, 5000, 4);
    // One record in the middle that is none.
    const std::string day = test::ReadFile(dir_ / "day-1.tsv");
    test::WriteFile(dir_ / "day-1.tsv", day.substr(0, day.find('\n') + 1) + "nonsense\n" +
                                            day.substr(day.find('\n') + 1));
    config_ = *config::Load(test::SmallRun().WriteConfig(dir_), {});
    transform_ = std::make_unique<event::FeatureTransform>(wiring::MakeSchema(config_.features));
  }

  std::unique_ptr<EventLog> Open(uint64_t cache) {
    return *EventLog::Open(config_.source, *transform_, cache);
  }

  static Seen Look(const EventLog& log, uint64_t begin, uint64_t end) {
    Seen seen;
    uint64_t next = begin;
    EXPECT_TRUE(log.ForEach(
        begin, end, [&](const event::RawRecords& frame, const event::Batch& batch) -> Result<bool> {
          EXPECT_EQ(frame.first_offset, next) << "records are missing or repeated";
          next = frame.end_offset();
          seen.records += frame.size();
          for (const event::PublicCut& cut : frame.cuts) seen.cuts.push_back(cut.offset);
          for (size_t i = 0; i < batch.size(); ++i) {
            seen.offset.push_back(batch.offset[i]);
            seen.label.push_back(batch.label[i]);
            for (size_t s = 0; s < batch.slots; ++s)
              for (const uint64_t row : batch.Slot(i, s)) seen.row.push_back(row);
          }
          seen.dense.insert(seen.dense.end(), batch.dense.begin(), batch.dense.end());
          return true;
        }));
    EXPECT_EQ(next, end);
    return seen;
  }

  TempDir dir_;
  config::Config config_;
  std::unique_ptr<event::FeatureTransform> transform_;
};

TEST_F(Log, IsTheSameFromMemoryAndFromFiles) {
  const auto cached = Open(1 << 30), read = Open(0);
  ASSERT_TRUE(cached->cached());
  ASSERT_FALSE(read->cached());
  EXPECT_EQ(read->cache_bytes(), 0u);
  EXPECT_EQ(cached->records(), 15001u);
  EXPECT_EQ(cached->dead_letters(), 1u);
  EXPECT_EQ(cached->file_ends(), (std::vector<uint64_t>{5000, 10001, 15001}));
  EXPECT_EQ(cached->identity(), read->identity());
  for (const auto& [begin, end] : std::vector<std::pair<uint64_t, uint64_t>>{
           {0, 15001}, {0, 5000}, {5000, 10001}, {17, 4096}, {4095, 4097}, {9999, 15001}}) {
    SCOPED_TRACE(begin);
    const Seen a = Look(*cached, begin, end), b = Look(*read, begin, end);
    EXPECT_EQ(a, b);
    EXPECT_EQ(a.records, end - begin);
    EXPECT_EQ(a.row.size(), a.label.size() * 26);
  }
}

// A file that ends where one stops reading ends within: the period it closes is closed.
TEST_F(Log, ACutAtTheEndIsWithin) {
  const auto log = Open(1 << 30);
  EXPECT_EQ(Look(*log, 0, 5000).cuts, (std::vector<uint64_t>{5000}));
  EXPECT_EQ(Look(*log, 0, 4999).cuts, std::vector<uint64_t>());
  EXPECT_EQ(Look(*log, 0, 15001).cuts, (std::vector<uint64_t>{5000, 10001, 15001}));
}

TEST_F(Log, AnotherLogHasAnotherIdentity) {
  const std::string before = Open(0)->identity();
  test::WriteFile(dir_ / "day-2.tsv", test::ReadFile(dir_ / "day-1.tsv"));
  EXPECT_NE(Open(0)->identity(), before);
}

}  // namespace
}  // namespace tacit::lab
