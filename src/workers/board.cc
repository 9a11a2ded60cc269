#include "workers/board.h"

#include <algorithm>

namespace tacit::workers {
namespace {

using Holder = OpenSlice::Holder;

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

void Board::Heard(const Hello& hello, Clock::TimePoint now) {
  Worker& worker = workers_[hello.origin.worker];
  if (worker.hand && hello.done > worker.hello.done) worker.hand->moved = now;
  worker.hello = hello;
  worker.heard = now;
}

double Board::RateOf(const Worker& worker) {
  return worker.rate > 0 ? worker.rate : static_cast<double>(worker.hello.events_per_second);
}

bool Board::Rests(const std::string& worker) const {
  const auto rest = rests_.find(worker);
  return rest != rests_.end() && deals_ <= rest->second.until;
}

std::map<std::string, double> Board::Shares() const {
  std::map<std::string, double> shares;
  std::vector<double> known;
  bool all_tried = true;
  for (const auto& [name, worker] : workers_) {
    if (Rests(name)) continue;
    const bool tried = rests_.contains(name);
    all_tried = all_tried && tried;
    shares[name] = tried ? 0 : RateOf(worker);
    if (shares[name] > 0) known.push_back(shares[name]);
  }
  const double usual = known.empty() ? 1 : Median(std::move(known));
  for (auto& [name, rate] : shares)
    if (rate == 0) rate = rests_.contains(name) ? kTrialShare * usual : usual;
  if (all_tried) shares[""] = usual;
  return shares;
}

void Board::Deal(const Ranges& ranges, Clock::TimePoint now, const Ranges& own) {
  open_.clear();
  deliveries_.clear();
  DropTheGone(now);
  ++deals_;
  std::erase_if(rests_, [&](const auto& one) {
    return deals_ > one.second.until && !workers_.contains(one.first);
  });
  for (auto& [name, worker] : workers_) worker.hand.reset();
  const std::map<std::string, double> shares = Shares();
  std::vector<double> rates;
  for (const auto& [name, rate] : shares) rates.push_back(rate);
  auto share = shares.begin();
  for (Ranges& cut : CutSlices(ranges, rates)) {
    const std::string& name = (share++)->first;
    if (cut.empty()) continue;
    OpenSlice slice{.ranges = std::move(cut), .holder = Holder::kTrainer, .since = now};
    if (!name.empty()) Give(&slice, name, now);
    open_.push_back(std::move(slice));
  }
  if (!own.empty()) open_.push_back({.ranges = own, .holder = Holder::kTrainer, .since = now});
}

void Board::Give(OpenSlice* slice, const std::string& worker, Clock::TimePoint now) {
  slice->holder = Holder::kWorker;
  slice->worker = worker;
  slice->since = now;
  workers_.at(worker).hand = {CountOffsets(slice->ranges), now, now};
}

void Board::Covered(const std::string& worker, const Ranges& ranges, Clock::TimePoint now) {
  for (OpenSlice& slice : open_) {
    slice.ranges = Without(slice.ranges, ranges);
    // Its holder has nothing left to do, also where another worker was faster.
    if (slice.ranges.empty() && slice.holder == Holder::kWorker && slice.worker != worker)
      if (const auto holder = workers_.find(slice.worker); holder != workers_.end())
        holder->second.hand.reset();
  }
  std::erase_if(open_, [](const OpenSlice& slice) { return slice.ranges.empty(); });
  rests_.erase(worker);
  const auto from = workers_.find(worker);
  if (from == workers_.end() || !from->second.hand) return;
  const double seconds = std::max(1e-3, Seconds(now - from->second.hand->since));
  const double rate = static_cast<double>(from->second.hand->offsets) / seconds;
  from->second.rate = from->second.rate > 0 ? (from->second.rate + rate) / 2 : rate;
  from->second.hand.reset();
  deliveries_.push_back(seconds);
}

void Board::GiveBack(const std::string& worker, Clock::TimePoint now) {
  for (OpenSlice& slice : open_) {
    if (slice.holder != Holder::kWorker || slice.worker != worker) continue;
    slice.holder = Holder::kTrainer;
    slice.since = now;
  }
  if (const auto from = workers_.find(worker); from != workers_.end()) from->second.hand.reset();
}

bool Board::IsLate(const OpenSlice& slice, Clock::TimePoint now) const {
  if (slice.holder != Holder::kWorker || now - slice.since <= patience_) return false;
  const auto& hand = workers_.at(slice.worker).hand;
  if (hand && now - hand->moved > std::max(patience_, kSilenceMost)) return true;
  // The worker's own rate says how long it may take while nobody has delivered.
  const double rate = RateOf(workers_.at(slice.worker));
  double usual = hand && rate > 0 ? static_cast<double>(hand->offsets) / rate : 0;
  if (!deliveries_.empty()) usual = Median(deliveries_);
  return Seconds(now - slice.since) > 2 * usual;
}

bool Board::DropTheGone(Clock::TimePoint now) {
  bool changed = false;
  for (OpenSlice& slice : open_) {
    if (slice.holder != Holder::kWorker) continue;
    const auto found = workers_.find(slice.worker);
    const bool leaves = found == workers_.end() || found->second.hello.leaves;
    if (!leaves && now - found->second.heard <= kSilenceMost) continue;
    if (!leaves) ++slice.ends;
    slice.holder = Holder::kNobody;
    slice.since = slice.earliest = now;
    if (slice.ends >= kEndsMost)
      slice.earliest += std::min<Clock::Duration>(
          kPauseMost, std::chrono::seconds(1) * (1 << std::min(slice.ends - kEndsMost, 6u)));
    changed = true;
  }
  std::erase_if(workers_, [&](const auto& one) {
    return one.second.hello.leaves || now - one.second.heard > kSilenceMost;
  });
  return changed;
}

bool Board::DropTheLate(Clock::TimePoint now) {
  bool changed = false;
  for (OpenSlice& slice : open_) {
    if (!IsLate(slice, now)) continue;
    workers_.at(slice.worker).rate = 0;  // it is measured anew
    Rest& rest = rests_[slice.worker];
    rest.until = deals_ + std::min(kRestMost, uint64_t{1} << std::min(rest.late, 10u));
    ++rest.late;
    ++slice.late;
    slice.holder = Holder::kNobody;
    slice.since = slice.earliest = now;
    changed = true;
  }
  return changed;
}

bool Board::Place(OpenSlice* slice, Clock::TimePoint now) {
  if (slice->holder != Holder::kNobody || now < slice->earliest) return false;
  const std::string* fastest = nullptr;
  // Workers try a slice that has ended one, as long as there are any.
  const bool for_workers = slice->late < kLateMost || slice->ends > 0;
  for (const auto& [name, worker] : workers_)
    if (for_workers && !worker.hand && !Rests(name) &&
        (fastest == nullptr || RateOf(worker) > RateOf(workers_.at(*fastest))))
      fastest = &name;
  if (fastest != nullptr) {
    Give(slice, *fastest, now);
    return true;
  }
  // The trainer tries a slice that may have ended a worker only where the others do not get to it.
  const bool dares = slice->ends == 0 || workers_.empty() || now - slice->since > patience_;
  if (!dares || slice->ends >= kEndsMost) return false;
  slice->holder = Holder::kTrainer;
  slice->since = now;
  return true;
}

bool Board::Look(Clock::TimePoint now) {
  bool changed = DropTheGone(now);
  changed |= DropTheLate(now);
  for (OpenSlice& slice : open_) changed |= Place(&slice, now);
  return changed;
}

std::vector<Slice> Board::Announced() const {
  std::vector<Slice> slices;
  for (const OpenSlice& slice : open_)
    if (slice.holder != Holder::kNobody)
      slices.push_back({slice.holder == Holder::kWorker ? slice.worker : "", slice.ranges});
  return slices;
}

std::map<std::string, uint32_t> Board::Late() const {
  std::map<std::string, uint32_t> late;
  for (const auto& [name, rest] : rests_)
    if (workers_.contains(name)) late.emplace(name, rest.late);
  return late;
}

}  // namespace tacit::workers
