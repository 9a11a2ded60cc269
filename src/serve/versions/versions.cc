#include "serve/versions/versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "http/query_fields.h"
#include "metrics/families.h"

namespace tacit::serve {
namespace {

constexpr metrics::CounterName kAnswersName = "tacit_version_answers_total";
constexpr metrics::HistogramName kSecondsName = "tacit_version_answer_seconds";

metrics::Labels LabelsOf(uint64_t version) { return {{"version", std::to_string(version)}}; }
metrics::Labels LabelsOf(uint64_t version, bool failed) {
  return {{"version", std::to_string(version)}, {"outcome", failed ? "failed" : "answered"}};
}

Answering AnsweringOf(const std::shared_ptr<const ServedVersion>& version) {
  // The recommender lives as long as its version.
  return {version->snapshot(), std::shared_ptr<const Recommender>(version, &version->recommender()),
          version};
}

std::shared_ptr<const ServedVersion> FindVersion(const VersionTable::Contents& contents,
                                                 uint64_t version) {
  for (const auto& one : contents.open)
    if (one->number() == version) return one;
  return nullptr;
}

std::string_view CanaryKeyOf(const http::Request& request) {
  for (const std::string_view name : {kCanaryField, std::string_view("X-Request-Id")})
    if (const std::string_view key = request.Field(name); !key.empty()) return key;
  return request.body;
}

}  // namespace

ServedVersion::ServedVersion(std::shared_ptr<const store::Snapshot> snapshot,
                             std::vector<RecommendModel> recommenders, metrics::Registry& registry)
    : snapshot_(std::move(snapshot)),
      registry_(registry),
      recommender_(std::move(recommenders), [snapshot = snapshot_] { return snapshot; }) {
  recommender_.Refresh();
  const auto counter = [&](bool failed) {
    return registry.AddCounter(kAnswersName, LabelsOf(number(), failed));
  };
  done_ = counter(false);
  failed_ = counter(true);
  seconds_ = registry.AddHistogram(kSecondsName, metrics::ExponentialBounds(1e-5, 4, 10),
                                   LabelsOf(number()));
}

ServedVersion::~ServedVersion() {
  for (const bool failed : {false, true})
    registry_.Remove(kAnswersName, LabelsOf(number(), failed));
  registry_.Remove(kSecondsName, LabelsOf(number()));
}

void ServedVersion::Count(double seconds, bool failed) const {
  (failed ? failed_ : done_).Add();
  seconds_.Observe(seconds);
}

CountedAnswer::~CountedAnswer() {
  if (version_ == nullptr) return;
  version_->Count(std::chrono::duration<double>(Clock::now() - begin_).count(), failed_);
}

void VersionTable::Set(Contents contents) {
  TACIT_CHECK(FindVersion(contents, contents.serving) != nullptr, "what is served is open");
  TACIT_CHECK(!contents.canary || FindVersion(contents, contents.canary->version) != nullptr,
              "the canary is open");
  auto made = std::make_shared<const Contents>(std::move(contents));
  const MutexLock lock(mutex_);
  contents_.swap(made);
}

std::shared_ptr<const VersionTable::Contents> VersionTable::contents() const {
  const MutexLock lock(mutex_);
  return contents_;
}

Result<Answering> VersionTable::Choose(std::optional<uint64_t> asked,
                                       const http::Request& request) const {
  const auto now = contents();
  uint64_t version = asked.value_or(now->serving);
  if (!asked && now->canary &&
      IsOfCanary(*now->canary, now->open.front()->snapshot()->lineage(), CanaryKeyOf(request)))
    version = now->canary->version;
  if (const auto found = FindVersion(*now, version)) return AnsweringOf(found);
  std::vector<uint64_t> here;
  for (const auto& one : now->open) here.push_back(one->number());
  return Fail(ErrorCode::kNotFound,
              fmt::format("there is no version {}: open here {} {}", version,
                          here.size() == 1 ? "is" : "are", fmt::join(here, ", ")));
}

Answering VersionTable::Serving() const {
  const auto now = contents();
  return AnsweringOf(FindVersion(*now, now->serving));
}

std::vector<Answering> VersionTable::All() const {
  const auto now = contents();
  std::vector<Answering> all;
  std::transform(now->open.rbegin(), now->open.rend(), std::back_inserter(all), AnsweringOf);
  return all;
}

std::shared_ptr<const store::Snapshot> VersionTable::Newest() const {
  return contents()->open.back()->snapshot();
}

Result<std::optional<uint64_t>> VersionOfQuery(std::string_view query) {
  std::optional<uint64_t> version;
  TACIT_RETURN_IF_ERROR(
      http::ForFields(query, [&](std::string_view name, const std::string& value) -> Status {
        if (name != "version")
          return Fail(ErrorCode::kInvalidArgument,
                      fmt::format("unknown parameter '{}' (there is version)", name));
        TACIT_ASSIGN(version, http::WholeNumber(name, value));
        return {};
      }));
  return version;
}

}  // namespace tacit::serve
