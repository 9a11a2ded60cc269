#include "cuda/device/emulated_driver.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "cuda/device/errors.h"

namespace tacit::cuda::emulated {
namespace {

using runtime::Code;
using runtime::kSuccess;

constexpr unsigned char kNeverWritten = 0xCD;
constexpr size_t kAlignment = 256;

// As CUDA has it: a thread that has not been told of another has device 0.
thread_local int this_threads_device = 0;

bool Able(const Work& work) { return work.needs == nullptr || work.needs->done; }

void RunFirst(EmulatedStream& stream) {
  Work work = std::move(stream.work.front());
  stream.work.pop_front();
  void* const host = emulator::CurrentTimeline();
  emulator::SwitchTimeline(stream.timeline);
  emulator::Await(work.queued.get());
  if (work.needs != nullptr) emulator::Await(work.needs.get());
  if (work.run) work.run();
  if (work.marks != nullptr) {
    work.marks->done = true;
    emulator::Signal(work.marks.get());
  }
  emulator::Signal(&stream.finished_token);
  work.run = nullptr;  // freed on the stream's timeline, where the kernel read its arguments
  emulator::SwitchTimeline(host);
}

}  // namespace

void Driver::Reset(const Machine& machine) {
  TACIT_CHECK(streams_.empty() && memory_.empty(), "something of the last device is alive");
  machine_ = machine;
  fail_in_ = calls_ = 0;
  lost_ = kSuccess;
  refuses_memory_ = false;
  turns_ = Turns::kShuffled;
  kernels_.clear();
  this_threads_device = opened_ = 0;
}

void Driver::Open(int ordinal) { this_threads_device = opened_ = ordinal; }

void Driver::Bind(int ordinal) { this_threads_device = ordinal; }

bool Driver::bound() const { return this_threads_device == opened_; }

Code Driver::Enter() {
  ++calls_;
  if (lost_ != kSuccess) return lost_;
  if (fail_in_ == 0) return kSuccess;
  if (--fail_in_ > 0) return kSuccess;
  if (LosesDevice(fail_with_)) lost_ = fail_with_;
  return fail_with_;
}

Code Driver::Take(void** memory, size_t bytes, bool on_device) {
  const uint64_t piece = on_device ? machine_.memory_piece_bytes : 1;
  const uint64_t whole = (bytes + piece - 1) / piece * piece;
  if (refuses_memory_ || (on_device && whole > free_bytes())) return code::kMemoryAllocation;
  void* taken = nullptr;
  TACIT_CHECK(posix_memalign(&taken, kAlignment, bytes) == 0, "no memory");
  std::memset(taken, kNeverWritten, bytes);
  memory_[taken] = {std::unique_ptr<void, FreeMemory>(taken), whole, on_device};
  if (on_device) taken_on_device_ += whole;
  *memory = taken;
  return kSuccess;
}

Code Driver::Give(void* memory) {
  // Waits first, as cudaFree does: work that was launched may still use the memory.
  DrainAll();
  const auto found = memory_.find(memory);
  TACIT_CHECK(found != memory_.end(), "memory is given back that was never taken");
  if (found->second.on_device) taken_on_device_ -= found->second.size;
  memory_.erase(found);
  return kSuccess;
}

EmulatedStream* Driver::AddStream() {
  streams_.push_back(std::make_unique<EmulatedStream>());
  return streams_.back().get();
}

void Driver::DropStream(EmulatedStream* stream) {
  if (lost_ == kSuccess) Drain([&] { return stream->work.empty(); });
  emulator::Await(&stream->finished_token);
  emulator::DropTimeline(stream->timeline);
  std::erase_if(streams_, [&](const auto& one) { return one.get() == stream; });
}

void Driver::Put(EmulatedStream* stream, std::function<void()> run) {
  if (stream->capture != nullptr) {
    stream->capture->Run(stream, std::move(run));
  } else {
    Push(stream, {.run = std::move(run), .needs = nullptr, .marks = nullptr});
  }
}

void Driver::Push(EmulatedStream* stream, Work work) {
  emulator::Signal(work.queued.get());
  stream->work.push_back(std::move(work));
}

void Driver::Launch(const EmulatedGraph& graph, EmulatedStream* stream) {
  std::vector<std::shared_ptr<Mark>> marks(graph.marks);
  for (auto& mark : marks) mark = std::make_shared<Mark>();
  const auto begun = std::make_shared<Mark>();
  Push(stream, {.run = {}, .needs = nullptr, .marks = begun});
  for (EmulatedStream* lane : graph.lanes)
    Push(lane, {.run = {}, .needs = begun, .marks = nullptr});
  for (const CapturedWork& work : graph.work)
    Push(work.lane == 0 ? stream : graph.lanes[work.lane - 1],
         {.run = work.run,
          .needs = work.needs == SIZE_MAX ? nullptr : marks[work.needs],
          .marks = work.marks == SIZE_MAX ? nullptr : marks[work.marks]});
}

std::shared_ptr<Capture> Driver::CaptureWith(const EmulatedEvent* event) const {
  for (const auto& stream : streams_)
    if (stream->capture != nullptr && stream->capture->mark_of.contains(event))
      return stream->capture;
  return nullptr;
}

// Runs streams, in turns, until `enough` returns true.
void Driver::Drain(const std::function<bool()>& enough) {
  while (!enough()) {
    std::vector<EmulatedStream*> able;
    for (const auto& stream : streams_)
      if (!stream->work.empty() && Able(stream->work.front())) able.push_back(stream.get());
    TACIT_CHECK(!able.empty(), "streams wait for one another");
    RunFirst(*able[emulator::Draw(able.size())]);
  }
}

// Runs this stream until the mark, or its end, and other streams only as far as events demand.
void Driver::DrainLate(EmulatedStream* stream, const Mark* until) {
  while (!stream->work.empty() && (until == nullptr || !until->done)) {
    const Work& first = stream->work.front();
    if (first.needs != nullptr && !first.needs->done) DrainUntil(first.needs.get());
    RunFirst(*stream);
  }
}

void Driver::DrainUntil(const Mark* mark) {
  for (const auto& stream : streams_) {
    const bool here = std::ranges::any_of(
        stream->work, [&](const Work& work) { return work.marks.get() == mark; });
    if (here) return DrainLate(stream.get(), mark);
  }
}

void Driver::DrainAll() {
  // On a lost device nothing runs any more; what has run did so before.
  if (lost_ == kSuccess)
    Drain([&]() TACIT_REQUIRES(mutex_) {
      return std::ranges::all_of(streams_, [](const auto& one) { return one->work.empty(); });
    });
  for (const auto& stream : streams_) emulator::Await(&stream->finished_token);
}

void Driver::WaitFor(EmulatedStream* stream) {
  if (turns_ == Turns::kLate) {
    DrainLate(stream, nullptr);
  } else {
    Drain([&] { return stream->work.empty(); });
  }
  emulator::Await(&stream->finished_token);
}

void Driver::WaitFor(const std::shared_ptr<Mark>& mark) {
  if (mark == nullptr) return;
  if (turns_ == Turns::kLate) {
    DrainUntil(mark.get());
  } else {
    Drain([&] { return mark->done; });
  }
  emulator::Await(mark.get());
}

void Driver::CountLaunch(const char* name, const runtime::LaunchShape& shape) {
  KernelUse& use = kernels_[name];
  ++use.launches;
  use.threads_per_block_min = std::min(use.threads_per_block_min, shape.block.count());
}

uint64_t Driver::BytesTaken() const {
  uint64_t bytes = 0;
  for (const auto& [at, memory] : memory_) bytes += memory.size;
  return bytes;
}

Driver& TheDriver() {
  static Driver& driver = *new Driver;
  return driver;
}

}  // namespace tacit::cuda::emulated
