#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/threads/mutex.h"
#include "http/caller_table.h"
#include "http/kept_file.h"

namespace tacit::http {

// The callers of a file, read again while requests go on: a request keeps the callers that it began
// with. Thread-safe.
class Callers {
 public:
  // kInvalidArgument: the file is not there, not a file of callers, or others may read or change
  // it. The message names it. Those of `before` who are in it keep their pace.
  static Result<std::unique_ptr<Callers>> Open(std::string path, const CallerRates& rates,
                                               const Callers* before = nullptr);

  // Callers of no file, who never change.
  static std::unique_ptr<Callers> Fixed(CallerTable table);

  // Reads the file again. After a failure all is as before.
  Status Reload();
  // Does the same if the file is another one than at the last reading, whether that failed or not.
  // Returns true if the callers are new ones.
  Result<bool> ReloadIfChanged();

  // Bounds callers by other rates from now on. One whose rate stays keeps its pace.
  void SetRates(const CallerRates& rates);

  // Goes on as `other`, which nobody uses: with its file, its callers and its rates.
  void TakeOver(const Callers& other);
  std::string path() const;
  std::shared_ptr<const CallerTable> table() const;
  // Changes with each reading that succeeds.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  Callers(std::string path, const CallerRates& rates) : path_(std::move(path)), rates_(rates) {}

  void Put(std::shared_ptr<const CallerTable> table);

  mutable Mutex reading_;  // one thread reads at a time
  std::string path_ TACIT_GUARDED_BY(reading_);
  CallerRates rates_ TACIT_GUARDED_BY(reading_);
  FileStamp stamp_ TACIT_GUARDED_BY(reading_);
  mutable Mutex mutex_;
  std::shared_ptr<const CallerTable> table_ TACIT_GUARDED_BY(mutex_);
  std::atomic<uint64_t> generation_{0};
};

// The caller on one connection. Remembers the last token that was somebody's, so that the next
// request with it needs no digest. Not thread-safe.
class KnownCaller {
 public:
  KnownCaller() = default;
  ~KnownCaller();
  KnownCaller(const KnownCaller&) = delete;
  KnownCaller& operator=(const KnownCaller&) = delete;

  // The caller of this token, or null; valid until the next call.
  const Caller* Find(const Callers& callers, std::string_view token);

 private:
  void Forget();

  uint64_t generation_ = 0;
  std::shared_ptr<const CallerTable> table_;
  std::string token_;
  const Caller* caller_ = nullptr;
};

}  // namespace tacit::http
