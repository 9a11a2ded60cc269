#include "tape/pair_learner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tacit::tape {
namespace {

using lab::TwinNoise;
using stream::StepBatch;
using Kind = TwinNoise::Call::Kind;

// Roundings of doubles, in distances between integers and in prices that come from both sides.
constexpr double kSlack = 1e-12, kPriceSlack = 1e-9;

StepBatch FrameOf(const StepBatch& step) {
  StepBatch frame;
  frame.kind = step.kind;
  frame.ranges = step.ranges;
  frame.period_steps = step.period_steps;
  frame.after = step.after;
  frame.cuts = step.cuts;
  frame.examples = event::EmptyLike(step.examples);
  return frame;
}

void Append(const event::Batch& from, size_t i, uint32_t unit, StepBatch* step) {
  step->examples.AppendRange(from, i, i + 1);
  step->unit_of.push_back(unit);
  step->units = unit + 1;
}

// The last example, with its label alone.
void TakeFeatures(event::Batch* examples) {
  const size_t i = examples->size() - 1, width = examples->dense_width;
  std::fill_n(examples->dense.end() - static_cast<ptrdiff_t>(width), width, 0.0f);
  const uint32_t first = i == 0 ? 0 : examples->slot_end[i * examples->slots - 1];
  examples->row.resize(first);
  for (size_t s = 0; s < examples->slots; ++s) examples->slot_end[i * examples->slots + s] = first;
}

bool SameDense(const train::Learner& a, const train::Learner& b) {
  const auto one = a.CopyDense(), other = b.CopyDense();
  if (one == nullptr || other == nullptr) return one == other;
  return one->parameters == other->parameters && one->optimizer == other->optimizer;
}

// One declared query of a step, as its calls show it.
struct Measured {
  double stddev = 0;
  double moved_squared = 0;
  bool one_stddev = true;

  void Draw(double with) {
    one_stddev &= stddev == 0 || stddev == with;
    stddev = with;
  }
};

// Scores move by the bound at most, and all in one direction. Rows that the unit alone lists are
// not compared.
double ScoresMoved(const TwinNoise::Query& with, const TwinNoise::Query& without,
                   Reading* reading) {
  if (with.scores.size() != without.scores.size()) return 0;
  double up = 0, down = 0;
  for (size_t i = 0; i < with.scores.size(); ++i) {
    up = std::max(up, with.scores[i] - without.scores[i]);
    down = std::max(down, without.scores[i] - with.scores[i]);
  }
  if (down > kPriceSlack * with.bound)
    reading->Wrong(fmt::format("{}: a unit lowers a score by {}", with.name, down));
  return up;
}

}  // namespace

BothSteps StepsOf(const StepBatch& step, const Canary& unit, bool covered) {
  BothSteps both{.with = FrameOf(step), .without = FrameOf(step)};
  std::vector<size_t> own;
  const event::Batch& examples = step.examples;
  uint32_t next = 0;  // unit of the world without
  size_t block = 0;
  const auto end_blocks = [&](size_t i) {
    for (; block < step.sum_block_end.size() && step.sum_block_end[block] == i; ++block) {
      both.with.sum_block_end.push_back(static_cast<uint32_t>(both.with.examples.size()));
      both.without.sum_block_end.push_back(static_cast<uint32_t>(both.without.examples.size()));
    }
  };
  for (size_t i = 0; i < examples.size(); ++i) {
    end_blocks(i);
    Append(examples, i, step.unit_of[i], &both.with);
    const bool is_own = unit.Has(examples, i);
    if (is_own) own.push_back(i);
    if (is_own && !unit.keeps_label) continue;
    const bool same = i > 0 && step.unit_of[i] == step.unit_of[i - 1];
    if (!same || (next == 0)) ++next;
    Append(examples, i, next - 1, &both.without);
    if (is_own) TakeFeatures(&both.without.examples);
  }
  end_blocks(examples.size());
  both.has_unit = !own.empty();
  if (covered && !own.empty())
    for (StepBatch* world : {&both.with, &both.without}) {
      const uint32_t cover = world->units;
      for (const size_t i : own) Append(examples, i, cover, world);
      for (size_t i = world->examples.size() - own.size(); i < world->examples.size(); ++i)
        world->examples.label[i] = 1 - world->examples.label[i];
      if (!world->sum_block_end.empty())
        world->sum_block_end.back() = static_cast<uint32_t>(world->examples.size());
    }
  return both;
}

void DrawnNoise::See(const TwinNoise::Call& call) {
  std::vector<double> noise;
  for (size_t i = 0; i < call.after.size(); ++i)
    noise.push_back(static_cast<double>(call.after[i] - call.before[i]) / call.asked);
  if (last.size() != noise.size()) {
    last = std::move(noise);
    return;
  }
  for (size_t i = 0; i < noise.size(); ++i) squares += std::pow(noise[i] - last[i], 2) / 2;
  numbers += noise.size();
  last.clear();
}

void Reading::Wrong(std::string_view sentence) {
  wrong.push_back(fmt::format("step {}: {}", steps, sentence));
}

void ReadStep(const TwinNoise& with, const TwinNoise& without, double charged,
              const std::string& difference, Reading* reading) {
  const auto queries = with.queries(), others = without.queries();
  std::vector<Measured> measured(queries.size());
  bool undeclared = false, floats = false;
  for (const TwinNoise::Call& call : with.calls()) {
    undeclared |= call.query == TwinNoise::kUndeclared;
    floats |= call.kind == Kind::kFloats || call.kind == Kind::kNormals;
  }
  if (undeclared) reading->Wrong("a draw declares no query");
  if (floats) reading->Wrong("floats get noise");
  // Queries up to this one are comparable.
  size_t comparable = std::min(queries.size(), others.size());
  for (size_t q = comparable; q-- > 0;)
    if (!queries[q].scores.empty() && (without.strayed() || !difference.empty())) {
      reading->parted = true;
      comparable = q + 1;
    }
  if (!reading->parted && without.strayed())
    reading->Wrong("the worlds draw differently: what they ask follows from records");
  if (!reading->parted && !difference.empty()) reading->Wrong(difference);
  const auto calls = with.calls(), led = without.calls();
  std::vector<UnitsPart>& parts = reading->parts.emplace_back();
  for (size_t c = 0; c < std::min(calls.size(), led.size()); ++c) {
    const TwinNoise::Call &one = calls[c], &other = led[c];
    if (one.query == TwinNoise::kUndeclared || one.query >= measured.size()) continue;
    Measured& of = measured[one.query];
    if (one.kind == Kind::kGrid || one.kind == Kind::kFillGrid) of.Draw(one.asked);
    if (one.kind != Kind::kGrid || one.before.size() != other.before.size()) continue;
    reading->drawn[c].See(one);
    const TwinNoise::Query& query = queries[one.query];
    parts.push_back({.query = std::string(query.name), .bound = query.bound, .moved = {}});
    UnitsPart& part = parts.back();
    for (size_t i = 0; i < one.before.size(); ++i) {
      part.moved.push_back(one.before[i] - other.before[i]);
      of.moved_squared += std::pow(static_cast<double>(part.moved.back()), 2);
    }
  }
  double declared = 0, moved = 0;
  for (size_t q = 0; q < comparable; ++q) {
    const TwinNoise::Query& query = queries[q];
    const Measured& of = measured[q];
    if (query.name != others[q].name || query.bound != others[q].bound) {
      reading->Wrong(fmt::format("{}: the worlds declare different queries", query.name));
      continue;
    }
    if (!of.one_stddev)
      reading->Wrong(fmt::format("{}: its numbers get noise of two sizes", query.name));
    double distance = std::sqrt(of.moved_squared);
    if (!query.scores.empty()) {
      distance = ScoresMoved(query, others[q], reading);
      ++reading->choices;
    }
    if (distance > query.bound * (1 + kSlack))
      reading->Wrong(fmt::format("{}: a unit moves it by {:.12g} of its bound", query.name,
                                 distance / query.bound));
    if (query.bound > 0) {
      double& reach = reading->reach[std::string(query.name)];
      reach = std::max(reach, distance / query.bound);
    }
    if (of.stddev > 0 && query.scores.empty()) {
      declared += std::pow(query.bound / of.stddev, 2);
      moved += of.moved_squared / (of.stddev * of.stddev);
    }
    if (query.bound == 0 && of.stddev > 0)
      for (size_t p = 0; p < q; ++p)
        if (queries[p].name == query.name && queries[p].bound > 0 &&
            measured[p].stddev != of.stddev)
          reading->Wrong(fmt::format("{}: rows of nobody get other noise", query.name));
  }
  if (declared > charged * (1 + kPriceSlack))
    reading->Wrong(fmt::format("what is declared costs mu^2 = {:.6g}, and {:.6g} is charged",
                               declared, charged));
  if (moved > charged * (1 + kPriceSlack))
    reading->Wrong(
        fmt::format("the worlds are mu^2 = {:.6g} apart, and {:.6g} is charged", moved, charged));
  reading->declared.push_back(declared);
  reading->apart += moved;
}

PairLearner::PairLearner(World with, World without, Options options,
                         std::unique_ptr<noise::NoiseSource> source, Reading* reading)
    : Learner(with.learner->id(), with.learner->index()),
      with_(std::move(with)),
      without_(std::move(without)),
      options_(std::move(options)),
      source_(std::move(source)),
      reading_(*reading) {}

BothSteps PairLearner::Both(const StepBatch& step) const {
  BothSteps both = StepsOf(step, options_.unit, options_.covered && !step.preview());
  if (options_.plant) {
    options_.plant(&both.with);
    options_.plant(&both.without);
  }
  return both;
}

std::string PairLearner::Difference() {
  reading_.dense = with_.learner->CopyDense();
  auto released = with_.learner->TakeReleased();
  const auto other = without_.learner->TakeReleased();
  const bool same =
      released == nullptr || other == nullptr ? released == other : *released == *other;
  if (released) reading_.released = std::move(released);
  if (!same) return "the released states differ";
  if (!SameDense(*with_.learner, *without_.learner)) return "the parameters differ";
  return with_.rows() == without_.rows() ? "" : "the rows differ";
}

Result<bool> PairLearner::TakeStep(const StepBatch& step, const std::atomic<bool>& abandon,
                                   train::StepReport* report) {
  const double charged =
      charge().MuSquared() + (step.kind == StepBatch::Kind::kPeriodFirst && opening_charge()
                                  ? opening_charge()->MuSquared()
                                  : 0);
  const BothSteps both = Both(step);
  const size_t step_of_tape = reading_.tapes.size();
  if (options_.leads == nullptr)
    with_.noise->Lead(source_.get());
  else if (step_of_tape < options_.leads->size())
    with_.noise->Follow((*options_.leads)[step_of_tape]);
  else
    return Fail(ErrorCode::kInvalidArgument, "the tape has fewer steps");
  train::StepReport own, other;
  TACIT_ASSIGN(const bool taken, with_.learner->TakeStep(both.with, abandon, &own));
  TACIT_RETURN_IF_ERROR(with_.settle());
  if (with_.noise->strayed()) reading_.Wrong("the run draws otherwise than the tape it follows");
  reading_.tapes.push_back(*with_.noise);
  *report = {};  // predictions are of other examples than the trainer's
  if (!taken || reading_.parted) return taken;
  without_.noise->Follow(*with_.noise);
  TACIT_RETURN_IF_ERROR(without_.learner->TakeStep(both.without, abandon, &other));
  TACIT_RETURN_IF_ERROR(without_.settle());
  ++reading_.steps;
  reading_.steps_with_unit += both.has_unit ? 1 : 0;
  ReadStep(*with_.noise, *without_.noise, charged, Difference(), &reading_);
  return true;
}

Status PairLearner::Preview(const StepBatch& batch, train::StepReport* report) {
  const BothSteps both = Both(batch);
  with_.noise->Lead(source_.get());
  train::StepReport own, other;
  TACIT_RETURN_IF_ERROR(with_.learner->Preview(both.with, &own));
  *report = {};
  if (reading_.parted) return {};
  without_.noise->Follow(*with_.noise);
  TACIT_RETURN_IF_ERROR(without_.learner->Preview(both.without, &other));
  if (!with_.noise->calls().empty()) reading_.Wrong("a preview draws noise");
  if (const std::string difference = Difference(); !difference.empty()) reading_.Wrong(difference);
  return {};
}

}  // namespace tacit::tape
