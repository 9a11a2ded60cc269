// The time that training stands still for a commit's rows, by part: what the trainer's thread does
// between two steps. Rows lie in memory in place of a GPU's.
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "bench/bench_data.h"
#include "bench/suite.h"
#include "store/rows/row_arrival.h"
#include "store/rows/row_cache.h"

namespace tacit::bench {
namespace {

// A store that folds at once.
class NoStore final : public store::RowBacking {
 public:
  explicit NoStore(uint32_t floats) : floats_(floats) {}
  Status Read(std::span<const uint64_t> rows, std::span<float* const> out) override {
    for (size_t i = 0; i < rows.size(); ++i) std::fill_n(out[i], floats_, 0.0f);
    return {};
  }
  CommitSeq next() const override { return CommitSeq(commits + 1); }
  CommitSeq folded() const override { return CommitSeq(commits); }
  void RequestFold() override {}
  void FoldThrough(CommitSeq) override {}

  uint64_t commits = 0;

 private:
  const uint32_t floats_;
};

// Rows that a second of steps has changed: ascending, a third of all.
struct ChangedRows {
  ChangedRows(uint64_t count, uint32_t dim) : floats(3 * dim) {
    layout.space.AddTable("id", 3 * count, dim);
    layout.state_floats = {2 * dim};
    layout.initial_scale = {0};
    for (uint64_t i = 0; i < count; ++i) rows.push_back(3 * i + i * 0x9E3779B97F4A7C15u % 3);
    values.assign(count * floats, 0.25f);
  }
  const uint32_t floats;  // of a row: its embedding, and Adam's two numbers for each of it
  store::RowLayout layout;
  std::vector<uint64_t> rows;
  std::vector<float> values;
};

// Milliseconds of all that is done for a commit's rows.
struct Parts {
  std::vector<double> put, mark, take, expect, bring, copy;
};

class Times {
 public:
  double Lap() {
    const auto now = clock_.Now();
    return 1e3 * Seconds(now - std::exchange(last_, now));
  }

 private:
  SystemClock clock_;
  Clock::TimePoint last_ = clock_.Now();
};

// Keeps the last deltas, as a store does until they are folded.
class Deltas {
 public:
  void Keep(store::RowCache& cache, NoStore& backing,
            std::shared_ptr<const store::RowDelta> delta) {
    cache.Enqueued(delta.get(), CommitSeq(++backing.commits));
    kept_[backing.commits % std::size(kept_)] = std::move(delta);
  }

 private:
  std::shared_ptr<const store::RowDelta> kept_[2];
};

// Rows are put into the table and copied out of it.
Status PutAndTake(const ChangedRows& changed, size_t times, Parts* parts) {
  NoStore backing(changed.floats);
  store::RowCache cache(changed.layout, uint64_t{8} << 30, backing);
  Deltas deltas;
  std::vector<float*> at;
  for (size_t t = 0; t <= times; ++t) {
    constexpr size_t kPieceRows = 1 << 14;
    Times timer;
    double put = 0, mark = 0;
    for (size_t begin = 0; begin < changed.rows.size(); begin += kPieceRows) {
      const auto rows =
          std::span(changed.rows).subspan(begin, std::min(kPieceRows, changed.rows.size() - begin));
      at.resize(rows.size());
      TACIT_RETURN_IF_ERROR(cache.Gather(rows, at));
      for (size_t i = 0; i < rows.size(); ++i)
        std::memcpy(at[i], &changed.values[(begin + i) * changed.floats],
                    changed.floats * sizeof(float));
      put += timer.Lap();
      cache.MarkChanged(rows);
      mark += timer.Lap();
    }
    timer.Lap();
    auto delta = cache.TakeDelta();
    const double take = timer.Lap();
    deltas.Keep(cache, backing, std::move(delta));
    if (t == 0) continue;  // the table grows
    parts->put.push_back(put);
    parts->mark.push_back(mark);
    parts->take.push_back(take);
  }
  return {};
}

// Rows are expected, and come while the learner's thread goes on.
Status ExpectAndTake(const ChangedRows& changed, size_t times, Parts* parts) {
  NoStore backing(changed.floats);
  store::RowCache cache(changed.layout, uint64_t{8} << 30, backing);
  Deltas deltas;
  for (size_t t = 0; t < times; ++t) {
    Times timer;
    TACIT_RETURN_IF_ERROR(cache.Expect(std::make_shared<store::RowArrival>([&](auto* delta) {
      delta->rows = changed.rows;
      delta->end.reserve(changed.rows.size());
      delta->floats.reserve(changed.values.size());
      for (size_t i = 0; i < changed.rows.size(); ++i) {
        const float* const row = &changed.values[i * changed.floats];
        delta->floats.insert(delta->floats.end(), row, row + changed.floats);
        delta->end.push_back(delta->floats.size());
      }
      return Status{};
    })));
    auto delta = cache.TakeDelta();
    parts->expect.push_back(timer.Lap());
    Status arrived;
    std::thread([&] { arrived = store::Arrive(*delta); }).join();
    TACIT_RETURN_IF_ERROR(arrived);
    parts->bring.push_back(timer.Lap());
    deltas.Keep(cache, backing, std::move(delta));
    std::vector<float> copy;
    timer.Lap();
    copy = changed.values;
    parts->copy.push_back(timer.Lap());
  }
  return {};
}

}  // namespace

Result<std::vector<BenchRow>> BenchCommit(const BenchRequest& request) {
  std::vector<BenchRow> rows;
  for (const uint32_t dim : {16u, 64u}) {
    for (const uint64_t count : {uint64_t{10'000}, uint64_t{100'000}, uint64_t{1'000'000}}) {
      if (request.quick && count > 10'000) continue;
      const ChangedRows changed(count, dim);
      const size_t times = request.quick ? 1 : count < 1'000'000 ? 21 : 5;
      Parts parts;
      TACIT_RETURN_IF_ERROR(PutAndTake(changed, times, &parts));
      TACIT_RETURN_IF_ERROR(ExpectAndTake(changed, times, &parts));
      const double put = Median(parts.put), mark = Median(parts.mark), take = Median(parts.take);
      const double copy = Median(parts.copy), expect = Median(parts.expect),
                   bring = Median(parts.bring);
      rows.push_back({fmt::format("commit-put-{}-{}", dim, count),
                      put + mark + take,
                      "ms",
                      copy,
                      {{"put_ms", put}, {"mark_ms", mark}, {"take_ms", take}},
                      fmt::format("{:.1f} put, {:.1f} marked, {:.1f} taken", put, mark, take)});
      rows.push_back({fmt::format("commit-expect-{}-{}", dim, count),
                      expect,
                      "ms",
                      copy,
                      {{"bring_ms", bring}},
                      fmt::format("{:.1f} ms later, on another thread", bring)});
    }
  }
  return rows;
}

}  // namespace tacit::bench
