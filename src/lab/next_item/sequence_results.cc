#include "lab/next_item/sequence_results.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <fstream>
#include <limits>

#include "console/json_number.h"
#include "lab/run_lines.h"

namespace tacit::lab {
namespace {

namespace json = boost::json;

double NumberOrInfinity(const json::value& value) {
  return value.is_null() ? std::numeric_limits<double>::infinity() : value.to_number<double>();
}

tl::unexpected<Error> CannotWrite(const std::string& path) {
  return Fail(ErrorCode::kIo, path + ": cannot be written");
}

}  // namespace

std::string ToJsonLine(const SequenceRun& run) {
  json::object line{{"id", run.id},
                    {"learner", run.learner},
                    {"epsilon", console::FiniteOrNull(run.epsilon)},
                    {"delta", run.delta},
                    {"seed", run.seed},
                    {"ndcg10", run.ndcg10},
                    {"hit10", run.hit10},
                    {"users", run.users},
                    {"epsilon_spent", console::FiniteOrNull(run.epsilon_spent)},
                    {"fit_seconds", run.fit_seconds},
                    {"score_seconds", run.score_seconds}};
  for (const SequenceLook& look : run.curve) {
    if (!line.contains("curve")) line["curve"] = json::array();
    line["curve"].as_array().push_back(
        {{"epochs", look.epochs}, {"ndcg10", look.ndcg10}, {"hit10", look.hit10}});
  }
  if (run.tenths.empty()) return json::serialize(line);
  line["user_periods"] = run.user_periods;
  json::array tenths;
  for (const SequenceTenth& tenth : run.tenths)
    tenths.push_back({{"events", tenth.events}, {"ndcg10", tenth.ndcg10}, {"hit10", tenth.hit10}});
  line["tenths"] = std::move(tenths);
  return json::serialize(line);
}

Result<SequenceRun> SequenceRunFromJson(const std::string& line) {
  try {
    const json::object o = json::parse(line).as_object();
    SequenceRun run;
    run.id = o.at("id").as_string();
    run.learner = o.at("learner").as_string();
    run.epsilon = NumberOrInfinity(o.at("epsilon"));
    run.delta = o.at("delta").to_number<double>();
    run.seed = o.at("seed").to_number<uint64_t>();
    run.ndcg10 = o.at("ndcg10").to_number<double>();
    run.hit10 = o.at("hit10").to_number<double>();
    run.users = o.at("users").to_number<uint64_t>();
    run.epsilon_spent = NumberOrInfinity(o.at("epsilon_spent"));
    run.fit_seconds = o.at("fit_seconds").to_number<double>();
    run.score_seconds = o.at("score_seconds").to_number<double>();
    for (const json::value& look : o.contains("curve") ? o.at("curve").as_array() : json::array())
      run.curve.push_back({.epochs = look.at("epochs").to_number<double>(),
                           .ndcg10 = look.at("ndcg10").to_number<double>(),
                           .hit10 = look.at("hit10").to_number<double>()});
    if (!o.contains("tenths")) return run;
    run.user_periods = o.at("user_periods").to_number<uint32_t>();
    for (const json::value& tenth : o.at("tenths").as_array())
      run.tenths.push_back({.events = tenth.at("events").to_number<uint64_t>(),
                            .ndcg10 = tenth.at("ndcg10").to_number<double>(),
                            .hit10 = tenth.at("hit10").to_number<double>()});
    return run;
  } catch (const std::exception& e) {
    return Fail(ErrorCode::kCorruption, fmt::format("not a finished run: {}", e.what()));
  }
}

Status SequenceResults::Load() {
  std::lock_guard lock(mutex_);
  if (path_.empty()) return {};
  return ReadRunLines(path_, [&](const std::string& line) -> Status {
    TACIT_ASSIGN(SequenceRun run, SequenceRunFromJson(line));
    runs_[run.id] = std::move(run);
    return {};
  });
}

std::optional<SequenceRun> SequenceResults::Find(const std::string& id) const {
  std::lock_guard lock(mutex_);
  const auto at = runs_.find(id);
  if (at == runs_.end()) return {};
  return at->second;
}

Status SequenceResults::Add(const SequenceRun& run) {
  std::lock_guard lock(mutex_);
  // Stores the run as a later read would give it, since a number may lose its last bit in the text.
  const std::string line = ToJsonLine(run);
  TACIT_ASSIGN(runs_[run.id], SequenceRunFromJson(line));
  if (path_.empty()) return {};
  std::ofstream file(path_, std::ios::binary | std::ios::app);
  file << line << '\n';
  if (!file.flush()) return CannotWrite(path_);
  return {};
}

}  // namespace tacit::lab
