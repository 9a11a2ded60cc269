#pragma once

#include <cstddef>
#include <functional>

#include "base/result.h"
#include "cuda/device/device.h"
#include "cuda/device/stream.h"

namespace tacit::cuda {

// The median time of one call, which waits for its own work; it is made once before, and then for
// about `seconds`, three times at least.
Result<double> MedianOfCalls(double seconds, const std::function<Status()>& call);

// The time of work that is put on the stream, without the host's: the median of five batches, each
// of as many as fill a fifth of `seconds`, of which the host waits for the last.
Result<double> SecondsOnDevice(Stream& stream, double seconds,
                               const std::function<Status(Stream&)>& work);
// The same of work that is recorded as a graph.
Result<double> SecondsAsGraph(Stream& stream, double seconds,
                              const std::function<Status(Stream&)>& work);

// Bytes read and written in a second by a copy from the device's memory to itself.
Result<double> CopyRate(Stream& stream, double seconds, size_t bytes);

// Numbers of noise on the grid that a second brings into memory as floats.
Result<double> GridNoiseRate(Stream& stream, double seconds, size_t numbers);

}  // namespace tacit::cuda
