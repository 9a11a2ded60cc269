#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "base/threads/side_thread.h"
#include "cuda/device/buffer.h"
#include "cuda/device/buffer_taker.h"
#include "cuda/device/stream.h"
#include "cuda/learn/step_packing.h"
#include "stream/steps/participation.h"

namespace tacit::cuda {

// Brings steps to the device: each in one piece of pinned memory and by one copy, for the next one
// on a stream of its own while the step before it is computed. A step of the same sizes is always
// in the same place. A thread of its own may pack the next step. Not thread-safe; does not move
// once that thread has worked.
class StepStaging {
 public:
  // `compute` must outlive it. Takes memory for the words of a step (train::GpuStepLayout).
  static Result<StepStaging> Make(Stream& compute, const StepStagingOptions& options,
                                  uint64_t words = 0);
  // Adds the device memory that Make takes.
  static void Plan(uint64_t words, MemoryNeed* need);

  // Begins to pack the step whose turn is next, on the other thread. It must not change until
  // BringAhead or Forget.
  Status PackAhead(const stream::StepBatch& next);
  // Waits until the step that is packed is not looked at any more.
  void Forget();
  // Copies a step ahead of its turn. REQUIRES that Bring was called, for the step before it.
  Status BringAhead(const stream::StepBatch& next);
  // The step, ready for work that is put on `compute` from here on; valid until the next call.
  // `keeps_ahead`: the step that was brought ahead comes later. REQUIRES that `compute` has run, or
  // that this step was the last to be brought ahead.
  Result<const StagedStep*> Bring(const stream::StepBatch& step, bool keeps_ahead);
  // Tells whether that is the step for which Bring was called last.
  bool BroughtLast(const stream::StepBatch& step) const { return Is(step, pieces_[now_]); }

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
  // These take a piece's pinned memory. A thread may pack the step there afterwards.
  Status LayOutAhead(const stream::StepBatch& next);
  Status LayOut(const stream::StepBatch& step, Piece* piece);
  void Pack(const stream::StepBatch& step, Piece* piece) const;
  // Numbers spare the look at all that a step has.
  bool Is(const stream::StepBatch& step, const Piece& piece) const {
    return step.number > 0 ? piece.number == step.number
                           : IsPackedThere(step, piece.step, piece.host.span());
  }
  void Place(StagedStep* step) const;

  Stream* compute_;
  StepStagingOptions options_;
  Piece pieces_[2];
  uint32_t now_ = 0;        // the piece that the step under way was packed into
  bool has_ahead_ = false;  // in the other one
  Buffer<uint32_t> current_;
  Stream feed_;
  Event arrived_;
  const stream::StepBatch* packing_ = nullptr;  // into the piece that is not now_'s
  std::unique_ptr<SideThread> packer_ = std::make_unique<SideThread>("tacit-pack");
};

}  // namespace tacit::cuda
