#include "train/linear/slice_summer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "train/learner/loss_sum.h"

namespace tacit::train {

using mechanism::RowSums;

SliceSummer::SliceSummer(const LinearQuery& query, LinearRows& rows, WorkerPool& workers,
                         uint32_t bins)
    : query_(query), workers_(workers), slices_(workers.workers()) {
  for (size_t k = 0; k < workers.workers(); ++k) summers_.emplace_back(query, rows, bins);
}

// Returns sums without units, in the memory of the worker's last ones.
RowSums SliceSummer::NoSums(size_t worker) {
  if (worker == 0) return {query_.sums, query_.tables, std::exchange(released_, {})};
  if (slices_[worker]) return std::move(slices_[worker]->sums).Renew();
  return {query_.sums, query_.tables};
}

void SliceSummer::Open() {
  if (!summers_[0].open()) summers_[0].Open(NoSums(0));
}

Status SliceSummer::See(const stream::StepBatch& step, const model::linear::State& model,
                        bool learn, StepReport* report) {
  const size_t examples = step.examples.size();
  TACIT_CHECK(!learn || step.unit_of.size() == examples, "a unit for each example");
  logits_.resize(examples);
  losses_.resize(examples);
  std::vector<Status> seen(summers_.size());
  const auto see = [&](size_t begin, size_t end, size_t worker) {
    LinearSummer& summer = summers_[worker];
    if (learn && !summer.open()) summer.Open(NoSums(worker));
    seen[worker] = summer.See(step, begin, end, model, learn, {logits_, losses_});
  };
  if (learn && step.units == examples)
    workers_.Run(examples, see, LinearSummer::kAtOnce);
  else
    see(0, examples, 0);
  for (Status& status : seen) TACIT_RETURN_IF_ERROR(std::move(status));
  *report = {.logits = logits_,
             .examples = examples,
             .loss_sum = SumOfLosses(losses_),
             .losses = examples};
  if (!learn) return {};
  loss_sum_ += report->loss_sum;
  return {};
}

void SliceSummer::Abandon() {
  for (LinearSummer& summer : summers_) summer.Abandon();
  others_.reset();
  loss_sum_ = 0;
}

void SliceSummer::Add(LinearPart part) {
  loss_sum_ += static_cast<double>(part.figures.losses) * PartFigures::kStep;
  if (others_)
    others_->Add(part);
  else
    others_ = std::move(part);
}

Result<PartFigures> SliceSummer::AddBytes(std::string_view bytes, uint32_t bins) {
  Open();
  if (!others_) others_ = LinearPart{{query_.sums, query_.tables}, {}};
  TACIT_ASSIGN(PartFigures figures, others_->AddBytes(bytes, bins, &summers_[0].sums()));
  loss_sum_ += static_cast<double>(figures.losses) * PartFigures::kStep;
  return figures;
}

LinearPart SliceSummer::TakePart() {
  Open();
  std::vector<size_t> open;
  for (size_t k = 0; k < summers_.size(); ++k)
    if (summers_[k].open()) open.push_back(k);
  // Closing sorts, so threads share it.
  workers_.Run(open.size(), [&](size_t begin, size_t end, size_t) {
    for (size_t i = begin; i < end; ++i) slices_[open[i]].emplace(summers_[open[i]].Close());
  });
  LinearPart period = std::move(*slices_[0]);
  slices_[0].reset();
  for (const size_t k : open)
    if (k > 0) period.Add(*slices_[k]);
  if (others_) period.Add(*others_);
  others_.reset();
  return period;
}

RowSums SliceSummer::Take(StepReport* report) {
  LinearPart period = TakePart();
  report->examples = period.figures.examples;
  report->units_clipped += period.figures.clipped;
  report->earlier_losses = report->examples - report->losses;
  report->earlier_loss_sum = std::exchange(loss_sum_, 0) - report->loss_sum;
  RowSums sums = std::move(period.sums).Open();
  report->rows_touched = sums.CountTouched();
  return sums;
}

void SliceSummer::EndPeriod() {
  for (LinearSummer& summer : summers_) summer.places().EndPeriod();
}

void SliceSummer::Move(size_t column, uint64_t row, const model::linear::Effect& effect) {
  for (LinearSummer& summer : summers_) summer.places().Move(column, row, effect);
}

void SliceSummer::Forget() {
  for (LinearSummer& summer : summers_) summer.places().Forget();
}

}  // namespace tacit::train
