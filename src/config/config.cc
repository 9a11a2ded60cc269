#include "config/config.h"

#include <fmt/format.h>

#include "config/environment.h"
#include "config/reader.h"
#include "config/secret.h"
#include "config/sections.h"
#include "config/text_file.h"
#include "config/tree.h"

namespace tacit::config {
namespace {

// Applies one "a.b=value" of the command line.
Status ApplyOverride(Tree* tree, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("override '{}': must be key=value",
                            MayHoldSecret(text) ? "(redacted)" : text.c_str()));
  }
  const std::string_view key = std::string_view(text).substr(0, equals);
  const std::string origin = MayHoldSecret(key) ? fmt::format("override '{}=(redacted)'", key)
                                                : fmt::format("override '{}'", text);
  return SetPath(tree, key, std::string_view(text).substr(equals + 1), origin);
}

}  // namespace

void DescribeConfig(Fields& fields, Config& config) {
  fields.Section({"source", "The stream that learners learn from."},
                 [&](Fields& below) { DescribeSource(below, config.source); });
  fields.Section(
      {"catalogue",
       "The public list of items, and all that is ever recommended: docs/using/recommending.md."},
      [&](Fields& below) {
        below.Text({"file",
                    "A file of lines `id` or `id::title::genre|genre`. Required for models of the "
                    "next item. The list is public: ids taken from users' records would reveal "
                    "those records. Another file is another model."},
                   &config.catalogue.file);
      });
  fields.Section({"schema", "The columns of a record."}, [&](Fields& below) {
    below.Sections({"features",
                    "The features, in order. A change makes another model, and the store refuses "
                    "it: docs/using/changing-data.md."},
                   &config.features, DescribeFeature, /*compact=*/true);
  });
  fields.Sections(
      {"learners",
       "One or more learners. Each has its own model, budget and part of the ledger. Compute and "
       "memory add up, and so do the epsilons of learners that see the same events."},
      &config.learners, DescribeLearner, /*compact=*/false);
  fields.Section(
      {"budget",
       "A budget of all learners together: what one event may lose to all of them, composed at "
       "`delta`. Each learner keeps its own budget besides. The step that would bring the total "
       "over it is not taken, and its learner stops. Without the section there is no such limit. "
       "Refused with a learner of mechanism `none`, which has no bound."},
      [&](Fields& below) { DescribeBudget(below, config.budget); });
  fields.Section(
      {"store",
       "The directory that keeps models, offsets and the ledger, with its proofs and copies."},
      [&](Fields& below) { DescribeStore(below, config.store); });
  fields.Section({"serve", "The HTTP server: docs/using/querying.md."},
                 [&](Fields& below) { DescribeServe(below, config.serve); });
  fields.Section({"memory", "The memory of the process."}, [&](Fields& below) {
    below.Bytes({"total_bytes",
                 "All of it. A start divides it (docs/internals/wiring.md), and refuses a number "
                 "that is too small."},
                &config.memory_total_bytes, 64ull << 20, kBytesMost);
  });
  fields.Section({"training", "The threads that train."},
                 [&](Fields& below) { DescribeTraining(below, config.training); });
  fields.Section(
      {"gpu",
       "A GPU that computes learners' steps: docs/using/gpu.md. It needs a Tacit built with the "
       "preset `cuda`. A store is the same with and without a GPU, and so is the charge."},
      [&](Fields& below) { DescribeGpu(below, config.gpu); });
  fields.Section({"log", "The log, on standard error."},
                 [&](Fields& below) { DescribeLog(below, config.log); });
  fields.Section({"feed",
                  "A compacted topic of the brokers in `kafka` that committed versions are "
                  "published to: docs/operating/replicas.md. It has what a release checkpoint "
                  "holds, and nothing else. `tools/kafka feed NAME PARTITIONS` makes one."},
                 [&](Fields& below) { DescribeFeed(below, config.feed); });
  fields.Section({"workers",
                  "Two topics of the brokers in `kafka` over which other machines sum up a linear "
                  "model's periods for this trainer. `tools/kafka workers NAME PARTITIONS` makes "
                  "them. It needs `source.periods: topic` and `feed.topic`."},
                 [&](Fields& below) { DescribeWorkers(below, config.workers); });
  DescribeKafka(fields, config.kafka, UsesKafka(config));
  fields.Section({"dead_letters",
                  "The file that names records which cannot be learnt from: the column or field "
                  "and what is wrong with it, never the content."},
                 [&](Fields& below) { DescribeDeadLetters(below, config.dead_letters); });
  fields.Section(
      {"about",
       "The operator's words in a statement of privacy: docs/using/statement.md. Nothing "
       "is learnt, charged or served by them."},
      [&](Fields& below) { DescribeAbout(below, config.about); });
}

Status CheckConfig(const Tree& tree, LogFiles files, Config* config) {
  const Place root(tree);
  TACIT_RETURN_IF_ERROR(CheckSource(root.Key("source"), files, &config->source));
  TACIT_RETURN_IF_ERROR(CheckKafka(root.Key("kafka"), *config, &config->kafka));
  TACIT_RETURN_IF_ERROR(CheckFeed(root.Key("feed"), *config));
  TACIT_RETURN_IF_ERROR(CheckWorkers(root.Key("workers"), *config));
  TACIT_RETURN_IF_ERROR(CheckFeatures(root.Key("schema").Key("features"), config->features));
  TACIT_RETURN_IF_ERROR(
      CheckLearners(root.Key("learners"), config->learners, config->source, config->catalogue));
  TACIT_RETURN_IF_ERROR(
      CheckHaltAbove(root.Key("source").Key("halt_above"), config->source, config->learners));
  TACIT_RETURN_IF_ERROR(CheckBudget(root.Key("budget"), config->budget, config->learners));
  TACIT_RETURN_IF_ERROR(CheckStore(root.Key("store"), &config->store));
  TACIT_RETURN_IF_ERROR(
      CheckMark(root.Key("source").Key("mark"), config->source.mark, config->store));
  TACIT_RETURN_IF_ERROR(CheckServe(root.Key("serve"), config->serve));
  TACIT_RETURN_IF_ERROR(CheckAbout(root.Key("about"), config->about));
  if (config->dead_letters.path.empty()) {
    config->dead_letters.path = config->store.path + ".dead-letters.jsonl";
  }
  return {};
}

Result<Config> Parse(std::string_view yaml, const std::string& name,
                     const std::vector<std::string>& overrides, LogFiles files) {
  TACIT_ASSIGN(Tree tree, ParseYaml(yaml, name));
  if (tree.kind != Tree::Kind::kMap && tree.kind != Tree::Kind::kNull) {
    return Place(tree).Fail("must be a section of keys");
  }
  TACIT_ASSIGN(const std::vector<Setting> settings, ReadEnvironment(ProcessEnvironment()));
  for (const Setting& setting : settings) {
    TACIT_RETURN_IF_ERROR(
        SetPath(&tree, setting.path, setting.value, "environment " + setting.variable));
  }
  for (const std::string& text : overrides) TACIT_RETURN_IF_ERROR(ApplyOverride(&tree, text));

  Config config;
  Outcome outcome;
  Reader reader(Place(tree), &outcome);
  DescribeConfig(reader, config);
  reader.Finish();
  TACIT_RETURN_IF_ERROR(std::move(outcome.wrong));
  TACIT_RETURN_IF_ERROR(std::move(outcome.missing));
  TACIT_RETURN_IF_ERROR(CheckConfig(tree, files, &config));
  return config;
}

Result<Kafka> LoadKafka(const std::string& path, const std::string& bootstrap) {
  Tree tree{.kind = Tree::Kind::kMap, .origin = "--bootstrap"};
  if (!path.empty()) {
    TACIT_ASSIGN(const std::string yaml, ReadTextFile(path));
    TACIT_ASSIGN(tree, ParseYaml(yaml, path));
    if (tree.kind != Tree::Kind::kMap) return Place(tree).Fail("must be a section of keys");
    if (tree.Find("kafka") == nullptr) return Place(tree).Fail("has no section kafka");
  }
  TACIT_ASSIGN(const std::vector<Setting> settings, ReadEnvironment(ProcessEnvironment()));
  for (const Setting& setting : settings)
    if (setting.path.starts_with("kafka."))
      TACIT_RETURN_IF_ERROR(
          SetPath(&tree, setting.path, setting.value, "environment " + setting.variable));
  Kafka kafka;
  Outcome outcome;
  Reader reader(Place(tree), &outcome);
  DescribeKafka(reader, kafka, /*used=*/true);
  TACIT_RETURN_IF_ERROR(std::move(outcome.wrong));
  TACIT_RETURN_IF_ERROR(std::move(outcome.missing));
  if (!bootstrap.empty()) {
    std::erase_if(kafka.properties, [](const Property& property) {
      return property.name == "bootstrap.servers" || property.name == "metadata.broker.list";
    });
    kafka.properties.insert(
        kafka.properties.begin(),
        {.name = "bootstrap.servers", .value = {.text = bootstrap, .place = "--bootstrap"}});
  }
  return kafka;
}

Result<Config> Load(const std::string& path, const std::vector<std::string>& overrides,
                    LogFiles files) {
  TACIT_ASSIGN(const std::string yaml, ReadTextFile(path));
  return Parse(yaml, path, overrides, files);
}

}  // namespace tacit::config
