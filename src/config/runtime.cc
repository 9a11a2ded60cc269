#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "config/sections.h"

namespace tacit::config {
namespace {

// Accepts HOST:PORT, [V6]:PORT, unix:PATH or an empty text.
bool GoodAddress(std::string_view address) {
  if (address.empty()) return true;
  if (address.starts_with("unix:")) return address.size() > 5;
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view host = address.substr(0, colon), port = address.substr(colon + 1);
  const bool bracketed = host.starts_with('[') && host.ends_with(']') && host.size() > 2;
  if (host.find(':') != std::string_view::npos && !bracketed) return false;
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  return error == std::errc() && end == port.data() + port.size();
}

}  // namespace

bool Inside(const std::string& file, const std::string& directory) {
  namespace fs = std::filesystem;
  const fs::path inner = fs::absolute(file).lexically_normal();
  fs::path outer = fs::absolute(directory).lexically_normal();
  if (!outer.has_filename()) outer = outer.parent_path();
  for (fs::path at = inner; at.has_relative_path(); at = at.parent_path()) {
    if (at == outer) return true;
  }
  return false;
}

void DescribeStore(Fields& fields, Store& store) {
  static constexpr std::array<std::string_view, 2> kOnFailure = {"serve", "exit"};
  fields.Text({"path", "A directory, made when it does not exist."}, &store.path, Use::kRequired);
  fields.Text(
      {"witness",
       "A file with proof of the last commit, so that an older copy of the store is noticed: "
       "docs/operating/witness.md. It lies outside the store, in a folder (made when it is "
       "missing) that no backup puts back together with the store, best on another disk. Required "
       "under a service manager. Empty: `store.path` + `.witness`, which a restore of the whole "
       "folder brings along.\n`none`: an older copy goes unnoticed."},
      &store.witness);
  fields.Integer(
      {"shards",
       "Parts that rows are cut into, each with files of its own. 0: as many as the store has, and "
       "four for a new one. `tacit store reshard` changes them: docs/operating/shards.md."},
      &store.shards, 0, 128);
  fields.Texts({"paths",
                "Folders, of other disks say, that the shards of a new store are spread over in "
                "turn. All that is not rows stays in `store.path`. Empty: the shards are there "
                "too. `tacit store reshard` moves them."},
               &store.paths);
  fields.Integer({"commit_interval_ms",
                  "The work that a crash may lose at most; the charge is never lost. Shorter: "
                  "fresher answers, more synced writes."},
                 &store.commit_interval_ms, 1, 3'600'000);
  fields.Enum({"on_failure",
               "`serve`: once training has failed, the last commit stays served.\n`exit`: tacitd "
               "ends with status 1, so that systemd starts it again.",
               AtReload::kTaken},
              &store.on_failure, kOnFailure);
  fields.Integer({"scrub_days",
                  "The days in which tacitd reads every table of the store once, slowly, and "
                  "compares it with its checksum. Damage is logged, counted by "
                  "`tacit_store_damaged_files`, and makes `/readyz` degraded. 0: it never does."},
                 &store.scrub_days, 0, 3650);
  fields.Section({"checkpoints",
                  "Folders with the store as of one commit, made while training goes on: "
                  "docs/operating/checkpoints.md."},
                 [&](Fields& below) { DescribeCheckpoints(below, store.checkpoints); });
  fields.Section(
      {"anchors",
       "A file that heads of the ledger are added to, so that a ledger that was rolled back, or is "
       "another one, can be told later, by others too: docs/audit.md."},
      [&](Fields& below) { DescribeAnchors(below, store.anchors); });
}

Status CheckStore(const Place& place, Store* store) {
  if (store->path.empty()) return place.Key("path").Fail("must not be empty");
  while (store->path.size() > 1 && store->path.ends_with('/')) store->path.pop_back();
  store->witness_is_default = store->witness.empty();
  if (store->witness_is_default) store->witness = store->path + ".witness";
  if (store->witness != "none" && Inside(store->witness, store->path)) {
    return place.Key("witness").Fail(
        "lies inside store.path: a copy of the store would bring its witness along, and prove "
        "nothing");
  }
  for (const std::string& path : store->paths) {
    if (path.empty()) return place.Key("paths").Fail("has an empty path");
    if (Inside(path, store->path))
      return place.Key("paths").Fail(
          fmt::format("'{}' lies inside store.path, where shards are without this key", path));
  }
  TACIT_RETURN_IF_ERROR(CheckAnchors(place.Key("anchors"), *store, &store->anchors));
  return CheckCheckpoints(place.Key("checkpoints"), *store, &store->checkpoints);
}

Status CheckMark(const Place& place, const std::string& mark, const Store& store) {
  if (mark.empty()) return {};
  if (Inside(mark, store.path))
    return place.Fail("lies inside store.path: it would be put back together with the store");
  if (Inside(mark, store.witness))
    return place.Fail("is the same as store.witness: put the two in different places");
  return {};
}

void DescribeServe(Fields& fields, Serve& serve) {
  fields.Text({"listen",
               "`HOST:PORT` or `unix:PATH`. Before it listens to more than this machine, set "
               "`serve.tls` and `serve.callers`. Empty: there is no server."},
              &serve.listen);
  fields.Text({"operator_listen",
               "An address with the same routes and those for operators only, whose metrics and "
               "offsets carry no noise. For this machine or a closed network alone, and never the "
               "address of `serve.listen`. Empty: there is none."},
              &serve.operator_listen);
  fields.Text(
      {"standby_listen",
       "The address where `tacitd --standby` answers probes while it waits, without TLS and "
       "tokens: `/healthz` with 200, `/readyz` and all else with 503. Empty: there is none."},
      &serve.standby_listen);
  fields.Texts({"hosts",
                "Names that the server answers to, besides localhost, addresses in digits and the "
                "hosts in `serve.listen` and `serve.operator_listen`. `.example.org` stands for "
                "every name below `example.org`, `any` for all names. Other names get 421: such a "
                "request may come from a stranger's page in a browser. Not looked at on UNIX "
                "sockets."},
               &serve.hosts);
  fields.Integer(
      {"threads", "Threads of `serve.listen`. `serve.operator_listen` has one of its own."},
      &serve.threads, 1, 256);
  fields.Integer({"max_connections",
                  "Connections at `serve.listen`; fewer where the limit on open files is too small "
                  "for them. `serve.operator_listen` has 64 of its own."},
                 &serve.max_connections, 1, 1'000'000);
  fields.Integer({"drain_ms",
                  "The time for which answers go on after SIGTERM while `/readyz` says no, so that "
                  "load balancers send requests elsewhere before the listeners close. Another "
                  "SIGTERM ends it.",
                  AtReload::kTaken},
                 &serve.drain_ms, 0, 600'000);
  fields.Flag({"access_log",
               "true: the log has a line for each answer, with method, route, status, bytes, time "
               "and the request's ids, and nothing of what was asked or answered.",
               AtReload::kTaken},
              &serve.access_log);
  fields.Section(
      {"tls",
       "TLS 1.2 and 1.3 at `HOST:PORT` addresses, from files in PEM. The files are read again when "
       "they change, and on SIGHUP; bad ones change nothing, and are logged. A reload takes over "
       "other names of files, but turns TLS neither on nor off."},
      [&](Fields& below) {
        below.Text(
            {"certificate", "The certificate, followed by its chain. Empty: there is no TLS.",
             AtReload::kTaken},
            &serve.tls.certificate);
        below.Text({"key", "The certificate's key, without a passphrase and closed to others.",
                    AtReload::kTaken},
                   &serve.tls.key);
        below.Text({"client_ca",
                    "The authority that has signed the certificates which clients must show. "
                    "Empty: the server asks for none.",
                    AtReload::kTaken},
                   &serve.tls.client_ca);
      });
  fields.Text({"callers",
               "A file of callers who are known by tokens, `ROLE NAME sha256:HEX` a line; `tacit "
               "token new` prints one. Only with it are there roles: `query`, `user`, `operator`. "
               "Its owner and group alone may read it. It is read again when it changes, and on "
               "SIGHUP; a bad one changes nothing, and is logged. A reload takes over another "
               "name, but turns callers neither on nor off. Empty: everybody is answered.",
               AtReload::kTaken},
              &serve.callers);
  fields.Section({"rates",
                  "Requests a second that one caller of a role may make, and as many at once. "
                  "Beyond it the answer is 429. 0: no bound."},
                 [&](Fields& below) {
                   constexpr uint32_t kRateMost = 1'000'000;
                   below.Integer({"query", "The rate of role `query`.", AtReload::kTaken},
                                 &serve.rates.query, 0, kRateMost);
                   below.Integer({"user", "The rate of role `user`.", AtReload::kTaken},
                                 &serve.rates.user, 0, kRateMost);
                   below.Integer({"operator", "The rate of role `operator`.", AtReload::kTaken},
                                 &serve.rates.of_operator, 0, kRateMost);
                 });
  fields.Integer({"max_body_bytes", "A longer request is refused."}, &serve.max_body_bytes, 1024,
                 1 << 30);
  fields.Section({"versions",
                  "The checkpoints that `tacitd --serve-only` serves: docs/operating/versions.md."},
                 [&](Fields& below) {
                   below.Integer(
                       {"open",
                        "Checkpoints that lie open at once, with the served one, the canary and "
                        "the newest among them. Each takes 8 to 64 MiB for reading, as "
                        "`memory.total_bytes` allows, its parameters, and the states of "
                        "recommendations; memory for one more is set aside, for they change."},
                       &serve.versions.open, 2, 16);
                   below.Text({"file",
                               "A file that keeps over a restart which checkpoint an operator has "
                               "chosen. Empty: a restart serves the newest."},
                              &serve.versions.file);
                 });
}

Status CheckServe(const Place& place, const Serve& serve) {
  static constexpr std::string_view kForm = "must be HOST:PORT, unix:PATH or empty, is '{}'";
  if (!GoodAddress(serve.listen)) {
    return place.Key("listen").Fail(fmt::format(kForm, serve.listen));
  }
  if (!GoodAddress(serve.operator_listen)) {
    return place.Key("operator_listen").Fail(fmt::format(kForm, serve.operator_listen));
  }
  const bool any_port = serve.listen.ends_with(":0") && !serve.listen.starts_with("unix:");
  if (!serve.listen.empty() && serve.operator_listen == serve.listen && !any_port) {
    return place.Key("operator_listen")
        .Fail("must differ from serve.listen: what is for operators only would be open to all");
  }
  if (!GoodAddress(serve.standby_listen))
    return place.Key("standby_listen").Fail(fmt::format(kForm, serve.standby_listen));
  if (!serve.standby_listen.empty() &&
      (serve.standby_listen == serve.listen || serve.standby_listen == serve.operator_listen))
    return place.Key("standby_listen")
        .Fail(
            "must differ from serve.listen and serve.operator_listen: the daemon that has the "
            "store listens there");
  const TlsFiles& tls = serve.tls;
  if (tls.certificate.empty() != tls.key.empty())
    return place.Key("tls").Fail("certificate and key go together: one of them is empty");
  if (tls.certificate.empty() && !tls.client_ca.empty())
    return place.Key("tls").Fail(
        "client_ca needs certificate and key: without TLS no client shows any");
  for (const std::string& host : serve.hosts) {
    // A browser's Host header adds the port, which the server ignores.
    const size_t label = host.starts_with('.') ? 1 : 0;
    if (host.size() == label || host[label] == '.' ||
        host.find_first_of(":/ [],*") != std::string::npos)
      return place.Key("hosts").Fail(
          fmt::format("must be names without a port, .example.org for all names below it, or any; "
                      "one is '{}'",
                      host));
  }
  return {};
}

void DescribeDeadLetters(Fields& fields, DeadLetters& letters) {
  fields.Text({"path", "A regular file. Empty: `store.path` + `.dead-letters.jsonl`."},
              &letters.path);
  fields.Bytes({"max_bytes",
                "The size of one file. A full one becomes `PATH.1`, that one `PATH.2`, and so on."},
               &letters.max_bytes, 64ull << 10, 1ull << 40);
  fields.Integer({"files", "The number of files that are kept. The oldest one is deleted."},
                 &letters.files, 2, 100);
}

void DescribeTraining(Fields& fields, Training& training) {
  fields.Integer({"workers",
                  "Threads of a step, or that sum up a linear model's period; no more than there "
                  "are cores."},
                 &training.workers, 1, 256);
  fields.Flag({"idle_priority",
               "true: trainer threads run under SCHED_IDLE, so that answers do not wait for "
               "training. On a machine that is busy with other work, training then waits."},
              &training.idle_priority);
}

void DescribeGpu(Fields& fields, Gpu& gpu) {
  static constexpr std::array<std::string_view, 3> kUses = {"never", "require", "prefer"};
  fields.Enum({"use",
               "`never`: steps are computed on the CPU.\n`require`: every learner's steps are "
               "computed on a GPU, or the start is refused.\n`prefer`: they are where there is a "
               "GPU, and a form of the learner for it."},
              &gpu.use, kUses);
  const Use used = UsedIf(gpu.use != Gpu::Use::kNever);
  fields.Integer({"device", "The GPU's number, as `nvidia-smi` counts."}, &gpu.device, 0, 63, used);
  static constexpr std::array<std::string_view, 3> kRows = {"auto", "whole", "cache"};
  fields.Enum({"rows",
               "`whole`: all tables are in the GPU's memory.\n`cache`: the rows in use are, for "
               "mechanisms that do not write every row.\n`auto`: `whole` where the tables fit into "
               "three quarters of what is free, else `cache`. The same is learnt in each case."},
              &gpu.rows, kRows, used);
  fields.Bytes(
      {"cache_bytes", "The GPU's memory for cached rows. 0: three quarters of what is free."},
      &gpu.cache_bytes, 0, kBytesMost);
  static constexpr std::array<std::string_view, 3> kProducts = {"own", "library", "auto"};
  fields.Enum({"gemm",
               "The code that multiplies the bf16 matrices of click models on the GPU.\n`own`: "
               "Tacit's kernels.\n`library`: cuBLAS of CUDA 13, which the loader has to find as "
               "`libcublas.so.13` at the start, or the start is refused.\n`auto`: the faster of "
               "the two by a trial at the start, which the log tells, and `own` where there is no "
               "library.\nThe two differ in the last bits of sums. Products in f32, and the "
               "products of transformers, are always of Tacit's kernels."},
              &gpu.gemm, kProducts, used);
  fields.Integer(
      {"serve_rows",
       "The least rows of a request that click models (`pctr`) score on the GPU. Smaller requests, "
       "and all other models, are scored on the CPU, and so is a model whose inputs are "
       "clipped. It holds for `--serve-only` and `--replica` too. Where the GPU fails, the CPU "
       "scores from there on. 0: none is scored on the GPU."},
      &gpu.serve_rows, 0, 4096, used);
  fields.Bytes({"serve_cache_bytes",
                "The GPU's memory, for each model that it scores, for rows that requests asked "
                "for: two versions side by side, half for each."},
               &gpu.serve_cache_bytes, 1 << 10, kBytesMost);
}

void DescribeLog(Fields& fields, Log& log) {
  static constexpr std::array<std::string_view, 2> kFormats = {"text", "json"};
  static constexpr std::array<std::string_view, 7> kLevels = {
      "trace", "debug", "info", "warning", "error", "critical", "off"};
  fields.OneOf({"format", "The form of a line."}, &log.format, kFormats);
  fields.OneOf({"level", "The least level that is written.", AtReload::kTaken}, &log.level,
               kLevels);
}

}  // namespace tacit::config
