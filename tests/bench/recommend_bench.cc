// Measures one recommendation, by the count model and by the transformer, without HTTP:
// recommend_bench [ITEMS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "base/threads/worker_pool.h"
#include "model/sequence/sequence_model.h"
#include "model/transitions/released_model.h"
#include "serve/items/item_ranker.h"
#include "unit/serve/recommend_fakes.h"

namespace tacit::serve {
namespace {

using SteadyClock = std::chrono::steady_clock;

double Now() {
  return std::chrono::duration<double>(SteadyClock::now().time_since_epoch()).count();
}

std::vector<uint32_t> History(uint32_t items, size_t size, std::mt19937* random) {
  std::vector<uint32_t> history;
  for (size_t i = 0; i < size; ++i) history.push_back((*random)() % items);
  return history;
}

// One period of made-up numbers, as many cells as a budget of epsilon 8 measures in MovieLens-1M.
std::shared_ptr<const std::string> ReleasedBytes(const model::transitions::PublicItems& catalogue,
                                                 const model::transitions::Options& options) {
  WorkerPool workers(WorkerPool::Options{.workers = 2});
  std::mt19937 random(1);
  const auto sums = [&](size_t n, uint32_t most) {
    std::vector<float> made;
    for (size_t i = 0; i < n; ++i) made.push_back(static_cast<float>(random() % most) * 0.1f);
    return made;
  };
  model::transitions::ReleasedModel model(catalogue, options, workers);
  model.AddPopularity(sums(catalogue.items(), 400), 2, 1.5);
  std::vector<model::transitions::ReleasedTable> tables;
  for (size_t t = 0; t < model.buckets().tables(); ++t)
    tables.push_back({sums(model.buckets().size(t), 1000), 2});
  model.AddTables(tables);
  for (size_t stage = 0; stage < model::transitions::kStages; ++stage) {
    const auto places = model.Choose(stage);
    model.Measure(stage, places, sums(places.size(), 30), 1);
  }
  return std::make_shared<const std::string>(model.Encode());
}

void Measure(const char* name, const std::shared_ptr<const ItemModel>& model,
             const store::Snapshot& snapshot) {
  const double start = Now();
  const auto state = model->Build(snapshot, nullptr);
  if (!state || *state == nullptr) std::abort();
  std::printf("%-12s %u items: a state takes %.0f ms\n", name, model->items(),
              1e3 * (Now() - start));
  ItemRanker ranker(model);
  std::mt19937 random(2);
  for (const size_t size : {size_t{1}, size_t{20}, size_t{200}}) {
    std::vector<double> taken;
    for (int i = 0; i < 500; ++i) {
      const auto history = History(model->items(), size, &random);
      const double begin = Now();
      if (!ranker.OfHistory(**state, history, 10, true)) std::abort();
      taken.push_back(1e6 * (Now() - begin));
    }
    std::sort(taken.begin(), taken.end());
    std::printf("  history of %3zu: median %7.0f us, p99 %7.0f us\n", size, taken[taken.size() / 2],
                taken[taken.size() * 99 / 100]);
  }
}

void Run(uint32_t items) {
  RecommendSnapshot snapshot(1, {});
  const model::transitions::Options counts;
  const auto catalogue = std::make_shared<const model::transitions::PublicItems>(items);
  snapshot.released = ReleasedBytes(*catalogue, counts);
  std::printf("released: %.1f MB\n", static_cast<double>(snapshot.released->size()) / 1e6);
  Measure("transitions", MakeTransitionsItems(LearnerIndex(0), catalogue, counts), snapshot);

  model::SequenceOptions sequence;
  sequence.catalogue = items;
  auto dense = std::make_shared<store::DenseState>();
  dense->parameters = model::SequenceLayout(sequence).Initial(1);
  snapshot.dense = std::move(dense);
  Measure("transformer", MakeSequenceItems(LearnerIndex(0), sequence), snapshot);
}

}  // namespace
}  // namespace tacit::serve

int main(int argc, char** argv) {
  tacit::serve::Run(argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 3416);
}
