#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/threads/mutex.h"

namespace tacit::store {

// Rows that are read from a store piece by piece, by the first thread that comes. Between Begin
// and Finish or Cancel it belongs to the fetcher.
class RowFetch {
 public:
  static constexpr size_t kPieceRows = 256;
  // Reads these rows; called by several threads at once.
  using Read = std::function<Status(std::span<const uint64_t> rows, std::span<float* const> out)>;

  explicit RowFetch(Read read) : read_(std::move(read)) {}

  std::vector<uint64_t> rows;  // any order
  std::vector<float*> out;     // where the floats of each go

  size_t pieces() const { return (rows.size() + kPieceRows - 1) / kPieceRows; }

 private:
  friend class RowFetcher;
  enum class Piece : uint8_t { kWaiting, kRunning, kDone };
  const Read read_;
  std::vector<Piece> state_;
  size_t first_waiting_ = 0, running_ = 0, left_ = 0;
  Status status_;
};

// Threads that read rows for the caches of a store's learners. A caller that waits reads too, so
// that nothing is ever waited for that nobody has begun. Thread-safe.
class RowFetcher {
 public:
  // No threads: everything is read by who waits for it.
  explicit RowFetcher(size_t threads);
  ~RowFetcher();
  RowFetcher(const RowFetcher&) = delete;
  RowFetcher& operator=(const RowFetcher&) = delete;

  // Hands the rows to the threads, and returns at once.
  void Begin(RowFetch* fetch);
  // Reads what nobody has begun, and waits for the rest. Returns the first failure.
  Status Finish(RowFetch* fetch);
  // Does the same for the pieces of these rows alone, which are places in `rows`, ascending.
  Status FinishSome(RowFetch* fetch, std::span<const uint32_t> places);
  // Drops what nobody has begun, and waits for the rest.
  void Cancel(RowFetch* fetch);

 private:
  void Run();
  void ReadPiece(RowFetch* fetch, size_t piece) TACIT_REQUIRES(mutex_);
  void Forget(RowFetch* fetch) TACIT_REQUIRES(mutex_);

  Mutex mutex_;
  Condition begun_, done_;
  // Those with pieces that nobody has begun.
  std::deque<RowFetch*> waiting_ TACIT_GUARDED_BY(mutex_);
  bool stopping_ TACIT_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace tacit::store
