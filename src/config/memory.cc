#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "config/config.h"

// The estimates are cautious sums of what the rooms keep, not measurements of a running daemon; the
// README derives each.
namespace tacit::config {
namespace {

constexpr double kDedupeBytes = 32;  // per offset of the window: an id's hash, and where it is

// Of Kafka: what is fetched ahead, all partitions together, where queued.max.messages.kbytes says
// nothing else (stream's own default, and librdkafka's largest); small messages take as much again
// for what librdkafka keeps of each. Behind it runs of records wait to be decoded.
constexpr double kFetchedKBytes = 32768, kFetchedKBytesMax = 2097151;
constexpr double kFetchedFactor = 2;
constexpr double kRunsQueued = 16 + 2;  // those at the two threads' hands included
constexpr double kRunBytes = 1 << 20;   // a record more may be in it

// In doubles: a product of extreme settings must come out as too much, not wrap around.
constexpr double kMiB = 1 << 20;
constexpr double kProcessBytes = 64 * kMiB;   // code, stacks, heaps, the libraries' own
constexpr double kStoreBytesMin = 32 * kMiB;  // what EmbeddingStore requires
constexpr double kRowOverhead = 64;           // a cached row's key, links and hash slot
constexpr double kStepsQueued = 4;
constexpr double kCommitsUnfolded = 8;
// A commit holds the rows of all steps of its interval. Rows repeat between steps (a stream's
// popular values do), so a few steps' worth of distinct rows are a bound in practice.
constexpr double kStepsPerCommit = 4;
// Of a period's histogram: a row's count while it is observed (8), what is released of it and the
// sum over all periods (4 each), and the copies of that sum on its way into a commit and into the
// store (about 12).
constexpr double kVocabularyRowBytes = 28;

// One table of a learner.
struct Table {
  double rows = 0;
  double row_bytes = 0;         // embedding and optimiser state, as cached
  double rows_per_example = 0;  // at most
};

// What a step of one learner is made of.
struct Shape {
  double batch = 0;
  double period = 0;            // examples held until their period is closed
  double input_width = 0;       // numbers into the first layer
  double dense_parameters = 0;  // weights and biases
  double state_floats = 0;      // of the optimiser, per dense parameter
  double width_total = 0;       // inputs and outputs of all layers, per example
  double observed_rows = 0;     // of the id space, where its histogram is kept
  bool every_row = false;       // each step writes the whole id space
  double chosen_rows = 0;       // a step may write that nobody touched
  double other_bytes = 0;       // of a model of the next item
  std::vector<Table> tables;

  // Of the distinct rows that this many steps can touch.
  double RowBytes(double steps) const {
    double bytes = 0;
    for (const Table& table : tables) {
      const double touched = steps * batch * table.rows_per_example;
      // Chosen rows may all be of one table, but of each no more than it has.
      const double rows = std::min(table.rows, touched + steps * chosen_rows);
      bytes += (every_row ? table.rows : rows) * table.row_bytes;
    }
    return bytes;
  }
};

double Dim(const Feature& feature) {
  if (feature.dim != 0) return feature.dim;
  return std::max(1.0, std::floor(2 * std::pow(static_cast<double>(feature.buckets), 0.25)));
}

// Examples of a period that is held. Where files close it, how many they have is not known before
// they are read; but the batch is said to be the sampling rate's share of them.
double PeriodOf(const Participation& participation) {
  if (participation.mode != Participation::Mode::kPoisson) return 0;
  if (participation.period > 0) return static_cast<double>(participation.period);
  return static_cast<double>(participation.batch) / participation.sampling_rate;
}

// The optimiser's floats for a dense parameter.
double DenseState(const Optimizer& optimizer) {
  const bool one = optimizer.kind == Optimizer::Kind::kAdagrad || optimizer.momentum > 0;
  return (optimizer.is_adam() ? 2.0 : one ? 1.0 : 0.0) + (optimizer.ema > 0 ? 1 : 0);
}

// Behind a row of this width: moments and average, and what counts for the row as a whole.
double RowState(const Optimizer& optimizer, double dim) {
  const double average = optimizer.ema > 0 ? 1 : 0;
  return dim * ((optimizer.is_adam() ? 2 : 0) + average) + 1 + average;
}

// Parameters of a model of sequences over so many items; gates of a recurrent layer count as four,
// and what is added to products counts too.
double SequenceParameters(const Sequence& model, double items) {
  const double width = model.width;
  const double inner = model.feed_forward == 0 ? width : model.feed_forward;
  const double block = model.encoder == Sequence::Encoder::kTransformer
                           ? 4 * width * (width + 1) + (2 * width + 1) * inner + 6 * width
                           : 8 * width * (width + 1);
  return items * (width * (model.tied ? 1 : 2) + 1) + model.length * width + model.blocks * block;
}

// Of a model of the next item: what it holds beside dense parameters and their state, and what it
// is served from. Of sequences each worker's integer sum and the gradient of the unit at hand, the
// sum of all, and the state that is served and the next one while it is made. Of counts the cells,
// as estimate, as released and as what serves; the best cells and a unit's vector, per worker; and
// tables of all pairs where those are small: the trainer's, the one that is served, and three
// while the next is made.
double NextItemBytes(const Learner& learner, double items, double workers) {
  constexpr double kCellBytes = 80, kWorkerCellBytes = 28, kDenseCells = 1 << 25;
  if (learner.model.kind == Model::Kind::kSequence) {
    const double parameters = SequenceParameters(learner.model.sequence, items);
    return parameters * (12 * workers + 8 + 2 * 4);
  }
  const double cells =
      std::min(static_cast<double>(learner.model.transitions.cells), items * items);
  const double table = items * items <= kDenseCells ? 4 * items * items : 0;
  return cells * (kCellBytes + kWorkerCellBytes * workers) + 5 * table;
}

Shape NextItemShape(const Learner& learner, double items, double workers) {
  Shape shape;
  shape.batch = static_cast<double>(learner.participation.batch);
  shape.period = PeriodOf(learner.participation);
  shape.state_floats = DenseState(learner.optimizer);
  shape.input_width = 4;  // an item and its time, twice
  // The histories of a step's or a period's users, as many as there are records: as they are learnt
  // from, and in the commit that remembers them.
  constexpr double kHistoryItemBytes = 4 + 2 * 12;
  shape.other_bytes = NextItemBytes(learner, items, workers) + std::max(shape.batch, shape.period) *
                                                                   learner.history.items *
                                                                   kHistoryItemBytes;
  if (learner.model.kind == Model::Kind::kSequence)
    shape.dense_parameters = SequenceParameters(learner.model.sequence, items);
  return shape;
}

Shape ShapeOf(const Config& config, const Learner& learner, double items) {
  if (learner.model.recommends()) return NextItemShape(learner, items, config.training.workers);
  const std::vector<Feature>& features = config.features;
  Shape shape;
  shape.batch = static_cast<double>(learner.participation.batch);
  shape.period = PeriodOf(learner.participation);
  shape.every_row = learner.mechanism.kind == Mechanism::Kind::kDpSgd;
  if (learner.mechanism.has_vocabulary())
    shape.chosen_rows = static_cast<double>(learner.mechanism.vocabulary.keep);
  if (learner.mechanism.kind == Mechanism::Kind::kExponential)
    shape.chosen_rows = static_cast<double>(learner.mechanism.rows);
  shape.state_floats = DenseState(learner.optimizer);
  for (const Feature& feature : features) {
    if (feature.kind == Feature::Kind::kDense) {
      shape.input_width += 1;
      continue;
    }
    if (!learner.model.categorical) continue;
    const double dim = Dim(feature);
    if (learner.mechanism.observes_periods())
      shape.observed_rows += static_cast<double>(feature.buckets);
    shape.input_width += dim;
    shape.tables.push_back(
        {.rows = static_cast<double>(feature.buckets),
         .row_bytes = 4 * (dim + RowState(learner.optimizer, dim)) + kRowOverhead,
         .rows_per_example = feature.kind == Feature::Kind::kMultiHot ? feature.max_values : 1.0});
  }
  double in = shape.input_width;
  shape.width_total = in;
  std::vector<uint32_t> layers = learner.model.hidden;
  layers.push_back(1);
  for (double out : layers) {
    shape.dense_parameters += (in + 1) * out;
    shape.width_total += out;
    in = out;
  }
  return shape;
}

// Parameters and state, the gradient, its noise, and a second set on its way into a commit; per
// example activations and their gradients, once more in the precision computed in. The mechanism's
// histogram.
double ModelBytes(const Shape& shape) {
  const double dense = shape.dense_parameters * 4 * (2 * (1 + shape.state_floats) + 2);
  return dense + shape.batch * shape.width_total * 4 * 3 +
         shape.observed_rows * kVocabularyRowBytes + shape.other_bytes;
}

// Decoded examples: numbers, rows, ends, offset, label; and the records they came from. A period is
// held while the next one cannot begin.
double QueueBytes(const Shape& shape, uint32_t record_bytes) {
  double example = shape.input_width * 4 + 64;
  for (const Table& table : shape.tables) example += table.rows_per_example * 12;
  return kStepsQueued * (shape.batch * example + record_bytes) + shape.period * example;
}

// Between the brokers and the decode thread; of logs a few records of the largest size.
double SourceBytes(const Config& config) {
  if (config.source.kind != Source::Kind::kKafka) return 0;
  double kbytes = kFetchedKBytes;
  for (const Property& property : config.kafka.properties) {
    if (property.name != "queued.max.messages.kbytes") continue;
    const std::string& text = property.value.text;
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    // What is no number is refused by librdkafka.
    if (error == std::errc() && end == text.data() + text.size())
      kbytes = std::min(static_cast<double>(number), kFetchedKBytesMax);
  }
  return kFetchedFactor * kbytes * 1024 +
         kRunsQueued * (kRunBytes + static_cast<double>(config.source.max_record_bytes));
}

// A log is one partition.
double DedupeBytes(const Config& config) {
  const bool kafka = config.source.kind == Source::Kind::kKafka;
  return static_cast<double>(config.source.dedupe_window) * kDedupeBytes *
         static_cast<double>(kafka ? config.source.dedupe_partitions : 1);
}

// Unfolded commits: each has its dense blob. Their rows are folded as they come; two of every row
// there can be is when folding has fallen behind.
double OverlayBytes(const Shape& shape) {
  const double dense = shape.dense_parameters * 4 * (1 + shape.state_floats);
  return kCommitsUnfolded * dense +
         std::min(2 * shape.RowBytes(INFINITY), kCommitsUnfolded * shape.RowBytes(kStepsPerCommit));
}

// Changed rows stay pinned until they are folded, while the next step's rows come in.
double RowCacheBytesMin(const Shape& shape) {
  return shape.RowBytes(kCommitsUnfolded * kStepsPerCommit + 1) + kMiB;
}

// The windows of de-duplication, where they are a part that one may not think of.
std::string Windows(const Config& config) {
  const double bytes = DedupeBytes(config);
  if (bytes < kMiB) return "";
  return fmt::format("; source.dedupe.window takes {:.0f}MiB{}", std::ceil(bytes / kMiB),
                     config.source.kind == Source::Kind::kKafka
                         ? fmt::format(" for source.dedupe.partitions, {} of them",
                                       config.source.dedupe_partitions)
                         : "");
}

// Whose tables are held whole, since each step writes all of them: they stay pinned until folded.
std::string WholeTables(const Config& config, double items) {
  std::string text;
  for (const Learner& learner : config.learners) {
    const Shape shape = ShapeOf(config, learner, items);
    if (!shape.every_row) continue;
    text += fmt::format(
        "; learner '{}' has mechanism dp-sgd, which writes every row in every step: its tables of "
        "{:.0f}MiB are held whole, and commits of up to {:.0f}MiB that are not folded yet",
        learner.id, std::ceil(shape.RowBytes(INFINITY) / kMiB),
        std::ceil(OverlayBytes(shape) / kMiB));
  }
  return text;
}

// What cannot be done without.
struct Needs {
  double model = 0, queue = 0, overlay = 0;
  double cache_min = 0, cache_max = 0;  // per learner

  double Least(double learners) const {
    return kProcessBytes + model + queue + overlay + kStoreBytesMin + cache_min * learners;
  }
};

Needs NeedsOf(const Config& config, double items) {
  constexpr double kItemBytes =
      250;  // of the catalogue: its line, what it is found by and compared by
  Needs needs{.model = kItemBytes * items, .queue = SourceBytes(config) + DedupeBytes(config)};
  for (const Learner& learner : config.learners) {
    const Shape shape = ShapeOf(config, learner, items);
    needs.model += ModelBytes(shape);
    needs.queue += QueueBytes(shape, config.source.max_record_bytes);
    needs.overlay += OverlayBytes(shape);
    needs.cache_min = std::max(needs.cache_min, RowCacheBytesMin(shape));
    needs.cache_max = std::max(needs.cache_max, shape.RowBytes(INFINITY) + kMiB);
  }
  // Counts alone commit neither rows nor dense parameters.
  needs.overlay = std::max(needs.overlay, kMiB);
  return needs;
}

}  // namespace

Result<MemoryPlan> PlanMemory(const Config& config, uint64_t items) {
  const Needs needs = NeedsOf(config, static_cast<double>(items));
  const double learners = std::max<double>(1, static_cast<double>(config.learners.size()));
  const double total = static_cast<double>(config.memory_total_bytes);
  const double least = needs.Least(learners);
  if (total < least) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("memory.total_bytes: {:.0f}MiB are too few for these learners; the "
                            "least that would do is {:.0f}MiB{}{}",
                            std::floor(total / kMiB), std::ceil(least / kMiB),
                            WholeTables(config, static_cast<double>(items)), Windows(config)));
  }
  // What is left goes to the rows first, as far as there are rows, but a quarter of it, and what no
  // row can use, to the store's caches.
  const double spare = total - least;
  const double rows_spare = std::min(spare * 3 / 4 / learners,
                                     std::max(needs.cache_max, needs.cache_min) - needs.cache_min);
  const double store =
      std::min(kStoreBytesMin + spare - rows_spare * learners, std::max(kStoreBytesMin, total / 2));
  return MemoryPlan{.row_cache_bytes = static_cast<uint64_t>(needs.cache_min + rows_spare),
                    .store_bytes = static_cast<uint64_t>(store),
                    .queue_bytes = static_cast<uint64_t>(needs.queue),
                    .model_bytes = static_cast<uint64_t>(needs.model),
                    .overlay_bytes = static_cast<uint64_t>(needs.overlay)};
}

}  // namespace tacit::config
