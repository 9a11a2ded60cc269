#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

// The configuration as plain structs, validated. Only `app` includes this room and hands every
// other room its own options. Names follow the YAML keys.
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

// A text that may be kept outside of the configuration. What is written here of one that is kept
// elsewhere is where that is; ReadSecret fetches it.
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

// A key that is not ours to name, and its value.
struct Property {
  std::string name;
  Secret value;
};

// Where the schemas of framed messages are told.
struct SchemaRegistry {
  std::string url;       // empty: only what is pinned is known
  std::string username;  // empty: without authentication
  Secret password;       // goes with username
  std::string ca_file;   // whom to trust for https; empty: whom the system trusts
  uint32_t timeout_ms = 2000;
  // Names are ids or GUIDs; values `accept` (it is source.format by our schema) or `reject`.
  std::vector<Property> schemas;
};

struct Source {
  enum class Kind { kLog, kGenerator, kKafka };
  enum class Framing { kNone, kConfluent };
  enum class Missing { kDefault, kReject };
  enum class OnPeriodLost { kRefuse, kClose };
  Kind kind = Kind::kLog;
  std::string format = "criteo_tsv";  // log, kafka: criteo_tsv | json | protobuf (kafka only)
  std::vector<std::string> files;     // log: globs expanded, in order; many files are many days
  uint32_t passes = 1;                // log: how often the files are read from the beginning
  uint32_t max_record_bytes = 1 << 20;
  std::string topic;                    // kafka, required
  Framing framing = Framing::kNone;     // kafka, json and protobuf
  SchemaRegistry registry;              // framing confluent
  Missing missing = Missing::kDefault;  // json, protobuf: what becomes of an absent feature
  uint32_t ahead_max_hours = 24;        // kafka, json and protobuf: of a record's own time
  uint32_t tick_ms = 0;                 // kafka: of the clock that closes periods; 0: none does
  OnPeriodLost on_period_lost = OnPeriodLost::kRefuse;  // kafka, poisson
  uint64_t dedupe_window = 0;                           // json, protobuf: offsets; 0: none
  uint64_t dedupe_partitions = 8;                       // that memory is set aside for
  Generator generator;                                  // generator

  bool is_named() const { return format == "json" || format == "protobuf"; }
};

// librdkafka's own settings by its names, and by Kafka Connect's (errors.*) where dead letters go.
struct Kafka {
  std::vector<Property> properties;  // as written
  std::string dead_letter_topic;     // errors.deadletterqueue.topic.name; empty: a file
};

// The next item of a user, by a model of sequences.
struct Sequence {
  enum class Encoder { kTransformer, kGru, kLstm };
  Encoder encoder = Encoder::kTransformer;
  uint32_t length = 200;  // items the model looks back over
  uint32_t width = 64;
  uint32_t blocks = 2;        // or recurrent layers
  uint32_t heads = 1;         // transformer
  uint32_t feed_forward = 0;  // transformer: width of the inner layer; 0: `width`
  bool tied = true;           // the output layer's rows are the input embeddings
  bool item_bias = false;     // a learnt bias for each item
  uint32_t negatives = 0;     // public ones in each step's softmax; 0: the whole catalogue
  double re_attention = 0;    // transformer: share of the correction; 1: paper 000's
  double dropout = 0;
  double label_smoothing = 0;
};

// The next item of a user, by noised counts of which item follows which.
struct Transitions {
  bool described = true;       // use what the catalogue says of items, where it says anything
  double forget = 1;           // what is kept of the periods before, at each new one
  uint64_t cells = 4'000'000;  // pairs of items that are measured and kept at most
};

struct Model {
  enum class Kind { kPctr, kSequence, kTransitions };
  Kind kind = Kind::kPctr;
  std::string compute = "f32";  // pctr, sequence: f32 | bf16
  uint64_t seed = 1;            // pctr, sequence: of the initial parameters; public
  std::vector<uint32_t> hidden = {598, 598, 598, 598};  // pctr
  bool categorical = true;  // pctr; false: from numbers alone, no embeddings
  Sequence sequence;
  Transitions transitions;

  // What comes next for a user, out of the public catalogue.
  bool recommends() const { return kind != Kind::kPctr; }
};

// What is remembered of users, for a model of the next item.
struct History {
  uint32_t items = 200;      // the last ones
  uint32_t days = 0;         // and for how long; 0: for ever
  bool serve_users = false;  // /v1/recommend by user: reads raw histories
};

// The items that everybody may know.
struct Catalogue {
  std::string file;  // required by models of the next item
};

// Which rows are worth writing, and the release that says so.
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

// The clip that follows a quantile of the units' norms.
struct QuantileClip {
  double target = 0.5;          // share of units that stay unclipped
  double rate = 0.2;            // of the clip's logarithm
  double noise_multiplier = 0;  // of the count; required
};

struct Mechanism {
  enum class Kind { kNone, kAdaFest, kAdaFestPlus, kFest, kDpSgd, kExponential, kCounts };
  enum class Clipping { kFlat, kAutomatic, kPerLayer, kQuantile };
  Kind kind = Kind::kAdaFest;
  double threshold = 0;       // adafest, adafest+: tau, required; infinite: no row is ever written
  double sigma_ratio = 5;     // adafest, adafest+: sigma_selection / sigma_gradient
  double selection_clip = 1;  // adafest, adafest+: C1
  Vocabulary vocabulary;      // fest, adafest+
  uint64_t rows = 0;          // exponential: how many a step writes, required
  double row_epsilon = 0;     // exponential: of each of them, required
  double row_clip = 1;        // exponential: of one unit's gradient norm of one row
  double gradient_clip = 1;   // C2
  Clipping clipping = Clipping::kFlat;
  QuantileClip quantile;  // clipping quantile
  // Overrides the noise multiplier that epsilon and delta call for; refused when it is too small.
  std::optional<double> noise_multiplier;

  bool has_threshold() const { return kind == Kind::kAdaFest || kind == Kind::kAdaFestPlus; }
  bool has_vocabulary() const { return kind == Kind::kFest || kind == Kind::kAdaFestPlus; }
  // Whether a held period's histogram is asked for.
  bool observes_periods() const {
    return has_vocabulary() && vocabulary.source != Vocabulary::Source::kFile;
  }
};

struct Participation {
  enum class Mode { kOnce, kPoisson };
  Mode mode = Mode::kOnce;  // required
  // once: offsets per step. poisson: examples expected in a step. Both: the public divisor.
  uint64_t batch = 2048;
  // Steps any unit may be in, or be eligible for, over the life of the store. Unit event: `once`.
  // Unit user: required.
  uint32_t max_participations = 1;
  uint32_t per_period = 0;        // unit user, once: steps of a period a user may be in; 0: all
  uint32_t user_records_max = 0;  // unit user: records of a user in a step; 0: all
  // poisson, required there, and one of period and period_files:
  double sampling_rate = 0;       // probability of an event to be in a step
  uint64_t steps_per_period = 0;  // steps taken of each period
  // poisson, and once with per_period:
  // A period is closed after `period` offsets (0: however many there are) and at every
  // `period_files`-th file end (0: every one), whichever comes first.
  uint64_t period = 0;
  uint32_t period_files = 0;
};

struct Privacy {
  enum class OnExhausted { kStopLearning, kExit };
  std::string unit;    // required: event | user
  double epsilon = 0;  // required; .inf only with mechanism none
  double delta = 0;    // required, in (0, 1)
  OnExhausted on_exhausted = OnExhausted::kStopLearning;

  bool of_users() const { return unit == "user"; }
};

// Of all learners together. Without epsilon and delta there is none.
struct Budget {
  std::optional<double> epsilon, delta;
  Privacy::OnExhausted on_exhausted = Privacy::OnExhausted::kStopLearning;
  bool given() const { return epsilon.has_value(); }
};

struct Optimizer {
  enum class Kind { kSgd, kAdam, kAdagrad, kAdamBc };
  enum class Moments { kOwn, kLazy };
  Kind kind = Kind::kAdam;
  double learning_rate = 0.001;
  double row_learning_rate = 0;       // 0: learning_rate
  double momentum = 0;                // sgd: of dense parameters
  double beta1 = 0.9, beta2 = 0.999;  // adam, adam-bc
  double epsilon = 1e-8;              // adam, adam-bc (its rows), adagrad
  Moments moments = Moments::kOwn;    // adam, adam-bc: of rows
  double variance_floor = 1e-8;       // adam-bc: below what is left of the second moment
  double ema = 0;                     // decay of the weights' moving average; 0: none

  // Adam's moments are kept: adam, and adam-bc with the noise's share taken out.
  bool is_adam() const { return kind == Kind::kAdam || kind == Kind::kAdamBc; }
};

struct Learner {
  std::string id;
  Model model;
  History history;  // models of the next item
  Mechanism mechanism;
  Participation participation;
  Privacy privacy;
  Optimizer optimizer;
};

struct Store {
  std::string path;
  std::string witness;  // default: `path` + ".witness"; "none" for none
  uint32_t shards = 16;
  uint32_t commit_interval_ms = 1000;
};

struct Serve {
  std::string listen = "127.0.0.1:8980";  // HOST:PORT or unix:PATH; empty: no server
  std::string operator_listen;            // the same routes and operator-only metrics; empty: none
  uint32_t threads = 1;
  uint32_t max_body_bytes = 8 << 20;
};

struct Training {
  uint32_t workers = 2;
  bool idle_priority = true;  // trainer threads under SCHED_IDLE
};

struct Log {
  std::string format = "text";  // text | json
  std::string level = "info";
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
  Log log;
  Kafka kafka;               // source kafka
  std::string dead_letters;  // file; default: store path + ".dead-letters.jsonl"
  uint64_t memory_total_bytes = 2ull << 30;
};

// How a total is divided; every part is at least what its room can work with.
struct MemoryPlan {
  uint64_t row_cache_bytes = 0;  // per learner
  uint64_t store_bytes = 0;      // block cache and memtables
  uint64_t queue_bytes = 0;      // decoded steps waiting
  uint64_t model_bytes = 0;      // dense parameters, optimiser, activations
  uint64_t overlay_bytes = 0;    // committed rows and dense blobs not yet folded
};

// Reads a file. Every error names file, line, key and, for an unknown key, the nearest valid one.
// Precedence: `overrides` ("store.path=/x", from the command line) over environment
// (TACIT_STORE_PATH=/x) over the file. Relative paths are relative to the working directory.
Result<Config> Load(const std::string& path, const std::vector<std::string>& overrides);
// The same from text; `name` stands for the file in messages.
Result<Config> Parse(std::string_view yaml, const std::string& name,
                     const std::vector<std::string>& overrides);

// Whether what stands under this key is, or may be, a secret: it is in no dump and no message.
bool IsSecret(std::string_view key);
// The text itself. Of a file or credential, without one newline at its end; fails, naming the key
// and the file but nothing of its content.
Result<std::string> ReadSecret(const Secret& secret);
// librdkafka's settings, with what is kept elsewhere fetched; without Kafka Connect's.
Result<std::vector<std::pair<std::string, std::string>>> ReadKafkaProperties(const Kafka& kafka);
// The names of those that are kept elsewhere, and so are nobody's to see whatever they are called.
std::vector<std::string> KeptElsewhere(const Kafka& kafka);
// The places of secrets that are written out in the configuration itself.
std::vector<std::string> SecretsInTheOpen(const Config& config);

// The configuration as YAML with every default spelled out and secrets redacted.
std::string Dump(const Config& config);

// Divides memory_total_bytes, or says what is the least that would do. `items`: of the catalogue.
Result<MemoryPlan> PlanMemory(const Config& config, uint64_t items = 0);

}  // namespace tacit::config
