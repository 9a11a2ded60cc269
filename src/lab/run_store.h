#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/threads/mutex.h"
#include "console/json_number.h"

namespace tacit::lab {

tl::unexpected<Error> CannotWrite(const std::string& path);

// Calls take(line) for every whole line of a file of finished runs; a missing file has none. Errors
// of `take` get the file and line. A last line without its newline was cut short during writing: if
// it begins like a run, the file is truncated before it. Otherwise the file is not a file of runs;
// it is refused by name and left unchanged.
Status ReadRunLines(const std::string& path,
                    const std::function<Status(const std::string& line)>& take);
Status AppendRunLine(const std::string& path, const std::string& line);

// Writes a struct as a JSON object. The struct lists its fields once, by a static function
// ForEachField(struct, visit) that calls visit(name, field) for each: numbers, texts, settings by
// key, and lists of such structs, which are left out where they are empty. An infinite number is
// null.
class FieldWriter {
 public:
  explicit FieldWriter(boost::json::object* object) : object_(*object) {}
  template <class Integer>
  requires std::is_integral_v<Integer>
  void operator()(const char* name, const Integer& field) const { object_[name] = field; }
  void operator()(const char* name, const std::string& field) const { object_[name] = field; }
  void operator()(const char* name, const double& field) const {
    object_[name] = console::FiniteOrNull(field);
  }
  void operator()(const char* name, const std::map<std::string, std::string>& field) const {
    boost::json::object settings;
    for (const auto& [key, value] : field) settings[key] = value;
    object_[name] = std::move(settings);
  }
  template <class Part>
  void operator()(const char* name, const std::vector<Part>& field) const {
    boost::json::array parts;
    for (const Part& part : field) {
      boost::json::object fields;
      Part::ForEachField(part, FieldWriter(&fields));
      parts.push_back(std::move(fields));
    }
    if (!parts.empty()) object_[name] = std::move(parts);
  }

 private:
  boost::json::object& object_;
};

// Reads what FieldWriter wrote. Throws where a field is missing or of another kind; a count that is
// missing is 0, for lines that are older than it.
class FieldReader {
 public:
  explicit FieldReader(const boost::json::object& object) : object_(object) {}
  template <class Integer>
  requires std::is_integral_v<Integer>
  void operator()(const char* name, Integer& field) const {
    if (object_.contains(name)) field = object_.at(name).to_number<Integer>();
  }
  void operator()(const char* name, std::string& field) const {
    field = object_.at(name).as_string();
  }
  void operator()(const char* name, double& field) const {
    const boost::json::value& value = object_.at(name);
    field = value.is_null() ? std::numeric_limits<double>::infinity() : value.to_number<double>();
  }
  void operator()(const char* name, std::map<std::string, std::string>& field) const {
    for (const auto& [key, value] : object_.at(name).as_object())
      field[std::string(key)] = value.as_string();
  }
  template <class Part>
  void operator()(const char* name, std::vector<Part>& field) const {
    if (!object_.contains(name)) return;
    for (const boost::json::value& part : object_.at(name).as_array())
      Part::ForEachField(field.emplace_back(), FieldReader(part.as_object()));
  }

 private:
  const boost::json::object& object_;
};

template <class Run>
std::string ToJsonLine(const Run& run) {
  boost::json::object object;
  Run::ForEachField(run, FieldWriter(&object));
  return boost::json::serialize(object);
}

template <class Run>
Result<Run> FromJsonLine(const std::string& line) {
  try {
    const boost::json::object object = boost::json::parse(line).as_object();
    Run run;
    Run::ForEachField(run, FieldReader(object));
    return run;
  } catch (const std::exception& e) {
    return Fail(ErrorCode::kCorruption, std::string("not a finished run: ") + e.what());
  }
}

// Finished runs in a file of JSON lines, so that an interrupted experiment can resume. Without a
// path they stay in memory. Thread-safe.
template <class Run>
class RunStore {
 public:
  explicit RunStore(std::string path) : path_(std::move(path)) {}

  // Reads the stored runs. Drops a last line that was cut short; refuses any other line that is not
  // a run, by its number.
  Status Load() {
    const MutexLock lock(mutex_);
    if (path_.empty()) return {};
    return ReadRunLines(path_, [&](const std::string& line) TACIT_REQUIRES(mutex_) -> Status {
      TACIT_ASSIGN(Run run, FromJsonLine<Run>(line));
      runs_[run.id] = std::move(run);
      return {};
    });
  }
  std::optional<Run> Find(const std::string& id) const {
    const MutexLock lock(mutex_);
    const auto at = runs_.find(id);
    if (at == runs_.end()) return {};
    return at->second;
  }
  Status Add(const Run& run) {
    const MutexLock lock(mutex_);
    // Keeps the run as a later read gives it, since a number may lose its last bit in the text.
    const std::string line = ToJsonLine(run);
    TACIT_ASSIGN(runs_[run.id], FromJsonLine<Run>(line));
    return path_.empty() ? Status() : AppendRunLine(path_, line);
  }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  mutable Mutex mutex_;
  std::map<std::string, Run> runs_ TACIT_GUARDED_BY(mutex_);
};

}  // namespace tacit::lab
