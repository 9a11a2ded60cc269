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
  fields.Section("source", [&](Fields& below) { DescribeSource(below, config.source); });
  fields.Section("catalogue", [&](Fields& below) { below.Text("file", &config.catalogue.file); });
  fields.Section("schema", [&](Fields& below) {
    below.Sections("features", &config.features, DescribeFeature, /*compact=*/true);
  });
  fields.Sections("learners", &config.learners, DescribeLearner, /*compact=*/false);
  fields.Section("budget", [&](Fields& below) { DescribeBudget(below, config.budget); });
  fields.Section("store", [&](Fields& below) { DescribeStore(below, config.store); });
  fields.Section("serve", [&](Fields& below) { DescribeServe(below, config.serve); });
  fields.Section("memory", [&](Fields& below) {
    below.Bytes("total_bytes", &config.memory_total_bytes, 64ull << 20, 1ull << 50);
  });
  fields.Section("training", [&](Fields& below) { DescribeTraining(below, config.training); });
  fields.Section("gpu", [&](Fields& below) { DescribeGpu(below, config.gpu); });
  fields.Section("log", [&](Fields& below) { DescribeLog(below, config.log); });
  fields.Section("feed", [&](Fields& below) { DescribeFeed(below, config.feed); });
  DescribeKafka(fields, config.kafka, UsesKafka(config));
  fields.Section("dead_letters",
                 [&](Fields& below) { DescribeDeadLetters(below, config.dead_letters); });
}

Status CheckConfig(const Tree& tree, LogFiles files, Config* config) {
  const Place root(tree);
  TACIT_RETURN_IF_ERROR(CheckSource(root.Key("source"), files, &config->source));
  TACIT_RETURN_IF_ERROR(CheckKafka(root.Key("kafka"), *config, &config->kafka));
  TACIT_RETURN_IF_ERROR(CheckFeed(root.Key("feed"), *config));
  TACIT_RETURN_IF_ERROR(CheckFeatures(root.Key("schema").Key("features"), config->features));
  TACIT_RETURN_IF_ERROR(
      CheckLearners(root.Key("learners"), config->learners, config->source, config->catalogue));
  TACIT_RETURN_IF_ERROR(CheckHaltAbove(root.Key("source").Key("halt_above"),
                                       config->source.halt_above, config->learners));
  TACIT_RETURN_IF_ERROR(CheckBudget(root.Key("budget"), config->budget, config->learners));
  TACIT_RETURN_IF_ERROR(CheckStore(root.Key("store"), &config->store));
  TACIT_RETURN_IF_ERROR(
      CheckMark(root.Key("source").Key("mark"), config->source.mark, config->store));
  TACIT_RETURN_IF_ERROR(CheckServe(root.Key("serve"), config->serve));
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
