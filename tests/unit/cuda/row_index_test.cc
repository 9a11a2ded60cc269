// The index of cached rows against a naive model under random operations.
#include "cuda/rows/row_index.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

// Two families: tables 0 and 1 share the first, of `many` buckets; table 2 has one bucket.
std::vector<CachedTable> IndexTables(uint32_t many) {
  const bool all = many >= 8;  // 1,000 rows
  return {
      {.first = 0, .rows = 700, .before = 0, .first_bucket = 0, .count = many, .holds_all = all},
      {.first = 700,
       .rows = 300,
       .before = 700,
       .first_bucket = 0,
       .count = many,
       .holds_all = all},
      {.first = 1000, .rows = 200, .before = 0, .first_bucket = many, .count = 1}};
}

struct NaiveIndex {
  std::vector<CachedTable> tables;
  std::vector<uint32_t> row, age;
  std::vector<uint8_t> changed;

  explicit NaiveIndex(uint32_t many)
      : tables(IndexTables(many)),
        row((many + 1) * kBucketPlaces, kNone),
        age(row.size(), kNone),
        changed(row.size(), 0) {}

  uint32_t BucketOfRow(uint32_t wanted) const { return BucketOf(tables.data(), wanted); }
  uint32_t Find(uint32_t wanted) const {
    const auto at = std::ranges::find(row, wanted);
    return at == row.end() ? kNone : static_cast<uint32_t>(at - row.begin());
  }
  uint32_t Place(uint32_t wanted, uint32_t own_age, uint32_t in_use) {
    uint32_t best = kNone;
    const uint32_t begin = BucketOfRow(wanted) * kBucketPlaces;
    for (uint32_t p = begin; p < begin + kBucketPlaces; ++p)
      if (age[p] > in_use && !changed[p] && (best == kNone || age[p] > age[best])) best = p;
    if (best == kNone) return kNone;
    row[best] = wanted;
    age[best] = own_age;
    return best;
  }
};

class RowIndexTest : public OnDevice {
 protected:
  template <class T>
  void Upload(const std::vector<T>& from, const Buffer<T>& to) {
    ASSERT_TRUE(stream_->Upload<T>(from, to.span().Sub(0, from.size())));
    ASSERT_TRUE(stream_->Synchronize());
  }

  void Compare(uint32_t many, uint64_t seed) {
    SCOPED_TRACE(fmt::format("{} buckets, seed {}", many, seed));
    std::mt19937_64 random(seed);
    NextOrder(static_cast<int>(seed));
    NaiveIndex naive(many);
    const auto tables = ToDevice(naive.tables);
    const auto row = ToDevice(naive.row), age = ToDevice(naive.age);
    const auto changed = ToDevice(naive.changed);
    const auto digests = Make<Digests>(naive.row.size() / 16);
    ASSERT_TRUE(stream_->Fill(digests.span(), 0));
    const RowIndex index{
        .tables = tables.span(), .digests = digests.span(), .row = row.span(), .age = age.span()};
    size_t found = 0, placed = 0, evicted = 0, without_place = 0;
    for (uint32_t tick = 1; tick <= 25; ++tick) {
      // Look for some rows, a few of them twice.
      std::vector<uint32_t> wanted;
      for (uint64_t n = random() % 90; n > 0; --n) {
        const auto of_table_2 = static_cast<uint32_t>(1000 + random() % 200);
        const auto of_others = static_cast<uint32_t>(random() % (random() % 2 ? 1000 : 60));
        wanted.push_back(random() % 4 == 0 ? of_table_2 : of_others);
      }
      const auto on_device = ToDevice(wanted);
      const auto name = Make<uint32_t>(wanted.size());
      const auto missing = Make<uint8_t>(wanted.size());
      ASSERT_TRUE(FindRows(*stream_, index, on_device.span(), ~tick, name.span(), missing.span()));
      const auto names = FromDevice(name);
      const auto is_missing = FromDevice(missing);
      std::set<std::pair<uint32_t, uint32_t>> missed;  // by bucket
      for (size_t i = 0; i < wanted.size(); ++i) {
        const uint32_t place = naive.Find(wanted[i]);
        ASSERT_EQ(names[i], place) << "row " << wanted[i];
        ASSERT_EQ(is_missing[i], place == kNone);
        if (place == kNone) missed.emplace(naive.BucketOfRow(wanted[i]), wanted[i]);
        if (place != kNone) naive.age[place] = ~tick, ++found;
      }
      // Some rows are changed, others go home.
      for (size_t p = 0; p < naive.changed.size(); ++p)
        if (random() % 8 == 0) naive.changed[p] = naive.row[p] != kNone && random() % 3 == 0;
      Upload(naive.changed, changed);
      // Place what was missing.
      std::vector<uint32_t> to_place, first;
      for (auto at = missed.begin(); at != missed.end(); ++at) {
        if (at == missed.begin() || std::prev(at)->first != at->first)
          first.push_back(static_cast<uint32_t>(to_place.size()));
        to_place.push_back(at->second);
      }
      const uint32_t oldest_in_use = tick - static_cast<uint32_t>(random() % std::min(tick, 6u));
      const auto rows_device = ToDevice(to_place), first_device = ToDevice(first);
      const auto place = Make<uint32_t>(to_place.size());
      ASSERT_TRUE(PlaceRows(*stream_, index,
                            {.row = rows_device.span(),
                             .first = first_device.span(),
                             .age = ~tick,
                             .in_use = ~oldest_in_use},
                            changed.span(), place.span()));
      const auto places = FromDevice(place);
      for (size_t i = 0; i < to_place.size(); ++i) {
        const auto before = naive.row;
        const uint32_t want = naive.Place(to_place[i], ~tick, ~oldest_in_use);
        ASSERT_EQ(places[i], want) << "row " << to_place[i];
        if (want == kNone) {
          ++without_place;
        } else {
          ++placed;
          evicted += before[want] != kNone;
        }
      }
      ASSERT_EQ(FromDevice(row), naive.row);
      ASSERT_EQ(FromDevice(age), naive.age);
    }
    EXPECT_GT(found, 100u);
    EXPECT_GT(placed, 100u);
    if (many == 1) {
      EXPECT_GT(evicted, 50u);
      EXPECT_GT(without_place, 0u);
    }
    if (many == 8) {
      EXPECT_EQ(FromDevice(row), naive.row);
    }
  }
};

TEST_F(RowIndexTest, IsThatOfANaiveModel) {
  if (device_ == nullptr) return;
  for (const uint32_t many : {1u, 3u, 8u})
    for (uint64_t seed = 1; seed <= static_cast<uint64_t>(std::min(Orders(), 4)); ++seed)
      Compare(many, seed);
}

TEST_F(RowIndexTest, HoldsEveryRowInItsPlaceWhereThereIsOneForEach) {
  const auto tables = IndexTables(8);
  std::map<uint32_t, uint32_t> rows_of;
  for (uint32_t row = 0; row < 1000; ++row) ++rows_of[BucketOf(tables.data(), row)];
  ASSERT_EQ(rows_of.size(), 8u);
  for (const auto& [bucket, rows] : rows_of) EXPECT_LE(rows, kBucketPlaces) << bucket;
}

TEST_F(RowIndexTest, SpreadsRowsOverBuckets) {
  std::vector<CachedTable> tables = {{.rows = 100'000, .count = 100}};
  std::vector<uint32_t> rows_of(100, 0);
  for (uint32_t row = 0; row < 100'000; ++row) ++rows_of[BucketOf(tables.data(), row)];
  // A thousand each; five deviations.
  for (const uint32_t rows : rows_of) EXPECT_NEAR(rows, 1000, 160);
}

}  // namespace
}  // namespace tacit::cuda::testing
