#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cli/parts/command.h"

namespace tacit::cli {

// A whole file to be answered, line by line, by a daemon or a checkpoint.
struct QueryFileOptions {
  std::string input, output;
  std::string format = "jsonl";  // of the output; or csv
  uint32_t jobs = 4;             // requests at once
  bool skip_header = false;

  bool is_asked() const { return !input.empty() || !output.empty(); }
};

// The model that answers: a daemon, or a directory with its configuration.
struct QueryFileModel {
  std::string url, checkpoint, config, witness, learner;
};

// Adds the options of a whole file to a command of `tacit query`.
void AddQueryFileOptions(CLI::App* command, QueryFileOptions* options);

// Scores the records of a file, in the stream's own form. The output has a line for each line of
// the input, in its order, and is there whole or not at all: also where a signal ends the run.
Result<int> ScoreFile(const QueryFileModel& model, const QueryFileOptions& options);
// Answers a file of requests of POST /v1/recommend, one a line.
Result<int> RecommendFile(const QueryFileModel& model, const QueryFileOptions& options);

}  // namespace tacit::cli
