#include <fmt/format.h>

#include <thread>

#include "app/bench/bench.h"
#include "app/bench/bench_data.h"
#include "noise/keystream.h"
#include "noise/noise.h"
#include "stream/criteo_generator.h"

namespace tacit::app {
namespace {

constexpr auto kAbout = std::chrono::milliseconds(1000);

}  // namespace

Result<std::vector<BenchRow>> BenchNoise() {
  // Short calls, which a busy neighbour seldom cuts, walking through memory that no cache holds.
  constexpr size_t kDraws = size_t{1} << 16, kCalls = 256;
  const auto rate = [](const std::function<void()>& draw) {
    return kDraws / MedianSeconds(draw, kAbout) / 1e9;
  };
  noise::Keystream stream;
  const double words = rate([&] {
    for (size_t left = kDraws; left > 0;) left -= stream.Take(left).size();
  });
  const auto source = noise::MakeNoiseSource();
  std::vector<float> floats(kDraws * kCalls);
  std::vector<int64_t> steps(kDraws * kCalls);
  size_t call = 0;
  const auto next = [&](auto& values) {
    return std::span(values).subspan(kDraws * (call++ % kCalls), kDraws);
  };
  // The limits: a word of keystream for a normal in f32, three for one on the grid.
  return std::vector<BenchRow>{
      {"keystream", words, "G words/s/core", std::nullopt},
      {"noise-f32", rate([&] { source->AddGaussian(1, next(floats)); }), "G normals/s/core", words},
      {"noise-grid", rate([&] { source->AddGridGaussian(0x1p30, next(steps)); }),
       "G normals/s/core", words / 3}};
}

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
  return {{"step", "the private pCTR step (batch 2048, 4 x 598) on one core", BenchStep},
          {"training", "steps with commits through a store, on two cores", BenchTraining},
          {"noise", "Gaussian noise into memory, in floats and on a grid", BenchNoise},
          {"decode", "Criteo lines to columnar batches, and making them", BenchDecode}};
}

}  // namespace tacit::app
