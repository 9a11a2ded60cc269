#include "cuda/learn/step_reports.h"

#include <algorithm>
#include <utility>

#include "train/learner/loss_sum.h"

namespace tacit::cuda {

Result<StepReports> StepReports::Make(Stream& stream, const RowSpace& space, StepMemory& memory) {
  StepReports reports(stream, space, memory);
  TACIT_ASSIGN(reports.counts_, HostBuffer<uint32_t>::Make(stream.device(), 4));
  TACIT_ASSIGN(Event asked, Event::Make(stream.device()));
  reports.asked_.emplace(std::move(asked));
  return reports;
}

Status StepReports::AskForLosses(size_t examples) {
  examples_ = examples;
  const auto bring = [&](const Buffer<float>& from, HostBuffer<float>& to) {
    return stream_->Download(from.span().Sub(0, examples), to.span().first(examples));
  };
  TACIT_RETURN_IF_ERROR(bring(memory_->logits, memory_->logits_host));
  return bring(memory_->loss, memory_->loss_host);
}

void StepReports::ReadLosses(train::StepReport* report) const {
  *report = {};
  report->logits = memory_->logits_host.span().first(examples_);
  report->examples = report->losses = examples_;
  report->loss_sum = train::SumOfLosses(memory_->loss_host.span().first(examples_));
}

Status StepReports::Preview(const StepRowsIndex& index, size_t examples,
                            train::StepReport* report) {
  TACIT_RETURN_IF_ERROR(stream_->Download(index.touched_count(), counts_.span().first(1)));
  TACIT_RETURN_IF_ERROR(AskForLosses(examples));
  TACIT_RETURN_IF_ERROR(stream_->Synchronize());
  ReadLosses(report);
  report->rows_touched = counts_.span()[0];
  return {};
}

Status StepReports::Ask(const StepRowsIndex& index, DeviceSpan<const uint32_t> clipped,
                        size_t examples, bool every) {
  const std::span<uint32_t> counts = counts_.span();
  TACIT_RETURN_IF_ERROR(stream_->Download(index.touched_count(), counts.subspan(0, 1)));
  TACIT_RETURN_IF_ERROR(stream_->Download(index.written_count(), counts.subspan(1, 1)));
  TACIT_RETURN_IF_ERROR(stream_->Download(clipped, counts.subspan(2, 1)));
  every_ = every;
  row_ = index.written().row;
  likely_written_ = every ? 0 : std::min(row_.size, likely_written_);
  if (!every) TACIT_RETURN_IF_ERROR(Reserve(stream_->device(), row_.size, &memory_->written_host));
  TACIT_RETURN_IF_ERROR(stream_->Download(row_.Sub(0, likely_written_),
                                          memory_->written_host.span().first(likely_written_)));
  TACIT_RETURN_IF_ERROR(AskForLosses(examples));
  return stream_->Record(*asked_);
}

Status StepReports::Read(train::StepReport* report) {
  TACIT_RETURN_IF_ERROR(asked_->Synchronize());
  ReadLosses(report);
  const std::span<const uint32_t> counts = counts_.span();
  report->rows_touched = counts[0];
  report->units_clipped = counts[2];
  written_ = every_ ? 0 : counts[1];
  if (every_) {
    report->rows_written = space_->rows();
    for (const RowSpace::Table& table : space_->tables())
      report->row_floats_written += table.rows * table.dim;
    return {};
  }
  if (written_ > likely_written_) {
    const size_t more = written_ - likely_written_;
    TACIT_RETURN_IF_ERROR(
        stream_->Download(row_.Sub(likely_written_, more),
                          memory_->written_host.span().subspan(likely_written_, more)));
    TACIT_RETURN_IF_ERROR(stream_->Synchronize());
  }
  likely_written_ = written_ + written_ / 4;
  report->rows_written = written_;
  for (const uint32_t one : written()) report->row_floats_written += dims_.Of(one);
  return {};
}

std::span<const uint32_t> StepReports::written() const {
  return memory_->written_host.span().first(written_);
}

}  // namespace tacit::cuda
