#pragma once

#include "base/result.h"
#include "config/config.h"
#include "config/fields.h"
#include "config/tree.h"

// The contents of each section of the configuration. Describe names the keys; Check does the checks
// that involve more than one key and fills in defaults that depend on other keys.
namespace tacit::config {

void DescribeSource(Fields& fields, Source& source);
Status CheckSource(const Place& place, LogFiles files, Source* source);  // finds the files
// The key that has to say where records of json or csv have this part, and does not; if empty, it
// does, or the format knows by itself.
enum class RecordPart { kUser, kItem, kEvent };
std::string UnsetPlace(const Source& source, RecordPart part);

void DescribeJson(Fields& fields, event::JsonShape& shape, bool used);
void DescribeAvro(Fields& fields, event::AvroShape& shape, bool used);
void DescribeCsv(Fields& fields, event::CsvShape& shape, bool used);
// The rules of one key, of what is written; and of several keys. The places themselves are checked
// where the schema is known.
Status CheckJsonKeys(const Place& json);
Status CheckCsvKeys(const Place& csv);
Status CheckShape(const Place& place, const event::RecordShape& shape);

Status CheckHaltAbove(const Place& place, const Source& source,
                      const std::vector<Learner>& learners);

void DescribeKafka(Fields& fields, Kafka& kafka, bool used);
// Fills in the topic of dead letters.
Status CheckKafka(const Place& place, const Config& config, Kafka* kafka);
// Returns true if records or the feed are in topics.
bool UsesKafka(const Config& config);

void DescribeFeed(Fields& fields, Feed& feed);
Status CheckFeed(const Place& place, const Config& config);

void DescribeAbout(Fields& fields, About& about);
Status CheckAbout(const Place& place, const About& about);

void DescribeWorkers(Fields& fields, Workers& workers);
Status CheckWorkers(const Place& place, const Config& config);

void DescribeFeature(Fields& fields, Feature& feature);
Status CheckFeatures(const Place& place, const std::vector<Feature>& features);

void DescribeLearner(Fields& fields, Learner& learner);
Status CheckLearners(const Place& place, const std::vector<Learner>& learners, const Source& source,
                     const Catalogue& catalogue);

void DescribeModel(Fields& fields, Model& model);

void DescribeMechanism(Fields& fields, Mechanism& mechanism);
Status CheckMechanism(const Place& place, const Mechanism& mechanism,
                      const Participation& participation);

// `used`: the model descends along gradients.
void DescribeOptimizer(Fields& fields, Optimizer& optimizer, bool used);
void DescribeOptimizer(Fields& fields, Optimizer& optimizer);

void DescribeBudget(Fields& fields, Budget& budget);
Status CheckBudget(const Place& place, const Budget& budget, const std::vector<Learner>& learners);

void DescribeStore(Fields& fields, Store& store);
void DescribeCheckpoints(Fields& fields, Checkpoints& checkpoints);
void DescribeAnchors(Fields& fields, Anchors& anchors);
Status CheckAnchors(const Place& place, const Store& store, Anchors* anchors);
Status CheckCheckpoints(const Place& place, const Store& store, Checkpoints* checkpoints);
void DescribeServe(Fields& fields, Serve& serve);
void DescribeDeadLetters(Fields& fields, DeadLetters& letters);
void DescribeTraining(Fields& fields, Training& training);
void DescribeGpu(Fields& fields, Gpu& gpu);
void DescribeLog(Fields& fields, Log& log);
Status CheckStore(const Place& place, Store* store);
Status CheckMark(const Place& place, const std::string& mark, const Store& store);
Status CheckServe(const Place& place, const Serve& serve);

// True if `file` lies in the directory, or is it.
bool Inside(const std::string& file, const std::string& directory);

// These cover the whole configuration: all keys, and all checks.
void DescribeConfig(Fields& fields, Config& config);
Status CheckConfig(const Tree& tree, LogFiles files, Config* config);

}  // namespace tacit::config
