#include "support/small_run.h"

#include <fmt/format.h>

#include "stream/generator/criteo_generator.h"

namespace tacit::test {

std::string SmallRun::WriteConfig(const TempDir& dir) const {
  const std::string origin =
      endless ? "{kind: generator, generator: {days: 1, rows_per_day: 1000000000}}"
              : fmt::format("{{kind: log, files: [\"{}/{}\"], passes: {}{}}}", dir.path(), files,
                            passes, source);
  std::string yaml = fmt::format(
      "source: {origin}\n"
      "store: {{path: \"{0}/{store}\", commit_interval_ms: {interval}}}\n"
      "serve: {{listen: \"{listen}\"}}\n"
      "log: {{level: warning}}\n"
      "training: {{idle_priority: {idle}}}\n"
      "learners:\n"
      "  - id: ctr\n"
      "    model: {{kind: pctr, hidden: {hidden}}}\n"
      "    mechanism: {mechanism}\n"
      "    participation: {participation}\n"
      "    privacy: {privacy}\n"
      "    optimizer: {{kind: adam, learning_rate: 0.002}}\n",
      dir.path(), fmt::arg("origin", origin), fmt::arg("idle", idle_priority),
      fmt::arg("store", store), fmt::arg("interval", commit_interval_ms),
      fmt::arg("listen", listen), fmt::arg("hidden", hidden), fmt::arg("mechanism", mechanism),
      fmt::arg("participation",
               participation.empty()
                   ? fmt::format("{{mode: once, batch: {}, max_participations: {}}}", batch,
                                 max_participations)
                   : participation),
      fmt::arg("privacy", privacy));
  yaml += second_learner + more + "schema:\n  features:\n";
  for (int i = 1; i <= 13; ++i) yaml += fmt::format("    - {{name: I{}, kind: dense}}\n", i);
  for (int i = 1; i <= 26; ++i)
    yaml += fmt::format("    - {{name: C{}, kind: categorical, buckets: 64}}\n", i);
  const std::string path = dir / (store + ".yaml");
  WriteFile(path, yaml);
  return path;
}

void WriteSmallLog(const TempDir& dir, uint32_t days, uint64_t rows_per_day, uint64_t seed) {
  const stream::CriteoGenerator generator(
      {.days = days, .rows_per_day = rows_per_day, .seed = seed});
  for (uint32_t day = 0; day < days; ++day) {
    std::string lines;
    generator.Generate(day, 0, rows_per_day, &lines, nullptr);
    WriteFile(dir / fmt::format("day-{}.tsv", day), lines);
  }
}

}  // namespace tacit::test
