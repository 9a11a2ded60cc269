#include "cli/export/checkpoint_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "cli/export/model_tensors.h"
#include "cli/export/onnx_click.h"
#include "cli/export/tensor_file.h"
#include "config/config.h"
#include "console/exit_code.h"
#include "store/checkpoint/checkpoint.h"
#include "store/store.h"
#include "wiring/assembly.h"
#include "wiring/plans/vocabulary_file.h"

namespace tacit::cli {
namespace {

constexpr std::string_view kOnnx = "onnx";
constexpr std::string_view kNoOnnx =
    "a model of the next item has no form in ONNX; --format npy, safetensors or csv has its scores";
constexpr double kGiB = 1 << 30;

struct ModelExport {
  std::string folder, config, format, output, learner, vocabulary;
  std::vector<std::string> overrides;
};

// An open release and what a configuration says of it.
struct Release {
  store::CheckpointManifest manifest;
  wiring::Assembly assembly;
  std::vector<store::LearnerLayout> layouts;
  store::ReadOnlyStore store;

  std::map<std::string, std::string> Facts() const {
    return {{"version", std::to_string(manifest.commit.value)},
            {"head", "sha256:" + ToHex(manifest.head)},
            {"epsilon", fmt::format("{}", manifest.epsilon)},
            {"delta", fmt::format("{}", manifest.delta)}};
  }
  // The models of the learner of that name, or without one of all.
  Result<std::vector<ExportedModel>> Models(const std::string& learner) const {
    std::vector<ExportedModel> models;
    for (size_t i = 0; i < assembly.learners.size(); ++i)
      if (learner.empty() || assembly.learners[i].id == learner)
        models.push_back({assembly.learners[i], layouts[i], *store.snapshot, assembly.items.get()});
    if (models.empty())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("--learner {}: the configuration has no such learner", learner));
    return models;
  }
};

Result<Release> OpenRelease(const ModelExport& options) {
  TACIT_ASSIGN(auto manifest, store::ReadManifest(options.folder));
  if (manifest.kind != store::CheckpointKind::kRelease)
    return Fail(ErrorCode::kRefused,
                fmt::format("{} is a full checkpoint: what is handed on is made of a release "
                            "(tacit checkpoint create --kind release)",
                            options.folder));
  TACIT_ASSIGN(config::Config config,
               config::Load(options.config, options.overrides, config::LogFiles::kUnread));
  TACIT_ASSIGN(auto assembly, wiring::Assemble(std::move(config)));
  auto layouts = wiring::MakeLayouts(assembly);
  TACIT_ASSIGN(auto store, store::OpenReadOnly(options.folder, "", layouts));
  return Release{std::move(manifest), std::move(assembly), std::move(layouts), std::move(store)};
}

void Append(std::vector<ModelTensor> more, std::vector<ModelTensor>* tensors) {
  std::ranges::move(more, std::back_inserter(*tensors));
}

// A feature may have the name of a part of the model.
Status CheckDistinct(const std::vector<ModelTensor>& tensors) {
  std::set<std::string_view> names;
  for (const ModelTensor& each : tensors)
    if (!names.insert(each.tensor.name).second)
      return Fail(ErrorCode::kRefused,
                  fmt::format("{} would be two tensors: a feature has the name of a part of the "
                              "model; --learner leaves this learner out",
                              each.tensor.name));
  return {};
}

std::vector<Tensor> NamesOf(const std::vector<ModelTensor>& tensors) {
  std::vector<Tensor> names;
  for (const ModelTensor& each : tensors) names.push_back(each.tensor);
  return names;
}

Status WriteAll(const std::vector<ModelTensor>& tensors, TensorSink& sink) {
  for (const ModelTensor& each : tensors) {
    TACIT_RETURN_IF_ERROR(sink.Begin(each.tensor));
    TACIT_RETURN_IF_ERROR(each.write(sink));
  }
  return sink.Finish();
}

// A full disk is worse than a warning.
void WarnOfSize(std::string_view format, const std::vector<ModelTensor>& tensors) {
  double bytes = 0;
  // A number in a CSV takes some 12 letters.
  for (const ModelTensor& each : tensors)
    bytes += static_cast<double>(each.tensor.size()) * (format == "csv" ? 12 : sizeof(float));
  if (bytes >= kGiB)
    fmt::print(stderr, "tacit: {:.1f} GiB are being written; --learner names one learner of them\n",
               bytes / kGiB);
}

void Tell(const ModelExport& options, const Release& release, const std::string& what) {
  fmt::print("{}: {} of commit {}, epsilon {:.4f} at delta {:g}\n", options.output, what,
             release.manifest.commit.value, release.manifest.epsilon, release.manifest.delta);
}

void TellLeftOut(const ExportedModel& model) {
  if (model.plan.model->Recommends() == nullptr || model.items->items() <= kScoredItemsMost) return;
  fmt::print("{}/next.scores is left out: with {} it would be larger than 1 GiB\n", model.plan.id,
             Counted(model.items->items(), "item"));
}

// The learner as a click model; nothing where it gives no probabilities.
Result<std::optional<ClickModel>> ClickModelOf(const ExportedModel& model,
                                               const std::vector<ModelTensor>& tensors,
                                               const event::FeatureSchema& schema) {
  TACIT_ASSIGN(auto form, model.plan.model->Probability(model.snapshot));
  if (!form) return std::nullopt;
  return ClickModel{.name = model.plan.id,
                    .space = model.layout.rows.space,
                    .tensors = NamesOf(tensors),
                    .form = *std::move(form),
                    .schema = schema};
}

// LEARNER/model.json: the way from raw values to a probability.
Status WriteDescription(const ModelExport& options, const ClickModel& click,
                        const std::string& inputs) {
  if (click.form.rounds)
    fmt::print(stderr,
               "tacit: learner '{}' computes in bf16: the exported model, in f32, differs from "
               "/v1/score by some thousandths\n",
               click.name);
  return WriteWhole(fmt::format("{}/{}/model.json", options.output, click.name), inputs + "\n");
}

Status ExportTensors(const ModelExport& options, const Release& release) {
  TACIT_ASSIGN(const TensorFormat format, TensorFormatOf(options.format));
  std::vector<wiring::NamedValue> values;
  if (!options.vocabulary.empty()) {
    TACIT_ASSIGN(values, wiring::ReadNamedValues(options.vocabulary, *release.assembly.transform));
  }
  TACIT_ASSIGN(const auto models, release.Models(options.learner));
  std::vector<ModelTensor> tensors;
  std::vector<ClickModel> clicks;
  for (const ExportedModel& model : models) {
    std::vector<ModelTensor> parameters = ParametersOf(model);
    TACIT_ASSIGN(auto click, ClickModelOf(model, parameters, release.assembly.transform->schema()));
    if (click) clicks.push_back(*std::move(click));
    Append(std::move(parameters), &tensors);
    TACIT_ASSIGN(auto bias, BiasOf(model));
    Append(std::move(bias), &tensors);
    Append(ValuesOf(model, values), &tensors);
    TACIT_ASSIGN(auto scores, ScoresOf(model));
    Append(std::move(scores), &tensors);
  }
  TACIT_RETURN_IF_ERROR(CheckDistinct(tensors));
  WarnOfSize(options.format, tensors);
  TACIT_ASSIGN(const auto sink,
               MakeTensorSink(format, options.output, NamesOf(tensors), release.Facts()));
  TACIT_RETURN_IF_ERROR(WriteAll(tensors, *sink));
  for (const ClickModel& click : clicks)
    TACIT_RETURN_IF_ERROR(WriteDescription(options, click, DescribeInputs(click, release.Facts())));
  for (const ExportedModel& model : models) TellLeftOut(model);
  Tell(options, release, Counted(tensors.size(), "tensor"));
  return {};
}

Status ExportOnnx(const ModelExport& options, const Release& release) {
  if (!options.vocabulary.empty())
    return Fail(ErrorCode::kInvalidArgument,
                "--vocabulary: an ONNX model has its rows by number, and says in model.json how a "
                "value becomes one; it goes with --format csv, npy or safetensors");
  TACIT_RETURN_IF_ERROR(CheckNew(options.output));
  TACIT_ASSIGN(const auto models, release.Models(options.learner));
  std::vector<std::vector<ModelTensor>> tensors;
  std::vector<ClickModel> clicks;
  for (const ExportedModel& model : models) {
    if (options.learner.empty() && model.plan.recommends) {
      fmt::print(stderr, "tacit: learner '{}' recommends items and is left out: {}\n",
                 model.plan.id, kNoOnnx);
      continue;
    }
    tensors.push_back(ParametersOf(model));
    TACIT_RETURN_IF_ERROR(CheckDistinct(tensors.back()));
    TACIT_ASSIGN(auto click,
                 ClickModelOf(model, tensors.back(), release.assembly.transform->schema()));
    if (!click)
      return Fail(ErrorCode::kRefused,
                  fmt::format("learner '{}' recommends items: {}", model.plan.id, kNoOnnx));
    clicks.push_back(*std::move(click));
  }
  if (clicks.empty())
    return Fail(ErrorCode::kRefused, fmt::format("no learner is a click model, and {}", kNoOnnx));
  for (size_t i = 0; i < clicks.size(); ++i) {
    const std::string folder = fmt::format("{}/{}", options.output, clicks[i].name);
    const std::string inputs = DescribeInputs(clicks[i], release.Facts());
    auto facts = release.Facts();
    facts["inputs"] = inputs;
    WarnOfSize(options.format, tensors[i]);
    TACIT_ASSIGN(const auto sink, MakeBlobSink(folder + "/model.onnx.data"));
    TACIT_RETURN_IF_ERROR(WriteAll(tensors[i], *sink));
    TACIT_RETURN_IF_ERROR(WriteDescription(options, clicks[i], inputs));
    TACIT_RETURN_IF_ERROR(
        WriteWhole(folder + "/model.onnx", EncodeOnnx(clicks[i], "model.onnx.data", facts)));
  }
  Tell(options, release, Counted(clicks.size(), "ONNX model"));
  return {};
}

Result<int> Export(const ModelExport& options) {
  // A misspelt format is told before a checkpoint is opened.
  if (options.format != kOnnx) {
    TACIT_ASSIGN(const TensorFormat format, TensorFormatOf(options.format));
    (void)format;
  }
  TACIT_ASSIGN(const Release release, OpenRelease(options));
  TACIT_RETURN_IF_ERROR(options.format == kOnnx ? ExportOnnx(options, release)
                                                : ExportTensors(options, release));
  return int{console::kExitDone};
}

}  // namespace

void AddCheckpointExport(CLI::App* checkpoint, Action* chosen) {
  auto options = std::make_shared<ModelExport>();
  auto* command = checkpoint->add_subcommand("export", "Write a release's models for other tools");
  command->add_option("folder", options->folder, "A release checkpoint")->required();
  command->add_option("--config", options->config, "The configuration that it was learnt by")
      ->required();
  command->add_option("--set", options->overrides, "KEY=VALUE over the configuration")
      ->allow_extra_args(false);
  command->add_option("--format", options->format, "safetensors | npy | csv | onnx")->required();
  command->add_option("--output", options->output, "The folder to make")->required();
  command->add_option("--learner", options->learner, "Only this one");
  command->add_option("--vocabulary", options->vocabulary,
                      "Lines feature<TAB>value: the rows of these are written by value, too");
  command->footer(
      "A tensor LEARNER/TABLE has the rows of a feature, one a bucket, as they are served; "
      "LEARNER/layers.N.weight\nand .bias are a click network's layers. LEARNER/next.scores are "
      "what a model of the next item ranks by.\nonnx writes LEARNER/model.onnx for each click "
      "model. LEARNER/model.json says how values become a click model's inputs.\nExample:\n  tacit "
      "checkpoint export release-000000000120-1f6e0c2b --config tacitd.yaml --format npy --output "
      "tensors");
  command->callback([options, chosen] { *chosen = [options] { return Export(*options); }; });
}

}  // namespace tacit::cli
