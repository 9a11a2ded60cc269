#include "cuda/learn/step_staging.h"

#include <utility>

#include "base/check.h"
#include "cuda/device/device.h"
#include "cuda/learn/step_streams.h"

namespace tacit::cuda {

Result<StepStaging> StepStaging::Make(Stream& compute, const StepStagingOptions& options,
                                      uint64_t words) {
  TACIT_CHECK(options.round_examples > 0 && options.space_rows < kNone);
  Device& device = compute.device();
  TACIT_ASSIGN(Stream feed, Stream::Make(device));
  TACIT_ASSIGN(Event arrived, Event::Make(device));
  StepStaging staging(compute, std::move(feed), std::move(arrived), options);
  for (Piece& piece : staging.pieces_) {
    TACIT_RETURN_IF_ERROR(Reserve(device, words, &piece.host));
    TACIT_RETURN_IF_ERROR(Reserve(device, words, &piece.device));
  }
  TACIT_RETURN_IF_ERROR(Reserve(device, words, &staging.current_));
  return staging;
}

void StepStaging::Plan(uint64_t words, MemoryNeed* need) {
  // Two pieces, of steps that take turns, and the step under way.
  for (int i = 0; i < 3; ++i) need->Add<uint32_t>(words);
}

// Lets the spans point into current_.
void StepStaging::Place(StagedStep* step) const {
  const StepParts parts = PartsOf(*step);
  const DeviceSpan<uint32_t> words = current_.span();
  const auto at = [&](size_t offset, size_t size) -> DeviceSpan<const uint32_t> {
    return words.Sub(offset, size);
  };
  const size_t examples = step->of.unit_of.size, units = step->of.example_end.size;
  step->of.row = at(parts.row, step->of.row.size);
  step->of.cell_end = at(parts.cell_end, step->of.cell_end.size);
  step->of.unit_of = at(parts.unit_of, examples);
  step->of.example_end = at(parts.example_end, units);
  step->unit_of = at(parts.chunk_unit_of, examples);
  step->example_end = at(parts.chunk_example_end, units);
  step->piece_end = at(parts.piece_end, step->piece_end.size);
  step->piece_closes = at(parts.piece_closes, step->piece_closes.size);
  step->real_units = at(parts.real, 1);
  const auto* const floats = reinterpret_cast<const float*>(words.data);
  const uint32_t width = step->numbers.cols;
  step->numbers = {floats + parts.numbers, static_cast<uint32_t>(examples), width, width};
  step->label = {floats + parts.label, examples};
}

Status StepStaging::LayOut(const stream::StepBatch& step, Piece* piece) {
  TACIT_ASSIGN(piece->step, LayOutStep(step, options_));
  piece->number = step.number;
  piece->words = PartsOf(piece->step).words;
  return Reserve(feed_.device(), piece->words, &piece->host);
}

void StepStaging::Pack(const stream::StepBatch& step, Piece* piece) const {
  PackStep(step, options_, piece->host.span().first(piece->words), &piece->step);
}

Status StepStaging::LayOutAhead(const stream::StepBatch& next) {
  Forget();
  // A step that was brought there and never used may still be on its way.
  if (has_ahead_) TACIT_RETURN_IF_ERROR(feed_.Synchronize());
  has_ahead_ = false;
  return LayOut(next, &pieces_[1 - now_]);
}

Status StepStaging::PackAhead(const stream::StepBatch& next) {
  TACIT_RETURN_IF_ERROR(LayOutAhead(next));
  packing_ = &next;
  packer_->Start([this] { Pack(*packing_, &pieces_[1 - now_]); });
  return {};
}

void StepStaging::Forget() {
  packer_->Wait();
  packing_ = nullptr;
}

Status StepStaging::BringAhead(const stream::StepBatch& next) {
  Piece& piece = pieces_[1 - now_];
  if (packing_ == &next) {
    Forget();
  } else {
    TACIT_RETURN_IF_ERROR(LayOutAhead(next));
    Pack(next, &piece);
  }
  TACIT_RETURN_IF_ERROR(Reserve(feed_.device(), piece.words, &piece.device));
  TACIT_RETURN_IF_ERROR(feed_.Upload<uint32_t>(piece.host.span().first(piece.words),
                                               piece.device.span().Sub(0, piece.words)));
  TACIT_RETURN_IF_ERROR(feed_.Record(arrived_));
  has_ahead_ = true;
  return {};
}

Result<const StagedStep*> StepStaging::Bring(const stream::StepBatch& step, bool keeps_ahead) {
  const bool is_ahead = has_ahead_ && !keeps_ahead && Is(step, pieces_[1 - now_]);
  if (is_ahead) {
    now_ = 1 - now_;
  } else {
    TACIT_RETURN_IF_ERROR(LayOut(step, &pieces_[now_]));
    Pack(step, &pieces_[now_]);
  }
  Piece& piece = pieces_[now_];
  TACIT_RETURN_IF_ERROR(Reserve(compute_->device(), piece.words, &current_));
  const auto to = current_.span().Sub(0, piece.words);
  if (is_ahead) {
    has_ahead_ = false;
    TACIT_RETURN_IF_ERROR(AwaitPoint(*compute_, arrived_, StepPoint::kArrived));
    TACIT_RETURN_IF_ERROR(
        compute_->CopyOnDevice<uint32_t>(piece.device.span().Sub(0, piece.words), to));
  } else {
    TACIT_RETURN_IF_ERROR(compute_->Upload<uint32_t>(piece.host.span().first(piece.words), to));
  }
  Place(&piece.step);
  return &piece.step;
}

}  // namespace tacit::cuda
