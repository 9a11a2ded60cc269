#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/tuned.h"
#include "config/kinds.h"

// The configuration as plain structs, validated. Only `wiring`, and what stands on it, includes
// this room; it hands every other room its own options. Names follow the YAML keys.
namespace tacit::config {

struct Feature {
  enum class Kind { kDense, kCategorical, kMultiHot };
  std::string name;
  Kind kind = Kind::kDense;
  std::string transform = "signed_log1p";  // dense: signed_log1p | identity
  uint64_t buckets = 0;                    // categorical, multi_hot
  uint32_t dim = 0;                        // 0: int(2 * buckets^0.25)
  uint32_t max_values = 16;                // multi_hot
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
  std::string url;       // empty: only the pinned schemas are known
  std::string username;  // empty: without authentication
  Secret password;       // goes with username
  std::string ca_file;   // the certificates trusted for https; empty: the system's
  uint32_t timeout_ms = 2000;
  // Names are ids or GUIDs; values are `accept` (it is source.format by our schema) or `reject`.
  std::vector<Property> schemas;
};

enum class TimeUnit { kMilliseconds, kSeconds, kMicroseconds, kNanoseconds, kRfc3339 };

// The places of a record's parts in JSON of its producer's own shape, as JSON pointers; empty: it
// has no such part. The defaults are schemas/interaction.schema.json.
struct JsonPlaces {
  std::string label = "/label";
  Words label_values;  // values and their labels, 0 or 1; empty: 0, 1, false, true
  std::optional<double> label_at_least;  // a number from here on is a label of 1
  std::string user = "/user", item = "/item", event_id = "/event_id";
  std::string timestamp = "/timestamp_ms";
  TimeUnit timestamp_unit = TimeUnit::kMilliseconds;
  std::string weight;                     // empty: every record counts alike
  double weight_most = 1;                 // larger weights are cut to it
  Words features;                         // by name; others lie below features_at
  std::string features_at = "/features";  // empty: at the record's top
  Words constants;                        // features with one value in all records

  bool operator==(const JsonPlaces&) const = default;
  bool is_own() const { return *this != JsonPlaces(); }
};

// The columns of a record's parts in lines of values; empty: it has no such part.
struct CsvPlaces {
  std::vector<std::string> columns;  // in order; empty: as the first file's first line says
  std::string separator = ",";
  std::string set_separator = "|";  // between the values of a set
  bool header = true;               // the first line of each file names the columns
  std::string label = "label";
  Words label_values;  // values and their labels, 0 or 1; empty: 0 and 1
  std::optional<double> label_at_least;
  std::string user, item, event_id, timestamp;
  TimeUnit timestamp_unit = TimeUnit::kMilliseconds;
  std::string weight;      // empty: every record counts alike
  double weight_most = 1;  // larger weights are cut to it
  Words features;          // by name; others are in the column of their name
  Words constants;         // features with one value in all records
};

// Halts training when too many records cannot be learnt from. Privacy has no defaults.
struct HaltAbove {
  std::optional<double> share;    // of a window's records; not given: nothing halts
  uint64_t window = 10'000;       // offsets of a partition
  std::optional<double> epsilon;  // that a window's count may cost each of its records
  std::optional<double> delta;

  bool given() const { return share.has_value(); }
};

struct Source {
  using Kind = SourceKind;
  enum class Framing { kNone, kConfluent };
  enum class Missing { kDefault, kReject };
  enum class OnPeriodLost { kRefuse, kClose };
  Kind kind = Kind::kLog;
  std::span<const SourceTraits> kinds = kSources;  // the table that `kind` is of; not a key
  std::string format = "criteo_tsv";  // log, kafka: criteo_tsv | json | csv | protobuf (kafka only)
  std::vector<std::string> files;     // log: globs expanded, in order; many files are many days
  bool files_found = false;           // they are; not a key
  uint32_t passes = 1;                // log: how often the files are read from the beginning
  uint32_t max_record_bytes = 1 << 20;
  uint32_t decode_threads = 1;          // steps do not depend on it
  std::string mark;                     // log: file beside the input; empty: none
  std::string topic;                    // kafka, required
  Framing framing = Framing::kNone;     // kafka, json and protobuf
  SchemaRegistry registry;              // framing confluent
  JsonPlaces json;                      // json
  CsvPlaces csv;                        // csv
  Missing missing = Missing::kDefault;  // json, csv, protobuf: how an absent feature is read
  uint32_t ahead_max_hours = 24;        // kafka, not criteo_tsv: of a record's own time
  uint32_t round_ms = 250;              // kafka: between two looks at what has come
  uint32_t schema_wait_ms = 60'000;     // kafka, framing confluent: for a record's schema
  uint32_t tick_ms = 0;                 // kafka: of the clock that cuts steps; 0: none does
  OnPeriodLost on_period_lost = OnPeriodLost::kRefuse;  // kafka, held periods
  uint64_t dedupe_window = 0;                           // not criteo_tsv: offsets; 0: none
  uint64_t dedupe_partitions = 8;                       // that memory is set aside for
  std::string opt_out;  // not criteo_tsv: file of users who are never learnt from; empty: none
  HaltAbove halt_above;
  Generator generator;  // generator

  const SourceTraits& traits() const { return RowOf(kinds, kind); }
  // The records of a day, if the configuration says how many there are.
  std::optional<uint64_t> records_per_day() const {
    if (traits().keys.has("generator")) return generator.rows_per_day;
    return std::nullopt;
  }
  // Its records have weights.
  bool weighs() const {
    return !(format == "json" ? json.weight : format == "csv" ? csv.weight : std::string()).empty();
  }
  // Its records have labels; without, each says that a user has met an item.
  bool has_labels() const {
    return !(format == "json"  ? json.label
             : format == "csv" ? csv.label
                               : std::string("first"))
                .empty();
  }
  // Its records may name their user, item and event.
  bool is_named() const { return format == "json" || format == "csv" || format == "protobuf"; }
};

// librdkafka's own settings by its names, and the dead-letter settings (errors.*) by the names of
// Kafka Connect.
struct Kafka {
  std::vector<Property> properties;  // as written
  std::string dead_letter_topic;     // errors.deadletterqueue.topic.name; empty: a file
  bool passed_over = false;          // settings are written that nothing uses; not a key
};

// A model of sequences that predicts a user's next item.
struct Sequence {
  enum class Encoder { kTransformer, kGru, kLstm };
  Encoder encoder = Encoder::kTransformer;
  uint32_t length = tuned::kLength;  // items the model looks back over
  uint32_t width = tuned::kWidth;
  uint32_t blocks = 2;                // or recurrent layers
  uint32_t heads = 1;                 // transformer
  uint32_t feed_forward = 0;          // transformer: width of the inner layer; 0: `width`
  bool tied = true;                   // the output layer's rows are the input embeddings
  bool item_bias = tuned::kItemBias;  // a learnt bias for each item
  uint32_t negatives = 0;             // public ones in each step's softmax; 0: the whole catalogue
  double re_attention = 0;            // transformer: share of the correction; 1: paper 000's
  double dropout = 0;
  double label_smoothing = 0;
  bool mask_seen = tuned::kMaskSeen;        // rules out the items before a position; so with counts
  uint32_t crops = 1;                       // windows of a history that is longer than one, at most
  bool random_crops = tuned::kRandomCrops;  // wherever public coins say; else the latest
  uint32_t warm_up_steps = 0;  // over which the learning rate rises, once in the learner's life
  // DescribedStart's share of an item's first embedding.
  double described_share = tuned::kDescribedShare;

  // The release that opens each period: its logits are added to the model's.
  enum class Start { kNone, kPopularity, kCounts };
  Start start = Start::kNone;
  double start_share = 0;  // of the promise's mu^2; the steps get the rest. 0 until it is read
  double start_weight = tuned::kCountsWeight;  // counts: of their logits
};

// A model of noised counts (which item follows which) that predicts a user's next item.
struct Transitions {
  bool described = true;       // use the catalogue's descriptions of items, if it has any
  double forget = 1;           // share kept of the earlier periods, at each new one
  uint64_t cells = 4'000'000;  // pairs of items measured and kept at most
  // A small private model puts the likeliest items in order, by their other features.
  bool ranker = false;
  double ranker_share = tuned::kRankerShare;    // of the promise's mu^2; the counts get the rest
  uint32_t ranker_steps = tuned::kRankerSteps;  // of a period, each with every user of it
  uint64_t ranker_users = 0;  // users of a period, about; public, the divisor. Required
};

struct Model {
  using Kind = ModelKind;
  Kind kind = Kind::kPctr;
  std::span<const ModelTraits> kinds = kModels;  // the table that `kind` is of; not a key
  std::string compute = "f32";                   // pctr, sequence: f32 | bf16
  std::string row_precision = "f32";             // pctr: f32 | bf16
  uint64_t seed = 1;  // pctr, sequence: of the initial parameters; public
  std::vector<uint32_t> hidden = {598, 598, 598, 598};  // pctr
  bool categorical = true;           // pctr; false: from numbers alone, no embeddings
  std::vector<std::string> crosses;  // linear: pairs of features, "A*B", that are columns too
  Sequence sequence;
  Transitions transitions;

  // Returns true for models that recommend a user's next item from the public catalogue.
  bool recommends() const { return traits().recommends; }
  const ModelTraits& traits() const { return RowOf(kinds, kind); }
};

// The histories of users that the store keeps for a model of the next item.
struct History {
  uint32_t items = 200;      // the last ones
  uint32_t days = 0;         // how long they are kept; 0: for ever
  bool serve_users = false;  // /v1/recommend by user: reads raw histories
};

// The public list of items.
struct Catalogue {
  std::string file;  // required by models of the next item
};

// The rows worth writing, and the release that chooses them.
struct Vocabulary {
  enum class Source { kFile, kFirstPeriod, kRunning };
  enum class Query { kGaussian, kGumbel };
  Source source = Source::kRunning;  // required
  std::string file;                  // kFile: lines "feature<TAB>value"
  uint64_t keep = 0;                 // required but for kFile; 0: all of the file
  Query query = Query::kGaussian;
  double noise_multiplier = 0;  // of each histogram; required but for kFile
  double clip = 1;              // of one unit's histogram, gaussian
};

// A clip that follows a quantile of the units' norms.
struct QuantileClip {
  double target = 0.5;          // share of units that stay unclipped
  double rate = 0.2;            // of the clip's logarithm
  double noise_multiplier = 0;  // of the count; required
};

// Low-rank carriers of the dense layers' gradients.
struct Carriers {
  enum class From { kNone, kHistory, kRandom };
  From from = From::kNone;
  uint32_t rank = 8;
  uint32_t power_steps = 1;    // history
  uint64_t warm_up_steps = 0;  // history

  bool on() const { return from != From::kNone; }
};

struct Mechanism {
  using Kind = MechanismKind;
  enum class Clipping { kFlat, kAutomatic, kPerLayer, kQuantile };
  Kind kind = Kind::kAdaFest;
  std::span<const MechanismTraits> kinds = kMechanisms;  // the table that `kind` is of; not a key
  double threshold = 0;       // adafest, adafest+: tau, required; infinite: no row is ever written
  double sigma_ratio = 5;     // adafest, adafest+: sigma_selection / sigma_gradient
  double selection_clip = 1;  // adafest, adafest+: C1
  Vocabulary vocabulary;      // fest, adafest+
  uint64_t rows = 0;          // exponential: how many a step writes, required
  double row_epsilon = 0;     // exponential: of each of them, required
  double row_clip = 1;        // exponential: of one unit's gradient norm of one row
  // sums: of its noise, for a count of a large column to be released
  double deviations = tuned::kSumsDeviations;
  uint64_t whole_columns = uint64_t{1} << 20;  // sums: columns of this many values, released whole
  double representation_clip = 1;              // forward: C
  double gradient_clip = 1;                    // C2
  Clipping clipping = Clipping::kFlat;
  QuantileClip quantile;  // clipping quantile
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
  enum class Mode { kOnce, kPoisson, kAllocate };
  Mode mode = Mode::kOnce;  // required
  // Offsets per step (once), or expected examples per step (held periods). In all modes the public
  // divisor. 0 until it is read: the default depends on the kind of model.
  uint64_t batch = 0;
  // Number of steps that any unit may be in, or be eligible for, over the life of the store. Unit
  // event: for `once` only. Unit user: required.
  uint32_t max_participations = 1;
  uint32_t per_period = 0;        // unit user, once: steps of a period a user may be in; 0: all
  uint32_t user_records_max = 0;  // unit user: records of a user in a step; 0: all
  // poisson and allocate, which hold periods; required there with period or period_files:
  // Steps taken of each period; allocate: in each block, in one of which every event is.
  uint64_t steps_per_period = 0;
  double sampling_rate = 0;  // poisson, required: probability of an event to be in a step
  uint64_t blocks = 1;       // allocate: of steps_per_period steps, taken of each period
  // held periods, and once with per_period:
  // A period is closed after `period` offsets (0: no such limit) and at every `period_files`-th
  // file end (0: at every one), whichever comes first.
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
  std::string unit;    // required: event | user
  double epsilon = 0;  // required; .inf only with mechanism none
  double delta = 0;    // required, in (0, 1)
  OnExhausted on_exhausted = OnExhausted::kStopLearning;

  bool of_users() const { return unit == "user"; }
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
  double row_learning_rate = 0;       // 0: learning_rate
  double momentum = 0;                // sgd: of dense parameters
  double beta1 = 0.9, beta2 = 0.999;  // adam, adam-bc
  double epsilon = 1e-8;              // adam, adam-bc (its rows), adagrad
  Moments moments = Moments::kOwn;    // adam, adam-bc: of rows
  double variance_floor = 1e-8;       // adam-bc: below what is left of the second moment
  double ema = 0;                     // decay of the weights' moving average; 0: none

  const OptimizerTraits& traits() const { return RowOf(kinds, kind); }
};

// Noised figures of a learner's predictions, for everybody to see.
struct Quality {
  uint64_t steps = 0;  // of a window; 0: nothing is shown
  uint32_t bins = 64;
  std::optional<double> epsilon;  // that a record may pay for being counted
  std::optional<double> delta;

  bool given() const { return steps > 0; }
};

struct Learner {
  std::string id;
  Model model;
  History history;  // models of the next item
  Mechanism mechanism;
  Participation participation;
  Privacy privacy;
  Optimizer optimizer;
  Quality quality;
};

// Checkpoints of a running daemon, on a schedule or asked for.
struct Checkpoints {
  std::string path;                           // default: store path + ".checkpoints"
  std::string every;                          // a number and s, min, h or d; empty: only when asked
  uint64_t every_s = 0;                       // the same in seconds; 0: never; not a key
  uint32_t keep = 3;                          // of each kind, after each that the schedule makes
  std::vector<std::string> kinds = {"full"};  // full, release or both; for the schedule
};

// The file that heads of the ledger are written into while the daemon runs.
struct Anchors {
  std::string path;          // empty: none
  std::string every = "1h";  // a number and s, min, h or d
  uint64_t every_s = 3600;   // the same in seconds; not a key
  std::string key;           // a private key of Ed25519 in PEM; empty: anchors are not signed
};

struct Store {
  enum class OnFailure { kServe, kExit };
  std::string path;
  std::string witness;              // default: `path` + ".witness"; "none" for none
  bool witness_is_default = false;  // the configuration names none; not a key
  uint32_t shards = 0;              // 0: as many as the store has, and four for a new one
  std::vector<std::string> paths;   // folders that shards are spread over; empty: inside `path`
  uint32_t commit_interval_ms = 1000;
  OnFailure on_failure = OnFailure::kServe;  // what follows once training has failed
  uint32_t scrub_days = 7;  // all tables are read and checked once in this time; 0: never
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
  std::string client_ca;  // clients must show a certificate that it has signed; empty: none
  bool operator==(const TlsFiles&) const = default;
};

// The versions of a server of checkpoints.
struct Versions {
  uint32_t open = 2;  // at once; the newest one among them
  std::string file;   // keeps what an operator has chosen; empty: the choice ends with the process
};

struct Serve {
  std::string listen = "127.0.0.1:8980";  // HOST:PORT or unix:PATH; empty: no server
  std::string operator_listen;            // the same routes and operator-only metrics; empty: none
  std::string standby_listen;             // probes of a daemon that stands by; empty: none
  // Host names that the server answers to besides numeric addresses; "any" allows all.
  std::vector<std::string> hosts = {"localhost"};
  uint32_t threads = 1;  // for serve.listen; operator_listen has one of its own
  uint32_t max_connections = 1024;
  bool access_log = false;
  TlsFiles tls;
  // The file of callers who are known by tokens; empty: everybody is answered.
  std::string callers;
  Rates rates;
  uint32_t max_body_bytes = 8 << 20;
  Versions versions;
};

struct Training {
  uint32_t workers = 2;
  bool idle_priority = true;  // trainer threads under SCHED_IDLE
};

// A GPU that learners' steps are computed on, and large requests, where this program was built for
// one.
struct Gpu {
  enum class Use { kNever, kRequire, kPrefer };

  Use use = Use::kNever;  // kPrefer: without a usable GPU, training is on the CPU, and says so
  uint32_t device = 0;    // ordinal, as nvidia-smi counts
  // kAuto: whole tables where they fit into three quarters of its free memory, else a cache.
  enum class Rows { kAuto, kWhole, kCache };
  Rows rows = Rows::kAuto;
  uint64_t cache_bytes = 0;  // 0: three quarters of its free memory
  // The code that multiplies the bf16 matrices of click models: Tacit's, cuBLAS, or the faster.
  enum class Gemm { kOwn, kLibrary, kAuto };
  Gemm gemm = Gemm::kOwn;
  // Requests of at least so many rows are scored on it, by click models; 0: none are.
  uint32_t serve_rows = 0;
  uint64_t serve_cache_bytes = 64u << 20;  // of its memory, for rows that are scored with
};

struct Log {
  std::string format = "text";  // text | json
  std::string level = "info";
};

// The file of records that cannot be learnt from, and its older parts beside it.
struct DeadLetters {
  std::string path;                // default: store path + ".dead-letters.jsonl"
  uint64_t max_bytes = 64u << 20;  // of one file
  uint32_t files = 4;              // in all
};

// The topic that committed versions are published to.
struct Feed {
  std::string topic;             // empty: nothing is published
  uint32_t interval_ms = 1000;   // between two versions, at least
  uint32_t max_age_ms = 60'000;  // a commit that is unpublished for longer is trouble
  // Deltas that the store keeps until they are published; beyond, a version is sent whole.
  uint64_t backlog_bytes = 256u << 20;
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
  Kafka kafka;  // source kafka, and feed
  Feed feed;
  DeadLetters dead_letters;
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
// Reads section `kafka` alone, for who looks at a topic before there is a configuration: from a
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
// Names of the settings kept elsewhere. They are secrets, whatever their names are.
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

}  // namespace tacit::config
