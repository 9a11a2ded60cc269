#include "cuda/rows/cached_rows.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/check.h"
#include "base/radix_sort.h"
#include "cuda/device/device.h"
#include "cuda/kernels/rows/ranks.h"
#include "cuda/kernels/rows/step_rows.h"
#include "store/rows/row_arrival.h"

namespace tacit::cuda {
namespace {

// Ticks left when the count is begun again: more than a step takes.
constexpr uint32_t kTicksLeft = 16;
constexpr uint32_t kTickMost = kNone - kTicksLeft;

constexpr uint32_t AgeOf(uint32_t tick) { return ~tick; }

template <class T>
DeviceSpan<T> First(const Buffer<T>& buffer, size_t n) {
  return buffer.span().Sub(0, n);
}

}  // namespace

CachedRows::CachedRows(Stream& compute, Stream feed, Event fetched, store::WorkingRows& rows,
                       RowMover mover)
    : compute_(&compute),
      rows_(&rows),
      mover_(std::move(mover)),
      fetched_(std::move(fetched)),
      feed_(std::move(feed)) {}

Result<std::unique_ptr<CachedRows>> CachedRows::Make(Stream& compute, const RowSpace& space,
                                                     const std::vector<uint32_t>& state_floats,
                                                     const CachedRowsOptions& options,
                                                     store::WorkingRows& rows) {
  TACIT_CHECK(state_floats.size() == space.tables().size() && space.rows() < kNone);
  TACIT_CHECK(options.places_at_once > 0);
  std::vector<std::pair<uint64_t, uint32_t>> floats_from;
  uint32_t stride = 1;
  for (size_t t = 0; t < state_floats.size(); ++t) {
    const RowSpace::Table& table = space.tables()[t];
    floats_from.emplace_back(table.first, table.dim + state_floats[t]);
    stride = std::max(stride, table.dim + state_floats[t]);
  }
  TACIT_ASSIGN(Stream feed, Stream::Make(compute.device()));
  TACIT_ASSIGN(Event fetched, Event::Make(compute.device()));
  std::unique_ptr<CachedRows> cache(new CachedRows(compute, std::move(feed), std::move(fetched),
                                                   rows, RowMover(std::move(floats_from), stride)));
  cache->stride_ = stride;
  cache->tick_ = std::min(options.first_tick, kTickMost);
  cache->places_at_once_ = options.places_at_once;
  Families made = FamiliesOf(space, state_floats, options.bytes);
  const StepPlan step = PlanStep(space, state_floats, made, options);
  cache->families_ = std::move(made.families);
  for (size_t t = 0; t < made.of_table.size(); ++t)
    cache->family_from_.emplace_back(space.tables()[t].first, made.of_table[t]);
  TACIT_RETURN_IF_ERROR(cache->TakeMemory(space, state_floats, made.of_table, step));
  return cache;
}

DeviceRows::View CachedRows::view() const {
  return {.places = {.tables = tables_.span(),
                     .guests = {.rows = guest_memory_.span().data,
                                .first = places(),
                                .stride = stride_}},
          .slots = slots_.span(),
          .slot_of = slot_of_.span(),
          .has_fours = has_fours_,
          .changed = changed_.span()};
}

void CachedRows::Announce(std::span<const uint64_t> rows) {
  announced_.assign(rows.begin(), rows.end());
  is_announced_ = true;
}

Result<DeviceSpan<const uint32_t>> CachedRows::Begin(std::span<const uint64_t> rows,
                                                     Purpose purpose) {
  const auto is = [&](const std::vector<uint32_t>& others) {
    return std::ranges::equal(rows, others);
  };
  now().in_use = false;
  now().guests.clear();
  if (tick_ >= kTickMost) TACIT_RETURN_IF_ERROR(StartTicksAgain());
  if (purpose == Purpose::kStep && next().in_use && is(next().named.rows)) {
    now_ = 1 - now_;
  } else {
    if (purpose == Purpose::kStep) next().Drop();
    if (purpose == Purpose::kStep && is_announced_ && is(announced_)) is_announced_ = false;
    now().named.rows.assign(rows.begin(), rows.end());
    now().late.clear();
    now().in_use = true;
    now().tick = ++tick_;
    TACIT_RETURN_IF_ERROR(Name(now(), nullptr, now().named));
    TACIT_RETURN_IF_ERROR(feed_.Record(fetched_));
  }
  TACIT_RETURN_IF_ERROR(AwaitFetched(*compute_, fetched_));
  return DeviceSpan<const uint32_t>(First(now().named.name, rows.size()));
}

Result<DeviceSpan<const uint32_t>> CachedRows::NameExtra(std::span<const uint64_t> rows) {
  extra_.rows.assign(rows.begin(), rows.end());
  ++tick_;
  TACIT_RETURN_IF_ERROR(Name(now(), nullptr, extra_));
  TACIT_RETURN_IF_ERROR(feed_.Record(fetched_));
  TACIT_RETURN_IF_ERROR(AwaitFetched(*compute_, fetched_));
  return DeviceSpan<const uint32_t>(First(extra_.name, rows.size()));
}

Status CachedRows::FetchAnnounced() {
  if (!is_announced_ || tick_ >= kTickMost) return {};
  is_announced_ = false;
  Step& step = next();
  step.named.rows = announced_;
  step.guests.clear();
  step.late.clear();
  step.in_use = true;
  step.tick = ++tick_;
  ++stats_.steps_fetched_ahead;
  TACIT_RETURN_IF_ERROR(Name(step, &now(), step.named));
  return feed_.Record(fetched_);
}

Status CachedRows::End(std::span<const uint32_t> written) {
  TACIT_RETURN_IF_ERROR(SendGuestsHome(now()));
  now().in_use = false;
  now().guests.clear();
  bool many = false;
  for (const uint32_t row : written) {
    const auto after =
        std::ranges::upper_bound(family_from_, row, {}, &std::pair<uint64_t, uint32_t>::first);
    Family& family = families_[std::prev(after)->second];
    many |= ++family.changed_most > uint64_t{family.buckets} * kBucketPlaces / 2;
  }
  if (many) {
    ++stats_.early_returns;
    TACIT_RETURN_IF_ERROR(SendPlacesHome());
  }
  if (next().late.empty()) return {};
  // The copy of the fetch before has run then, and its staging is free.
  TACIT_RETURN_IF_ERROR(feed_.Synchronize());
  TACIT_RETURN_IF_ERROR(Fetch(next().late));
  next().late.clear();
  return feed_.Record(fetched_);
}

// All places become equally old.
Status CachedRows::StartTicksAgain() {
  next().Drop();
  tick_ = 0;
  ++stats_.ticks_started;
  return feed_.Fill(age_.span(), 0xff);
}

// The age of which, or younger, is all that a step in use needs.
uint32_t CachedRows::AgeInUse() const {
  uint32_t tick = tick_;
  for (const Step& step : steps_)
    if (step.in_use) tick = std::min(tick, step.tick);
  return AgeOf(tick);
}

// Finds what is in the index. missed_ has the other entries' rows.
Status CachedRows::Look(Named& named, size_t* missed) {
  const size_t n = named.rows.size();
  const BufferTaker taker(feed_.device());
  TACIT_RETURN_IF_ERROR(named.Take(n, taker));
  TACIT_RETURN_IF_ERROR(search_.TakeLook(n, taker));
  const auto row = First(named.row, n);
  const auto missing = First(named.missing, n);
  TACIT_RETURN_IF_ERROR(feed_.Upload<uint32_t>(named.rows, row));
  TACIT_RETURN_IF_ERROR(FindRows(feed_, index(), row, AgeOf(tick_), First(named.name, n), missing));
  TACIT_RETURN_IF_ERROR(
      RankFlags(feed_, missing, {}, search_.work.span(), First(search_.rank, n), count_.span()));
  TACIT_RETURN_IF_ERROR(
      ListFlagged(feed_, row, missing, First(search_.rank, n), search_.missed.span()));
  TACIT_RETURN_IF_ERROR(feed_.Download(count_.span(), std::span<uint32_t>(&count_host_, 1)));
  TACIT_RETURN_IF_ERROR(feed_.Synchronize());
  *missed = count_host_;
  stats_.entries += n;
  stats_.entries_missed += count_host_;
  missed_.resize(count_host_);
  if (missed_.empty()) return {};
  TACIT_RETURN_IF_ERROR(
      feed_.Download(First(search_.missed, missed_.size()), std::span<uint32_t>(missed_)));
  return feed_.Synchronize();
}

// Names the rows of a step, and fetches those that are not here. Rows that `running` has as its
// guests come late: it may be writing them.
Status CachedRows::Name(Step& step, const Step* running, Named& named) {
  if (named.rows.empty()) return {};
  size_t missed = 0;
  TACIT_RETURN_IF_ERROR(Look(named, &missed));
  if (missed == 0) return {};
  std::ranges::sort(missed_);
  missed_.erase(std::unique(missed_.begin(), missed_.end()), missed_.end());
  TACIT_RETURN_IF_ERROR(FindPlaces(step));
  const size_t n = named.rows.size(), distinct = missed_.size();
  TACIT_RETURN_IF_ERROR(Reserve(feed_.device(), distinct, &search_.missed_name));
  TACIT_RETURN_IF_ERROR(feed_.Upload<uint32_t>(missed_, First(search_.missed, distinct)));
  TACIT_RETURN_IF_ERROR(feed_.Upload<uint32_t>(missed_name_, First(search_.missed_name, distinct)));
  TACIT_RETURN_IF_ERROR(NameMissing(feed_, First(named.row, n), First(named.missing, n),
                                    First(search_.missed, distinct),
                                    First(search_.missed_name, distinct), First(named.name, n)));
  fetch_now_.clear();
  for (const size_t i : wanted_) {
    const RowName one{missed_[i], missed_name_[i]};
    const bool late = running != nullptr && GuestOf(*running, one.row) != nullptr;
    (late ? step.late : fetch_now_).push_back(one);
  }
  stats_.late += step.late.size();
  return Fetch(fetch_now_);
}

Status CachedRows::Fetch(std::span<const RowName> rows) {
  stats_.fetched += rows.size();
  return mover_.Fetch(feed_, view().places, rows, *rows_);
}

const RowName* CachedRows::GuestOf(const Step& step, uint32_t row) {
  const auto guest = std::ranges::lower_bound(step.guests, row, {}, &RowName::row);
  return guest != step.guests.end() && guest->row == row ? &*guest : nullptr;
}

// Gives a name to each of missed_, in missed_name_. wanted_ lists those whose floats are not here.
Status CachedRows::FindPlaces(Step& step) {
  // A guest of the step that waits must not lie in a bucket too: there it would be old once that
  // step has written it.
  const bool one_waits = &step == &now() && next().in_use;
  missed_name_.assign(missed_.size(), kNone);
  wanted_.clear();
  to_bucket_.clear();
  for (size_t i = 0; i < missed_.size(); ++i) {
    if (const RowName* guest = GuestOf(step, missed_[i])) {
      missed_name_[i] = guest->name;
      continue;
    }
    wanted_.push_back(i);
    if (!one_waits || GuestOf(next(), missed_[i]) == nullptr) to_bucket_.push_back(i);
  }
  TACIT_RETURN_IF_ERROR(PlaceInBuckets(to_bucket_));
  return WelcomeGuests(step);
}

Status CachedRows::PlaceInBuckets(std::span<const size_t> wanted) {
  if (wanted.empty()) return {};
  std::vector<std::pair<uint32_t, size_t>> by_bucket;
  for (const size_t i : wanted)
    by_bucket.emplace_back(BucketOf(host_index_tables_.data(), missed_[i]), i);
  std::ranges::sort(by_bucket);
  to_place_.clear();
  bucket_first_.clear();
  for (size_t k = 0; k < by_bucket.size(); ++k) {
    if (k == 0 || by_bucket[k].first != by_bucket[k - 1].first)
      bucket_first_.push_back(static_cast<uint32_t>(k));
    to_place_.push_back(missed_[by_bucket[k].second]);
  }
  const size_t n = to_place_.size(), buckets = bucket_first_.size();
  TACIT_RETURN_IF_ERROR(search_.TakePlacing(n, buckets, BufferTaker(feed_.device())));
  TACIT_RETURN_IF_ERROR(feed_.Upload<uint32_t>(to_place_, First(search_.to_place, n)));
  TACIT_RETURN_IF_ERROR(
      feed_.Upload<uint32_t>(bucket_first_, First(search_.bucket_first, buckets)));
  TACIT_RETURN_IF_ERROR(PlaceRows(feed_, index(),
                                  {.row = First(search_.to_place, n),
                                   .first = First(search_.bucket_first, buckets),
                                   .age = AgeOf(tick_),
                                   .in_use = AgeInUse()},
                                  changed_.span(), First(search_.place, n)));
  place_.resize(n);
  TACIT_RETURN_IF_ERROR(feed_.Download(First(search_.place, n), std::span<uint32_t>(place_)));
  TACIT_RETURN_IF_ERROR(feed_.Synchronize());
  for (size_t k = 0; k < n; ++k) missed_name_[by_bucket[k].second] = place_[k];
  return {};
}

// Rows without a place become guests. Those of the two steps take turns in memory, so that it may
// grow at its end without a new name for any.
Status CachedRows::WelcomeGuests(Step& step) {
  const uint64_t which = static_cast<uint64_t>(&step - steps_);
  std::vector<RowName> guests;
  for (const size_t i : wanted_) {
    if (missed_name_[i] != kNone) continue;
    const uint64_t number = 2 * (step.guests.size() + guests.size()) + which;
    TACIT_CHECK(places() + number < kNone, "names are numbers of 32 bits");
    missed_name_[i] = places() + static_cast<uint32_t>(number);
    guests.push_back({missed_[i], missed_name_[i]});
  }
  if (guests.empty()) return {};
  stats_.guests += guests.size();
  step.guests.insert(step.guests.end(), guests.begin(), guests.end());
  std::ranges::sort(step.guests, {}, &RowName::row);
  return step.guests.size() > guests_most_ ? GrowGuests(step.guests.size()) : Status{};
}

Status CachedRows::GrowGuests(uint64_t guests) {
  // The step that runs may be using the memory of today.
  TACIT_RETURN_IF_ERROR(compute_->Synchronize());
  const uint64_t most = std::max(guests, guests_most_ + guests_most_ / 2);
  TACIT_ASSIGN(auto memory, Buffer<float>::Make(feed_.device(), 2 * most * stride_));
  TACIT_ASSIGN(auto changed, Buffer<uint8_t>::Make(feed_.device(), places() + 2 * most));
  TACIT_RETURN_IF_ERROR(
      feed_.CopyOnDevice<float>(guest_memory_.span(), First(memory, guest_memory_.size())));
  TACIT_RETURN_IF_ERROR(feed_.Fill(changed.span(), 0));
  TACIT_RETURN_IF_ERROR(
      feed_.CopyOnDevice<uint8_t>(changed_.span(), First(changed, changed_.size())));
  TACIT_RETURN_IF_ERROR(feed_.Synchronize());
  guest_memory_ = std::move(memory);
  changed_ = std::move(changed);
  guests_most_ = most;
  return {};
}

Status CachedRows::SendGuestsHome(Step& step) {
  if (step.guests.empty()) return {};
  // No other guest's flag is set: those of earlier steps were wiped at their ends.
  const size_t most = std::max(steps_[0].guests.size(), steps_[1].guests.size());
  const auto flags = changed_.span().Sub(places(), 2 * most);
  guest_changed_.resize(flags.size);
  TACIT_RETURN_IF_ERROR(compute_->Download(flags, std::span<uint8_t>(guest_changed_)));
  TACIT_RETURN_IF_ERROR(compute_->Synchronize());
  std::vector<RowName> home = step.guests;
  std::erase_if(home, [&](const RowName& one) { return !guest_changed_[one.name - places()]; });
  stats_.home += home.size();
  TACIT_RETURN_IF_ERROR(mover_.SendHome(*compute_, view().places, home, *rows_));
  // Both steps' flags: the next one has not written yet.
  TACIT_RETURN_IF_ERROR(compute_->Fill(flags, 0));
  return compute_->Synchronize();
}

// Lists what is changed of the places from `first` on, behind what is listed. The last of it is on
// its way when this returns.
Status CachedRows::ListHome(uint32_t first, uint32_t count) {
  Stream& stream = *compute_;
  const DeviceSpan<uint8_t> changed = changed_.span().Sub(first, count);
  const DeviceSpan<uint32_t> rank = First(home_rank_, count);
  TACIT_RETURN_IF_ERROR(
      RankFlags(stream, changed, {}, home_work_.span(), rank, home_count_.span()));
  TACIT_RETURN_IF_ERROR(stream.Download(home_count_.span(), std::span<uint32_t>(&count_host_, 1)));
  TACIT_RETURN_IF_ERROR(stream.Synchronize());
  const size_t rows = count_host_, before = home_row_.size();
  if (rows == 0) return {};
  const auto row = First(home_row_device_, rows), name = First(home_name_device_, rows);
  TACIT_RETURN_IF_ERROR(ListChanged(stream, index(), first, changed, rank, row, name));
  home_row_.resize(before + rows);
  home_name_.resize(before + rows);
  TACIT_RETURN_IF_ERROR(stream.Download(row, std::span(home_row_).subspan(before)));
  TACIT_RETURN_IF_ERROR(stream.Download(name, std::span(home_name_).subspan(before)));
  return stream.Fill(changed, 0);
}

Status CachedRows::SendPlacesHome() {
  home_row_.clear();
  home_name_.clear();
  for (uint32_t first = 0, count = 0; first < places(); first += count) {
    count = std::min(places_at_once_, places() - first);
    TACIT_RETURN_IF_ERROR(ListHome(first, count));
  }
  for (Family& family : families_) family.changed_most = 0;
  if (home_row_.empty()) return {};
  TACIT_RETURN_IF_ERROR(compute_->Synchronize());
  const size_t rows = home_row_.size();
  home_.resize(rows);
  for (size_t i = 0; i < rows; ++i) home_[i] = {home_row_[i], home_name_[i]};
  RadixSort(&home_, &home_work_host_, [](const RowName& one) { return one.row; });
  stats_.home += rows;
  return mover_.SendHome(*compute_, view().places, home_, *rows_);
}

}  // namespace tacit::cuda
