#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/tuned.h"
#include "config/kinds.h"
#include "event/record_shape.h"
#include "privacy/charge.h"

namespace tacit::event {
class AvroSchemas;
}  // namespace tacit::event

// The configuration as plain structs, validated. Only `wiring`, and what stands on it, includes
// this room; it hands every other room its own options. Names follow the YAML keys, and the
// declarations of these (`Describe`) have their words and bounds.
namespace tacit::config {

struct Feature {
  enum class Kind { kDense, kCategorical, kMultiHot };
  std::string name;
  Kind kind = Kind::kDense;
  std::string transform = "signed_log1p";
  uint64_t buckets = 0;
  uint32_t dim = 0;
  uint32_t max_values = 16;
};

struct Generator {
  uint32_t days = 24;
  uint64_t rows_per_day = 150000;
  uint64_t seed = 1;
};

// A text that may be kept outside of the configuration. For a text kept elsewhere, this holds only
// its location; ReadSecret fetches the text.
struct Secret {
  enum class Kind {
    kText,        // the text itself
    kFile,        // {file: PATH}
    kCredential,  // {credential: NAME}, of systemd: a file in $CREDENTIALS_DIRECTORY
  };
  Kind kind = Kind::kText;
  std::string text;   // or the path, or the name
  std::string place;  // "c.yaml:12: kafka.sasl.password": for messages
};

// A key whose name is not ours to choose, and its value.
struct Property {
  std::string name;
  Secret value;
};

// Texts by names that are the user's own, in the order written.
using Words = std::vector<std::pair<std::string, std::string>>;

// The schema registry that knows the schemas of framed messages.
struct SchemaRegistry {
  std::string url;
  std::string username;
  Secret password;
  std::string ca_file;
  uint32_t timeout_ms = 2000;
  // Names are ids or GUIDs; values are `accept` (it is source.format by our schema) or `reject`.
  std::vector<Property> schemas;
};

// Halts training when too many records cannot be learnt from. Privacy has no defaults.
struct HaltAbove {
  std::optional<double> share;
  uint64_t window = 10'000;
  std::optional<double> epsilon;
  std::optional<double> delta;

  bool given() const { return share.has_value(); }
};

struct Source {
  using Kind = SourceKind;
  enum class Framing { kNone, kConfluent };
  enum class Missing { kDefault, kReject };
  enum class Periods { kPartition, kTopic };
  enum class OnPeriodLost { kRefuse, kClose };
  Kind kind = Kind::kLog;
  std::span<const SourceTraits> kinds = kSources;  // the table that `kind` is of; not a key
  using Format = FormatKind;
  Format format = Format::kCriteoTsv;
  std::vector<std::string> files;
  bool files_found = false;  // they are; not a key
  uint32_t passes = 1;
  uint32_t max_record_bytes = 1 << 20;
  uint32_t decode_threads = 1;
  std::string mark;
  std::string topic;
  Framing framing = Framing::kNone;
  SchemaRegistry registry;
  event::JsonShape json;
  event::CsvShape csv;
  event::AvroShape avro;
  std::shared_ptr<event::AvroSchemas> avro_schemas;  // made by what reads records; not a key
  Missing missing = Missing::kDefault;
  uint32_t ahead_max_hours = 24;
  uint32_t round_ms = 250;
  uint32_t schema_wait_ms = 60'000;
  uint32_t tick_ms = 0;
  Periods periods = Periods::kPartition;
  OnPeriodLost on_period_lost = OnPeriodLost::kRefuse;
  uint64_t dedupe_window = 0;
  uint64_t dedupe_partitions = 8;
  std::string opt_out;
  bool accept_unreadable = false;
  HaltAbove halt_above;
  Generator generator;

  const SourceTraits& traits() const { return RowOf(kinds, kind); }
  const FormatTraits& format_traits() const { return RowOf(kFormats, format); }
  // The shape of its records, where the configuration says it; else null.
  const event::RecordShape* shape() const {
    if (format == Format::kJson) return &json;
    if (format == Format::kCsv) return &csv;
    if (format == Format::kAvro) return &avro;
    return nullptr;
  }
  // The records of a day, if the configuration says how many there are.
  std::optional<uint64_t> records_per_day() const {
    if (traits().keys.has("generator")) return generator.rows_per_day;
    return std::nullopt;
  }
  // Its records have weights.
  bool weighs() const { return shape() != nullptr && !shape()->weight.empty(); }
  // Its records have labels; without, each says that a user has met an item.
  bool has_labels() const { return shape() == nullptr || !shape()->label.empty(); }
  // A label of 1 in the operator's own words: "buy", "rating of 4 or more"; else "label 1".
  std::string LabelName() const;
};

// librdkafka's own settings by its names, and the dead-letter settings (errors.*) by the names of
// Kafka Connect.
struct Kafka {
  std::vector<Property> properties;  // as written
  std::string dead_letter_topic;     // errors.deadletterqueue.topic.name; if empty, a file
  bool passed_over = false;          // settings are written that nothing uses; not a key
};

// A model of sequences that predicts a user's next item.
struct Sequence {
  enum class Encoder { kTransformer, kGru, kLstm };
  Encoder encoder = Encoder::kTransformer;
  uint32_t length = tuned::kLength;
  uint32_t width = tuned::kWidth;
  uint32_t blocks = 2;
  uint32_t heads = 1;
  uint32_t feed_forward = 0;
  bool tied = true;
  bool item_bias = tuned::kItemBias;
  uint32_t negatives = 0;
  double re_attention = 0;
  double dropout = 0;
  double label_smoothing = 0;
  bool mask_seen = tuned::kMaskSeen;
  uint32_t crops = 1;
  bool random_crops = tuned::kRandomCrops;
  uint32_t warm_up_steps = 0;
  // DescribedStart's share of an item's first embedding.
  double described_share = tuned::kDescribedShare;

  // The release that opens each period: its logits are added to the model's.
  enum class Start { kNone, kPopularity, kCounts };
  Start start = Start::kNone;
  double start_share = 0;  // of the promise's mu^2; the steps get the rest. 0 until it is read
  double start_weight = tuned::kCountsWeight;
};

// A model of noised counts (which item follows which) that predicts a user's next item.
struct Transitions {
  bool described = true;
  double forget = 1;
  uint64_t cells = 4'000'000;
  // A small private model puts the likeliest items in order, by their other features.
  bool ranker = false;
  double ranker_share = tuned::kRankerShare;
  uint32_t ranker_steps = tuned::kRankerSteps;
  uint64_t ranker_users = 0;
};

struct Model {
  using Kind = ModelKind;
  Kind kind = Kind::kPctr;
  std::span<const ModelTraits> kinds = kModels;  // the table that `kind` is of; not a key
  std::string compute = "f32";
  std::string row_precision = "f32";
  uint64_t seed = 1;
  std::vector<uint32_t> hidden = {598, 598, 598, 598};
  bool categorical = true;
  std::vector<std::string> crosses;
  Sequence sequence;
  Transitions transitions;

  // Returns true for models that recommend a user's next item from the public catalogue.
  bool recommends() const { return traits().recommends; }
  const ModelTraits& traits() const { return RowOf(kinds, kind); }
};

// The histories of users that the store keeps for a model of the next item.
struct History {
  uint32_t items = 200;
  uint32_t days = 0;
  bool serve_users = false;
};

// The public list of items.
struct Catalogue {
  std::string file;
};

// The rows worth writing, and the release that chooses them.
struct Vocabulary {
  enum class Source { kFile, kFirstPeriod, kRunning };
  enum class Query { kGaussian, kGumbel };
  Source source = Source::kRunning;
  std::string file;
  uint64_t keep = 0;
  Query query = Query::kGaussian;
  double noise_multiplier = 0;
  double clip = 1;
};

// A clip that follows a quantile of the units' norms.
struct QuantileClip {
  double target = 0.5;
  double rate = 0.2;
  double noise_multiplier = 0;
};

// Low-rank carriers of the dense layers' gradients.
struct Carriers {
  enum class From { kNone, kHistory, kRandom };
  From from = From::kNone;
  uint32_t rank = 8;
  uint32_t power_steps = 1;
  uint64_t warm_up_steps = 0;

  bool on() const { return from != From::kNone; }
};

struct Mechanism {
  using Kind = MechanismKind;
  enum class Clipping { kFlat, kAutomatic, kPerLayer, kQuantile };
  Kind kind = Kind::kAdaFest;
  std::span<const MechanismTraits> kinds = kMechanisms;  // the table that `kind` is of; not a key
  double threshold = 0;
  double sigma_ratio = 5;
  double selection_clip = 1;  // adafest, adafest+: C1
  Vocabulary vocabulary;
  uint64_t rows = 0;
  double row_epsilon = 0;
  double row_clip = 1;
  // sums: of its noise, for a count of a large column to be released
  double deviations = tuned::kSumsDeviations;
  uint64_t whole_columns = uint64_t{1} << 20;
  double representation_clip = 1;  // forward: C
  double gradient_clip = 1;        // C2
  Clipping clipping = Clipping::kFlat;
  QuantileClip quantile;
  Carriers carriers;
  // Overrides the noise multiplier that epsilon and delta call for; refused if too small for them.
  std::optional<double> noise_multiplier;

  const MechanismTraits& traits() const { return RowOf(kinds, kind); }
  bool has_vocabulary() const { return traits().keys.has("vocabulary"); }
  // Returns true if the mechanism needs the histogram of a held period.
  bool observes_periods() const {
    return has_vocabulary() && vocabulary.source != Vocabulary::Source::kFile;
  }
};

struct Participation {
  using Mode = privacy::ParticipationMode;
  Mode mode = Mode::kOnce;
  // Offsets per step (once), or expected examples per step (held periods). In all modes the public
  // divisor. 0 until it is read: the default depends on the kind of model.
  uint64_t batch = 0;
  // Number of steps that any unit may be in, or be eligible for, over the life of the store. Unit
  // event: for `once` only. Unit user: required.
  uint32_t max_participations = 1;
  uint32_t per_period = 0;
  uint32_t user_records_max = 0;
  uint32_t step_files = 1;  // once: the file ends that end a step
  // poisson and allocate, which hold periods; required there with period or period_files:
  // Steps taken of each period; allocate: in each block, in one of which every event is.
  uint64_t steps_per_period = 0;
  double sampling_rate = 0;
  uint64_t blocks = 1;
  // held periods, and once with per_period:
  // A period is closed after `period` offsets (0: no such limit) and at every `period_files`-th
  // file end (0: at every one): the earlier of both.
  uint64_t period = 0;
  uint32_t period_files = 0;

  bool holds_periods() const { return mode != Mode::kOnce; }
  // The number of all steps taken of a held period; and the probability that an event is in one.
  uint64_t PeriodSteps() const {
    return mode == Mode::kAllocate ? steps_per_period * blocks : steps_per_period;
  }
  double Rate() const {
    return mode == Mode::kAllocate ? 1 / static_cast<double>(steps_per_period) : sampling_rate;
  }
};

struct Privacy {
  enum class OnExhausted { kStopLearning, kExit };
  privacy::Unit unit = privacy::Unit::kEvent;
  double epsilon = 0;
  double delta = 0;
  OnExhausted on_exhausted = OnExhausted::kStopLearning;

  bool of_users() const { return unit == privacy::Unit::kUser; }
};

// The total budget of all learners together. Without epsilon and delta there is none.
struct Budget {
  std::optional<double> epsilon, delta;
  Privacy::OnExhausted on_exhausted = Privacy::OnExhausted::kStopLearning;
  bool given() const { return epsilon.has_value(); }
};

struct Optimizer {
  using Kind = OptimizerKind;
  enum class Moments { kOwn, kLazy };
  Kind kind = Kind::kAdam;
  std::span<const OptimizerTraits> kinds = kOptimizers;  // the table that `kind` is of; not a key
  double learning_rate = 0.001;
  double row_learning_rate = 0;
  double momentum = 0;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  Moments moments = Moments::kOwn;
  double variance_floor = 1e-8;
  double ema = 0;

  const OptimizerTraits& traits() const { return RowOf(kinds, kind); }
};

// Noised figures of a learner's predictions, for everybody to see.
struct Quality {
  uint64_t steps = 0;
  uint32_t bins = 64;
  std::optional<double> epsilon;
  std::optional<double> delta;

  bool given() const { return steps > 0; }
};

struct Learner {
  std::string id;
  Model model;
  History history;
  Mechanism mechanism;
  Participation participation;
  Privacy privacy;
  Optimizer optimizer;
  Quality quality;
};

// Checkpoints of a running daemon, on a schedule or asked for.
struct Checkpoints {
  std::string path;
  std::string every;
  uint64_t every_s = 0;  // the same in seconds; 0: never; not a key
  uint32_t keep = 3;
  std::vector<std::string> kinds = {"full"};
};

// The file that heads of the ledger are written into while the daemon runs.
struct Anchors {
  std::string path;
  std::string every = "1h";
  uint64_t every_s = 3600;  // the same in seconds; not a key
  std::string key;
};

struct Store {
  enum class OnFailure { kServe, kExit };
  std::string path;
  std::string witness;
  bool witness_is_default = false;  // the configuration names none; not a key
  uint32_t shards = 0;
  std::vector<std::string> paths;
  uint32_t commit_interval_ms = 1000;
  OnFailure on_failure = OnFailure::kServe;
  uint32_t scrub_days = 7;
  Checkpoints checkpoints;
  Anchors anchors;
};

// Requests a second of one caller of each role in serve.callers; 0: as many as come.
struct Rates {
  uint32_t query = 0, user = 0, of_operator = 0;
};

// Files of TLS at TCP addresses, in PEM; certificate and key both, or neither.
struct TlsFiles {
  std::string certificate, key;
  std::string client_ca;
  bool operator==(const TlsFiles&) const = default;
};

// The versions of a server of checkpoints.
struct Versions {
  uint32_t open = 2;
  std::string file;
};

struct Serve {
  std::string listen = "127.0.0.1:8980";
  std::string operator_listen;
  std::string standby_listen;
  // Host names that the server answers to besides numeric addresses; ".example.org" allows all
  // below it, "any" all.
  std::vector<std::string> hosts = {"localhost"};
  uint32_t threads = 1;
  uint32_t max_connections = 1024;
  uint32_t drain_ms = 0;
  bool access_log = false;
  TlsFiles tls;
  // The file of callers who are known by tokens; if empty, everybody is answered.
  std::string callers;
  Rates rates;
  uint32_t max_body_bytes = 8 << 20;
  Versions versions;
};

struct Training {
  uint32_t workers = 2;
  bool idle_priority = true;
};

// A GPU that learners' steps are computed on, and large requests, where this program was built for
// one.
struct Gpu {
  enum class Use { kNever, kRequire, kPrefer };

  Use use = Use::kNever;
  uint32_t device = 0;
  // kAuto: whole tables where they fit into three quarters of its free memory, else a cache.
  enum class Rows { kAuto, kWhole, kCache };
  Rows rows = Rows::kAuto;
  uint64_t cache_bytes = 0;
  // The code that multiplies the bf16 matrices of click models: Tacit's, cuBLAS, or the faster.
  enum class Gemm { kOwn, kLibrary, kAuto };
  Gemm gemm = Gemm::kOwn;
  // Requests of at least this many rows are scored on it, by click models; 0: none are.
  uint32_t serve_rows = 0;
  uint64_t serve_cache_bytes = 64u << 20;
};

struct Log {
  std::string format = "text";
  std::string level = "info";
};

// The file of records that cannot be learnt from, and its older parts beside it.
struct DeadLetters {
  std::string path;
  uint64_t max_bytes = 64u << 20;
  uint32_t files = 4;
};

// The topic that committed versions are published to.
struct Feed {
  std::string topic;
  uint32_t interval_ms = 1000;
  uint32_t max_age_ms = 60'000;
  // Deltas that the store keeps until they are published; beyond, a version is sent whole.
  uint64_t backlog_bytes = 256u << 20;
};

// The topics by which workers sum a linear model's periods for the trainer.
struct Workers {
  std::string topic;  // the beginning of their names; if empty, the trainer sums alone
  std::string key_file;
  uint32_t patience_ms = 5000;
  double check = 0.002;

  std::string plan_topic() const { return topic + ".plan"; }
  std::string sums_topic() const { return topic + ".sums"; }
};

// The words of the operator in a statement of privacy; nothing else reads them.
struct About {
  std::string name;
  std::vector<std::string> curators;
  std::string description, intended_use;
  std::string region;
  std::string sector = "none";
  std::string contact;
  std::string epsilon_reason;
  std::string retention;
};

struct Config {
  Source source;
  Catalogue catalogue;
  std::vector<Feature> features;
  std::vector<Learner> learners;
  Budget budget;
  Store store;
  Serve serve;
  Training training;
  Gpu gpu;
  Log log;
  Kafka kafka;  // source kafka, feed and workers
  Feed feed;
  Workers workers;
  DeadLetters dead_letters;
  About about;
  uint64_t memory_total_bytes = 2ull << 30;
};

// The default of a period out of whose noised sums a model is made: participation.batch of a linear
// model.
uint64_t DefaultPeriod(double epsilon);
// The records of its first period, where the default holds and an event is the unit. Each one that
// follows has a quarter more, up to the default. 0: all periods have participation.batch of them.
uint64_t FirstPeriod(const Learner& learner);

// A pattern of source.files is replaced by the files that match it, one at least (kFound), or stays
// as it is written, for those who read no log (kUnread).
enum class LogFiles : uint8_t { kFound, kUnread };

// Reads a file. Every error names file, line and key, and for an unknown key the nearest valid one.
// Precedence: `overrides` ("store.path=/x", from the command line) over the environment
// (TACIT_STORE_PATH=/x) over the file. Relative paths are relative to the working directory.
Result<Config> Load(const std::string& path, const std::vector<std::string>& overrides,
                    LogFiles files = LogFiles::kFound);
// The same from a text; messages use `name` as the file's name.
Result<Config> Parse(std::string_view yaml, const std::string& name,
                     const std::vector<std::string>& overrides, LogFiles files = LogFiles::kFound);
// True if Kafka would have a topic of this name.
bool GoodTopic(std::string_view name);
// Reads section `kafka` alone, to look at a topic before there is a configuration: from a
// file, unless `path` is empty, and from the environment. `bootstrap`, unless empty, names the
// brokers.
Result<Kafka> LoadKafka(const std::string& path, const std::string& bootstrap);

// Returns true if the value under this key is, or may be, a secret: no dump and no message shows
// it.
bool IsSecret(std::string_view key);
// Returns the text itself. Of a file's or credential's text it drops one newline at the end. An
// error names the key and the file but nothing of the content.
Result<std::string> ReadSecret(const Secret& secret);
// Returns librdkafka's settings, with texts that are kept elsewhere fetched; without Kafka
// Connect's.
Result<std::vector<std::pair<std::string, std::string>>> ReadKafkaProperties(const Kafka& kafka);
// Names of the settings kept elsewhere. They are secrets under any name.
std::vector<std::string> KeptElsewhere(const Kafka& kafka);
// The places of secrets that are written in the configuration itself.
std::vector<std::string> SecretsInTheOpen(const Config& config);

// Writes a text as a YAML scalar in double quotes, so that it is always read back as a text.
std::string QuotedYaml(std::string_view text);
// Returns a pattern of source.files that matches this file name only.
std::string PatternOf(std::string_view file);

// The configuration as YAML with every default spelled out and secrets redacted.
std::string Dump(const Config& config);
// The schema section alone, as Dump writes it.
std::string DumpSchema(const Config& config);
// All that decides whether a record can be read, and which user it names: the format, the places of
// its parts, framing, the longest record, and the features.
std::string DumpReading(const Config& config);
// All that the sums of a range of records follow from beside the model: how they are read and
// which are left out, and the learners. Without paths, addresses, threads, and where periods end.
std::string DumpSumming(const Config& config);

}  // namespace tacit::config
