#include "train/linear/linear_part_summer.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "train/linear/slice_summer.h"

namespace tacit::train {
namespace {

class LinearPartSummer final : public PartSummer {
 public:
  LinearPartSummer(const LinearLearnerOptions& options, store::WorkingRows& rows,
                   WorkerPool& workers)
      : id_(options.id), query_(options), rows_(rows), sums_(query_, rows_, workers, options.bins) {
    model_ = NoModel();
  }

  Status Load(std::string_view released) override {
    sums_.Abandon();
    sums_.Forget();
    if (released.empty()) {
      model_ = NoModel();
      return {};
    }
    auto model = model::linear::State::Decode(released, *query_.columns);
    if (!model) return Fail(std::move(model.error()).Context(fmt::format("learner '{}'", id_)));
    model_ = *std::move(model);
    return {};
  }
  Status Add(const stream::StepBatch& examples) override {
    StepReport report;
    return sums_.See(examples, model_, /*learn=*/true, &report);
  }
  std::string Take() override { return sums_.TakePart().Encode(); }

 private:
  model::linear::State NoModel() const {
    model::linear::State model;
    model.priors.resize(query_.columns->size());
    return model;
  }

  const std::string id_;
  const LinearQuery query_;
  LinearRows rows_;
  SliceSummer sums_;
  model::linear::State model_;
};

}  // namespace

std::unique_ptr<PartSummer> MakeLinearPartSummer(const LinearLearnerOptions& options,
                                                 store::WorkingRows& rows, WorkerPool& workers) {
  return std::make_unique<LinearPartSummer>(options, rows, workers);
}

}  // namespace tacit::train
