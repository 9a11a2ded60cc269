#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tacit::bench {

// One figure of a benchmark, with the machine's own limit measured beside it in the same run.
struct BenchRow {
  std::string name;
  double value = 0;
  std::string unit;
  std::optional<double> limit = {};  // in the same unit
  boost::json::object more = {};     // further fields of the JSON row
  std::string note = {};             // printed after the figure
};

struct BenchRequest {
  bool quick = false;  // a few steps, for tests: the figures mean little
  std::string brokers = {},
              topic = {};  // for the kafka benchmark, and for the feed's if it is to have them
};

struct Bench {
  std::string name;
  std::string what;  // one line
  std::function<Result<std::vector<BenchRow>>(const BenchRequest&)> run;
  bool when_named = false;  // not part of the whole suite: it needs a service that may not be there
};

// The suite, in the order it runs.
std::vector<Bench> AllBenches();

Result<std::vector<BenchRow>> BenchStep();      // the private step, alone
Result<std::vector<BenchRow>> BenchTraining();  // steps with commits through a real store
Result<std::vector<BenchRow>> BenchCarriers(const BenchRequest& request);  // paper 004
Result<std::vector<BenchRow>> BenchClipping(const BenchRequest& request);  // paper 002
Result<std::vector<BenchRow>> BenchCommit(const BenchRequest& request);
Result<std::vector<BenchRow>> BenchNoise();
Result<std::vector<BenchRow>> BenchDecode();
Result<std::vector<BenchRow>> BenchServe(const BenchRequest& request);  // HTTP
Result<std::vector<BenchRow>> BenchFeed(const BenchRequest& request);
Result<std::vector<BenchRow>> BenchWorkers(const BenchRequest& request);
Result<std::vector<BenchRow>> BenchKafka(const BenchRequest& request);
Result<std::vector<BenchRow>> BenchAccountants(const BenchRequest& request);
Result<std::vector<BenchRow>> BenchVocabulary(const BenchRequest& request);  // paper 003, table 4

}  // namespace tacit::bench
