#include <algorithm>

#include "base/check.h"
#include "cuda/device/device.h"
#include "cuda/kernels/rows/ranks.h"
#include "cuda/rows/cached_rows.h"
#include "store/rows/row_arrival.h"

// The memory of a cache: how it is shared, planned and taken.
namespace tacit::cuda {
namespace {

// Index, flag and owner (step_rows_index.h) of a place, and its share of lists.
constexpr uint64_t kPlaceBytes = 4 + 4 + 1 + 1 + 4 + 4;

uint64_t BucketsFor(uint64_t rows) { return (rows + kBucketPlaces - 1) / kBucketPlaces; }

}  // namespace

uint64_t CachedRows::Families::places() const {
  uint64_t places = 0;
  for (const Family& family : families) places += uint64_t{family.buckets} * kBucketPlaces;
  return places;
}

// Shares the memory among families by what all of their rows would take.
CachedRows::Families CachedRows::FamiliesOf(const RowSpace& space,
                                            const std::vector<uint32_t>& state_floats,
                                            uint64_t bytes) {
  Families made;
  std::vector<Family>& families = made.families;
  for (size_t t = 0; t < state_floats.size(); ++t) {
    const RowSpace::Table& table = space.tables()[t];
    const auto known = std::ranges::find_if(families, [&](const Family& family) {
      return family.dim == table.dim && family.state_floats == state_floats[t];
    });
    made.of_table.push_back(static_cast<uint32_t>(known - families.begin()));
    if (known == families.end())
      families.push_back({.dim = table.dim, .state_floats = state_floats[t]});
    families[made.of_table[t]].rows += table.rows;
  }
  const auto bucket_bytes = [](const Family& family) {
    return kBucketPlaces * ((family.dim + family.state_floats) * sizeof(float) + kPlaceBytes);
  };
  double all = 0;
  for (const Family& family : families)
    all += static_cast<double>(BucketsFor(family.rows) * bucket_bytes(family));
  const double share = all > 0 ? std::min(1.0, static_cast<double>(bytes) / all) : 0;
  uint32_t bucket = 0;
  for (Family& family : families) {
    const auto most = static_cast<uint32_t>(BucketsFor(family.rows));
    family.first_bucket = bucket;
    family.buckets = std::max(1u, share < 1 ? static_cast<uint32_t>(share * most) : most);
    bucket += family.buckets;
  }
  return made;
}

uint64_t CachedRows::Families::homeless() const {
  uint64_t rows = 0;
  for (const Family& family : families)
    if (family.buckets < BucketsFor(family.rows)) rows += family.rows;
  return rows;
}

// Every row of a step may be missing at once, and where its bucket is full of rows in use, a guest.
CachedRows::StepPlan CachedRows::PlanStep(const RowSpace& space,
                                          const std::vector<uint32_t>& state_floats,
                                          const Families& families,
                                          const CachedRowsOptions& options) {
  const uint64_t most = std::max(options.step_rows, options.extra_rows);
  StepPlan plan{.rows = options.step_rows,
                .extra = options.extra_rows,
                .distinct = std::min(space.rows(), most),
                .guests = std::min(families.homeless(), options.step_rows + options.extra_rows)};
  plan.buckets = std::min(plan.distinct, families.buckets());
  for (size_t t = 0; t < state_floats.size(); ++t)
    plan.stride = std::max(plan.stride, space.tables()[t].dim + state_floats[t]);
  return plan;
}

Status CachedRows::Named::Take(uint64_t count, BufferTaker taker) {
  TACIT_RETURN_IF_ERROR(taker.TakeEach(count, {&row, &name}));
  return taker.Take(count, &missing);
}

Status CachedRows::Search::TakeLook(uint64_t rows, BufferTaker taker) {
  TACIT_RETURN_IF_ERROR(taker.TakeEach(rows, {&rank, &missed}));
  return taker.Take(rows == 0 ? 0 : RankWork(rows), &work);
}

Status CachedRows::Search::TakePlacing(uint64_t rows, uint64_t buckets, BufferTaker taker) {
  TACIT_RETURN_IF_ERROR(taker.TakeEach(rows, {&to_place, &place}));
  return taker.Take(buckets, &bucket_first);
}

// As TakeStep takes it, without flags and floats of guests.
Status CachedRows::NeedOfStep(const StepPlan& plan, MemoryNeed* need) {
  const BufferTaker taker(*need);
  Search search;
  TACIT_RETURN_IF_ERROR(search.TakeLook(std::max(plan.rows, plan.extra), taker));
  TACIT_RETURN_IF_ERROR(search.TakePlacing(plan.distinct, plan.buckets, taker));
  need->Add<uint32_t>(plan.distinct);
  for (const uint64_t rows : {plan.rows, plan.rows, plan.extra})
    TACIT_RETURN_IF_ERROR(Named().Take(rows, taker));
  RowMover::PlanWayIn(plan.distinct, plan.stride, need);
  return {};
}

Status CachedRows::TakeStep(const StepPlan& plan) {
  const BufferTaker taker(feed_.device());
  TACIT_RETURN_IF_ERROR(search_.TakeLook(std::max(plan.rows, plan.extra), taker));
  TACIT_RETURN_IF_ERROR(search_.TakePlacing(plan.distinct, plan.buckets, taker));
  TACIT_RETURN_IF_ERROR(Reserve(feed_.device(), plan.distinct, &search_.missed_name));
  for (Step& step : steps_) TACIT_RETURN_IF_ERROR(step.named.Take(plan.rows, taker));
  TACIT_RETURN_IF_ERROR(extra_.Take(plan.extra, taker));
  return mover_.TakeWayIn(feed_.device(), plan.distinct);
}

uint64_t CachedRows::NamesOf(const RowSpace& space, const std::vector<uint32_t>& state_floats,
                             const CachedRowsOptions& options) {
  const Families made = FamiliesOf(space, state_floats, options.bytes);
  return made.places() + 2 * PlanStep(space, state_floats, made, options).guests;
}

uint64_t CachedRows::BesidePlacesBytes(const RowSpace& space,
                                       const std::vector<uint32_t>& state_floats,
                                       const CachedRowsOptions& options, uint64_t piece_bytes) {
  // Few buckets, which leave the most rows without a place.
  const Families least = FamiliesOf(space, state_floats, 0);
  StepPlan plan = PlanStep(space, state_floats, least, options);
  plan.buckets = plan.distinct;
  MemoryNeed need(piece_bytes);
  TACIT_CHECK(NeedOfStep(plan, &need).has_value(), "adding up does not fail");
  RowMover::PlanWayHome(space.rows(), plan.stride, &need);
  // Floats of guests, flags and owners.
  need.Add<float>(2 * plan.guests * plan.stride).Add<uint8_t>(2 * plan.guests);
  return need.Add<uint32_t>(2 * plan.guests).bytes();
}

// As TakeMemory takes it.
uint64_t CachedRows::Bytes(const RowSpace& space, const std::vector<uint32_t>& state_floats,
                           const CachedRowsOptions& options, uint64_t piece_bytes) {
  const Families made = FamiliesOf(space, state_floats, options.bytes);
  const StepPlan plan = PlanStep(space, state_floats, made, options);
  const uint64_t places = made.places();
  const uint64_t at_once = std::min<uint64_t>(options.places_at_once, places);
  MemoryNeed need(piece_bytes);
  for (const Family& family : made.families) {
    const uint64_t own = uint64_t{family.buckets} * kBucketPlaces;
    need.Add<float>(own * family.dim).Add<float>(own * family.state_floats);
  }
  uint64_t columns = 0;
  for (const RowSpace::Table& table : space.tables()) columns += table.dim;
  const size_t tables = space.tables().size();
  need.Add<DeviceTable>(tables).Add<DeviceSlot>(tables).Add<uint32_t>(columns);
  need.Add<CachedTable>(tables).Add<Digests>(places / 16);
  need.Add<uint32_t>(places).Add<uint32_t>(places).Add<uint32_t>(1);
  // Guests, and a flag for each name.
  need.Add<float>(2 * plan.guests * plan.stride).Add<uint8_t>(places + 2 * plan.guests);
  // The lists of the way home, and its piece.
  need.Add<uint32_t>(1).Add<uint32_t>(RankWork(at_once));
  for (int i = 0; i < 3; ++i) need.Add<uint32_t>(at_once);
  RowMover::PlanWayHome(space.rows(), plan.stride, &need);
  TACIT_CHECK(NeedOfStep(plan, &need).has_value(), "adding up does not fail");
  return need.bytes();
}

Status CachedRows::TakeMemory(const RowSpace& space, const std::vector<uint32_t>& state_floats,
                              const std::vector<uint32_t>& family_of, const StepPlan& step) {
  Device& device = feed_.device();
  uint64_t places = 0;
  for (const Family& family : families_) {
    const uint64_t own = uint64_t{family.buckets} * kBucketPlaces;
    TACIT_ASSIGN(auto embeddings, Buffer<float>::Make(device, own * family.dim));
    TACIT_ASSIGN(auto states, Buffer<float>::Make(device, own * family.state_floats));
    memory_.push_back(std::move(embeddings));
    memory_.push_back(std::move(states));
    places += own;
    stride_ = std::max(stride_, family.dim + family.state_floats);
  }
  TACIT_CHECK(places < kNone, "places are numbered with 32 bits");
  std::vector<uint32_t> before(families_.size());
  for (size_t t = 0; t < family_of.size(); ++t) {
    const RowSpace::Table& table = space.tables()[t];
    const Family& family = families_[family_of[t]];
    const Buffer<float>&embeddings = memory_[2 * family_of[t]],
          &states = memory_[2 * family_of[t] + 1];
    const uint64_t first_name = uint64_t{family.first_bucket} * kBucketPlaces;
    host_tables_.push_back({.embedding = embeddings.span().data,
                            .state = states.span().data,
                            .first = table.first,
                            .rows = table.rows,
                            .dim = table.dim,
                            .state_floats = state_floats[t],
                            .first_name = first_name});
    host_slots_.push_back({.rows = embeddings.span().data,
                           .stride = table.dim,
                           .first = first_name,
                           .dim = table.dim,
                           .column = static_cast<uint32_t>(host_slot_of_.size())});
    host_slot_of_.insert(host_slot_of_.end(), table.dim, static_cast<uint32_t>(t));
    has_fours_ &= table.dim % 4 == 0;
    host_index_tables_.push_back({.first = static_cast<uint32_t>(table.first),
                                  .rows = static_cast<uint32_t>(table.rows),
                                  .before = before[family_of[t]],
                                  .first_bucket = family.first_bucket,
                                  .count = family.buckets,
                                  .holds_all = family.buckets >= BucketsFor(family.rows)});
    before[family_of[t]] += static_cast<uint32_t>(table.rows);
  }
  stats_.places = places;
  const size_t tables = family_of.size();
  TACIT_ASSIGN(tables_, Buffer<DeviceTable>::Make(device, tables));
  TACIT_ASSIGN(slots_, Buffer<DeviceSlot>::Make(device, tables));
  TACIT_ASSIGN(slot_of_, Buffer<uint32_t>::Make(device, host_slot_of_.size()));
  TACIT_ASSIGN(index_tables_, Buffer<CachedTable>::Make(device, tables));
  TACIT_ASSIGN(digests_, Buffer<Digests>::Make(device, places / 16));
  TACIT_ASSIGN(row_, Buffer<uint32_t>::Make(device, places));
  TACIT_ASSIGN(age_, Buffer<uint32_t>::Make(device, places));
  guests_most_ = step.guests;
  TACIT_ASSIGN(guest_memory_, Buffer<float>::Make(device, 2 * guests_most_ * stride_));
  TACIT_ASSIGN(changed_, Buffer<uint8_t>::Make(device, places + 2 * guests_most_));
  TACIT_ASSIGN(count_, Buffer<uint32_t>::Make(device, 1));
  TACIT_RETURN_IF_ERROR(TakeWayHome(space.rows()));
  TACIT_RETURN_IF_ERROR(TakeStep(step));
  TACIT_RETURN_IF_ERROR(feed_.Upload<DeviceTable>(host_tables_, tables_.span()));
  TACIT_RETURN_IF_ERROR(feed_.Upload<DeviceSlot>(host_slots_, slots_.span()));
  TACIT_RETURN_IF_ERROR(feed_.Upload<uint32_t>(host_slot_of_, slot_of_.span()));
  TACIT_RETURN_IF_ERROR(feed_.Upload<CachedTable>(host_index_tables_, index_tables_.span()));
  TACIT_RETURN_IF_ERROR(feed_.Fill(digests_.span(), 0));
  TACIT_RETURN_IF_ERROR(feed_.Fill(row_.span(), 0xff));
  TACIT_RETURN_IF_ERROR(feed_.Fill(age_.span(), 0xff));
  TACIT_RETURN_IF_ERROR(feed_.Fill(changed_.span(), 0));
  return feed_.Synchronize();
}

// Takes what a commit needs, so that it does not fail for want of memory.
Status CachedRows::TakeWayHome(uint64_t rows) {
  Device& device = feed_.device();
  places_at_once_ = std::min(places_at_once_, places());
  TACIT_ASSIGN(home_count_, Buffer<uint32_t>::Make(device, 1));
  TACIT_ASSIGN(home_work_, Buffer<uint32_t>::Make(device, RankWork(places_at_once_)));
  for (Buffer<uint32_t>* buffer : {&home_rank_, &home_row_device_, &home_name_device_}) {
    TACIT_ASSIGN(*buffer, Buffer<uint32_t>::Make(device, places_at_once_));
  }
  return mover_.TakeWayHome(device, rows);
}

}  // namespace tacit::cuda
