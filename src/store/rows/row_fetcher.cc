#include "store/rows/row_fetcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/threads/named_thread.h"

namespace tacit::store {

RowFetcher::RowFetcher(size_t threads) {
  for (size_t i = 0; i < threads; ++i)
    threads_.push_back(NamedThread("tacit-read", [this] { Run(); }));
}

RowFetcher::~RowFetcher() {
  {
    const MutexLock lock(mutex_);
    TACIT_CHECK(waiting_.empty(), "a fetch outlives its fetcher");
    stopping_ = true;
  }
  begun_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void RowFetcher::Begin(RowFetch* fetch) {
  TACIT_CHECK(fetch->rows.size() == fetch->out.size());
  const MutexLock lock(mutex_);
  fetch->state_.assign(fetch->pieces(), RowFetch::Piece::kWaiting);
  fetch->first_waiting_ = fetch->running_ = 0;
  fetch->left_ = fetch->pieces();
  fetch->status_ = {};
  if (fetch->left_ == 0) return;
  waiting_.push_back(fetch);
  begun_.NotifyAll();
}

void RowFetcher::Run() {
  const MutexLock lock(mutex_);
  while (true) {
    begun_.Wait(mutex_, [&]() TACIT_REQUIRES(mutex_) { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    RowFetch* const fetch = waiting_.front();
    ReadPiece(fetch, fetch->first_waiting_);
  }
}

// Reads one piece that nobody has begun, without the lock.
void RowFetcher::ReadPiece(RowFetch* fetch, size_t piece) {
  fetch->state_[piece] = RowFetch::Piece::kRunning;
  ++fetch->running_;
  while (fetch->first_waiting_ < fetch->state_.size() &&
         fetch->state_[fetch->first_waiting_] != RowFetch::Piece::kWaiting)
    ++fetch->first_waiting_;
  if (fetch->first_waiting_ == fetch->state_.size()) Forget(fetch);
  const size_t begin = piece * RowFetch::kPieceRows;
  const size_t count = std::min(RowFetch::kPieceRows, fetch->rows.size() - begin);
  const auto rows = std::span<const uint64_t>(fetch->rows).subspan(begin, count);
  const auto out = std::span<float* const>(fetch->out).subspan(begin, count);
  mutex_.Unlock();
  Status status = fetch->read_(rows, out);
  mutex_.Lock();
  if (!status && fetch->status_) fetch->status_ = std::move(status);
  fetch->state_[piece] = RowFetch::Piece::kDone;
  --fetch->running_;
  --fetch->left_;
  done_.NotifyAll();
}

void RowFetcher::Forget(RowFetch* fetch) { std::erase(waiting_, fetch); }

Status RowFetcher::Finish(RowFetch* fetch) {
  const MutexLock lock(mutex_);
  while (fetch->first_waiting_ < fetch->state_.size()) ReadPiece(fetch, fetch->first_waiting_);
  done_.Wait(mutex_, [&]() TACIT_REQUIRES(mutex_) { return fetch->left_ == 0; });
  return fetch->status_;
}

Status RowFetcher::FinishSome(RowFetch* fetch, std::span<const uint32_t> places) {
  const MutexLock lock(mutex_);
  const auto state = [&](uint32_t place) -> RowFetch::Piece& {
    return fetch->state_[place / RowFetch::kPieceRows];
  };
  for (const uint32_t place : places)
    if (state(place) == RowFetch::Piece::kWaiting) ReadPiece(fetch, place / RowFetch::kPieceRows);
  done_.Wait(mutex_, [&]() TACIT_REQUIRES(mutex_) {
    return std::ranges::all_of(
        places, [&](uint32_t place) { return state(place) == RowFetch::Piece::kDone; });
  });
  return fetch->status_;
}

void RowFetcher::Cancel(RowFetch* fetch) {
  const MutexLock lock(mutex_);
  Forget(fetch);
  fetch->first_waiting_ = fetch->state_.size();
  done_.Wait(mutex_, [&]() TACIT_REQUIRES(mutex_) { return fetch->running_ == 0; });
}

}  // namespace tacit::store
