#include "wiring/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "feed/publisher.h"
#include "http/server.h"
#include "serve/scoring/score_request.h"
#include "store/rows/row_arrival.h"
#include "store/store.h"
#include "stream/kafka/properties.h"
#include "stream/source.h"
#include "train/dedupe.h"
#include "train/engines/gpu.h"
#include "train/engines/gpu_scoring.h"
#include "train/intake.h"
#include "train/opt_out.h"
#include "wiring/assembly.h"
#include "wiring/plans/learner_shape.h"
#include "wiring/plans/model_plan.h"
#include "wiring/trainer_topics.h"
#include "workers/dealer.h"

// The estimates are cautious sums of what the rooms keep, not measurements of a running daemon;
// docs/internals/wiring.md derives each of them.
namespace tacit::wiring {
namespace {

// Sums are in doubles: a product of extreme settings must come out as too much, not wrap around.
constexpr double kMiB = 1 << 20;
constexpr double kProcessBytes = 64 * kMiB;   // code, stacks, heaps, the libraries' own
constexpr double kStoreBytesMin = 32 * kMiB;  // what a store requires
constexpr double kStepsQueued = 4;
constexpr double kCommitsUnfolded = 8;
// A commit holds the rows of all steps of its interval. Rows repeat between steps (a stream's
// popular values do), so the distinct rows of a few steps are a bound in practice.
constexpr double kStepsPerCommit = 4;
// Bytes per row of a period's histogram: the count while the period is observed (8), its release
// and the sum over all periods (4 each), and the copies of that sum on the way into a commit and
// the store (about 12).
constexpr double kVocabularyRowBytes = 28;
// Bytes of a server thread: texts being built, an answer being written, a heap that grows in
// chunks. The operator's thread also builds pages of the ledger and of metrics.
constexpr double kServeThreadBytes = 4 * kMiB, kOperatorThreadBytes = 12 * kMiB;
constexpr double kScoredRows = 256;  // scored at a time
constexpr double kHeldBytesMost = 64 * kMiB;
constexpr double kItemBytes = 250;  // of the catalogue: its line, and what finds and compares it

// Returns the number of examples in a held period. If files close it, their length is unknown
// before they are read; but `batch` is a step's share of a period.
double PeriodOf(const config::Participation& participation) {
  if (!participation.holds_periods()) return 0;
  if (participation.period > 0) return static_cast<double>(participation.period);
  return static_cast<double>(participation.batch) / participation.Rate();
}

// Steps go to a GPU through pinned memory, and so do rows that it caches. The rows of a commit come
// home through it, unless steps write all of them, and so do dense parameters and state.
double PinnedBytes(const config::Gpu& gpu, const ModelPlan& model, const LearnerShape& shape,
                   const LargestStep& step) {
  if (gpu.use == config::Gpu::Use::kNever || !model.WhyNotOnGpu().empty()) return 0;
  double bytes = sizeof(float) * shape.DenseFloats();
  if (!shape.has_examples) return bytes + shape.gpu_wave_bytes;
  const store::RowLayout layout = model.Rows();
  uint64_t stride = 1;
  for (uint32_t t = 0; t < layout.space.tables().size(); ++t)
    stride = std::max<uint64_t>(stride, layout.RowFloats(t));
  const uint64_t rows = layout.space.rows();
  const train::GpuStepSizes sizes = GpuStepOf(shape, step, model.UntouchedRows(), rows);
  if (!shape.every_row && rows > 0)
    bytes += static_cast<double>(
        gpu.rows == config::Gpu::Rows::kCache
            ? store::CachePinnedBytes(
                  rows, std::min(rows, std::max(sizes.entries, sizes.extra_rows)), stride)
            : store::ArrivalPinnedBytes(rows, stride));
  return bytes + static_cast<double>(train::GpuStepPinnedBytes(sizes));
}

LearnerShape ShapeOf(const Assembly& assembly, size_t index) {
  const config::Learner& learner = assembly.config.learners[index];
  const ModelPlan& model = *assembly.learners[index].model;
  LearnerShape shape;
  shape.workers = assembly.config.training.workers;
  shape.batch = static_cast<double>(learner.participation.batch);
  // A part grows by what a poll delivers until it has its size.
  shape.queued =
      ComesInParts(model, learner, assembly.config.source)
          ? std::min<double>(shape.batch, OffsetsPerPart(assembly.config.training.workers) +
                                              stream::kRecordsPerPoll)
          : shape.batch;
  shape.period = PeriodOf(learner.participation);
  model.AddTo(&shape);
  shape.pinned_bytes =
      PinnedBytes(assembly.config.gpu, model, shape,
                  LargestStepOf(learner.participation, learner.privacy.of_users()));
  return shape;
}

// Parameters and state, the gradient, its sums in steps with what is multiplied into them, its
// noise, and a second set on its way into a commit; per example the activations and their
// gradients, and again in the precision computed in; the mechanism's histogram; pinned memory.
double ModelBytes(const LearnerShape& shape) {
  const double dense = 4 * (2 * shape.DenseFloats() + 5 * shape.dense_parameters);
  return dense + shape.batch * shape.width_total * 4 * 3 +
         shape.observed_rows * kVocabularyRowBytes + shape.other_bytes + shape.pinned_bytes;
}

// Decoded examples (numbers, rows, ends, offset, label) and the records they came from. A period of
// held ones is kept until the next one can begin.
double QueueBytes(const LearnerShape& shape, uint32_t record_bytes) {
  double example = shape.input_width * 4 + 64;
  for (const LearnerShape::Table& table : shape.tables) example += table.rows_per_example * 12;
  return kStepsQueued * (shape.queued * example + record_bytes) + shape.period * example;
}

// Bytes between a source that fetches ahead and the decode threads. Other sources hold only a few
// records of the largest size.
double SourceBytes(const config::Config& config) {
  const config::SourceTraits& source = config.source.traits();
  if (source.runs_queued == 0) return 0;
  std::string_view kbytes;
  for (const config::Property& property : config.kafka.properties)
    if (property.name == "queued.max.messages.kbytes") kbytes = property.value.text;
  train::IntakeOptions intake;
  intake.decode_threads = config.source.decode_threads;
  intake.queued_records_max = source.runs_queued;
  return static_cast<double>(stream::KafkaFetchBytes(kbytes)) +
         intake.RunBytes(config.source.max_record_bytes);
}

double FeedBytes(const Assembly& assembly) {
  if (assembly.config.feed.topic.empty()) return 0;
  std::vector<store::RowLayout> layouts;
  for (const LearnerPlan& learner : assembly.learners) layouts.push_back(learner.model->Rows());
  const bool moves = !assembly.config.workers.topic.empty();
  return static_cast<double>(feed::PublisherBytes(layouts, moves));
}

// Bytes of workers' sums: chunks that are read, and those that are not whole yet; of each learner a
// part that is checked, one that is added, what all of them add up to, and as much in the queues. A
// slice that is summed up here too has sums of its own.
double WorkersBytes(const config::Config& config, std::span<const LearnerShape> shapes) {
  if (config.workers.topic.empty()) return 0;
  double bytes =
      static_cast<double>(workers::kHeldBytesMost + KafkaTrainerTopics::kQueuedBytesMost);
  for (const LearnerShape& shape : shapes)
    bytes += 6 * shape.part_bytes + (config.workers.check > 0 ? shape.sums_bytes : 0);
  return bytes;
}

// Bytes of the de-duplication windows. A source without the key of partitions is one partition.
double DedupeBytes(const config::Source& source) {
  const bool many = source.traits().keys.has("dedupe.partitions");
  return train::Deduper::BytesOf(source.dedupe_window, many ? source.dedupe_partitions : 1);
}

double OptOutBytes(const config::Source& source) {
  if (source.opt_out.empty()) return 0;
  return static_cast<double>(train::OptOut::BytesOf(source.opt_out));
}

// Bytes of unfolded commits. Each has its dense blob. Their rows are folded as they come; if
// folding falls behind, at most two copies of every possible row are held.
double OverlayBytes(const LearnerShape& shape) {
  return kCommitsUnfolded * 4 * shape.DenseFloats() +
         std::min(2 * shape.RowBytes(INFINITY), kCommitsUnfolded * shape.RowBytes(kStepsPerCommit));
}

// Changed rows stay pinned until they are folded, while the rows of the next step come in.
double RowCacheBytesMin(const LearnerShape& shape) {
  return shape.RowBytes(kCommitsUnfolded * kStepsPerCommit + 1) + kMiB;
}

// Names the de-duplication windows in an error message if they are large: users may not think of
// them.
std::string Windows(const config::Config& config) {
  const double bytes = DedupeBytes(config.source);
  if (bytes < kMiB) return "";
  return fmt::format("; source.dedupe.window takes {:.0f}MiB{}", std::ceil(bytes / kMiB),
                     config.source.traits().keys.has("dedupe.partitions")
                         ? fmt::format(" for source.dedupe.partitions, {} of them",
                                       config.source.dedupe_partitions)
                         : "");
}

// Names learners whose held period is long because of the share of it that a step takes.
std::string LongPeriods(const config::Config& config) {
  constexpr double kLong = 1e7;
  std::string text;
  for (const config::Learner& learner : config.learners) {
    const config::Participation& p = learner.participation;
    if (p.period > 0 || PeriodOf(p) < kLong) continue;
    text += fmt::format("; learner '{}' holds a period of participation.batch / {}, {:.4g} records",
                        learner.id,
                        p.mode == config::Participation::Mode::kPoisson ? "sampling_rate"
                                                                        : "(1 / steps_per_period)",
                        PeriodOf(p));
  }
  return text;
}

// Names learners whose tables are held whole: each step writes all rows, which stay pinned until
// folded.
std::string WholeTables(const Assembly& assembly, std::span<const LearnerShape> shapes) {
  std::string text;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const LearnerShape& shape = shapes[i];
    if (!shape.every_row) continue;
    text += fmt::format(
        "; learner '{}' has mechanism {}, which writes every row in every step: its tables of "
        "{:.0f}MiB are held whole, and commits of up to {:.0f}MiB that are not folded yet",
        assembly.learners[i].id, assembly.config.learners[i].mechanism.traits().name,
        std::ceil(shape.RowBytes(INFINITY) / kMiB), std::ceil(OverlayBytes(shape) / kMiB));
  }
  return text;
}

double ItemsOf(const Assembly& assembly) {
  return assembly.items ? static_cast<double>(assembly.items->items()) : 0;
}

// Bytes of an answering thread: a request's examples, and the memory that scoring them takes.
double ServeThreadBytes(std::span<const LearnerShape> shapes, double items) {
  const auto request_rows = static_cast<double>(serve::ScoreRequestParser::Limits().max_rows);
  double bytes = kServeThreadBytes;
  for (const LearnerShape& shape : shapes) {
    double example = shape.input_width * 4 + 32, rows = 0;
    for (const LearnerShape::Table& table : shape.tables) {
      example += table.rows_per_example * 8 + 4;
      rows += table.rows_per_example * (table.row_bytes + kRowOverhead);
    }
    bytes += request_rows * example + kScoredRows * (rows + 2 * 4 * shape.width_total) + 16 * items;
  }
  return bytes;
}

// Bytes of scoring on a GPU: pinned memory and the list of what lies there, of each model, and the
// examples of the largest request in each thread, a second time, with their distinct rows.
double GpuScoringBytes(const Assembly& assembly, std::span<const LearnerShape> shapes) {
  const config::Serve& serve = assembly.config.serve;
  const double threads =
      (serve.listen.empty() ? 0 : serve.threads) + (serve.operator_listen.empty() ? 0 : 1);
  double bytes = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto options = assembly.learners[i].model->GpuScoring();
    if (!options) continue;
    const train::GpuScoreSizes sizes = train::SizesOfGpuScoring(*options);
    double example = shapes[i].input_width * 4 + 32;
    // A sort's keys and places, twice; a row, its place, and its end.
    for (const LearnerShape::Table& table : shapes[i].tables)
      example += table.rows_per_example * 48 + 4;
    bytes +=
        static_cast<double>(train::GpuScorePinnedBytes(sizes) + train::GpuScoreIndexBytes(sizes)) +
        threads * sizes.examples * example;
  }
  return bytes;
}

// Held bodies and answers need room for one of the largest. Where it came as gzip and cannot be
// made smaller, it is there twice until it is unpacked. The rest is for small ones.
double HeldBytesMin(const config::Serve& serve) { return 2.0 * serve.max_body_bytes + kMiB; }

// Bytes of serving, without those held for the public's requests.
double ServeBytes(const config::Serve& serve, double thread) {
  double bytes = 0;
  if (!serve.listen.empty())
    bytes += serve.threads * thread +
             serve.max_connections * static_cast<double>(http::kConnectionBytes);
  if (!serve.operator_listen.empty())
    bytes += thread + kOperatorThreadBytes +
             http::ServerOptions().max_operator_connections *
                 static_cast<double>(http::kConnectionBytes) +
             HeldBytesMin(serve);
  return bytes;
}

// The least memory that each part needs.
struct Needs {
  double model = 0, queue = 0, overlay = 0;
  double serve = 0, held = 0;
  double cache_min = 0, cache_max = 0;  // per learner

  double Least(double learners) const {
    return kProcessBytes + model + queue + overlay + serve + held + kStoreBytesMin +
           cache_min * learners;
  }
};

Needs NeedsOf(const Assembly& assembly, std::span<const LearnerShape> shapes) {
  const config::Config& config = assembly.config;
  const double items = ItemsOf(assembly);
  Needs needs{.model = kItemBytes * items,
              .queue = SourceBytes(config) + DedupeBytes(config.source) +
                       OptOutBytes(config.source) + FeedBytes(assembly) +
                       WorkersBytes(config, shapes)};
  for (const LearnerShape& shape : shapes) {
    needs.model += ModelBytes(shape);
    needs.queue += QueueBytes(shape, config.source.max_record_bytes);
    needs.overlay += OverlayBytes(shape);
    needs.cache_min = std::max(needs.cache_min, RowCacheBytesMin(shape));
    needs.cache_max = std::max(needs.cache_max, shape.RowBytes(INFINITY) + kMiB);
  }
  needs.serve =
      ServeBytes(config.serve, ServeThreadBytes(shapes, items)) + GpuScoringBytes(assembly, shapes);
  needs.held = config.serve.listen.empty() ? 0 : HeldBytesMin(config.serve);
  // A model of counts commits neither rows nor dense parameters.
  needs.overlay = std::max(needs.overlay, kMiB);
  return needs;
}

}  // namespace

Result<uint64_t> PlanWorker(const Assembly& assembly) {
  const config::Config& config = assembly.config;
  double bytes =
      kProcessBytes + SourceBytes(config) + OptOutBytes(config.source) + kServeThreadBytes;
  for (size_t i = 0; i < assembly.learners.size(); ++i) {
    const LearnerShape shape = ShapeOf(assembly, i);
    bytes +=
        shape.sums_bytes + 2 * shape.part_bytes + QueueBytes(shape, config.source.max_record_bytes);
  }
  if (bytes <= static_cast<double>(config.memory_total_bytes)) return static_cast<uint64_t>(bytes);
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("memory.total_bytes: a worker takes {:.0f}MiB beside its model",
                          std::ceil(bytes / kMiB)));
}

Result<MemoryPlan> PlanMemory(const Assembly& assembly) {
  const config::Config& config = assembly.config;
  std::vector<LearnerShape> shapes;
  for (size_t i = 0; i < assembly.learners.size(); ++i) shapes.push_back(ShapeOf(assembly, i));
  const Needs needs = NeedsOf(assembly, shapes);
  const double learners = std::max<double>(1, static_cast<double>(shapes.size()));
  const double total = static_cast<double>(config.memory_total_bytes);
  const double least = needs.Least(learners);
  if (total < least) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("memory.total_bytes: {:.0f}MiB are too few for these learners; the "
                            "least that would do is {:.6g}MiB{}{}{}",
                            std::floor(total / kMiB), std::ceil(least / kMiB),
                            WholeTables(assembly, shapes), Windows(config), LongPeriods(config)));
  }
  // A little of the spare memory goes to requests. Of the rest, three quarters go to the row
  // caches, up to all rows; the remainder goes to the store's caches.
  double spare = total - least;
  const double held = needs.held + std::min(spare / 16, std::max(0.0, kHeldBytesMost - needs.held));
  spare -= held - needs.held;
  const double rows_spare = std::min(spare * 3 / 4 / learners,
                                     std::max(needs.cache_max, needs.cache_min) - needs.cache_min);
  const double store =
      std::min(kStoreBytesMin + spare - rows_spare * learners, std::max(kStoreBytesMin, total / 2));
  return MemoryPlan{.row_cache_bytes = static_cast<uint64_t>(needs.cache_min + rows_spare),
                    .store_bytes = static_cast<uint64_t>(store),
                    .queue_bytes = static_cast<uint64_t>(needs.queue),
                    .model_bytes = static_cast<uint64_t>(needs.model),
                    .overlay_bytes = static_cast<uint64_t>(needs.overlay),
                    .request_bytes = static_cast<uint64_t>(needs.serve + held),
                    .held_bytes = static_cast<uint64_t>(held),
                    .operator_held_bytes = static_cast<uint64_t>(HeldBytesMin(config.serve))};
}

Result<uint64_t> PlanReaders(const Assembly& assembly) {
  constexpr double kLeastReader = 8 * kMiB;
  const config::Config& config = assembly.config;
  std::vector<LearnerShape> shapes;
  for (size_t i = 0; i < assembly.learners.size(); ++i) shapes.push_back(ShapeOf(assembly, i));
  const double items = ItemsOf(assembly);
  double fixed = kProcessBytes + kItemBytes * items +
                 ServeBytes(config.serve, ServeThreadBytes(shapes, items)) +
                 GpuScoringBytes(assembly, shapes);
  // Requests may hold as much as PlanMemory says.
  if (!config.serve.listen.empty()) fixed += static_cast<double>(assembly.memory.held_bytes);
  double states = 0;  // of one version: its parameters, and what recommendations are made from
  for (const LearnerShape& shape : shapes)
    states += 2 * 4 * shape.dense_parameters + shape.state_bytes;
  const double total = static_cast<double>(config.memory_total_bytes);
  const double open = config.serve.versions.open + 1;
  const double reader = (total - fixed) / open - states;
  if (reader >= kLeastReader)
    return static_cast<uint64_t>(std::min(reader, static_cast<double>(store::kReaderBytes)));
  const double room = std::floor((total - fixed) / (states + kLeastReader)) - 1;
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("serve.versions.open: {} open versions take at least {:.0f}MiB with what "
                          "serves them, and memory.total_bytes is {:.0f}MiB: {}",
                          config.serve.versions.open,
                          std::ceil((fixed + open * (states + kLeastReader)) / kMiB),
                          std::floor(total / kMiB),
                          room >= 2 ? fmt::format("{:.0f} would have room", room)
                                    : std::string("not even two would have room")));
}

}  // namespace tacit::wiring
