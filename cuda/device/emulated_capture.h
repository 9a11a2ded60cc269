#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

// A graph of the emulated device while it is written down: work of one stream, and of others that
// it takes in.
namespace tacit::cuda::emulated {

// Work that is recorded for a graph: lanes of it, one a stream, and marks between them.
struct CapturedWork {
  size_t lane = 0;
  std::function<void()> run;
  size_t needs = SIZE_MAX, marks = SIZE_MAX;  // numbers of marks
};
struct EmulatedStream;
struct EmulatedEvent;

struct Capture {
  bool broken = false;
  std::vector<EmulatedStream*> lanes;
  std::vector<CapturedWork> work;
  std::map<const EmulatedEvent*, size_t> mark_of;  // the last record of each event
  // The amount of each lane's work that is known to come before something: before what a lane does
  // next, and before a mark.
  using Before = std::vector<size_t>;
  std::vector<Before> lane_before, mark_before;

  size_t LaneOf(const EmulatedStream* stream) const {
    return static_cast<size_t>(std::ranges::find(lanes, stream) - lanes.begin());
  }
  void AddLane(EmulatedStream* stream) {
    lanes.push_back(stream);
    for (Before& before : lane_before) before.resize(lanes.size());
    for (Before& before : mark_before) before.resize(lanes.size());
    lane_before.emplace_back(lanes.size());
  }
  void Run(const EmulatedStream* stream, std::function<void()> run) {
    const size_t lane = LaneOf(stream);
    work.push_back({.lane = lane, .run = std::move(run)});
    ++lane_before[lane][lane];
  }
  void Record(const EmulatedStream* stream, const EmulatedEvent* event) {
    const size_t lane = LaneOf(stream);
    work.push_back({.lane = lane, .run = {}, .marks = mark_before.size()});
    mark_of[event] = mark_before.size();
    mark_before.push_back(lane_before[lane]);
  }
  void Wait(const EmulatedStream* stream, size_t mark) {
    const size_t lane = LaneOf(stream);
    work.push_back({.lane = lane, .run = {}, .needs = mark});
    for (size_t other = 0; other < lanes.size(); ++other)
      lane_before[lane][other] = std::max(lane_before[lane][other], mark_before[mark][other]);
  }
  // Tells whether the first lane ends behind all others.
  bool Joined() const {
    for (size_t lane = 1; lane < lanes.size(); ++lane)
      if (lane_before[0][lane] != lane_before[lane][lane]) return false;
    return true;
  }
};

}  // namespace tacit::cuda::emulated
