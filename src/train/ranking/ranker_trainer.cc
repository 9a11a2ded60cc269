#include "train/ranking/ranker_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/moving_average.h"
#include "mechanism/grid.h"
#include "model/ranking/ranker.h"
#include "noise/declared.h"
#include "train/sequence/schedule.h"

namespace tacit::train {
namespace {

using model::ranking::kRankerParameters;

constexpr double kClip = 1;
// Adam's second moment spans about fifty steps, as runs are short.
constexpr float kBeta2 = 0.98f;
constexpr double kWarmUp = 0.1;
// With these limits the questions to one unit take up to 2.7 MB.
constexpr size_t kCandidatesMost = 1000, kLastItemsMost = 100;
constexpr double kRateMost = 1e3;

Status RefuseRanker(std::string why) {
  return Fail(ErrorCode::kInvalidArgument, "ranker training: " + std::move(why));
}

OptimizerOptions AdamOf(const RankerTraining& options) {
  OptimizerOptions adam;
  adam.learning_rate = static_cast<float>(options.learning_rate);
  adam.beta2 = kBeta2;
  adam.average_decay = options.average_decay;
  return adam;
}

// Features have deviation 1 over the candidates. Sixteenths of it, up to 8, are precise enough.
constexpr float kPerUnit = 16;

std::vector<int8_t> Pack(std::span<const float> rows) {
  std::vector<int8_t> packed;
  packed.reserve(rows.size());
  for (const float x : rows)
    packed.push_back(static_cast<int8_t>(std::lround(std::clamp(x * kPerUnit, -127.0f, 127.0f))));
  return packed;
}

void Unpack(std::span<const int8_t> packed, std::vector<float>* rows) {
  rows->resize(packed.size());
  for (size_t i = 0; i < packed.size(); ++i) (*rows)[i] = static_cast<float>(packed[i]) / kPerUnit;
}

// Without privacy units are bounded and rounded too, on an arbitrary grid.
std::unique_ptr<mechanism::Clipper> MakeClipper(double sigma) {
  return mechanism::MakeAutomaticClipper(kClip, sigma > 0 ? sigma : 1);
}

}  // namespace

Status CheckOptions(const RankerTraining& o) {
  if (o.steps == 0) return RefuseRanker("steps: there is no step");
  if (!(o.sigma >= 0 && std::isfinite(o.sigma)))
    return RefuseRanker(fmt::format("sigma {} is no noise multiplier", o.sigma));
  if (o.candidates == 0 || o.candidates > kCandidatesMost)
    return RefuseRanker(
        fmt::format("candidates {} are not 1 to {}", o.candidates, kCandidatesMost));
  if (o.last_items == 0 || o.last_items > kLastItemsMost)
    return RefuseRanker(fmt::format("last_items {} are not 1 to {}", o.last_items, kLastItemsMost));
  if (!(o.focus > 0 && o.focus <= 1))
    return RefuseRanker(fmt::format("focus {} is not in (0, 1]", o.focus));
  if (!(o.expected_units > 0 && std::isfinite(o.expected_units)))
    return RefuseRanker(fmt::format("expected_units {} divides nothing", o.expected_units));
  if (!(o.learning_rate > 0 && o.learning_rate <= kRateMost))
    return RefuseRanker(
        fmt::format("learning_rate {} is not above 0 and up to {}", o.learning_rate, kRateMost));
  if (!(o.average_decay >= 0 && o.average_decay < 1))
    return RefuseRanker(fmt::format("average_decay {} is not in [0, 1)", o.average_decay));
  return {};
}

// One thread's sums and working memory.
struct RankerTrainer::Worker {
  std::vector<float> rows;
  model::ranking::RankerPass pass;
  std::array<float, kRankerParameters> gradient;
  model::GroupNorms norms{.groups = 1, .units = 1, .squared = {0}, .rounding = {0}};
  std::array<int64_t, kRankerParameters> sums;
  Report report;
};

RankerTrainer::RankerTrainer(const RankerTraining& options, const model::Histories& histories,
                             const model::ranking::CandidateSource& source,
                             noise::NoiseSource& noise, WorkerPool& workers,
                             std::span<const uint32_t> known)
    : options_(options),
      noise_(noise),
      pool_(workers),
      clipper_(MakeClipper(options.sigma)),
      questions_(histories.units()),
      parameters_(model::ranking::InitialRanker(options.seed)),
      state_(Optimizer(AdamOf(options)).DenseStateFloats(kRankerParameters), 0.0f),
      update_(kRankerParameters),
      sums_(kRankerParameters) {
  TACIT_CHECK(CheckOptions(options).has_value(), "options are checked before a trainer is made");
  TACIT_CHECK(histories.catalogue == source.items(), "histories are of the source's catalogue");
  TACIT_CHECK(known.empty() || known.size() == histories.units());
  for (size_t w = 0; w < workers.workers(); ++w) {
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->norms.rounding[0] =
        model::RoundingOf(clipper_->grid().step, kRankerParameters);
  }
  workers.Run(histories.units(), [&](size_t begin, size_t end, size_t) {
    model::ranking::Candidates candidates;
    for (size_t unit = begin; unit < end; ++unit)
      Ask(histories.Of(unit), known.empty() ? 0 : known[unit], source, &candidates,
          &questions_[unit]);
  });
}

RankerTrainer::~RankerTrainer() = default;

double RankerTrainer::grid_step() const { return clipper_->grid().step; }

privacy::Charge RankerTrainer::charge() const {
  if (options_.sigma == 0) return {};
  return {.mechanism = privacy::MechanismKind::kDpSgd,
          .noise_multiplier = options_.sigma,
          .sigma_gradient = options_.sigma,
          .clip_gradient = kClip};
}

void RankerTrainer::Ask(std::span<const uint32_t> history, size_t known,
                        const model::ranking::CandidateSource& source,
                        model::ranking::Candidates* candidates,
                        std::vector<Question>* questions) const {
  for (size_t back = 1; back <= options_.last_items && back < history.size(); ++back) {
    const size_t at = history.size() - back;
    if (at < known) break;
    source.Find(history.first(at), options_.candidates, candidates);
    const size_t answer = candidates->PlaceOf(history[at]);
    if (answer == candidates->items.size()) continue;
    questions->push_back({Pack(candidates->rows), answer});
  }
}

// Adds the unit's whole contribution: a vector of norm at most 1 that depends on the parameters and
// this unit's history alone.
void RankerTrainer::AddUnit(const std::vector<Question>& questions, Worker* worker) const {
  if (questions.empty()) return;
  worker->gradient.fill(0);
  double loss = 0;
  for (const Question& question : questions) {
    Unpack(question.rows, &worker->rows);
    loss += worker->pass.AddGradient(parameters_, worker->rows, question.answer, options_.focus,
                                     worker->gradient);
  }
  double squared = 0;
  for (const float g : worker->gradient) squared += double{g} * g;
  if (!std::isfinite(squared) || squared > std::numeric_limits<float>::max()) return;
  worker->norms.squared[0] = static_cast<float>(squared);
  float scale = 0;
  clipper_->rule().Scales(worker->norms, {&scale, 1});
  const double per_step = scale / clipper_->grid().step;
  for (size_t i = 0; i < kRankerParameters; ++i)
    worker->sums[i] += std::llrint(worker->gradient[i] * per_step);
  ++worker->report.units;
  worker->report.loss += loss / static_cast<double>(questions.size());
}

void RankerTrainer::SetInitial(std::vector<float> parameters) {
  TACIT_CHECK(step_ == 0 && parameters.size() == kRankerParameters,
              "initial parameters come before the first step, all of them");
  parameters_ = std::move(parameters);
}

void RankerTrainer::Step() {
  TACIT_CHECK(!done(), "all steps were taken");
  for (const auto& worker : workers_) {
    worker->sums.fill(0);
    worker->report = {};
  }
  pool_.Run(questions_.size(), [&](size_t begin, size_t end, size_t w) {
    for (size_t unit = begin; unit < end; ++unit) AddUnit(questions_[unit], workers_[w].get());
  });
  std::ranges::fill(sums_, 0);
  report_ = {};
  for (const auto& worker : workers_) {
    for (size_t i = 0; i < kRankerParameters; ++i) sums_[i] += worker->sums[i];
    report_.units += worker->report.units;
    report_.loss += worker->report.loss;
  }
  report_.loss /= static_cast<double>(std::max<size_t>(1, report_.units));

  const double factor = 1 / options_.expected_units;
  if (options_.sigma > 0) {
    noise_.Rekey();
    std::vector<int64_t> noisy(sums_);
    const noise::Declaration declared(noise_, {"ranker", clipper_->bound() / grid_step()});
    mechanism::Release(clipper_->grid(), factor, noise_, noisy, update_);
  } else {
    for (size_t i = 0; i < kRankerParameters; ++i)
      update_[i] = static_cast<float>(factor * grid_step() * static_cast<double>(sums_[i]));
  }
  const RateSchedule schedule{.steps = options_.steps, .warm_up = kWarmUp, .decays = true};
  OptimizerOptions adam = AdamOf(options_);
  adam.learning_rate *= static_cast<float>(schedule.Factor(step_));
  const double deviation = options_.sigma > 0 ? clipper_->grid().stddev * grid_step() * factor : 0;
  Optimizer(adam).StepDense(update_, deviation, parameters_, state_, pool_);
  ++step_;
}

std::vector<float> RankerTrainer::Average() const {
  std::vector<float> average = parameters_;
  const MovingAverage moving(options_.average_decay);
  if (moving.on() && step_ > 0)
    moving.Read(parameters_, state_, static_cast<uint32_t>(step_), average);
  return average;
}

}  // namespace tacit::train
