#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/files/standard_input.h"
#include "base/result.h"
#include "base/threads/mutex.h"

namespace tacit::stream {

// The bytes of this process's standard input. They come once, so the first of them are kept: a look
// at the first records, and the source behind it, read the same bytes. Thread-safe.
class StandardInput {
 public:
  // At least as many are kept.
  static constexpr uint64_t kKeptBytes = 1 << 20;

  static StandardInput& Get();

  // Keeps this many bytes from the beginning, or more if more was asked for before. Without effect
  // once some have come that were not kept.
  void Keep(uint64_t bytes);
  // Keeps this many bytes behind those that have come until now, and no more.
  void KeepNext(uint64_t bytes);
  // Waits for the first kKeptBytes, or the end, and returns how many bytes have come. Fails where
  // standard input is a terminal, or cannot be read.
  Result<uint64_t> Begin();

  struct Got {
    size_t bytes = 0;
    bool waits = false;  // nothing has come for a moment, and the end has not come either
  };
  // Reads what lies at an offset; no bytes at the end. Fails for bytes that were read and not kept.
  Result<Got> ReadAt(uint64_t offset, std::span<char> out);

 private:
  StandardInput() = default;
  Result<Got> ReadNext(std::span<char> out) TACIT_REQUIRES(mutex_);

  Mutex mutex_;
  uint64_t keep_ TACIT_GUARDED_BY(mutex_) = kKeptBytes;
  std::string kept_ TACIT_GUARDED_BY(mutex_);
  uint64_t come_ TACIT_GUARDED_BY(mutex_) = 0;
  bool ended_ TACIT_GUARDED_BY(mutex_) = false;
};

}  // namespace tacit::stream
