#include "event/dead_letters.h"

#include <chrono>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/files/log.h"
#include "base/threads/mutex.h"
#include "event/letter_file.h"
#include "event/letter_line.h"
#include "event/recent_offsets.h"

namespace tacit::event {
namespace {

constexpr std::chrono::milliseconds kTryAgain(250);
constexpr std::chrono::seconds kTellAgain(60);

class DeadLetterFile final : public DeadLetterSink {
 public:
  DeadLetterFile(LetterFile file, uint64_t max_bytes, RecentOffsets seen)
      : file_(std::move(file)), max_bytes_(max_bytes), seen_(std::move(seen)) {}

  Status Write(std::span<const DeadLetter> letters) override {
    std::string lines;
    std::vector<const DeadLetter*> written;
    std::set<std::pair<int32_t, uint64_t>> fresh;
    const auto put = [&]() -> Status {
      if (lines.empty()) return {};
      TACIT_RETURN_IF_ERROR(AppendOrWait(lines));
      for (const DeadLetter* letter : written) seen_.Insert(letter->partition, letter->offset);
      lines.clear();
      written.clear();
      return {};
    };
    for (const DeadLetter& letter : letters) {
      if (seen_.Contains(letter.partition, letter.offset)) continue;
      if (!fresh.emplace(letter.partition, letter.offset).second) continue;
      const std::string line = ToLine(letter);
      if (lines.size() + line.size() > max_bytes_) TACIT_RETURN_IF_ERROR(put());
      lines += line;
      written.push_back(&letter);
    }
    return put();
  }

  void Interrupt() override {
    const MutexLock lock(mutex_);
    interrupted_ = true;
    changed_.NotifyAll();
  }

  std::string trouble() const override {
    const MutexLock lock(mutex_);
    return trouble_;
  }

 private:
  // Waits while the file cannot be written: the cause, above all a full disk, may pass.
  Status AppendOrWait(std::string_view lines) {
    for (;;) {
      const Status appended = file_.Append(lines);
      const MutexLock lock(mutex_);
      if (appended) {
        if (!trouble_.empty()) spdlog::info("dead letters are written again");
        trouble_.clear();
        return {};
      }
      if (!interrupted_) Tell(appended.error().message);
      if (changed_.WaitFor(mutex_, kTryAgain,
                           [&]() TACIT_REQUIRES(mutex_) { return interrupted_; }))
        return Fail(ErrorCode::kUnavailable, appended.error().message);
    }
  }

  void Tell(const std::string& why) TACIT_REQUIRES(mutex_) {
    const auto now = std::chrono::steady_clock::now();
    const bool tell = trouble_.empty() || now - told_ >= kTellAgain;
    trouble_ = why;
    if (!tell) return;
    told_ = now;
    spdlog::warn("dead letters cannot be written, and reading waits until they are: {}", why);
  }

  LetterFile file_;
  const uint64_t max_bytes_;
  RecentOffsets seen_;
  mutable Mutex mutex_;
  Condition changed_;
  bool interrupted_ TACIT_GUARDED_BY(mutex_) = false;
  std::string trouble_ TACIT_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point told_ TACIT_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<DeadLetterSink>> OpenDeadLetterFile(DeadLetterFileOptions options) {
  TACIT_CHECK(options.files >= 2 && options.max_bytes > 0);
  const uint64_t max_bytes = options.max_bytes;
  RecentOffsets seen;
  TACIT_ASSIGN(LetterFile file, LetterFile::Open(std::move(options), [&](const LetterPlace& place) {
                 seen.Insert(place.partition, place.offset);
               }));
  return std::make_unique<DeadLetterFile>(std::move(file), max_bytes, std::move(seen));
}

}  // namespace tacit::event
