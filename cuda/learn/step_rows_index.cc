#include "cuda/learn/step_rows_index.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cuda/device/device.h"
#include "cuda/kernels/ranks.h"
#include "cuda/kernels/select.h"
#include "cuda/kernels/step_rows.h"
#include "mechanism/contribution.h"

namespace tacit::cuda {
namespace {

// Ends of the units' examples; one without examples ends where the one before it does.
std::vector<uint32_t> ExampleEnds(std::span<const uint32_t> unit_of, uint32_t units) {
  std::vector<uint32_t> end(units, 0);
  for (size_t i = 0; i < unit_of.size(); ++i) {
    TACIT_CHECK(unit_of[i] < units && (i == 0 || unit_of[i - 1] <= unit_of[i]), "units ascend");
    end[unit_of[i]] = static_cast<uint32_t>(i + 1);
  }
  for (size_t u = 1; u < end.size(); ++u) end[u] = std::max(end[u], end[u - 1]);
  return end;
}

}  // namespace

Result<StepRowsIndex> StepRowsIndex::Make(Stream& stream, uint64_t space_rows) {
  TACIT_CHECK(space_rows < kNone, "rows are numbered with 32 bits");
  StepRowsIndex index(stream);
  index.space_rows_ = space_rows;
  TACIT_ASSIGN(index.counts_, Buffer<uint32_t>::Make(stream.device(), 3));
  return index;
}

Status StepRowsIndex::Cover(uint64_t names) {
  const size_t before = owner_.size();
  if (names <= before) return {};
  TACIT_CHECK(names < kNone, "names are numbers of 32 bits");
  TACIT_ASSIGN(auto larger, Buffer<uint32_t>::Make(stream_->device(), names));
  TACIT_RETURN_IF_ERROR(stream_->Fill(larger.span().Sub(before, names - before), 0xff));
  if (before > 0)
    TACIT_RETURN_IF_ERROR(
        stream_->CopyOnDevice<uint32_t>(owner_.span(), larger.span().Sub(0, before)));
  owner_ = std::move(larger);
  return {};
}

Status StepRowsIndex::TakeFor(const stream::StepBatch& step) {
  const event::Batch& batch = step.examples;
  // A model without tables learns from the numbers alone.
  const bool embeds = space_rows_ > 0;
  slots_ = embeds ? static_cast<uint32_t>(batch.slots) : 0;
  entries_ = embeds ? batch.row.size() : 0;
  cells_ = embeds ? batch.slot_end.size() : 0;
  examples_ = batch.size();
  units_ = step.units;
  TACIT_CHECK(entries_ < kNone && step.unit_of.size() == examples_, "one unit per example");
  Device& device = stream_->device();
  for (Buffer<uint32_t>* buffer :
       {&row_, &cell_, &next_, &place_, &owner_rank_, &touched_, &touched_name_, &kept_rank_})
    TACIT_RETURN_IF_ERROR(Reserve(device, entries_, buffer));
  for (Buffer<uint8_t>* buffer : {&first_, &owns_, &kept_, &inside_entry_, &inside_place_})
    TACIT_RETURN_IF_ERROR(Reserve(device, entries_, buffer));
  TACIT_RETURN_IF_ERROR(Reserve(device, entries_, &contributions_));
  TACIT_RETURN_IF_ERROR(Reserve(device, RankWork(entries_), &work_));
  TACIT_RETURN_IF_ERROR(Reserve(device, cells_, &cell_end_));
  TACIT_RETURN_IF_ERROR(Reserve(device, examples_, &unit_of_));
  TACIT_RETURN_IF_ERROR(Reserve(device, units_, &example_end_));
  return Reserve(device, units_, &active_);
}

StepEntries StepRowsIndex::Entries() const {
  return {.slots = slots_,
          .cell_end = First(cell_end_, cells_),
          .unit_of = First(unit_of_, examples_),
          .example_end = First(example_end_, units_),
          .row = First(row_, entries_)};
}

StepRows StepRowsIndex::rows() const {
  return {.entries = Entries(),
          .cell = First(cell_, entries_),
          .next = First(next_, entries_),
          .first = First(first_, entries_),
          .place = First(place_, entries_),
          .kept = First(kept_, entries_),
          .rank = First(kept_rank_, entries_)};
}

Status StepRowsIndex::UploadRows(std::span<const uint64_t> rows, std::vector<uint32_t>* staging,
                                 Buffer<uint32_t>* to) {
  TACIT_RETURN_IF_ERROR(Reserve(stream_->device(), rows.size(), to));
  staging->clear();
  for (const uint64_t row : rows) {
    TACIT_CHECK(row < space_rows_, "a row that the space does not have");
    staging->push_back(static_cast<uint32_t>(row));
  }
  return stream_->Upload<uint32_t>(*staging, First(*to, rows.size()));
}

Status StepRowsIndex::Begin(const stream::StepBatch& step, DeviceSpan<const uint32_t> names) {
  TACIT_RETURN_IF_ERROR(TakeFor(step));
  Stream& stream = *stream_;
  const event::Batch& batch = step.examples;
  const size_t n = entries_;
  TACIT_RETURN_IF_ERROR(
      UploadRows(std::span<const uint64_t>(batch.row).first(n), &row_staging_, &row_));
  end_staging_ = ExampleEnds(step.unit_of, step.units);
  entries_of_unit_max_ = 0;
  for (size_t u = 0, before = 0; u < units_ && slots_ > 0; ++u) {
    const size_t end = end_staging_[u] == 0 ? 0 : batch.slot_end[end_staging_[u] * slots_ - 1];
    entries_of_unit_max_ = std::max(entries_of_unit_max_, end - std::exchange(before, end));
  }
  TACIT_RETURN_IF_ERROR(stream.Upload<uint32_t>(
      std::span<const uint32_t>(batch.slot_end).first(cells_), First(cell_end_, cells_)));
  TACIT_RETURN_IF_ERROR(stream.Upload<uint32_t>(step.unit_of, First(unit_of_, examples_)));
  TACIT_RETURN_IF_ERROR(stream.Upload<uint32_t>(end_staging_, First(example_end_, units_)));
  const DeviceSpan<const uint32_t> row = First(row_, n);
  names_ = names.size > 0 ? names : row;
  TACIT_CHECK(names_.size == n, "one name per entry");
  TACIT_RETURN_IF_ERROR(SpreadCells(stream, Entries(), First(cell_, n)));
  TACIT_RETURN_IF_ERROR(ClaimRows(stream, names_, owner_.span()));
  TACIT_RETURN_IF_ERROR(MarkOwners(stream, names_, owner_.span(), First(owns_, n)));
  TACIT_RETURN_IF_ERROR(RankFlags(stream, First(owns_, n), {}, work_.span(), First(owner_rank_, n),
                                  counts_.span().Sub(0, 1)));
  return ListTouched(stream, row, names_, owner_.span(), First(owns_, n), First(owner_rank_, n),
                     {First(touched_, n), First(touched_name_, n)}, First(place_, n));
}

Status StepRowsIndex::SelectThreshold(const mechanism::Recipe& recipe,
                                      DeviceSpan<const NoiseKey> key) {
  Stream& stream = *stream_;
  const size_t n = entries_;
  steps_staging_.assign(1, 0);
  for (size_t active = 1; active <= entries_of_unit_max_; ++active)
    steps_staging_.push_back(
        mechanism::ContributionSteps(recipe.selection_clip, recipe.selection_grid, active));
  TACIT_RETURN_IF_ERROR(Reserve(stream.device(), steps_staging_.size(), &steps_));
  const auto steps = First(steps_, steps_staging_.size());
  TACIT_RETURN_IF_ERROR(stream.Upload<int64_t>(steps_staging_, steps));
  const auto contributions = First(contributions_, n);
  TACIT_RETURN_IF_ERROR(stream.Fill(contributions, 0));
  const size_t inside = recipe.has_vocabulary ? n : 0;
  TACIT_RETURN_IF_ERROR(AddContributions(stream, Entries(), First(cell_, n), First(place_, n),
                                         First(first_, n), First(inside_entry_, inside),
                                         First(active_, units_), steps, contributions));
  return SelectAbove(stream, key, recipe.selection_grid.stddev, recipe.threshold,
                     First(touched_, n), touched_count(), First(inside_place_, inside),
                     contributions, First(kept_, n));
}

Status StepRowsIndex::Select(const mechanism::Recipe& recipe, DeviceSpan<const NoiseKey> key,
                             std::span<const uint64_t> extra,
                             DeviceSpan<const uint32_t> extra_names) {
  Stream& stream = *stream_;
  const size_t n = entries_, inside = recipe.has_vocabulary ? n : 0;
  if (recipe.has_vocabulary) {
    TACIT_RETURN_IF_ERROR(UploadRows(recipe.vocabulary, &vocabulary_staging_, &vocabulary_));
    const auto vocabulary = First(vocabulary_, recipe.vocabulary.size());
    TACIT_RETURN_IF_ERROR(FindInside(stream, First(row_, n), vocabulary, First(inside_entry_, n)));
    TACIT_RETURN_IF_ERROR(
        FindInside(stream, First(touched_, n), vocabulary, First(inside_place_, n)));
  }
  TACIT_RETURN_IF_ERROR(LinkRepeats(stream, Entries(), First(inside_entry_, inside),
                                    First(next_, n), First(first_, n), First(active_, units_)));
  if (recipe.rows == mechanism::Recipe::Rows::kThreshold) {
    TACIT_RETURN_IF_ERROR(SelectThreshold(recipe, key));
  } else {
    TACIT_RETURN_IF_ERROR(
        SelectInside(stream, touched_count(), First(inside_place_, inside), First(kept_, n)));
  }
  TACIT_RETURN_IF_ERROR(RankFlags(stream, First(kept_, n), {}, work_.span(), First(kept_rank_, n),
                                  counts_.span().Sub(1, 1)));
  const size_t extras = extra_size_ = extra.size();
  TACIT_RETURN_IF_ERROR(Reserve(stream.device(), n + extras, &written_));
  TACIT_RETURN_IF_ERROR(Reserve(stream.device(), n + extras, &written_name_));
  TACIT_RETURN_IF_ERROR(ListFlagged(stream, First(touched_, n), First(kept_, n),
                                    First(kept_rank_, n), written_.span()));
  TACIT_RETURN_IF_ERROR(ListFlagged(stream, First(touched_name_, n), First(kept_, n),
                                    First(kept_rank_, n), written_name_.span()));
  TACIT_RETURN_IF_ERROR(UploadRows(extra, &extra_staging_, &extra_));
  const DeviceSpan<const uint32_t> name =
      extra_names.size > 0 ? extra_names : First(extra_, extras);
  TACIT_CHECK(name.size == extras, "one name per row");
  TACIT_RETURN_IF_ERROR(Reserve(stream.device(), extras, &untouched_));
  TACIT_RETURN_IF_ERROR(Reserve(stream.device(), extras, &extra_rank_));
  TACIT_RETURN_IF_ERROR(Reserve(stream.device(), RankWork(extras), &work_));
  TACIT_RETURN_IF_ERROR(MarkUntouched(stream, name, owner_.span(), First(untouched_, extras)));
  TACIT_RETURN_IF_ERROR(RankFlags(stream, First(untouched_, extras), kept_count(), work_.span(),
                                  First(extra_rank_, extras), counts_.span().Sub(2, 1)));
  TACIT_RETURN_IF_ERROR(ListFlagged(stream, First(extra_, extras), First(untouched_, extras),
                                    First(extra_rank_, extras), written_.span()));
  return ListFlagged(stream, name, First(untouched_, extras), First(extra_rank_, extras),
                     written_name_.span());
}

Status StepRowsIndex::End() {
  return ForgetTouched(*stream_, names_, First(owns_, entries_), owner_.span());
}

}  // namespace tacit::cuda
