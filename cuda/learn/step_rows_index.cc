#include "cuda/learn/step_rows_index.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cuda/device/device.h"
#include "cuda/kernels/rows/ranks.h"
#include "cuda/kernels/rows/select.h"
#include "cuda/kernels/rows/step_rows.h"
#include "mechanism/contribution.h"

namespace tacit::cuda {
namespace {

// The size of the table of contributions where a unit has this many entries: more numbers than are
// asked for, so that steps of the same sizes have as many.
size_t ContributionsFor(uint64_t unit_entries) { return (unit_entries / 64 + 1) * 64; }

}  // namespace

Result<StepRowsIndex> StepRowsIndex::Make(Stream& stream, uint64_t space_rows,
                                          const train::GpuStepLayout& planned) {
  TACIT_CHECK(space_rows < kNone, "rows are numbered with 32 bits");
  StepRowsIndex index(&stream);
  index.space_rows_ = space_rows;
  TACIT_RETURN_IF_ERROR(index.TakePlanned(planned, BufferTaker(stream.device())));
  return index;
}

Status StepRowsIndex::Plan(const train::GpuStepLayout& planned, MemoryNeed* need) {
  return StepRowsIndex(nullptr).TakePlanned(planned, BufferTaker(*need));
}

Status StepRowsIndex::PlanNames(const train::GpuStepLayout& planned, MemoryNeed* need) {
  return StepRowsIndex(nullptr).TakeNames(planned, BufferTaker(*need));
}

Status StepRowsIndex::TakePlanned(const train::GpuStepLayout& planned, BufferTaker taker) {
  TACIT_RETURN_IF_ERROR(taker.Take(3, &counts_));
  if (planned.examples == 0) return {};
  // Entries' flags and extra rows' are ranked in the same memory.
  TACIT_RETURN_IF_ERROR(
      taker.Take(std::max(RankWork(planned.entries), RankWork(planned.extra_rows)), &work_));
  TACIT_RETURN_IF_ERROR(TakeEntries(planned.entries, planned.units, taker));
  TACIT_RETURN_IF_ERROR(taker.Take(ContributionsFor(planned.unit_entries), &steps_));
  TACIT_RETURN_IF_ERROR(taker.Take(planned.vocabulary_rows, &vocabulary_));
  TACIT_RETURN_IF_ERROR(
      taker.TakeEach(planned.entries + planned.extra_rows, {&written_, &written_name_}));
  return TakeExtra(planned.extra_rows, taker);
}

Status StepRowsIndex::TakeNames(const train::GpuStepLayout& planned, BufferTaker taker) {
  TACIT_RETURN_IF_ERROR(taker.Take(planned.entries, &name_));
  return taker.Take(planned.extra_rows, &extra_name_filled_);
}

Status StepRowsIndex::TakeEntries(uint64_t entries, uint64_t units, BufferTaker taker) {
  TACIT_RETURN_IF_ERROR(taker.TakeEach(
      entries, {&cell_, &next_, &place_, &owner_rank_, &touched_, &touched_name_, &kept_rank_}));
  TACIT_RETURN_IF_ERROR(
      taker.TakeEach(entries, {&first_, &owns_, &kept_, &inside_entry_, &inside_place_}));
  TACIT_RETURN_IF_ERROR(taker.Take(entries, &contributions_));
  return taker.Take(units, &active_);
}

Status StepRowsIndex::TakeExtra(uint64_t extras, BufferTaker taker) {
  TACIT_RETURN_IF_ERROR(taker.TakeEach(extras, {&extra_, &extra_rank_}));
  TACIT_RETURN_IF_ERROR(taker.Take(extras, &extra_host_));
  return taker.Take(extras, &untouched_);
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

Status StepRowsIndex::TakeFor(const StagedStep& step) {
  of_ = step.of;
  entries_ = of_.row.size;
  entries_of_unit_max_ = step.entries_of_unit_max;
  TACIT_CHECK(entries_ < kNone);
  Device& device = stream_->device();
  TACIT_RETURN_IF_ERROR(Reserve(device, RankWork(entries_), &work_));
  return TakeEntries(entries_, of_.example_end.size, BufferTaker(device));
}

StepRows StepRowsIndex::rows() const {
  return {.entries = of_,
          .cell = First(cell_, entries_),
          .next = First(next_, entries_),
          .first = First(first_, entries_),
          .place = First(place_, entries_),
          .kept = First(kept_, entries_),
          .rank = First(kept_rank_, entries_)};
}

Status StepRowsIndex::UploadVocabulary(std::span<const uint64_t> rows) {
  if (std::ranges::equal(rows, vocabulary_there_)) return {};
  vocabulary_there_.clear();
  TACIT_RETURN_IF_ERROR(Reserve(stream_->device(), rows.size(), &vocabulary_));
  for (const uint64_t row : rows) {
    TACIT_CHECK(row < space_rows_, "a row that the space does not have");
    vocabulary_there_.push_back(static_cast<uint32_t>(row));
  }
  return stream_->Upload<uint32_t>(vocabulary_there_, First(vocabulary_, rows.size()));
}

// Sends what a unit adds to each of its rows, by their number.
Status StepRowsIndex::UploadSteps(const mechanism::Recipe& recipe) {
  steps_size_ = ContributionsFor(entries_of_unit_max_);
  const std::pair cut(recipe.selection_clip, recipe.selection_grid.step);
  if (steps_size_ <= steps_there_.size() && cut == steps_cut_) return {};
  steps_there_.assign(1, 0);
  steps_cut_ = cut;
  TACIT_RETURN_IF_ERROR(Reserve(stream_->device(), steps_size_, &steps_));
  for (size_t active = 1; active < steps_size_; ++active)
    steps_there_.push_back(
        mechanism::ContributionSteps(recipe.selection_clip, recipe.selection_grid, active));
  return stream_->Upload<int64_t>(steps_there_, First(steps_, steps_size_));
}

// Rows in the first of `places`, and kNone in the others.
Status StepRowsIndex::UploadExtra(std::span<const uint64_t> rows, size_t places) {
  Device& device = stream_->device();
  TACIT_RETURN_IF_ERROR(Reserve(device, places, &extra_));
  TACIT_RETURN_IF_ERROR(Reserve(device, places, &extra_host_));
  const std::span<uint32_t> staging = extra_host_.span().first(places);
  uint64_t most = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    most = std::max(most, rows[i]);
    staging[i] = static_cast<uint32_t>(rows[i]);
  }
  TACIT_CHECK(rows.empty() || most < space_rows_, "a row that the space does not have");
  std::ranges::fill(staging.subspan(rows.size()), kNone);
  return stream_->Upload<uint32_t>(staging, First(extra_, places));
}

// The same for names that are on the device.
Status StepRowsIndex::NamesBehind(DeviceSpan<const uint32_t> names, size_t places,
                                  Buffer<uint32_t>* to) {
  TACIT_RETURN_IF_ERROR(Reserve(stream_->device(), places, to));
  TACIT_RETURN_IF_ERROR(stream_->CopyOnDevice<uint32_t>(names, First(*to, names.size)));
  return stream_->Fill(to->span().Sub(names.size, places - names.size), 0xff);
}

Status StepRowsIndex::Begin(const StagedStep& step, DeviceSpan<const uint32_t> names) {
  TACIT_RETURN_IF_ERROR(TakeFor(step));
  names_ = of_.row;
  if (names.size == 0) return {};
  TACIT_CHECK(names.size == step.entries, "one name per entry");
  TACIT_RETURN_IF_ERROR(NamesBehind(names, entries_, &name_));
  names_ = First(name_, entries_);
  return {};
}

Status StepRowsIndex::FindTouched(Stream& stream) {
  const size_t n = entries_;
  TACIT_RETURN_IF_ERROR(ClaimRows(stream, of_, names_, owner_.span(), First(cell_, n)));
  TACIT_RETURN_IF_ERROR(MarkOwners(stream, names_, owner_.span(), First(owns_, n)));
  TACIT_RETURN_IF_ERROR(RankFlags(stream, First(owns_, n), {}, work_.span(), First(owner_rank_, n),
                                  counts_.span().Sub(0, 1)));
  return ListTouched(stream, of_.row, names_, owner_.span(), First(owns_, n), First(owner_rank_, n),
                     {First(touched_, n), First(touched_name_, n)}, First(place_, n));
}

Status StepRowsIndex::Prepare(const mechanism::Recipe& recipe, std::span<const uint64_t> extra,
                              DeviceSpan<const uint32_t> extra_names, size_t round) {
  Device& device = stream_->device();
  inside_ = recipe.has_vocabulary ? entries_ : 0;
  vocabulary_size_ = recipe.has_vocabulary ? recipe.vocabulary.size() : 0;
  if (recipe.has_vocabulary) TACIT_RETURN_IF_ERROR(UploadVocabulary(recipe.vocabulary));
  if (recipe.rows == mechanism::Recipe::Rows::kThreshold)
    TACIT_RETURN_IF_ERROR(UploadSteps(recipe));
  const size_t extras = extra_size_ = (extra.size() + round - 1) / round * round;
  BufferTaker taker(device);
  TACIT_RETURN_IF_ERROR(taker.TakeEach(entries_ + extras, {&written_, &written_name_}));
  TACIT_RETURN_IF_ERROR(TakeExtra(extras, taker));
  TACIT_RETURN_IF_ERROR(UploadExtra(extra, extras));
  TACIT_CHECK(extra_names.size == 0 || extra_names.size == extra.size(), "one name per row");
  extra_name_ = First(extra_, extras);
  if (extra_names.size > 0) {
    TACIT_RETURN_IF_ERROR(NamesBehind(extra_names, extras, &extra_name_filled_));
    extra_name_ = First(extra_name_filled_, extras);
  }
  return Reserve(device, RankWork(extras), &work_);
}

Status StepRowsIndex::Select(Stream& stream, const mechanism::Recipe& recipe,
                             DeviceSpan<const NoiseKey> key) {
  const size_t n = entries_;
  if (recipe.has_vocabulary) {
    const auto vocabulary = First(vocabulary_, vocabulary_size_);
    TACIT_RETURN_IF_ERROR(FindInside(stream, of_.row, vocabulary, First(inside_entry_, n)));
    TACIT_RETURN_IF_ERROR(
        FindInside(stream, First(touched_, n), vocabulary, First(inside_place_, n)));
  }
  const auto active = First(active_, of_.example_end.size);
  TACIT_RETURN_IF_ERROR(LinkRepeats(stream, of_, First(inside_entry_, inside_), First(next_, n),
                                    First(first_, n), active));
  if (recipe.rows != mechanism::Recipe::Rows::kThreshold)
    return SelectInside(stream, touched_count(), First(inside_place_, inside_), First(kept_, n));
  const auto contributions = First(contributions_, n);
  TACIT_RETURN_IF_ERROR(stream.Fill(contributions, 0));
  TACIT_RETURN_IF_ERROR(AddContributions(stream, of_, First(cell_, n), First(place_, n),
                                         First(first_, n), First(inside_entry_, inside_), active,
                                         First(steps_, steps_size_), contributions));
  return SelectAbove(stream, key, recipe.selection_grid.stddev, recipe.threshold,
                     First(touched_, n), touched_count(), First(inside_place_, inside_),
                     contributions, First(kept_, n));
}

Status StepRowsIndex::ListWritten(Stream& stream) {
  const size_t n = entries_, extras = extra_size_;
  const TouchedRows written = {written_.span(), written_name_.span()};
  TACIT_RETURN_IF_ERROR(RankFlags(stream, First(kept_, n), {}, work_.span(), First(kept_rank_, n),
                                  counts_.span().Sub(1, 1)));
  TACIT_RETURN_IF_ERROR(ListFlaggedRows(stream, First(touched_, n), First(touched_name_, n),
                                        First(kept_, n), First(kept_rank_, n), written));
  TACIT_RETURN_IF_ERROR(
      MarkUntouched(stream, extra_name_, owner_.span(), First(untouched_, extras)));
  TACIT_RETURN_IF_ERROR(RankFlags(stream, First(untouched_, extras), kept_count(), work_.span(),
                                  First(extra_rank_, extras), counts_.span().Sub(2, 1)));
  return ListFlaggedRows(stream, First(extra_, extras), extra_name_, First(untouched_, extras),
                         First(extra_rank_, extras), written);
}

Status StepRowsIndex::End(Stream& stream) {
  return ForgetTouched(stream, names_, First(owns_, entries_), owner_.span());
}

}  // namespace tacit::cuda
