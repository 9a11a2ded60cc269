#include "store/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>

#include "base/files/is_there.h"
#include "base/text.h"
#include "cli/export/checkpoint_export.h"
#include "cli/ledger/ledger.h"
#include "cli/parts/ask_daemon.h"
#include "cli/parts/command.h"
#include "console/exit_code.h"
#include "console/number_check.h"
#include "serve/routes/checkpoint_route.h"
#include "store/checkpoint/checkpoint_archive.h"
#include "store/store.h"
#include "wiring/plans/witness_place.h"
#include "wiring/restore/restore.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

constexpr const char* kRoute = "/v1/checkpoints";
constexpr const char* kPromisesNothing =
    "warning: a learner in it adds no noise and promises nothing: whoever has the checkpoint "
    "learns what single records say\n";
// A lineage has 32 digits; these tell two of them apart.
constexpr size_t kLineageDigits = 8;
constexpr auto kBetweenLooks = std::chrono::milliseconds(100);

struct CheckpointOptions {
  std::string url, path, kind = "full", packed_kind;
  std::vector<std::string> folders;
  std::string config, file;
  std::vector<std::string> overrides;
  std::vector<std::string> remains;
  std::string store;
  uint64_t keep = 0;
  bool json = false, skip_records = false, other_lineages = false;
};

std::string MebibytesText(uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

// "2026-01-02 03:04:05Z".
std::string UtcText(int64_t unix_ms) {
  const std::time_t seconds = unix_ms / 1000;
  std::tm time{};
  gmtime_r(&seconds, &time);
  char text[32];
  std::strftime(text, sizeof(text), "%F %TZ", &time);
  return text;
}

std::string_view TextOf(const json::object& object, const char* key) {
  return object.at(key).as_string();
}

// One line of the table, from the JSON that daemon and folder have in common.
std::string LineOf(const json::object& checkpoint) {
  const json::value& epsilon = checkpoint.at("epsilon");
  return fmt::format(
      "{:<8} {:<8} {:>8} {:>10} {:>12}  {}  {}\n", TextOf(checkpoint, "kind"),
      TextOf(checkpoint, "lineage").substr(0, kLineageDigits),
      checkpoint.at("version").to_number<uint64_t>(),
      epsilon.is_number() ? fmt::format("{:.4f}", epsilon.to_number<double>()) : "unbounded",
      MebibytesText(checkpoint.at("bytes").to_number<uint64_t>()),
      UtcText(checkpoint.at("time_ms").to_number<int64_t>()), TextOf(checkpoint, "folder"));
}

// A name that is misspelt must not be taken for a folder without checkpoints.
Status CheckFolder(const std::string& path) {
  TACIT_ASSIGN(const bool there, IsThere(path));
  std::error_code error;
  if (there && std::filesystem::is_directory(path, error)) return {};
  return Fail(ErrorCode::kNotFound, fmt::format("there is no folder {}", path));
}

// The list of a folder, in the form that a daemon answers.
Result<json::object> ListFolder(const std::string& path) {
  TACIT_RETURN_IF_ERROR(CheckFolder(path));
  serve::CheckpointReport report{.path = path};
  TACIT_ASSIGN(report.places, store::ListCheckpoints(path, &report.unreadable));
  http::Reply reply;
  serve::AnswerCheckpoints({.start = {}, .report = [&] { return report; }}, &reply);
  return ReadAnswer(path, reply.status, reply.body);
}

Result<json::object> AskForList(const std::string& url) {
  TACIT_ASSIGN(const http::Response response, AskDaemon(url, kRoute, "GET", ""));
  return ReadAnswer(url, response.status, response.body);
}

tl::unexpected<Error> NotADaemon(const std::string& url) {
  return Fail(ErrorCode::kIo, fmt::format("{} does not answer as tacitd does", url));
}

// Waits until the job has ended, and returns it.
Result<json::object> WaitForJob(const std::string& url, uint64_t id) {
  for (;;) {
    TACIT_ASSIGN(const json::object report, AskForList(url));
    try {
      const json::object& last = report.at("last").as_object();
      const uint64_t at = last.at("job").to_number<uint64_t>();
      if (at == id && TextOf(last, "state") == "done") return last;
      if (at == id && TextOf(last, "state") == "failed")
        return Fail(ErrorCode::kIo,
                    fmt::format("no checkpoint was made: {}", TextOf(last, "error")));
      if (at != id)
        return Fail(ErrorCode::kUnavailable,
                    "another checkpoint was asked for meanwhile; tacit checkpoint list shows "
                    "which there are");
    } catch (const std::exception&) {  // JSON of another shape
      return NotADaemon(url);
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

Result<int> Create(const CheckpointOptions& options) {
  const std::string body = json::serialize(json::object{{"kind", options.kind}});
  TACIT_ASSIGN(const http::Response response, AskDaemon(options.url, kRoute, "POST", body));
  const uint32_t status = response.status == 202 ? 200 : response.status;
  TACIT_ASSIGN(const json::object started, ReadAnswer(options.url, status, response.body));
  const json::value* id = started.if_contains("job");
  if (id == nullptr || !id->is_number()) return NotADaemon(options.url);
  TACIT_ASSIGN(const json::object job, WaitForJob(options.url, id->to_number<uint64_t>()));
  if (options.json) {
    fmt::print("{}\n", json::serialize(job));
    return int{console::kExitDone};
  }
  try {
    const json::object& made = job.at("made").as_object();
    fmt::print("{}: a {} checkpoint of commit {}, {}{}\n", TextOf(made, "folder"),
               TextOf(made, "kind"), made.at("version").to_number<uint64_t>(),
               MebibytesText(made.at("bytes").to_number<uint64_t>()),
               job.at("existed").as_bool()
                   ? "; it was there"
                   : fmt::format("; made in {:.0f} ms, commits waited {:.1f} ms",
                                 job.at("took_ms").to_number<double>(),
                                 job.at("paused_ms").to_number<double>()));
    if (TextOf(made, "kind") == store::NameOf(store::CheckpointKind::kRelease) &&
        made.at("epsilon").is_null())
      fmt::print(stderr, "{}", kPromisesNothing);
  } catch (const std::exception&) {  // JSON of another shape
    return NotADaemon(options.url);
  }
  return int{console::kExitDone};
}

Result<int> List(const CheckpointOptions& options) {
  json::object report;
  if (options.url.empty()) {
    TACIT_ASSIGN(report, ListFolder(options.path));
  } else {
    TACIT_ASSIGN(report, AskForList(options.url));
  }
  if (options.json) {
    fmt::print("{}\n", json::serialize(report));
    return int{console::kExitDone};
  }
  try {
    fmt::print("{:<8} {:<8} {:>8} {:>10} {:>12}  {:<20}  {}\n", "kind", "lineage", "commit",
               "epsilon", "size", "made", "folder");
    for (const json::value& checkpoint : report.at("checkpoints").as_array())
      fmt::print("{}", LineOf(checkpoint.as_object()));
    for (const json::value& message : report.at("unreadable").as_array())
      fmt::print(stderr, "{}\n", std::string_view(message.as_string()));
  } catch (const std::exception&) {  // JSON of another shape
    return NotADaemon(options.url);
  }
  return int{console::kExitDone};
}

// Checks all of them, and names the first damage of each.
Result<int> VerifyEach(const CheckpointOptions& options) {
  int code = console::kExitDone;
  for (const std::string& folder : options.folders) {
    const auto checked = store::CheckCheckpoint(folder, store::CheckpointCheck::kEveryByte);
    if (checked) {
      fmt::print("{}: a {} checkpoint of commit {}: {} of {}, every byte as it was written\n",
                 folder, store::NameOf(checked->kind), checked->commit.value,
                 Counted(checked->files.size(), "file"), MebibytesText(checked->bytes()));
      if (checked->kind == store::CheckpointKind::kRelease && !std::isfinite(checked->epsilon))
        fmt::print(stderr, "{}", kPromisesNothing);
    } else {
      fmt::print(stderr, "tacit: {}\n", checked.error().message);
      const ErrorCode error = checked.error().code;
      code = error == ErrorCode::kNotFound  ? console::kExitUsage
             : error == ErrorCode::kRefused ? console::kExitStoreRefused
                                            : console::kExitFailed;
    }
  }
  return code;
}

// The checkpoint that is meant by `path`: itself, or the newest of the kind in it, which is told.
Result<std::string> CheckpointAt(const std::string& path, store::CheckpointKind kind) {
  if (store::IsCheckpoint(path)) return path;
  TACIT_RETURN_IF_ERROR(CheckFolder(path));
  std::vector<std::string> unreadable;
  TACIT_ASSIGN(const auto places, store::ListCheckpoints(path, &unreadable));
  if (!unreadable.empty())
    return Fail(ErrorCode::kRefused,
                fmt::format("{}; it may be the newest in {}: name the checkpoint that you mean",
                            unreadable.front(), path));
  const auto [newest, other] = store::NewestOf(places, kind);
  if (newest == nullptr)
    return Fail(ErrorCode::kNotFound,
                fmt::format("{} is no checkpoint, and there is no {} one in it", path,
                            store::NameOf(kind)));
  const store::CheckpointManifest& is = newest->manifest;
  fmt::print(stderr, "{} is taken: commit {} of lineage {}, the newest {} one in {}{}\n",
             newest->folder, is.commit.value, is.lineage.substr(0, kLineageDigits),
             store::NameOf(kind), path,
             other == nullptr ? ""
                              : fmt::format("; {} is of an earlier lineage, {}", other->folder,
                                            other->manifest.lineage.substr(0, kLineageDigits)));
  return newest->folder;
}

// The files to learn from may be gone: then every user is charged. What a start would refuse in
// files that are there is refused here, unless no record is read.
Result<wiring::Assembly> AssembleFor(const CheckpointOptions& options) {
  auto config = config::Load(options.config, options.overrides, config::LogFiles::kFound);
  if (config) {
    auto assembled = wiring::Assemble(*std::move(config));
    if (assembled || !options.skip_records) return assembled;
  }
  TACIT_ASSIGN(config, config::Load(options.config, options.overrides, config::LogFiles::kUnread));
  return wiring::Assemble(*std::move(config));
}

Result<int> Restore(const CheckpointOptions& options) {
  TACIT_ASSIGN(const std::string from,
               CheckpointAt(options.folders.at(0), store::CheckpointKind::kFull));
  TACIT_ASSIGN(const wiring::Assembly assembly, AssembleFor(options));
  TACIT_ASSIGN(const wiring::RestoreReport report,
               wiring::RestoreStore(assembly, {.from = from,
                                               .remains = options.remains,
                                               .read_again = !options.skip_records}));
  if (!options.json) {
    fmt::print("{}\n", fmt::join(wiring::DescribeRestore(assembly, report), "\n"));
    return int{console::kExitDone};
  }
  const store::Restored& restored = report.restored;
  json::object out{{"store", assembly.config.store.path},
                   {"lineage", restored.lineage},
                   {"version", restored.commit.value},
                   {"from", json::object{{"lineage", restored.from_lineage},
                                         {"version", restored.from_commit.value}}},
                   {"through", report.through.value},
                   {"remembered_by", report.remembered_by},
                   {"charged_by", report.charged_by},
                   {"users_by", report.users_by},
                   {"every_user_charged", report.not_read_again},
                   {"epsilon", restored.epsilon},
                   {"delta", restored.delta}};
  fmt::print("{}\n", json::serialize(out));
  return int{console::kExitDone};
}

// The lineages that a store has left: one for each restore of it. Names their checkpoints. Refused
// while a backup among them has none of the store's own beside it.
Result<std::set<std::string>> LineagesLeft(const CheckpointOptions& options) {
  TACIT_ASSIGN(const std::string witness, wiring::WitnessBeside(options.store));
  TACIT_ASSIGN(const auto store, store::OpenReadOnly(options.store, witness, {}));
  std::set<std::string> left;
  for (const Ancestor& ancestor : store.snapshot->ancestors()) left.insert(ancestor.lineage);
  TACIT_ASSIGN(const auto places, store::ListCheckpoints(options.path, nullptr));
  const auto full_of = [&](const auto& holds) {
    return std::ranges::find_if(places, [&](const store::CheckpointPlace& place) {
      return place.manifest.kind == store::CheckpointKind::kFull && holds(place.manifest.lineage);
    });
  };
  const std::string own = store.snapshot->lineage();
  const auto backup = full_of([&](const std::string& lineage) { return left.contains(lineage); });
  if (backup != places.end() && full_of([&](const auto& of) { return of == own; }) == places.end())
    return Fail(ErrorCode::kRefused,
                fmt::format("--other-lineages would remove every backup, {} too: the store's own "
                            "lineage {} has no full checkpoint in {} yet. Make one first (tacit "
                            "checkpoint create)",
                            backup->folder, own.substr(0, kLineageDigits), options.path));
  for (const store::CheckpointPlace& place : places)
    if (left.contains(place.manifest.lineage))
      fmt::print("{} is of lineage {}, which the store has left\n", place.folder,
                 place.manifest.lineage.substr(0, kLineageDigits));
  return left;
}

Result<int> Prune(const CheckpointOptions& options) {
  TACIT_RETURN_IF_ERROR(CheckFolder(options.path));
  std::set<std::string> left;
  if (options.other_lineages) {
    TACIT_ASSIGN(left, LineagesLeft(options));
    std::fflush(stdout);
  }
  std::vector<std::string> held;
  TACIT_ASSIGN(const auto removed,
               store::PruneCheckpoints(options.path, options.keep, &held, left));
  for (const std::string& folder : held) fmt::print("kept {}: it is being served\n", folder);
  for (const std::string& folder : removed) fmt::print("removed {}\n", folder);
  fmt::print("{} removed\n", Counted(removed.size(), "checkpoint"));
  return int{console::kExitDone};
}

Result<int> Pack(const CheckpointOptions& options) {
  const bool any = options.packed_kind.empty();
  TACIT_ASSIGN(const store::CheckpointKind kind,
               store::CheckpointKindOf(any ? "full" : options.packed_kind));
  TACIT_ASSIGN(const std::string folder, CheckpointAt(options.folders.at(0), kind));
  TACIT_ASSIGN(const store::CheckpointManifest manifest, store::ReadManifest(folder));
  if (!any && manifest.kind != kind)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--kind {}: {} is a {} checkpoint", options.packed_kind, folder,
                            store::NameOf(manifest.kind)));
  TACIT_RETURN_IF_ERROR(store::PackCheckpoint(folder, options.file));
  std::error_code error;
  fmt::print("{}: {} in one file\n", options.file,
             MebibytesText(std::filesystem::file_size(options.file, error)));
  return int{console::kExitDone};
}

Result<int> Unpack(const CheckpointOptions& options) {
  TACIT_ASSIGN(const store::CheckpointPlace place,
               store::UnpackCheckpoint(options.file, options.path));
  fmt::print("{}: a {} checkpoint of commit {}, every byte as it was written\n", place.folder,
             store::NameOf(place.manifest.kind), place.manifest.commit.value);
  return int{console::kExitDone};
}

void AddPackAndUnpack(CLI::App* command, const std::shared_ptr<CheckpointOptions>& options,
                      Action* chosen) {
  auto* pack = command->add_subcommand("pack", "Write one as a single file: tar, packed with zstd");
  pack->add_option("folder", options->folders,
                   "A checkpoint, or a folder of checkpoints: the newest of the kind in it")
      ->required()
      ->expected(1);
  pack->add_option("--output", options->file, "The file to write")->required();
  pack->add_option("--kind", options->packed_kind,
                   "The kind that must be packed, full or release (of a folder: full)")
      ->check(CLI::IsMember({"full", "release"}));
  pack->footer(
      "Example:\n  tacit checkpoint pack demo-data/store.checkpoints --kind release --output "
      "release.tar.zst");
  pack->callback([options, chosen] { *chosen = [options] { return Pack(*options); }; });

  auto* unpack = command->add_subcommand("unpack", "Unpack such a file, and check every byte");
  unpack->add_option("file", options->file, "The file")->required();
  unpack->add_option("--path", options->path, "The folder that gets the checkpoint")->required();
  unpack->footer("Example:\n  tacit checkpoint unpack release.tar.zst --path /srv/checkpoints");
  unpack->callback([options, chosen] { *chosen = [options] { return Unpack(*options); }; });
}

void AddCreateAndList(CLI::App* command, const std::shared_ptr<CheckpointOptions>& options,
                      Action* chosen) {
  auto* create = command->add_subcommand("create", "Make one of a running daemon's store");
  create
      ->add_option("--url", options->url,
                   fmt::format("The daemon, {}: http://HOST:PORT or unix:/PATH", kOperatorListener))
      ->required();
  create
      ->add_option("--kind", options->kind,
                   "full: to restore from | release: nothing raw, where learners add noise")
      ->default_val("full")
      ->check(CLI::IsMember({"full", "release"}));
  create->add_flag("--json", options->json, "Print JSON");
  create->footer(
      "Training goes on meanwhile. It lies in the daemon's store.checkpoints.path.\n"
      "Examples:\n  tacit checkpoint create --url unix:/run/tacit/operator\n  tacit checkpoint "
      "create --url http://127.0.0.1:8981 --kind release");
  create->callback([options, chosen] { *chosen = [options] { return Create(*options); }; });

  auto* list = command->add_subcommand("list", "What there is, oldest first");
  auto* where = list->add_option_group("where");
  where->add_option("--path", options->path, "The folder that they are in");
  where->add_option("--url", options->url, fmt::format("A running daemon, {}", kOperatorListener));
  where->require_option(1);
  list->add_flag("--json", options->json, "Print JSON");
  list->footer("Example:\n  tacit checkpoint list --path demo-data/store.checkpoints");
  list->callback([options, chosen] { *chosen = [options] { return List(*options); }; });
}

}  // namespace

void AddCheckpoint(CLI::App& cli, Action* chosen) {
  auto* command = cli.add_subcommand("checkpoint", "A store as of one commit, to keep or hand on");
  command->require_subcommand(1);
  auto options = std::make_shared<CheckpointOptions>();
  AddCreateAndList(command, options, chosen);
  AddPackAndUnpack(command, options, chosen);
  AddCheckpointExport(command, chosen);

  auto* verify = command->add_subcommand("verify", "Check every byte against the manifest");
  verify->add_option("folder", options->folders, "Checkpoints")->required();
  verify->footer(
      "Example:\n  tacit checkpoint verify "
      "demo-data/store.checkpoints/full-000000000120-1f6e0c2b");
  verify->callback([options, chosen] { *chosen = [options] { return VerifyEach(*options); }; });

  auto* restore = command->add_subcommand("restore", "Make a store of one, after a loss");
  restore
      ->add_option("folder", options->folders,
                   "A full checkpoint, or a folder of checkpoints: the newest full one in it")
      ->required()
      ->expected(1);
  restore->add_option("--config", options->config, "The configuration of the lost store")
      ->required();
  restore->add_option("--set", options->overrides, "KEY=VALUE over the configuration")
      ->allow_extra_args(false);
  restore->add_option("--remains", options->remains,
                      "What is left of the lost store, or other checkpoints of it (repeatable)");
  restore->add_flag("--skip-records", options->skip_records,
                    "Charge every user, in place of reading the records again to count them");
  restore->add_flag("--json", options->json, "Print JSON");
  restore->footer(
      "It is made at store.path, which must be free. What was learnt after the checkpoint is "
      "charged:\nby the ledger of what is left, beyond that by the totals of witness or mark. It "
      "is not learnt again.\n"
      "Example:\n  tacit checkpoint restore /var/lib/tacit/store.checkpoints --config "
      "/etc/tacit/tacitd.yaml --remains /var/lib/tacit/store.lost");
  restore->callback([options, chosen] { *chosen = [options] { return Restore(*options); }; });

  auto* prune = command->add_subcommand("prune", "Remove the older ones of each kind and lineage");
  prune->add_option("--path", options->path, "The folder that they are in")->required();
  prune->add_option("--keep", options->keep, "How many of each kind and lineage stay")
      ->required()
      ->check(console::WholeFrom(1), "POSITIVE");
  auto* store = prune->add_option("--store", options->store, "With --other-lineages: the store");
  auto* other = prune->add_flag("--other-lineages", options->other_lineages,
                                "Also remove all of the lineages that the store has left, which "
                                "are named first");
  store->needs(other);
  other->needs(store);
  prune->footer(
      "A store that was restored has a lineage of its own, and leaves the one that it had.\n"
      "Examples:\n  tacit checkpoint prune --path demo-data/store.checkpoints --keep 3\n"
      "  tacit checkpoint prune --path demo-data/store.checkpoints --keep 3 --other-lineages "
      "--store demo-data/store");
  prune->callback([options, chosen] { *chosen = [options] { return Prune(*options); }; });
}

}  // namespace tacit::cli
