#include "cli/checkpoint_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/text.h"
#include "cli/export/tensor_file.h"
#include "config/config.h"
#include "console/exit_code.h"
#include "store/checkpoint.h"
#include "store/store.h"
#include "wiring/assembly.h"

namespace tacit::cli {
namespace {

constexpr uint64_t kRowsAtOnce = 4096;

struct TensorExport {
  std::string folder, config, format, output;
  std::vector<std::string> overrides;
};

// A learner's tensors: a table each, then its dense parameters by layer.
struct LearnerTensors {
  const wiring::LearnerPlan* plan = nullptr;
  store::LearnerLayout layout;
  std::vector<wiring::DenseTensor> dense;
};

// The dense tensors, in the order of the parameters; one flat tensor if the kind names none.
std::vector<wiring::DenseTensor> DenseOf(const wiring::LearnerPlan& plan, size_t parameters) {
  auto tensors = plan.model->DenseTensors();
  uint64_t named = 0;
  for (const wiring::DenseTensor& tensor : tensors) named += tensor.size();
  if (tensors.empty() || named != parameters) tensors = {{"dense", {parameters}}};
  if (parameters == 0) tensors.clear();
  return tensors;
}

std::vector<Tensor> NamesOf(const std::vector<LearnerTensors>& learners) {
  std::vector<Tensor> tensors;
  for (const LearnerTensors& learner : learners) {
    for (const RowSpace::Table& table : learner.layout.rows.space.tables())
      tensors.push_back({learner.plan->id + "/" + table.name, {table.rows, table.dim}});
    for (const wiring::DenseTensor& dense : learner.dense)
      tensors.push_back({learner.plan->id + "/" + dense.name, dense.shape});
  }
  return tensors;
}

Status WriteTable(const store::Snapshot& snapshot, LearnerIndex learner,
                  const RowSpace::Table& table, TensorSink* sink) {
  std::vector<uint64_t> rows;
  std::vector<float> numbers;
  for (uint64_t begin = 0; begin < table.rows; begin += kRowsAtOnce) {
    rows.clear();
    for (uint64_t row = begin; row < std::min(begin + kRowsAtOnce, table.rows); ++row)
      rows.push_back(table.first + row);
    numbers.resize(rows.size() * table.dim);
    TACIT_RETURN_IF_ERROR(snapshot.Rows(learner, rows, numbers));
    TACIT_RETURN_IF_ERROR(sink->Write(numbers));
  }
  return {};
}

Status WriteLearner(const store::Snapshot& snapshot, const LearnerTensors& learner,
                    TensorSink* sink) {
  const LearnerIndex index = learner.plan->index;
  for (const RowSpace::Table& table : learner.layout.rows.space.tables()) {
    TACIT_RETURN_IF_ERROR(
        sink->Begin({learner.plan->id + "/" + table.name, {table.rows, table.dim}}));
    TACIT_RETURN_IF_ERROR(WriteTable(snapshot, index, table, sink));
  }
  std::span<const float> left = snapshot.ServedDense(index);
  for (const wiring::DenseTensor& dense : learner.dense) {
    TACIT_RETURN_IF_ERROR(sink->Begin({learner.plan->id + "/" + dense.name, dense.shape}));
    TACIT_RETURN_IF_ERROR(sink->Write(left.first(dense.size())));
    left = left.subspan(dense.size());
  }
  return {};
}

Result<int> ExportTensors(const TensorExport& options) {
  TACIT_ASSIGN(const TensorFormat format, TensorFormatOf(options.format));
  TACIT_ASSIGN(const store::CheckpointManifest manifest, store::ReadManifest(options.folder));
  if (manifest.kind != store::CheckpointKind::kRelease)
    return Fail(ErrorCode::kRefused,
                fmt::format("{} is a full checkpoint: what is handed on is made of a release "
                            "(tacit checkpoint create --kind release)",
                            options.folder));
  TACIT_ASSIGN(config::Config config,
               config::Load(options.config, options.overrides, config::LogFiles::kUnread));
  TACIT_ASSIGN(const wiring::Assembly assembly, wiring::Assemble(std::move(config)));
  const auto layouts = wiring::MakeLayouts(assembly);
  TACIT_ASSIGN(const store::ReadOnlyStore store, store::OpenReadOnly(options.folder, "", layouts));
  std::vector<LearnerTensors> learners;
  for (size_t i = 0; i < assembly.learners.size(); ++i) {
    const wiring::LearnerPlan& plan = assembly.learners[i];
    learners.push_back(
        {&plan, layouts[i], DenseOf(plan, store.snapshot->ServedDense(plan.index).size())});
  }
  const std::vector<Tensor> tensors = NamesOf(learners);
  TACIT_ASSIGN(const auto sink, MakeTensorSink(format, options.output, tensors,
                                               {{"version", std::to_string(manifest.commit.value)},
                                                {"head", "sha256:" + ToHex(manifest.head)},
                                                {"epsilon", fmt::format("{}", manifest.epsilon)},
                                                {"delta", fmt::format("{}", manifest.delta)}}));
  for (const LearnerTensors& learner : learners)
    TACIT_RETURN_IF_ERROR(WriteLearner(*store.snapshot, learner, sink.get()));
  TACIT_RETURN_IF_ERROR(sink->Finish());
  fmt::print("{}: {} of commit {}, epsilon {:.4f} at delta {:g}\n", options.output,
             Counted(tensors.size(), "tensor"), manifest.commit.value, manifest.epsilon,
             manifest.delta);
  return int{console::kExitDone};
}

}  // namespace

void AddCheckpointExport(CLI::App* checkpoint, Action* chosen) {
  auto options = std::make_shared<TensorExport>();
  auto* command = checkpoint->add_subcommand("export", "Write a release's tensors for other tools");
  command->add_option("folder", options->folder, "A release checkpoint")->required();
  command->add_option("--config", options->config, "The configuration that it was learnt by")
      ->required();
  command->add_option("--set", options->overrides, "KEY=VALUE over the configuration")
      ->allow_extra_args(false);
  command->add_option("--format", options->format, "safetensors | npy | csv")->required();
  command->add_option("--output", options->output, "The folder to make")->required();
  command->footer(
      "A tensor LEARNER/TABLE has the rows of a feature, one a bucket, as they are served; "
      "LEARNER/layers.N.weight\nand .bias are a click network's layers.\nExample:\n  tacit "
      "checkpoint export release-000000000120-1f6e0c2b --config tacitd.yaml --format npy --output "
      "tensors");
  command->callback([options, chosen] { *chosen = [options] { return ExportTensors(*options); }; });
}

}  // namespace tacit::cli
