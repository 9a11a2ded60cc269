#pragma once

#include <fmt/format.h>

#include <string>

#include "support/process.h"
#include "system/kafka/broker.h"

namespace tacit::test {

// A configuration whose source is a topic of small JSON interactions, features n and c, learnt
// without noise. `source` and `kafka` are further keys of theirs. Returns the file's path.
inline std::string WriteTopicConfig(const TempDir& dir, const std::string& topic,
                                    const std::string& bootstrap,
                                    const std::string& source = "format: json",
                                    const std::string& kafka = "") {
  const std::string path = dir / (FreshName("config") + ".yaml");
  WriteFile(path, fmt::format("source: {{kind: kafka, topic: {}, {}}}\n"
                              "kafka: {{bootstrap.servers: \"{}\", group.id: tacit{}}}\n"
                              "schema: {{features: [{{name: n, kind: dense}},\n"
                              "  {{name: c, kind: categorical, buckets: 64}}]}}\n"
                              "learners:\n"
                              "  - id: ctr\n"
                              "    model: {{kind: pctr, hidden: [8]}}\n"
                              "    mechanism: {{kind: none}}\n"
                              "    participation: {{mode: once, batch: 16}}\n"
                              "    privacy: {{unit: event, epsilon: .inf, delta: 1.0e-6}}\n"
                              "training: {{idle_priority: false, workers: 1}}\n"
                              "serve: {{listen: \"\"}}\n"
                              "store: {{path: \"{}\", commit_interval_ms: 20}}\n",
                              topic, source, bootstrap, kafka, dir / "store"));
  return path;
}

}  // namespace tacit::test
