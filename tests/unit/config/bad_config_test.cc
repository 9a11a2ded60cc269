#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "config/config.h"
#include "sample.h"
#include "support/temp_dir.h"

namespace tacit::config {
namespace {

// One change to the sample and all that is said about it.
struct BadCase {
  std::string name, from, to, message;
};
void PrintTo(const BadCase& bad, std::ostream* out) { *out << bad.name; }

class BadConfig : public testing::TestWithParam<BadCase> {};

TEST_P(BadConfig, IsRefusedWithFileLineAndKey) {
  const Result<Config> config = Parse(Sample(GetParam().from, GetParam().to), "c.yaml", {});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(config.error().message, GetParam().message);
}

const std::vector<BadCase> kRequired = {
    {"NoSource", "source:\n  kind: generator\n", "",
     "c.yaml:1: source.kind: required, and has no default"},
    {"NoFiles", "kind: generator", "kind: log",
     "c.yaml:1: source.files: required, and has no default"},
    {"NotYaml", "schema:", "schema: [", "c.yaml:5: not YAML: illegal block entry"},
    {"EmptyFeatures",
     "\n    - {name: I1, kind: dense}\n    - {name: C1, kind: categorical, buckets: 1000}\n    - "
     "{name: M1, kind: multi_hot, buckets: 500, dim: 8, max_values: 4}",
     " []", "c.yaml:4: schema.features: must be a list of at least one item"},
    {"NoBuckets", ", buckets: 1000", "",
     "c.yaml:6: schema.features[1].buckets: required, and has no default"},
    {"NoId",
     "id: ctr\n    model:", "model:", "c.yaml:9: learners[0].id: required, and has no default"},
    {"NoModelKind", "kind: pctr", "seed: 3",
     "c.yaml:10: learners[0].model.kind: required, and has no default"},
    {"NoMechanismKind", "kind: adafest\n      ", "",
     "c.yaml:13: learners[0].mechanism.kind: required, and has no default"},
    {"NoThreshold", "      threshold: 10\n", "",
     "c.yaml:13: learners[0].mechanism.threshold: required, and has no default"},
    {"NoMode", "      mode: once\n", "",
     "c.yaml:16: learners[0].participation.mode: required, and has no default"},
    {"NoUnit", "      unit: event\n", "",
     "c.yaml:19: learners[0].privacy.unit: required, and has no default"},
    {"NoEpsilon", "      epsilon: 8\n", "",
     "c.yaml:19: learners[0].privacy.epsilon: required, and has no default"},
    {"NoDelta", "      delta: 1e-7\n", "",
     "c.yaml:19: learners[0].privacy.delta: required, and has no default"},
    {"NoPrivacy", "    privacy:\n      unit: event\n      epsilon: 8\n      delta: 1e-7\n", "",
     "c.yaml:9: learners[0].privacy.unit: required, and has no default"},
    {"NoStorePath", "  path: /tmp/tacit/store\n", "",
     "c.yaml:23: store.path: required, and has no default"},
};
INSTANTIATE_TEST_SUITE_P(Required, BadConfig, testing::ValuesIn(kRequired));

// Faults of a feed. The source is a generator, so that kafka is the feed's alone.
const std::vector<BadCase> kFeed = {
    {"FeedTopic", "schema:", "feed: {topic: \"a b\"}\nkafka: {bootstrap.servers: x}\nschema:",
     "c.yaml:3: feed.topic: 'a b' is no topic's name"},
    {"FeedWithoutBrokers", "schema:", "feed: {topic: model}\nschema:",
     "c.yaml:1: kafka.bootstrap.servers: required, and has no default"},
    {"FeedTooOldAtOnce", "schema:",
     "feed: {topic: model, interval_ms: 5000, max_age_ms: 5000}\n"
     "kafka: {bootstrap.servers: x}\nschema:",
     "c.yaml:3: feed.max_age_ms: must be more than feed.interval_ms, 5000, is 5000: every version "
     "would be too old"},
    {"FeedIsNoSource", "schema:",
     "feed: {topic: model}\nkafka: {bootstrap.servers: x, "
     "errors.deadletterqueue.topic.name: dead}\nschema:",
     "c.yaml:4: kafka.errors.deadletterqueue.topic.name: is for source.kind kafka: dead letters of "
     "another source go to a file"},
};
INSTANTIATE_TEST_SUITE_P(Feed, BadConfig, testing::ValuesIn(kFeed));

const std::vector<BadCase> kKeys = {
    {"MisspeltKey", "epsilon: 8", "epsilom: 8",
     "c.yaml:21: learners[0].privacy.epsilom: unknown key (did you mean 'epsilon'?)"},
    {"MisspeltSection",
     "store:", "storage:", "c.yaml:23: storage: unknown key (did you mean 'store'?)"},
    {"FarOffKey", "batch: 4096", "quokka: 1",
     "c.yaml:18: learners[0].participation.quokka: unknown key"},
    {"DuplicateKey", "epsilon: 8", "epsilon: 8\n      epsilon: 4",
     "c.yaml:22: epsilon: written twice, first at c.yaml:21"},
    {"DuplicateSection", "store:", "source:\n  kind: log\nstore:",
     "c.yaml:23: source: written twice, first at c.yaml:1"},
    {"Anchor", "kind: generator", "kind: &k generator",
     "c.yaml:2: anchors and aliases are not read; write the value out"},
    {"Alias", "kind: generator", "kind: *k",
     "c.yaml:2: not YAML: the referenced anchor is not defined"},
    {"Tag", "epsilon: 8", "epsilon: !!float 8",
     "c.yaml:21: tags are not read: tag:yaml.org,2002:float"},
    {"KeyIsAList", "epsilon: 8", "[a]: 8", "c.yaml:21: a key must be plain text"},
    {"TwoDocuments", "store:", "---\nstore:", "c.yaml: holds more than one document"},
    {"NotASection", "store:\n  path: /tmp/tacit/store", "store: /tmp",
     "c.yaml:23: store: must be a section of keys"},
    {"LearnersNotAList", "learners:\n  - id: ctr", "learners:\n    id: ctr",
     "c.yaml:8: learners: must be a list of at least one item"},
    {"LearnerNotASection",
     "store:", "  - ctr\nstore:", "c.yaml:23: learners[1]: must be a section of keys"},
    {"NoValue", "epsilon: 8",
     "epsilon:", "c.yaml:21: learners[0].privacy.epsilon: has no value; expected a number"},
    {"SectionForNumber", "epsilon: 8", "epsilon: {a: 1}",
     "c.yaml:21: learners[0].privacy.epsilon: expected a number, found a section"},
    {"ListForText", "path: /tmp/tacit/store", "path: [a]",
     "c.yaml:24: store.path: expected a text (\"\" for an empty one), found a list"},
};
INSTANTIATE_TEST_SUITE_P(Keys, BadConfig, testing::ValuesIn(kKeys));

const std::vector<BadCase> kValues = {
    {"SourceKind", "kind: generator", "kind: kafk",
     "c.yaml:2: source.kind: must be one of log, generator, kafka, is 'kafk' (did you mean "
     "'kafka'?)"},
    {"ModelKind", "kind: pctr", "kind: pctx",
     "c.yaml:11: learners[0].model.kind: must be one of pctr, sequence, transitions, linear, is "
     "'pctx' (did you mean 'pctr'?)"},
    {"FeatureKind", "kind: dense", "kind: densse",
     "c.yaml:5: schema.features[0].kind: must be one of dense, categorical, multi_hot, is "
     "'densse' (did you mean 'dense'?)"},
    {"BucketsOfADense", "kind: dense", "kind: dense, buckets: 10",
     "c.yaml:5: schema.features[0].buckets: has no meaning for this kind"},
    {"TransformOfATable", "buckets: 1000", "buckets: 1000, transform: identity",
     "c.yaml:6: schema.features[1].transform: has no meaning for this kind"},
    {"OneBucket", "buckets: 1000", "buckets: 1",
     "c.yaml:6: schema.features[1].buckets: must be between 2 and 68719476736, is 1"},
    {"TwoFeaturesOfAName", "name: C1", "name: I1",
     "c.yaml:6: schema.features[1].name: another feature is called 'I1' too"},
    {"NamelessFeature", "name: C1", "name: ''",
     "c.yaml:6: schema.features[1].name: must not be empty"},
    {"IdWithCapitals", "id: ctr", "id: CTR",
     "c.yaml:9: learners[0].id: must be of a-z, 0-9, _ and - only, is 'CTR'"},
    {"HiddenZero", "[128, 64]", "[128, 0]",
     "c.yaml:12: learners[0].model.hidden[1]: must be between 1 and 65536, is 0"},
    {"HiddenTooWide", "[128, 64]", "[65537]",
     "c.yaml:12: learners[0].model.hidden[0]: must be between 1 and 65536, is 65537"},
    {"HiddenEmpty", "[128, 64]", "[]",
     "c.yaml:12: learners[0].model.hidden: must be a list of whole numbers, such as [128, 64]"},
    {"BatchZero", "batch: 4096", "batch: 0",
     "c.yaml:18: learners[0].participation.batch: must be between 1 and 16777216, is 0"},
    {"BatchNegative", "batch: 4096", "batch: -1",
     "c.yaml:18: learners[0].participation.batch: must be a whole number of at least 1, is '-1'"},
    {"BatchFraction", "batch: 4096", "batch: 1.5",
     "c.yaml:18: learners[0].participation.batch: must be a whole number of at least 1, is '1.5'"},
    {"BatchTooLongForAnyInteger", "batch: 4096", "batch: 99999999999999999999",
     "c.yaml:18: learners[0].participation.batch: must be between 1 and 16777216, is "
     "99999999999999999999"},
    {"NumberInQuotes", "epsilon: 8", "epsilon: \"8\"",
     "c.yaml:21: learners[0].privacy.epsilon: must be a number, is '8'"},
    {"NotANumber", "epsilon: 8", "epsilon: .nan",
     "c.yaml:21: learners[0].privacy.epsilon: must be a number, is '.nan'"},
    {"ThresholdNegative", "threshold: 10", "threshold: -1",
     "c.yaml:15: learners[0].mechanism.threshold: must be at least 0, is -1"},
    {"RatioZero", "threshold: 10", "threshold: 10\n      sigma_ratio: 0",
     "c.yaml:16: learners[0].mechanism.sigma_ratio: must be at least 0.001 and at most 1000, is 0"},
    {"BetaOne", "store:", "    optimizer: {beta1: 1}\nstore:",
     "c.yaml:23: learners[0].optimizer.beta1: must be at least 0 and below 1, is 1"},
    {"EmaOne", "store:", "    optimizer: {ema: 1}\nstore:",
     "c.yaml:23: learners[0].optimizer.ema: must be at least 0 and below 1, is 1"},
    {"FlagYes", "store:", "training: {idle_priority: yes}\nstore:",
     "c.yaml:23: training.idle_priority: must be true or false, is 'yes'"},
    {"MemoryUnit", "store:", "memory: {total_bytes: 2GB}\nstore:",
     "c.yaml:23: memory.total_bytes: must be a number of bytes, such as 512MiB or 2GiB, is '2GB'"},
    {"MemoryTooSmall", "store:", "memory: {total_bytes: 1KiB}\nstore:",
     "c.yaml:23: memory.total_bytes: must be between 67108864 and 1125899906842624 bytes, is 1KiB"},
    {"MemoryTooLarge", "store:", "memory: {total_bytes: 99999999999GiB}\nstore:",
     "c.yaml:23: memory.total_bytes: must be between 67108864 and 1125899906842624 bytes, is "
     "99999999999GiB"},
    {"LogLevel", "store:", "log: {level: inf}\nstore:",
     "c.yaml:23: log.level: must be one of trace, debug, info, warning, error, critical, off, is "
     "'inf' (did you mean 'info'?)"},
    {"Listen", "store:", "serve: {listen: localhost}\nstore:",
     "c.yaml:23: serve.listen: must be HOST:PORT, unix:PATH or empty, is 'localhost'"},
    {"ListenPort", "store:", "serve: {listen: 'a:65536'}\nstore:",
     "c.yaml:23: serve.listen: must be HOST:PORT, unix:PATH or empty, is 'a:65536'"},
    {"ListenBareV6", "store:", "serve: {operator_listen: '::1:80'}\nstore:",
     "c.yaml:23: serve.operator_listen: must be HOST:PORT, unix:PATH or empty, is '::1:80'"},
    {"TlsWithoutKey", "store:", "serve: {tls: {certificate: a.pem}}\nstore:",
     "c.yaml:23: serve.tls: certificate and key go together: one of them is empty"},
    {"ClientsWithoutTls", "store:", "serve: {tls: {client_ca: a.pem}}\nstore:",
     "c.yaml:23: serve.tls: client_ca needs certificate and key: without TLS no client shows "
     "any"},
    {"HostWithPort", "store:", "serve: {hosts: ['a:80']}\nstore:",
     "c.yaml:23: serve.hosts: must be names without a port, .example.org for all names below it, "
     "or any; one is 'a:80'"},
    {"HostWithStar", "store:", "serve: {hosts: ['*.svc']}\nstore:",
     "c.yaml:23: serve.hosts: must be names without a port, .example.org for all names below it, "
     "or any; one is '*.svc'"},
    {"HostThatIsADot", "store:", "serve: {hosts: [.]}\nstore:",
     "c.yaml:23: serve.hosts: must be names without a port, .example.org for all names below it, "
     "or any; one is '.'"},
    {"DrainOfAnHour", "store:", "serve: {drain_ms: 3600000}\nstore:",
     "c.yaml:23: serve.drain_ms: must be between 0 and 600000, is 3600000"},
    {"StandbyAddress", "store:", "serve: {standby_listen: here}\nstore:",
     "c.yaml:23: serve.standby_listen: must be HOST:PORT, unix:PATH or empty, is 'here'"},
    {"StandbyWhereTheDaemonIs", "store:", "serve:\n  listen: a:1\n  standby_listen: a:1\nstore:",
     "c.yaml:25: serve.standby_listen: must differ from serve.listen and serve.operator_listen: "
     "the "
     "daemon that has the store listens there"},
    {"OperatorsInTheOpen", "store:", "serve:\n  listen: a:1\n  operator_listen: a:1\nstore:",
     "c.yaml:25: serve.operator_listen: must differ from serve.listen: what is for operators only "
     "would be open to all"},
    {"WitnessInTheStore", "path: /tmp/tacit/store",
     "path: /tmp/tacit/store/\n  witness: /tmp/tacit/x/../store/w",
     "c.yaml:25: store.witness: lies inside store.path: a copy of the store would bring its "
     "witness along, and prove nothing"},
    {"MarkInTheStore", "kind: generator",
     "kind: log\n  files: [/dev/null]\n  mark: /tmp/tacit/store/mark",
     "c.yaml:4: source.mark: lies inside store.path: it would be put back together with the store"},
    {"MarkIsTheWitness", "kind: generator",
     "kind: log\n  files: [/dev/null]\n  mark: /tmp/tacit/store.witness",
     "c.yaml:4: source.mark: is the same as store.witness: put the two in different places"},
    {"OptOutWithoutUsers", "kind: generator", "kind: log\n  files: [/dev/null]\n  opt_out: /x",
     "c.yaml:4: source.opt_out: is for sources of formats json, csv, protobuf and avro: other "
     "records "
     "name no user, and would be learnt from"},
    {"OptOutWithoutAPlaceOfUsers", "kind: generator",
     "kind: log\n  files: [/dev/null]\n  format: csv\n  opt_out: /x",
     "c.yaml:5: source.opt_out: needs source.csv.user, the place of a record's user: nobody would "
     "be "
     "known, and all would be learnt from"},
    {"OptOutWhereUsersAreNotRead", "kind: generator",
     "kind: log\n  files: [/dev/null]\n  format: json\n  json: {user: ''}\n  opt_out: /x",
     "c.yaml:6: source.opt_out: needs source.json.user, the place of a record's user: nobody would "
     "be known, and all would be learnt from"},
    {"DedupeWithoutAPlaceOfIds", "kind: generator",
     "kind: log\n  files: [/dev/null]\n  format: csv\n  csv: {user: u}\n  dedupe: {window: 9}",
     "c.yaml:6: source.dedupe.window: needs source.csv.event_id, the place of an event's id: no "
     "two "
     "records could be compared"},
    {"CsvSeparator", "kind: generator",
     "kind: log\n  files: [/dev/null]\n  format: csv\n  csv: {separator: ';;'}",
     "c.yaml:5: source.csv.separator: must be one character of one byte, and neither a quote nor a "
     "line's end, is ';;'"},
    {"CsvWithoutColumns", "kind: generator",
     "kind: log\n  files: [/dev/null]\n  format: csv\n  csv: {header: false}",
     "c.yaml:5: source.csv.columns: is needed where no file's first line names the columns"},
    {"CsvColumnsOfNoName", "kind: generator",
     "kind: log\n  files: [/dev/null]\n  format: csv\n  csv: {columns: \"\"}",
     "c.yaml:5: source.csv.columns: is empty or holds a zero byte"},
    {"MarkIsInput", "kind: generator", "kind: log\n  files: [/dev/nul*]\n  mark: /dev/null-mark",
     "c.yaml:4: source.mark: would be read as one of source.files: '/dev/nul*' matches "
     "'/dev/null-mark'"},
    {"ZeroByteInAText", "path: /tmp/tacit/store", "path: \"a\\0b\"",
     "c.yaml:24: store.path: holds a zero byte"},
    {"LongText", "path: /tmp/tacit/store", "path: " + std::string(65'537, 'x'),
     "c.yaml:24: a text of 65537 bytes, where 65536 are the most"},
    {"NoSuchFiles", "kind: generator", "kind: log\n  files: [/nowhere/day-*.gz]",
     "c.yaml:3: source.files[0]: no file matches '/nowhere/day-*.gz'"},
    {"FileNamedTwice", "kind: generator", "kind: log\n  files: [/dev/null, /dev/nul*]",
     "c.yaml:3: source.files[1]: names '/dev/null' again"},
};
INSTANTIATE_TEST_SUITE_P(Values, BadConfig, testing::ValuesIn(kValues));

const std::vector<BadCase> kPrivacy = {
    {"DeltaOne", "delta: 1e-7", "delta: 1",
     "c.yaml:22: learners[0].privacy.delta: must be above 0 and below 1, is 1"},
    {"DeltaZero", "delta: 1e-7", "delta: 0",
     "c.yaml:22: learners[0].privacy.delta: must be above 0 and below 1, is 0"},
    {"RowEpsilonOfNoCharge", "kind: adafest\n      threshold: 10",
     "kind: exponential\n      rows: 2\n      row_epsilon: 1e-300",
     "c.yaml:16: learners[0].mechanism.row_epsilon: must be at least 1e-06 and at most 1000000, is "
     "1e-300"},
    {"EpsilonZero", "epsilon: 8", "epsilon: 0",
     "c.yaml:21: learners[0].privacy.epsilon: must be above 0 and at most 1000000, is 0"},
    {"EpsilonInfiniteWithNoise", "epsilon: 8", "epsilon: .inf",
     "c.yaml:21: learners[0].privacy.epsilon: an epsilon of .inf is for mechanism none only; give "
     "the epsilon to keep"},
    {"EpsilonFiniteWithoutNoise", "kind: adafest\n      threshold: 10", "kind: none",
     "c.yaml:20: learners[0].privacy.epsilon: mechanism none adds no noise, so no finite epsilon "
     "holds; write .inf, or use a mechanism"},
    {"NoiseZero", "threshold: 10", "threshold: 10\n      noise_multiplier: 0",
     "c.yaml:16: learners[0].mechanism.noise_multiplier: 0 adds no noise, so no finite epsilon "
     "holds; leave it out to have it follow from epsilon and delta"},
    {"UnitUser", "unit: event", "unit: user",
     "c.yaml:16: learners[0].participation.max_participations: required, and has no default"},
    {"UnitUserWithoutUsers", "batch: 4096\n    privacy:\n      unit: event",
     "batch: 4096\n      max_participations: 3\n    privacy:\n      unit: user",
     "c.yaml:21: learners[0].privacy.unit: unit user needs records that name their user: "
     "source.format json, csv or protobuf; use event"},
    {"UnitElse", "unit: event", "unit: household",
     "c.yaml:20: learners[0].privacy.unit: must be one of event, user, is 'household'"},
    {"MorePassesThanParticipations", "kind: generator",
     "kind: log\n  files: /dev/null\n  passes: 3",
     "c.yaml:18: learners[0].participation.max_participations: 1 is less than source.passes 3: "
     "each pass is a participation of every event, and is charged"},
    {"OnExhausted", "epsilon: 8", "epsilon: 8\n      on_exhausted: stop",
     "c.yaml:22: learners[0].privacy.on_exhausted: must be one of stop-learning, exit, is 'stop'"},
    {"TotalBudgetWithoutDelta", "store:", "budget: {epsilon: 10}\nstore:",
     "c.yaml:23: budget.delta: required where there is a total budget, and has no default"},
    {"TotalBudgetWithoutEpsilon", "store:", "budget: {on_exhausted: exit}\nstore:",
     "c.yaml:23: budget.epsilon: required where there is a total budget, and has no default"},
    {"TotalBudgetOfNothing", "store:", "budget: {epsilon: 0, delta: 1e-6}\nstore:",
     "c.yaml:23: budget.epsilon: must be above 0 and at most 1000000, is 0"},
    {"TotalBudgetWithoutEnd", "store:", "budget: {epsilon: .inf, delta: 1e-6}\nstore:",
     "c.yaml:23: budget.epsilon: must be finite, is '.inf'"},
    {"TotalBudgetWithALearnerWithoutPrivacy",
     "kind: adafest\n      threshold: 10\n    participation:\n      mode: once\n      batch: 4096\n"
     "    privacy:\n      unit: event\n      epsilon: 8\n      delta: 1e-7\n",
     "kind: none\n    participation:\n      mode: once\n"
     "    privacy: {unit: event, epsilon: .inf, delta: 1e-7}\nbudget: {epsilon: 8, delta: 1e-6}\n",
     "c.yaml:18: budget.epsilon: learner 'ctr' has mechanism none, so that the total has no bound: "
     "no total budget can be kept"},
};
INSTANTIATE_TEST_SUITE_P(Privacy, BadConfig, testing::ValuesIn(kPrivacy));

const std::vector<BadCase> kMechanisms = {
    {"KindMisspelt", "kind: adafest\n", "kind: adafest*\n",
     "c.yaml:14: learners[0].mechanism.kind: must be one of none, adafest, adafest+, fest, dp-sgd, "
     "exponential, counts, sums, forward, is 'adafest*' (did you mean 'adafest'?)"},
    {"PlusWithoutThreshold", "kind: adafest\n      threshold: 10",
     "kind: adafest+\n      vocabulary: {source: file, file: x}",
     "c.yaml:13: learners[0].mechanism.threshold: required, and has no default"},
    {"FestWithoutVocabulary", "kind: adafest\n      threshold: 10", "kind: fest",
     "c.yaml:13: learners[0].mechanism.vocabulary.source: required, and has no default"},
    {"VocabularySource", "kind: adafest\n      threshold: 10",
     "kind: fest\n      vocabulary: {source: stream}",
     "c.yaml:15: learners[0].mechanism.vocabulary.source: must be one of file, first-period, "
     "running, is 'stream'"},
    {"VocabularyWithoutFile", "kind: adafest\n      threshold: 10",
     "kind: fest\n      vocabulary: {source: file}",
     "c.yaml:15: learners[0].mechanism.vocabulary.file: required, and has no default"},
    {"VocabularyWithoutKeep", "kind: adafest\n      threshold: 10",
     "kind: fest\n      vocabulary: {source: running, noise_multiplier: 20}",
     "c.yaml:15: learners[0].mechanism.vocabulary.keep: required, and has no default"},
    {"VocabularyWithoutNoise", "kind: adafest\n      threshold: 10",
     "kind: fest\n      vocabulary: {source: running, keep: 10}",
     "c.yaml:15: learners[0].mechanism.vocabulary.noise_multiplier: required, and has no default"},
    {"VocabularyNoiseZero", "kind: adafest\n      threshold: 10",
     "kind: fest\n      vocabulary: {source: running, keep: 10, noise_multiplier: 0}",
     "c.yaml:15: learners[0].mechanism.vocabulary.noise_multiplier: must be at least 0.001 and at "
     "most 1000000, is 0"},
    {"VocabularyQuery", "kind: adafest\n      threshold: 10",
     "kind: fest\n      vocabulary: {source: running, query: laplace}",
     "c.yaml:15: learners[0].mechanism.vocabulary.query: must be one of gaussian, gumbel, is "
     "'laplace'"},
    {"VocabularyOfAPeriodWithOnce", "kind: adafest\n      threshold: 10",
     "kind: fest\n      vocabulary: {source: running, keep: 10, noise_multiplier: 20}",
     "c.yaml:15: learners[0].mechanism.vocabulary.source: a histogram needs a period that is held, "
     "and participation.mode once holds none; use mode allocate or poisson, or source "
     "file"},
    {"ExponentialWithoutRows", "kind: adafest\n      threshold: 10", "kind: exponential",
     "c.yaml:13: learners[0].mechanism.rows: required, and has no default"},
    {"ExponentialWithoutEpsilon", "kind: adafest\n      threshold: 10",
     "kind: exponential\n      rows: 5",
     "c.yaml:13: learners[0].mechanism.row_epsilon: required, and has no default"},
    {"ExponentialRowClip", "kind: adafest\n      threshold: 10",
     "kind: exponential\n      row_clip: 0",
     "c.yaml:15: learners[0].mechanism.row_clip: must be at least 1e-06 and at most 1000000, is 0"},
    // Values that no integer grid can carry would end the process.
    {"ClipTooSmall", "threshold: 10", "threshold: 10\n      gradient_clip: 1e-320",
     "c.yaml:16: learners[0].mechanism.gradient_clip: must be at least 1e-06 and at most 1000000, "
     "is 1e-320"},
    {"ClipTooLarge", "threshold: 10",
     "threshold: 10\n      clipping: quantile\n      gradient_clip: 2e6",
     "c.yaml:17: learners[0].mechanism.gradient_clip: must be at least 1e-06 and at most 1000000, "
     "is 2e6"},
    {"QuantileNoiseTooLarge", "threshold: 10",
     "threshold: 10\n      clipping: quantile\n      quantile: {noise_multiplier: 1e12}",
     "c.yaml:17: learners[0].mechanism.quantile.noise_multiplier: must be at least 0.001 and at "
     "most 1000000, is 1e12"},
    {"Clipping", "threshold: 10", "threshold: 10\n      clipping: ghost",
     "c.yaml:16: learners[0].mechanism.clipping: must be one of flat, automatic, per-layer, "
     "quantile, is 'ghost'"},
    {"QuantileWithoutNoise", "threshold: 10", "threshold: 10\n      clipping: quantile",
     "c.yaml:13: learners[0].mechanism.quantile.noise_multiplier: required, and has no default"},
    {"QuantileTargetOne", "threshold: 10",
     "threshold: 10\n      clipping: quantile\n      quantile: {target: 1}",
     "c.yaml:17: learners[0].mechanism.quantile.target: must be above 0 and below 1, is 1"},
    {"QuantileRateZero", "threshold: 10",
     "threshold: 10\n      clipping: quantile\n      quantile: {rate: 0}",
     "c.yaml:17: learners[0].mechanism.quantile.rate: must be above 0 and at most 10, is 0"},
    {"CategoricalYes", "kind: pctr", "kind: pctr\n      categorical: yes",
     "c.yaml:12: learners[0].model.categorical: must be true or false, is 'yes'"},
    {"PoissonWithoutPeriod", "mode: once\n      batch: 4096",
     "mode: poisson\n      batch: 4\n      sampling_rate: 0.1\n      steps_per_period: 3",
     "c.yaml:16: learners[0].participation.period: nothing closes a period: give period, its "
     "number of offsets, or period_files, its number of files (1: every file is a period)"},
    {"PeriodFilesZero", "mode: once\n      batch: 4096",
     "mode: poisson\n      batch: 4\n      sampling_rate: 0.1\n      steps_per_period: 3\n      "
     "period_files: 0\n      period: 0",
     "c.yaml:22: learners[0].participation.period: nothing closes a period: give period, its "
     "number of offsets, or period_files, its number of files (1: every file is a period)"},
    {"AllocateWithoutBatch", "mode: once\n      batch: 4096",
     "mode: allocate\n      steps_per_period: 3\n      period: 9",
     "c.yaml:16: learners[0].participation.batch: required, and has no default"},
    {"AllocateWithoutSteps", "mode: once\n      batch: 4096",
     "mode: allocate\n      batch: 4\n      period: 9",
     "c.yaml:16: learners[0].participation.steps_per_period: required, and has no default"},
    {"AllocateInTooManySteps", "mode: once\n      batch: 4096",
     "mode: allocate\n      batch: 4\n      steps_per_period: 100001\n      period: 9",
     "c.yaml:19: learners[0].participation.steps_per_period: must be between 1 and "
     "100000, "
     "is 100001"},
    {"AllocateInNoBlock", "mode: once\n      batch: 4096",
     "mode: allocate\n      batch: 4\n      steps_per_period: 3\n      blocks: 0",
     "c.yaml:20: learners[0].participation.blocks: must be between 1 and 10000, is 0"},
    {"StepFilesZero", "mode: once", "mode: once\n      step_files: 0",
     "c.yaml:18: learners[0].participation.step_files: must be between 1 and 1000000, is 0"},
    {"PeriodFilesNegative", "mode: once", "mode: poisson\n      period_files: -1",
     "c.yaml:18: learners[0].participation.period_files: must be a whole number of at least 0, is "
     "'-1'"},
};
INSTANTIATE_TEST_SUITE_P(Mechanisms, BadConfig, testing::ValuesIn(kMechanisms));

TEST(BadConfigFile, IdsMustDiffer) {
  const std::string learner = std::string(
      kSample.substr(kSample.find("  - id"), kSample.find("store:") - kSample.find("  - id")));
  const Result<Config> config = Parse(Sample("store:", learner + "store:"), "c.yaml", {});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message,
            "c.yaml:23: learners[1].id: another learner is called 'ctr' too");
}

TEST(BadConfigFile, MissingFileIsNotFound) {
  const Result<Config> config = Load("/nowhere/tacit.yaml", {});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(config.error().message,
            "/nowhere/tacit.yaml: cannot be read: No such file or directory");
}

TEST(BadConfigFile, DirectoryIsNotAConfiguration) {
  const Result<Config> config = Load("/tmp", {});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(config.error().message, "/tmp: cannot be read: is a directory, not a file");
}

// A pipe that nobody writes to would hold a daemon's reload up, and its end with it.
TEST(BadConfigFile, APipeOrADeviceIsNotAConfiguration) {
  const test::TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {dir / "pipe", std::string("/dev/zero")}) {
    const Result<Config> config = Load(path, {});
    ASSERT_FALSE(config);
    EXPECT_EQ(config.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(config.error().message, path + ": cannot be read: is not a regular file");
  }
}

TEST(BadConfigFile, AFileThatIsTooLongIsNotAConfiguration) {
  const test::TempDir dir;
  std::ofstream(dir / "c.yaml").flush();
  std::filesystem::resize_file(dir / "c.yaml", 65 << 20);
  const Result<Config> config = Load(dir / "c.yaml", {});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(config.error().message, (dir / "c.yaml") + ": is longer than 64 MiB");
}

TEST(BadConfigFile, ListIsNotAConfiguration) {
  const Result<Config> config = Parse("- a", "c.yaml", {});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message, "c.yaml:1: must be a section of keys");
}

TEST(BadConfigFile, EmptyTextLacksItsFirstRequiredKey) {
  const Result<Config> config = Parse("", "c.yaml", {});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message, "c.yaml:1: source.kind: required, and has no default");
}

}  // namespace
}  // namespace tacit::config
