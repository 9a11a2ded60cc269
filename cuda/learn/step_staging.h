#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/buffer_taker.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/matrix.h"
#include "cuda/kernels/step_rows.h"
#include "cuda/learn/step_chunks.h"
#include "stream/steps/participation.h"
#include "train/gpu.h"

namespace tacit::cuda {

struct StepStagingOptions {
  uint32_t slots = 0;  // of an example; 0: a model without tables
  uint32_t dense_width = 0;
  uint64_t space_rows = 0;
  uint32_t chunk_examples = 0;  // that go through the model at a time
  // A step in one chunk is filled up to multiples of at most so many examples and units, and of
  // entries for so many examples, with what is nobody's (step_rows.h); a small step to smaller
  // ones. So its kernels have few sizes.
  uint32_t round_examples = train::kGpuRoundExamples;
};

// A step in device memory.
struct StagedStep {
  uint32_t units = 0, examples = 0, entries = 0;  // without what fills it up
  std::vector<StepChunk> chunks;                  // with it, if there is but one
  uint32_t entries_of_unit_max = 0;
  StepEntries of = {};                     // all entries
  DeviceMatrix<const float> numbers = {};  // per example
  DeviceSpan<const float> label = {};
  DeviceSpan<const uint32_t> real_units = {};  // one number: `units`
  // Chunk after chunk: per example its unit, per unit the end of its examples, both counted from
  // the chunk's first.
  DeviceSpan<const uint32_t> unit_of = {}, example_end = {};
};

// Brings steps to the device: each in one piece of pinned memory and by one copy, for the next one
// on a stream of its own while the step before it is computed. A step of the same sizes is always
// in the same place. Not thread-safe.
class StepStaging {
 public:
  // `compute` must outlive it. Takes memory for steps of so many words (train::GpuStepLayout).
  static Result<StepStaging> Make(Stream& compute, const StepStagingOptions& options,
                                  uint64_t words = 0);
  // Adds the device memory that Make takes.
  static void Plan(uint64_t words, MemoryNeed* need);

  // Copies a step ahead of its turn. REQUIRES that Bring was called, for the step before it.
  Status BringAhead(const stream::StepBatch& next);
  // The step, ready for work that is put on `compute` from here on; valid until the next call.
  // `keeps_ahead`: the step that was brought ahead comes later. REQUIRES that `compute` has run, or
  // that this step was the last to be brought ahead.
  Result<const StagedStep*> Bring(const stream::StepBatch& step, bool keeps_ahead);
  // Tells whether that is the step for which Bring was called last.
  bool BroughtLast(const stream::StepBatch& step) const { return Is(step, pieces_[now_]); }

  // For tests and operators.
  uint64_t brought_ahead() const { return brought_ahead_; }

 private:
  struct Piece {
    HostBuffer<uint32_t> host;
    Buffer<uint32_t> device;
    size_t words = 0;
    uint64_t number = 0;  // the step's
    StagedStep step;
  };
  StepStaging(Stream& compute, Stream feed, Event arrived, const StepStagingOptions& options)
      : compute_(&compute),
        options_(options),
        feed_(std::move(feed)),
        arrived_(std::move(arrived)) {}
  Status Pack(const stream::StepBatch& step, Piece* piece) const;
  // Numbers spare the look at all that a step has.
  bool Is(const stream::StepBatch& step, const Piece& piece) const {
    return step.number > 0 ? piece.number == step.number : Holds(piece, step);
  }
  bool Holds(const Piece& piece, const stream::StepBatch& step) const;
  void Place(StagedStep* step) const;

  Stream* compute_;
  StepStagingOptions options_;
  Piece pieces_[2];
  uint32_t now_ = 0;        // the piece that the step under way was packed into
  bool has_ahead_ = false;  // in the other one
  uint64_t brought_ahead_ = 0;
  Buffer<uint32_t> current_;
  Stream feed_;
  Event arrived_;
};

}  // namespace tacit::cuda
