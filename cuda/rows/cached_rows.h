#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/row_space.h"
#include "cuda/device/buffer.h"
#include "cuda/device/buffer_taker.h"
#include "cuda/device/stream.h"
#include "cuda/rows/device_rows.h"
#include "cuda/rows/row_index.h"
#include "cuda/rows/row_mover.h"
#include "store/rows/working_rows.h"

namespace tacit::cuda {

struct CachedRowsOptions {
  // Device memory for rows that stay from step to step, with their share of the index. Each family
  // takes one bucket at least, and no more than hold all of its rows.
  uint64_t bytes = 0;
  uint32_t first_tick = 0;  // where the count of looks at the index begins
  // Places whose flags are listed at a time when rows go home. The lists take 12 bytes for each.
  uint32_t places_at_once = uint32_t{1} << 22;
  // The rows of the largest step, repeats too, and those that it writes beside them, for which
  // there is memory from the start. Larger ones take more.
  uint64_t step_rows = 0, extra_rows = 0;
};

// A cache of a learner's rows in device memory, in front of store::WorkingRows, which stays the one
// that pins, commits and is served from. Any capacity gives the same bits: rows that find no place
// in their bucket are guests of the step. There is room for all of a planned step's rows as guests,
// and more is taken for a larger one's.
//
// An eviction takes a row that is clean and that neither the step under way nor one that was
// fetched ahead uses. So an eviction loses nothing and copies nothing. A row is changed once
// FinishRows has written it, with noise; only changed rows ever go home: at Settle, at the end of
// the step for guests, and before that where more than half of a family may be changed.
//
// Look-ups and fetched rows run on a stream of their own, `feed`, beside the engine's: the index is
// read and written there alone. The host waits for the look-up, and for no copy of rows.
class CachedRows final : public DeviceRows {
 public:
  // The device memory, handed out in such pieces, that it takes at most beside the places: a piece
  // of rows on their way home, and what a planned step asks for.
  static uint64_t BesidePlacesBytes(const RowSpace& space,
                                    const std::vector<uint32_t>& state_floats,
                                    const CachedRowsOptions& options, uint64_t piece_bytes);
  // The device memory that Make takes in all; and names() behind it.
  static uint64_t Bytes(const RowSpace& space, const std::vector<uint32_t>& state_floats,
                        const CachedRowsOptions& options, uint64_t piece_bytes);
  static uint64_t NamesOf(const RowSpace& space, const std::vector<uint32_t>& state_floats,
                          const CachedRowsOptions& options);
  // `state_floats` is per table as in store::RowLayout. `compute` is the engine's stream; it and
  // `rows` must outlive the cache. REQUIRES a space of fewer than 2^32 - 1 rows.
  static Result<std::unique_ptr<CachedRows>> Make(Stream& compute, const RowSpace& space,
                                                  const std::vector<uint32_t>& state_floats,
                                                  const CachedRowsOptions& options,
                                                  store::WorkingRows& rows);

  View view() const override;
  uint64_t names() const override { return changed_.size(); }
  void Announce(std::span<const uint64_t> rows) override;
  Result<DeviceSpan<const uint32_t>> Begin(std::span<const uint64_t> rows,
                                           Purpose purpose) override;
  Result<DeviceSpan<const uint32_t>> NameExtra(std::span<const uint64_t> rows) override;
  Status FetchAnnounced() override;
  Status End(std::span<const uint32_t> written) override;
  Status Settle() override { return SendPlacesHome(); }

  // For operators and tests; never for a model's readers, because which rows are here follows the
  // batches.
  struct Stats {
    uint64_t places = 0;                            // in all buckets
    uint64_t entries = 0, entries_missed = 0;       // looked up; of them not found
    uint64_t fetched = 0, guests = 0, late = 0;     // rows from the host; rows without a place
    uint64_t steps_fetched_ahead = 0, home = 0;     // rows sent home
    uint64_t early_returns = 0, ticks_started = 0;  // times that places went home before Settle
  };
  const Stats& stats() const { return stats_; }

 private:
  struct Family {
    uint32_t dim = 0, state_floats = 0;
    uint32_t first_bucket = 0, buckets = 0;
    uint64_t rows = 0;
    uint64_t changed_most = 0;  // no more places than this are changed
  };
  // Rows that are looked up together, and their names.
  struct Named {
    std::vector<uint32_t> rows;
    Buffer<uint32_t> row, name;
    Buffer<uint8_t> missing;

    Status Take(uint64_t count, BufferTaker taker);
  };
  // The memory of a look-up, and of what it leads to.
  struct Search {
    Buffer<uint32_t> work, rank, missed, missed_name;
    Buffer<uint32_t> to_place, place, bucket_first;

    Status TakeLook(uint64_t rows, BufferTaker taker);
    Status TakePlacing(uint64_t rows, uint64_t buckets, BufferTaker taker);
  };
  // The most that a planned step has of each. `distinct`: rows of a look-up.
  struct StepPlan {
    uint64_t rows = 0, extra = 0, distinct = 0, buckets = 0, guests = 0;
    uint32_t stride = 1;
  };
  // The rows of a step. There are two: one for the step under way, one to fetch the next into.
  struct Step {
    bool in_use = false;
    uint32_t tick = 0;  // rows used since then keep their places
    Named named;
    std::vector<RowName> guests;  // by row
    std::vector<RowName> late;    // come once the running step's guests are home

    void Drop() {
      in_use = false;
      guests.clear();
      late.clear();
    }
  };

  CachedRows(Stream& compute, Stream feed, Event fetched, store::WorkingRows& rows, RowMover mover);
  struct Families {
    std::vector<Family> families;
    std::vector<uint32_t> of_table;

    uint64_t places() const;
    uint64_t buckets() const { return places() / kBucketPlaces; }
    // Rows that may find no place.
    uint64_t homeless() const;
  };
  static StepPlan PlanStep(const RowSpace& space, const std::vector<uint32_t>& state_floats,
                           const Families& families, const CachedRowsOptions& options);
  static Status NeedOfStep(const StepPlan& plan, MemoryNeed* need);
  Status TakeStep(const StepPlan& plan);
  static Families FamiliesOf(const RowSpace& space, const std::vector<uint32_t>& state_floats,
                             uint64_t bytes);
  Status TakeMemory(const RowSpace& space, const std::vector<uint32_t>& state_floats,
                    const std::vector<uint32_t>& family_of, const StepPlan& step);

  RowIndex index() const {
    return {.tables = index_tables_.span(),
            .digests = digests_.span(),
            .row = row_.span(),
            .age = age_.span()};
  }
  Status TakeWayHome(uint64_t rows);
  uint32_t places() const { return static_cast<uint32_t>(row_.size()); }
  Step& now() { return steps_[now_]; }
  Step& next() { return steps_[1 - now_]; }
  Status StartTicksAgain();
  uint32_t AgeInUse() const;
  Status Look(Named& named, size_t* missed);
  Status Name(Step& step, const Step* running, Named& named);
  static const RowName* GuestOf(const Step& step, uint32_t row);
  Status FindPlaces(Step& step);
  Status PlaceInBuckets(std::span<const size_t> wanted);
  Status WelcomeGuests(Step& step);
  Status GrowGuests(uint64_t guests);
  Status Fetch(std::span<const RowName> rows);
  Status SendGuestsHome(Step& step);
  Status SendPlacesHome();
  Status ListHome(uint32_t first, uint32_t count);

  Stream* compute_;
  store::WorkingRows* rows_;
  uint32_t places_at_once_ = 0;
  std::vector<Family> families_;
  std::vector<std::pair<uint64_t, uint32_t>> family_from_;  // per table: its first row, its family
  Stats stats_;

  // Memory that copies read and write on the host stands before buffers and streams, whose ends
  // wait.
  std::vector<DeviceTable> host_tables_;
  std::vector<CachedTable> host_index_tables_;
  std::vector<DeviceSlot> host_slots_;
  std::vector<uint32_t> host_slot_of_;
  std::vector<uint32_t> announced_;
  bool is_announced_ = false;
  std::vector<uint32_t> missed_;       // rows, ascending once they are distinct
  std::vector<uint32_t> missed_name_;  // theirs; kNone: a guest of this step
  std::vector<uint32_t> to_place_, place_, bucket_first_;
  std::vector<size_t> wanted_, to_bucket_;
  std::vector<RowName> fetch_now_;
  std::vector<uint8_t> guest_changed_;
  std::vector<uint32_t> home_row_, home_name_;
  std::vector<RowName> home_, home_work_host_;
  uint32_t count_host_ = 0;

  std::vector<Buffer<float>> memory_;  // families' embeddings and state, by turns
  Buffer<DeviceTable> tables_;
  Buffer<DeviceSlot> slots_;
  Buffer<uint32_t> slot_of_;
  Buffer<float> guest_memory_;
  uint32_t stride_ = 0;  // of a guest, in floats
  bool has_fours_ = true;
  uint64_t guests_most_ = 0;  // of one step
  Buffer<uint8_t> changed_;   // per name; set by FinishRows, on the engine's stream
  Buffer<CachedTable> index_tables_;
  Buffer<Digests> digests_;
  Buffer<uint32_t> row_, age_;  // per place
  uint32_t tick_ = 0;
  Step steps_[2];
  uint32_t now_ = 0;
  Named extra_;
  Search search_;
  Buffer<uint32_t> count_;
  Buffer<uint32_t> home_work_, home_rank_, home_count_, home_row_device_, home_name_device_;
  RowMover mover_;
  Event fetched_;
  Stream feed_;
};

}  // namespace tacit::cuda
