#include "lab/clicks/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>

#include "base/text.h"
#include "config/environment.h"

namespace tacit::lab {
namespace {

constexpr std::string_view kEpochs = "participation.epochs";
constexpr std::string_view kLearnerKey = "learners.#.";

tl::unexpected<Error> BadAxis(const std::string& text, std::string_view why) {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("--grid {}: {}", text, why));
}

std::vector<std::string> SplitValues(std::string_view text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
  }
  for (std::string& value : values)
    if (value == "inf") value = ".inf";
  return values;
}

// The keys of a learner, starting with the key that only experiments have.
std::vector<std::string> LearnerKeys() {
  std::vector<std::string> keys{std::string(kEpochs)};
  for (const std::string& pattern : config::KeyPatterns())
    if (pattern.starts_with(kLearnerKey)) keys.push_back(pattern.substr(kLearnerKey.size()));
  return keys;
}

Status CheckKey(const std::string& text, const std::string& key) {
  const std::vector<std::string> keys = LearnerKeys();
  const std::vector<std::string_view> names(keys.begin(), keys.end());
  if (key == "id") return BadAxis(text, "a learner's name is no setting");
  // A section may be given as a whole: mechanism.vocabulary={...}.
  for (const std::string_view name : names)
    if (name == key || name.starts_with(key + ".")) return {};
  return BadAxis(text, fmt::format("no key of a learner{}", DidYouMean(key, names)));
}

Result<double> ParseEpochs(const std::string& text) {
  double epochs = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), epochs);
  if (error != std::errc() || end != text.data() + text.size() || !(epochs > 0) ||
      !std::isfinite(epochs))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: must be a number above 0, is '{}'", kEpochs, text));
  return epochs;
}

// The settings of one learner, as overrides of the configuration file.
std::vector<std::string> Overrides(const GridOptions& options, size_t index,
                                   const std::map<std::string, std::string>& settings) {
  std::vector<std::string> overrides = options.overrides;
  for (const auto& [key, value] : settings)
    if (key != kEpochs) overrides.push_back(fmt::format("learners.{}.{}={}", index, key, value));
  return overrides;
}

// Derives from epochs, batch and period how a period is drawn from: sampling_rate and
// steps_per_period, or steps_per_period and blocks.
Status Derive(const GridOptions& options, size_t index, const EventLog& log, uint64_t train_to,
              std::map<std::string, std::string>* settings) {
  const auto epochs_at = settings->find(std::string(kEpochs));
  if (epochs_at == settings->end()) return {};
  TACIT_ASSIGN(const double epochs, ParseEpochs(epochs_at->second));
  // Rate and steps follow from batch and period, which this loading finds out; both are 1 here.
  auto probe = *settings;
  probe["participation.sampling_rate"] = "1";
  probe["participation.steps_per_period"] = "1";
  TACIT_ASSIGN(const config::Config config,
               config::Load(options.config, Overrides(options, index, probe)));
  const config::Participation& p = config.learners[index].participation;
  if (!p.holds_periods())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} goes with participation.mode poisson or allocate", kEpochs));
  const auto records = static_cast<double>(LargestPeriod(log, train_to, p));
  const double rate = std::min(1.0, static_cast<double>(p.batch) / std::max(1.0, records));
  if (p.mode == config::Participation::Mode::kAllocate) {
    const auto whole = [](double number) {
      return fmt::format("{}", static_cast<uint64_t>(std::max(1.0, std::round(number))));
    };
    (*settings)["participation.steps_per_period"] = whole(1 / rate);
    (*settings)["participation.blocks"] = whole(epochs);
    return {};
  }
  (*settings)["participation.sampling_rate"] = fmt::format("{:.6g}", rate);
  (*settings)["participation.steps_per_period"] =
      fmt::format("{}", static_cast<uint64_t>(std::max(1.0, std::round(epochs / rate))));
  return {};
}

// The configuration of one learner alone, for an experiment. Settings that only a daemon uses are
// reset to their defaults, so that they make no difference.
config::Config Alone(config::Config config, size_t index) {
  config.learners = {config.learners[index]};
  config.budget = {};
  config.store = {};
  config.serve = {};
  config.log = {};
  config.dead_letters = {};
  config.memory_total_bytes = uint64_t{1} << 50;
  return config;
}

std::string Canonical(config::Config config) {
  const uint32_t passes = config.source.passes;
  config.source = {};
  config.source.passes = passes;
  config.training = {};
  return config::Dump(config);
}

GridPoint MakePoint(const GridOptions& options, size_t index, const std::string& id,
                    std::map<std::string, std::string> settings, const EventLog& log,
                    uint64_t train_to) {
  GridPoint point{.learner = id, .settings = {}, .config = {}, .refusal = {}, .canonical = {}};
  const auto derived = Derive(options, index, log, train_to, &settings);
  point.settings = settings;
  if (!derived) {
    point.refusal = derived.error().message;
    return point;
  }
  auto config = config::Load(options.config, Overrides(options, index, settings));
  if (!config) {
    point.refusal = config.error().message;
    return point;
  }
  point.config = Alone(std::move(*config), index);
  point.canonical = Canonical(point.config);
  return point;
}

Result<std::vector<size_t>> ChooseLearners(const config::Config& config,
                                           const std::vector<std::string>& ids) {
  std::vector<size_t> chosen;
  std::vector<std::string_view> names;
  for (const config::Learner& learner : config.learners) names.push_back(learner.id);
  for (size_t i = 0; ids.empty() && i < names.size(); ++i)
    if (!config.learners[i].model.recommends()) chosen.push_back(i);
  if (ids.empty() && chosen.empty())
    return Fail(ErrorCode::kInvalidArgument,
                "learners: none scores rows; `tacit evaluate sequence` is for the next item");
  for (const std::string& id : ids) {
    const auto at = std::ranges::find(names, id);
    if (at == names.end())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("--learner {}: no learner has this id{}", id, DidYouMean(id, names)));
    chosen.push_back(static_cast<size_t>(at - names.begin()));
    if (config.learners[chosen.back()].model.recommends())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("--learner {}: its model is of the next item, not of clicks; `tacit "
                              "evaluate sequence` is for those",
                              id));
  }
  return chosen;
}

// Returns true if a refusal concerns the value at `key` or below it, not its combination with
// others.
bool IsOfValue(std::string_view refusal, const std::string& key) {
  const std::string place = "]." + key;
  if (const size_t at = refusal.find(place); at != std::string_view::npos)
    refusal.remove_prefix(at + place.size());
  else if (refusal.starts_with(key))
    refusal.remove_prefix(key.size());
  else
    return false;
  const size_t colon = refusal.find(": ");
  return (colon == 0 || refusal.starts_with('.') || refusal.starts_with('[')) &&
         colon != std::string_view::npos && refusal.substr(colon + 2).starts_with("must be");
}

// Records which values were accepted somewhere, and which were refused for their own sake.
class ValueFates {
 public:
  void Note(const GridPoint& point) {
    for (const auto& setting : point.settings) {
      if (point.refusal.empty())
        accepted_.insert(setting);
      else if (IsOfValue(point.refusal, setting.first))
        refused_.try_emplace(setting, point.refusal);
    }
  }
  // kInvalidArgument for a value that was refused for its own sake and never accepted.
  Status Check() const {
    for (const auto& [setting, refusal] : refused_)
      if (!accepted_.contains(setting))
        return BadAxis(fmt::format("{}={}", setting.first, setting.second), refusal);
    return {};
  }

 private:
  using Setting = std::pair<std::string, std::string>;
  std::set<Setting> accepted_;
  std::map<Setting, std::string> refused_;
};

// Moves to the next combination of the axes' values, the last axis fastest; false after the last.
bool Advance(const std::vector<GridAxis>& axes, std::vector<size_t>* at) {
  for (size_t a = at->size(); a-- > 0;) {
    if (++(*at)[a] < axes[a].values.size()) return true;
    (*at)[a] = 0;
  }
  return false;
}

// Removes settings in which two points of one experiment differ, as they have no effect on it.
void KeepCommon(const std::map<std::string, std::string>& other,
                std::map<std::string, std::string>* settings) {
  std::erase_if(*settings, [&](const auto& setting) {
    const auto at = other.find(setting.first);
    return at == other.end() || at->second != setting.second;
  });
}

}  // namespace

Result<GridAxis> ParseGridAxis(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return BadAxis(text, "must be key=value,value");
  GridAxis axis{.key = text.substr(0, equals), .values = SplitValues(text.substr(equals + 1))};
  TACIT_RETURN_IF_ERROR(CheckKey(text, axis.key));
  std::set<std::string> distinct;
  for (const std::string& value : axis.values) {
    if (value.empty()) return BadAxis(text, "has an empty value");
    if (!distinct.insert(value).second)
      return BadAxis(text, fmt::format("has the value {} twice", value));
  }
  return axis;
}

Status CheckAxes(const std::vector<GridAxis>& axes) {
  std::set<std::string> keys;
  for (const GridAxis& axis : axes)
    if (!keys.insert(axis.key).second)
      return BadAxis(axis.key, "given twice; name all its values at once");
  if (!keys.contains(std::string(kEpochs))) return {};
  for (const char* derived :
       {"participation.sampling_rate", "participation.steps_per_period", "participation.blocks"})
    if (keys.contains(derived))
      return BadAxis(derived, fmt::format("follows from {}; use one of them", kEpochs));
  return {};
}

std::string ShortKey(const std::string& key) {
  const std::vector<std::string> keys = LearnerKeys();
  for (size_t dot = key.rfind('.'); dot != std::string::npos && dot > 0;
       dot = key.rfind('.', dot - 1)) {
    const std::string end = key.substr(dot);
    const auto others = std::ranges::count_if(keys, [&](const std::string& other) {
      return other != key && ("." + other).ends_with(end);
    });
    if (others == 0) return end.substr(1);
  }
  return key;
}

std::vector<std::string> BatchWarnings(const std::vector<GridPoint>& points, const EventLog& log,
                                       uint64_t train_to) {
  std::vector<std::string> warnings;
  for (const GridPoint& point : points) {
    if (!point.refusal.empty()) continue;
    const config::Participation& p = point.config.learners[0].participation;
    if (!p.holds_periods()) continue;
    const uint64_t period = LargestPeriod(log, train_to, p);
    const double expected = p.Rate() * static_cast<double>(period);
    const auto batch = static_cast<double>(p.batch);
    if (std::abs(expected - batch) <= 0.1 * batch) continue;
    std::string warning = fmt::format(
        "learner '{}': a step holds {:.6g} events on average (a share of {:.6g} of a period of "
        "{}), but participation.batch, which its update is divided by, is {}",
        point.learner, expected, p.Rate(), period, p.batch);
    if (std::ranges::find(warnings, warning) == warnings.end())
      warnings.push_back(std::move(warning));
  }
  return warnings;
}

uint64_t LargestPeriod(const EventLog& log, uint64_t train_to,
                       const config::Participation& participation) {
  const uint64_t end = std::min(train_to, log.records());
  const uint64_t limit = participation.period > 0 ? participation.period : end;
  const uint32_t files_max = std::max(1u, participation.period_files);
  uint64_t largest = 0, begin = 0;
  uint32_t files = 0;
  // A period cut by its offset limit has the full length, and its count of files starts again.
  const auto close_at = [&](uint64_t offset, bool file) {
    while (offset - begin >= limit && limit > 0) {
      largest = std::max(largest, limit);
      begin += limit;
      files = 0;
    }
    if (offset == begin || (file && ++files < files_max)) return;
    largest = std::max(largest, offset - begin);
    begin = offset;
    files = 0;
  };
  for (const uint64_t file_end : log.file_ends())
    if (file_end <= end) close_at(file_end, true);
  close_at(end, false);
  return largest;
}

Result<std::vector<GridPoint>> MakeGrid(const GridOptions& options, const EventLog& log,
                                        uint64_t train_to) {
  TACIT_ASSIGN(const config::Config base, config::Load(options.config, options.overrides));
  TACIT_ASSIGN(const std::vector<size_t> chosen, ChooseLearners(base, options.learners));
  std::vector<GridPoint> points;
  std::map<std::string, size_t> known;
  ValueFates fates;
  for (const size_t index : chosen) {
    std::vector<size_t> at(options.axes.size());  // index of the value on each axis
    do {
      std::map<std::string, std::string> settings;
      for (size_t a = 0; a < at.size(); ++a)
        settings[options.axes[a].key] = options.axes[a].values[at[a]];
      GridPoint point =
          MakePoint(options, index, base.learners[index].id, std::move(settings), log, train_to);
      fates.Note(point);
      const auto [same, is_new] = known.try_emplace(point.canonical, points.size());
      if (is_new || !point.refusal.empty())
        points.push_back(std::move(point));
      else
        KeepCommon(point.settings, &points[same->second].settings);
    } while (Advance(options.axes, &at));
  }
  TACIT_RETURN_IF_ERROR(fates.Check());
  return points;
}

}  // namespace tacit::lab
