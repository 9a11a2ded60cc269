#include "bench/bench_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/clock.h"
#include "base/hash.h"
#include "stream/generator/criteo_generator.h"
#include "stream/steps/sum_blocks.h"

namespace tacit::bench {
namespace {

// Paper 003, table 3.
constexpr uint64_t kVocabulary[] = {1472, 577,  82741, 18940, 305, 23,    1172,  633,  3,
                                    9090, 5918, 64300, 3207,  27,  1550,  44262, 10,   5485,
                                    2161, 3,    56473, 17,    15,  27360, 104,   12934};

config::Config MakeConfig(const BenchModel& model) {
  config::Config config;
  config.source.kind = config::Source::Kind::kGenerator;
  for (int i = 1; i <= 13; ++i) {
    config::Feature feature;
    feature.name = fmt::format("I{}", i);
    config.features.push_back(feature);
  }
  for (size_t i = 0; i < std::size(kVocabulary); ++i) {
    config::Feature feature;
    feature.name = fmt::format("C{}", i + 1);
    feature.kind = config::Feature::Kind::kCategorical;
    feature.buckets = std::max<uint64_t>(2, kVocabulary[i]);
    config.features.push_back(feature);
  }
  config::Learner learner;
  learner.id = "ctr";
  learner.model.compute = model.compute;
  if (!model.hidden.empty()) learner.model.hidden = model.hidden;
  learner.participation.batch = model.batch;
  learner.privacy.unit = privacy::Unit::kEvent;
  learner.privacy.delta = 1e-7;
  learner.mechanism.kind =
      model.private_mechanism ? config::Mechanism::Kind::kAdaFest : config::Mechanism::Kind::kNone;
  learner.mechanism.threshold = 9;  // the demo's mechanism
  learner.mechanism.sigma_ratio = model.sigma_ratio;
  learner.mechanism.gradient_clip = 12;
  learner.privacy.epsilon = model.private_mechanism ? 8 : std::numeric_limits<double>::infinity();
  if (model.linear) {
    learner.model.kind = config::ModelKind::kLinear;
    learner.mechanism = {};
    learner.mechanism.kind = config::Mechanism::Kind::kSums;
  }
  config.learners.push_back(learner);
  config.training.workers = 1;
  config.training.idle_priority = false;
  return config;
}

Result<std::vector<stream::StepBatch>> MakeSteps(const event::FeatureTransform& transform,
                                                 size_t count, uint64_t batch) {
  const stream::CriteoGenerator generator({.days = 1, .rows_per_day = count * batch, .seed = 1});
  const auto codec = event::MakeCriteoTsvCodec(transform);
  std::vector<stream::StepBatch> steps(count);
  for (size_t s = 0; s < count; ++s) {
    event::RawRecords records;
    records.first_offset = s * batch;
    generator.Generate(0, s * batch, batch, &records.bytes, nullptr);
    std::string bytes;
    bytes.swap(records.bytes);
    for (size_t begin = 0; begin < bytes.size();) {
      const size_t end = bytes.find('\n', begin);
      records.bytes.append(bytes, begin, end - begin);
      records.end.push_back(static_cast<uint32_t>(records.bytes.size()));
      begin = end + 1;
    }
    std::vector<event::DeadLetter> dead;
    transform.StartBatch(&steps[s].examples);
    codec->Decode(records, &steps[s].examples, &dead);
    if (!dead.empty()) return Fail(ErrorCode::kInternal, "the generator makes bad lines");
    steps[s].units = static_cast<uint32_t>(steps[s].examples.size());
    for (uint32_t i = 0; i < steps[s].units; ++i) steps[s].unit_of.push_back(i);
    steps[s].sum_block_end = stream::BlocksByOffset(steps[s].examples.offset, 1);
    steps[s].ranges = {{0, s * batch, (s + 1) * batch}};
    steps[s].number = stream::NewStepNumber();
  }
  return steps;
}

}  // namespace

Result<BenchSetup> MakeBenchSetup(const BenchModel& model) {
  BenchSetup setup;
  TACIT_ASSIGN(setup.assembly, wiring::Assemble(MakeConfig(model)));
  TACIT_ASSIGN(setup.steps, MakeSteps(*setup.assembly.transform, model.steps, model.batch));
  return setup;
}

model::Histories FullWindows(uint32_t catalogue, uint32_t length, uint32_t users) {
  model::Histories histories;
  histories.catalogue = catalogue;
  for (uint32_t u = 0; u < users; ++u) {
    for (uint32_t i = 0; i <= length; ++i) {
      const double share = (Philox({i, u, 0, 0}, {7, 0})[0] + 0.5) * 0x1p-32;
      histories.items.push_back(
          std::min(catalogue - 1, static_cast<uint32_t>(std::pow(catalogue, share) - 1)));
    }
    histories.end.push_back(histories.items.size());
  }
  return histories;
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double MedianSeconds(const std::function<void()>& call, std::chrono::milliseconds about) {
  const SystemClock clock;
  std::vector<double> seconds;
  const auto deadline = clock.Now() + about;
  while (seconds.size() < 3 || clock.Now() < deadline) {
    const auto start = clock.Now();
    call();
    seconds.push_back(Seconds(clock.Now() - start));
  }
  return Median(std::move(seconds));
}

}  // namespace tacit::bench
