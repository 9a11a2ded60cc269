#include "daemon/served_versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <ranges>
#include <utility>

#include "base/files/is_there.h"
#include "base/files/log.h"
#include "daemon/version_choice.h"
#include "store/checkpoint/checkpoint.h"
#include "wiring/plans/witness_place.h"

namespace tacit::daemon {
namespace {

namespace fs = std::filesystem;

// The newest checkpoint in `parent`, of this one's kind and lineage if there is one.
Result<std::string> NewestIn(const std::string& parent, const store::CheckpointManifest* like) {
  TACIT_ASSIGN(const auto places, store::ListCheckpoints(parent, nullptr));
  const auto [newest, other] = like == nullptr ? store::NewestOf(places, std::nullopt)
                                               : store::NewestOf(places, like->kind, like->lineage);
  if (newest == nullptr)
    return Fail(ErrorCode::kNotFound, fmt::format("there is no checkpoint in {}", parent));
  if (other != nullptr && like == nullptr)
    spdlog::warn(
        "{} has checkpoints of several stores: {} is taken, of lineage {}, which made the last "
        "one; {} is of lineage {}. After a restore, tacit checkpoint prune --other-lineages "
        "removes the lost store's",
        parent, newest->folder, newest->manifest.lineage, other->folder, other->manifest.lineage);
  return newest->folder;
}

// The folder of checkpoints that a checkpoint's name lies in, behind a link if it is one.
std::string ParentOf(const std::string& directory) {
  std::error_code error;
  return fs::path(fs::weakly_canonical(directory, error)).parent_path();
}

// The folder to serve for this name.
Result<std::string> Choose(const std::string& directory, bool newest) {
  if (!store::IsCheckpoint(directory)) {
    TACIT_ASSIGN(const bool is_store, IsThere(directory + "/CURRENT"));
    if (is_store) return directory;
    TACIT_ASSIGN(const auto places, store::ListCheckpoints(directory, nullptr));
    return places.empty() ? directory : NewestIn(directory, nullptr);
  }
  if (!newest) return directory;
  // A link may have been turned to another checkpoint, which then is the one that is meant.
  TACIT_ASSIGN(const store::CheckpointManifest manifest, store::ReadManifest(directory));
  return NewestIn(ParentOf(directory), &manifest);
}

}  // namespace

Result<ServedVersions::Held> ServedVersions::Read(const std::string& folder) const {
  Held held;
  if (store::IsCheckpoint(folder)) {
    TACIT_ASSIGN(store::CheckpointHold hold, store::CheckpointHold::Take(folder));
    held.hold = std::make_shared<const store::CheckpointHold>(std::move(hold));
  }
  TACIT_ASSIGN(const std::string witness, wiring::WitnessBeside(folder));
  if (witness.empty() && !store::IsCheckpoint(folder))
    spdlog::warn("no witness of {}: an older copy put in its place would not be noticed", folder);
  TACIT_ASSIGN(held.store,
               store::OpenReadOnly(folder, witness, options_.layouts, options_.reader_bytes));
  return held;
}

Result<ServedVersions::Opened> ServedVersions::OpenVersion(const std::string& folder,
                                                           Held read) const {
  auto version = std::make_shared<const serve::ServedVersion>(
      std::move(read.store.snapshot), options_.recommenders, *options_.registry);
  for (size_t i = 0; i < options_.recommenders.size(); ++i) {
    auto items = version->recommender().Get(i);
    if (!items && items.error().code != ErrorCode::kUnavailable)
      return Fail(std::move(items.error()).Context(folder));
  }
  return Opened{folder, std::move(read.hold), std::move(version)};
}

Result<std::unique_ptr<ServedVersions>> ServedVersions::Open(const std::string& directory,
                                                             Options options) {
  std::unique_ptr<ServedVersions> versions(new ServedVersions(directory, std::move(options)));
  TACIT_ASSIGN(const std::string folder, Choose(directory, /*newest=*/false));
  TACIT_ASSIGN(Held read, versions->Read(folder));
  if (read.store.checkpoint) {
    TACIT_ASSIGN(versions->like_, store::ReadManifest(folder));
  }
  State state;
  state.serving = read.store.snapshot->version().value;
  const std::string lineage = read.store.snapshot->lineage();
  TACIT_ASSIGN(state.open[state.serving], versions->OpenVersion(folder, std::move(read)));
  if (!versions->options_.choice_file.empty()) {
    TACIT_ASSIGN(const auto choice, ReadChoice(versions->options_.choice_file));
    if (choice && choice->lineage != lineage)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("serve.versions.file {} chooses a version of lineage {}, {} is of "
                              "{}: remove it to serve what is newest",
                              versions->options_.choice_file, choice->lineage, folder, lineage));
    if (choice) {
      state.serving = choice->serving;
      state.canary = choice->canary;
      state.held = true;
      Status wanted = versions->OpenWanted(&state);
      if (!wanted)
        return Fail(std::move(wanted.error())
                        .Context("serve.versions.file " + versions->options_.choice_file));
    }
  }
  versions->OpenOlder(&state);
  {
    const MutexLock lock(versions->moving_);
    versions->Publish(std::move(state));
  }
  return versions;
}

std::string ServedVersions::folder() const {
  const MutexLock lock(moving_);
  return state_.open.at(state_.serving).folder;
}

Result<ServedVersions::Folders> ServedVersions::Places(const State& state) const {
  Folders folders;
  if (like_) {
    const std::string parent = store::IsCheckpoint(directory_) ? ParentOf(directory_) : directory_;
    TACIT_ASSIGN(const auto places, store::ListCheckpoints(parent, nullptr));
    for (const store::CheckpointPlace& place : places)
      if (place.manifest.kind == like_->kind && place.manifest.lineage == like_->lineage)
        folders[place.manifest.commit.value] = place.folder;
  }
  for (const auto& [version, opened] : state.open) folders[version] = opened.folder;
  return folders;
}

Result<bool> ServedVersions::MoveToNewest(State* state) const {
  const Opened& now = state->open.at(state->serving);
  TACIT_ASSIGN(const std::string folder, Choose(directory_, /*newest=*/true));
  if (folder == now.folder && store::IsCheckpoint(folder)) return false;
  TACIT_ASSIGN(Held read, Read(folder));
  const auto& snapshot = now.version->snapshot();
  if (read.store.snapshot->lineage() != snapshot->lineage())
    return Fail(ErrorCode::kRefused,
                fmt::format("{} is of lineage {}, what is served of {}: start anew to serve it",
                            folder, read.store.snapshot->lineage(), snapshot->lineage()));
  const uint64_t version = read.store.snapshot->version().value;
  if (version <= state->serving) return false;
  if (!state->open.contains(version)) {
    TACIT_ASSIGN(state->open[version], OpenVersion(folder, std::move(read)));
  }
  state->serving = version;
  return true;
}

Status ServedVersions::OpenWanted(State* state) const {
  std::set<uint64_t> wanted = {state->serving};
  if (state->canary) wanted.insert(state->canary->version);
  // The newest one's ledger has all that is charged, and stays.
  wanted.insert(std::max(state->open.rbegin()->first, *wanted.rbegin()));
  if (wanted.size() > options_.open_most)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("versions {} would be open at once (what is served, the canary, and "
                            "the newest, whose ledger is shown), serve.versions.open allows {}",
                            fmt::join(wanted, ", "), options_.open_most));
  TACIT_ASSIGN(const Folders places, Places(*state));
  for (const uint64_t version : wanted) {
    if (state->open.contains(version)) continue;
    const auto place = places.find(version);
    if (place == places.end())
      return Fail(ErrorCode::kNotFound,
                  fmt::format("there is no checkpoint of commit {}: there are {}", version,
                              fmt::join(std::views::keys(places), ", ")));
    TACIT_ASSIGN(Held read, Read(place->second));
    TACIT_ASSIGN(state->open[version], OpenVersion(place->second, std::move(read)));
  }
  // The oldest that nobody wants go first.
  for (auto at = state->open.begin();
       at != state->open.end() && state->open.size() > options_.open_most;)
    at = wanted.contains(at->first) ? std::next(at) : state->open.erase(at);
  return {};
}

void ServedVersions::OpenOlder(State* state) const {
  const auto places = Places(*state);
  if (!places) return spdlog::warn("older checkpoints stay closed: {}", places.error().message);
  for (const auto& [version, folder] : std::views::reverse(*places)) {
    if (state->open.size() >= options_.open_most) return;
    if (version > state->serving || state->open.contains(version)) continue;
    auto read = Read(folder);
    auto opened = read ? OpenVersion(folder, std::move(*read)) : Fail(std::move(read.error()));
    if (opened)
      state->open[version] = std::move(*opened);
    else
      spdlog::warn("version {} stays closed: {}", version, opened.error().message);
  }
}

Status ServedVersions::Keep(const State& state) const {
  if (options_.choice_file.empty()) return {};
  std::optional<VersionChoice> choice;
  if (state.held)
    choice = VersionChoice{.lineage = state.open.at(state.serving).version->snapshot()->lineage(),
                           .serving = state.serving,
                           .canary = state.canary};
  return WriteChoice(options_.choice_file, choice);
}

void ServedVersions::Publish(State state) {
  serve::VersionTable::Contents contents;
  for (const auto& [version, opened] : state.open) contents.open.push_back(opened.version);
  contents.serving = state.serving;
  contents.canary = state.canary;
  if (table_ == nullptr)
    table_ = std::make_shared<serve::VersionTable>(std::move(contents));
  else
    table_->Set(std::move(contents));
  state_ = std::move(state);
}

Result<bool> ServedVersions::MoveOn() {
  const MutexLock lock(moving_);
  if (state_.held) return false;
  State state = state_;
  TACIT_ASSIGN(const bool moved, MoveToNewest(&state));
  if (!moved) return false;
  TACIT_RETURN_IF_ERROR(OpenWanted(&state));
  Publish(std::move(state));
  return true;
}

Status ServedVersions::Follow(const serve::VersionOrder& order, State* state) const {
  using Serve = serve::VersionOrder::Serve;
  if (order.serve == Serve::kNewest) {
    TACIT_RETURN_IF_ERROR(MoveToNewest(state));
    // A newer one may lie open, even if its checkpoint is gone.
    state->serving = std::max(state->serving, state->open.rbegin()->first);
    state->held = false;
  } else if (order.serve == Serve::kVersion) {
    state->serving = order.version;
    state->held = true;
  }
  // An order that serves a version, and says nothing of a canary, ends it: it may be what is wrong.
  if (order.serve != Serve::kAsItIs || order.sets_canary) state->canary = order.canary;
  if (state->canary && state->canary->version == state->serving)
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("version {} is served already: a canary is another one", state->serving));
  if (state->canary) state->held = true;
  return OpenWanted(state);
}

Result<serve::VersionReport> ServedVersions::Set(const serve::VersionOrder& order) {
  const MutexLock lock(moving_);
  State state = state_;
  TACIT_RETURN_IF_ERROR(Follow(order, &state));
  TACIT_ASSIGN(const Folders places, Places(state));
  TACIT_RETURN_IF_ERROR(Keep(state));
  Publish(std::move(state));
  return ReportOf(state_, places);
}

Result<serve::VersionReport> ServedVersions::Report() const {
  const MutexLock lock(moving_);
  TACIT_ASSIGN(const Folders places, Places(state_));
  return ReportOf(state_, places);
}

serve::VersionReport ServedVersions::ReportOf(const State& state, const Folders& places) const {
  serve::VersionReport report{.serving = state.serving,
                              .held = state.held,
                              .canary = state.canary,
                              .open_most = options_.open_most};
  for (const auto& [version, folder] : places)
    report.places.push_back({version, folder, state.open.contains(version)});
  return report;
}

}  // namespace tacit::daemon
