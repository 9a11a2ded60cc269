#include "app/evaluate/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>

#include "base/text.h"
#include "config/environment.h"

namespace tacit::app {
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

Status CheckKey(const std::string& text, const std::string& key) {
  std::vector<std::string> patterns = config::KeyPatterns();
  std::vector<std::string_view> names{kEpochs};
  for (const std::string& pattern : patterns)
    if (std::string_view(pattern).starts_with(kLearnerKey))
      names.push_back(std::string_view(pattern).substr(kLearnerKey.size()));
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

// The settings of one learner as overrides of the file.
std::vector<std::string> Overrides(const GridOptions& options, size_t index,
                                   const std::map<std::string, std::string>& settings) {
  std::vector<std::string> overrides = options.overrides;
  for (const auto& [key, value] : settings)
    if (key != kEpochs) overrides.push_back(fmt::format("learners.{}.{}={}", index, key, value));
  return overrides;
}

// What epochs, batch and period come to.
Status Derive(const GridOptions& options, size_t index, const EventLog& log, uint64_t train_to,
              std::map<std::string, std::string>* settings) {
  const auto epochs_at = settings->find(std::string(kEpochs));
  if (epochs_at == settings->end()) return {};
  TACIT_ASSIGN(const double epochs, ParseEpochs(epochs_at->second));
  // Read with values that are to be replaced: batch and period are asked for.
  auto probe = *settings;
  probe["participation.sampling_rate"] = "1";
  probe["participation.steps_per_period"] = "1";
  TACIT_ASSIGN(const config::Config config,
               config::Load(options.config, Overrides(options, index, probe)));
  const config::Participation& p = config.learners[index].participation;
  if (p.mode != config::Participation::Mode::kPoisson)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} goes with participation.mode poisson", kEpochs));
  const auto records = static_cast<double>(LargestPeriod(log, train_to, p));
  const double rate = std::min(1.0, static_cast<double>(p.batch) / std::max(1.0, records));
  (*settings)["participation.sampling_rate"] = fmt::format("{:.6g}", rate);
  (*settings)["participation.steps_per_period"] =
      fmt::format("{}", static_cast<uint64_t>(std::max(1.0, std::round(epochs / rate))));
  return {};
}

// The learner alone, for an experiment: what only a daemon needs is as by default, so that it makes
// no difference.
config::Config Alone(config::Config config, size_t index) {
  config.learners = {config.learners[index]};
  config.budget = {};
  config.store = {};
  config.serve = {};
  config.log = {};
  config.dead_letters.clear();
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
  for (size_t i = 0; ids.empty() && i < names.size(); ++i) chosen.push_back(i);
  for (const std::string& id : ids) {
    const auto at = std::ranges::find(names, id);
    if (at == names.end())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("--learner {}: no learner has this id{}", id, DidYouMean(id, names)));
    chosen.push_back(static_cast<size_t>(at - names.begin()));
  }
  return chosen;
}

// Settings in which two points of one experiment differ make no difference to it.
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

uint64_t LargestPeriod(const EventLog& log, uint64_t train_to,
                       const config::Participation& participation) {
  const uint64_t end = std::min(train_to, log.records());
  const uint64_t limit = participation.period > 0 ? participation.period : end;
  const uint32_t files_max = std::max(1u, participation.period_files);
  uint64_t largest = 0, begin = 0;
  uint32_t files = 0;
  // A period that is cut by offsets is as long as it may be; then its files count anew.
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
  for (const size_t index : chosen) {
    std::vector<size_t> at(options.axes.size());  // which value of each axis
    for (bool more = true; more;) {
      std::map<std::string, std::string> settings;
      for (size_t a = 0; a < at.size(); ++a)
        settings[options.axes[a].key] = options.axes[a].values[at[a]];
      GridPoint point =
          MakePoint(options, index, base.learners[index].id, std::move(settings), log, train_to);
      const auto [same, is_new] = known.try_emplace(point.canonical, points.size());
      if (is_new || !point.refusal.empty())
        points.push_back(std::move(point));
      else
        KeepCommon(point.settings, &points[same->second].settings);
      more = false;
      for (size_t a = at.size(); a-- > 0 && !more;) {
        more = ++at[a] < options.axes[a].values.size();
        if (!more) at[a] = 0;
      }
    }
  }
  return points;
}

}  // namespace tacit::app
