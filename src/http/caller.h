#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

// The callers that a server knows by their tokens (serve.callers).
namespace tacit::http {

// The reason that a caller is let in for. A program asks for answers (kQuery), a user for what is
// his own (kUser), an operator for everything.
enum class CallerRole : uint8_t { kQuery, kUser, kOperator };
inline constexpr size_t kCallerRoles = 3;
std::string_view NameOf(CallerRole role);

// Bounds the requests of one caller: a number a second, and as many at once. A leaky bucket as one
// number, the time at which the requests so far are paid for (GCRA, ITU-T I.371). Thread-safe,
// without locks.
class Pace {
 public:
  // 0: no bound.
  explicit Pace(uint32_t requests_a_second)
      : rate_(requests_a_second),
        each_ns_(requests_a_second == 0 ? 0 : kSecondNs / requests_a_second),
        ahead_ns_(each_ns_ * requests_a_second) {}

  uint32_t rate() const { return rate_; }

  // Takes one request at this time, by a monotonic clock. Returns 0, or the nanoseconds that the
  // caller must wait before it asks again.
  int64_t Take(int64_t now_ns) {
    if (each_ns_ == 0) return 0;
    int64_t paid = paid_until_ns_.load(std::memory_order_relaxed);
    for (;;) {
      const int64_t next = (paid > now_ns ? paid : now_ns) + each_ns_;
      if (next - now_ns > ahead_ns_) return next - now_ns - ahead_ns_;
      if (paid_until_ns_.compare_exchange_weak(paid, next, std::memory_order_relaxed)) return 0;
    }
  }

 private:
  static constexpr int64_t kSecondNs = 1'000'000'000;
  const uint32_t rate_;
  const int64_t each_ns_, ahead_ns_;
  std::atomic<int64_t> paid_until_ns_{INT64_MIN / 2};
};

struct Caller {
  CallerRole role = CallerRole::kQuery;
  std::string name;            // for answers; of one line of the file, or of several
  std::string user;            // kUser: the id, as records have it
  std::shared_ptr<Pace> pace;  // never null; outlives a reload of the file
};

}  // namespace tacit::http
