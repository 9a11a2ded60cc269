#include <fmt/format.h>

#include <thread>

#include "app/bench/bench.h"
#include "app/bench/bench_data.h"
#include "stream/criteo_generator.h"

namespace tacit::app {
namespace {

constexpr auto kAbout = std::chrono::milliseconds(1000);

}  // namespace

Result<std::vector<BenchRow>> BenchDecode() {
  TACIT_ASSIGN(const BenchSetup setup, MakeBenchSetup("f32", true, 1));
  const stream::CriteoGenerator generator({.days = 1, .rows_per_day = 4096, .seed = 1});
  std::string lines;
  const double generate = MedianSeconds(
      [&] {
        lines.clear();
        generator.Generate(0, 0, 4096, &lines, nullptr);
      },
      kAbout);
  event::RawRecords records;
  for (size_t begin = 0; begin < lines.size();) {
    const size_t end = lines.find('\n', begin);
    records.bytes.append(lines, begin, end - begin);
    records.end.push_back(static_cast<uint32_t>(records.bytes.size()));
    begin = end + 1;
  }
  const auto codec = event::MakeCriteoTsvCodec(*setup.assembly.transform);
  event::Batch batch;
  std::vector<event::DeadLetter> dead;
  const double decode = MedianSeconds(
      [&] {
        setup.assembly.transform->StartBatch(&batch);
        codec->Decode(records, &batch, &dead);
      },
      kAbout);
  return std::vector<BenchRow>{{"decode-criteo-tsv", 4096 / decode, "events/s/core", std::nullopt},
                               {"generate-criteo", 4096 / generate, "events/s/core", std::nullopt}};
}

std::vector<Bench> AllBenches() {
  // These are as quick as they are.
  const auto always = [](Result<std::vector<BenchRow>> (*run)()) {
    return [run](const BenchRequest&) { return run(); };
  };
  return {{"step", "the private pCTR step (batch 2048, 4 x 598) on one core", always(BenchStep)},
          {"training", "steps with commits through a store, on two cores", always(BenchTraining)},
          {"vocabulary", "dense DP-SGD and AdaFEST against the size of the vocabulary",
           BenchVocabulary},
          {"accountant", "questions about privacy: epsilons, calibration, a long ledger",
           BenchAccountants},
          {"noise", "Gaussian noise into memory, in floats and on a grid", always(BenchNoise)},
          {"decode", "Criteo lines to columnar batches, and making them", always(BenchDecode)}};
}

}  // namespace tacit::app
