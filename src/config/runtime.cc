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
  fields.Text("path", &store.path, Use::kRequired);
  fields.Text("witness", &store.witness);
  fields.Integer("shards", &store.shards, 0, 128);
  fields.Texts("paths", &store.paths);
  fields.Integer("commit_interval_ms", &store.commit_interval_ms, 1, 3'600'000);
  fields.Enum("on_failure", &store.on_failure, kOnFailure);
  fields.Integer("scrub_days", &store.scrub_days, 0, 3650);
  fields.Section("checkpoints",
                 [&](Fields& below) { DescribeCheckpoints(below, store.checkpoints); });
  fields.Section("anchors", [&](Fields& below) { DescribeAnchors(below, store.anchors); });
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
  fields.Text("listen", &serve.listen);
  fields.Text("operator_listen", &serve.operator_listen);
  fields.Text("standby_listen", &serve.standby_listen);
  fields.Texts("hosts", &serve.hosts);
  fields.Integer("threads", &serve.threads, 1, 256);
  fields.Integer("max_connections", &serve.max_connections, 1, 1'000'000);
  fields.Flag("access_log", &serve.access_log);
  fields.Section("tls", [&](Fields& below) {
    below.Text("certificate", &serve.tls.certificate);
    below.Text("key", &serve.tls.key);
    below.Text("client_ca", &serve.tls.client_ca);
  });
  fields.Text("callers", &serve.callers);
  fields.Section("rates", [&](Fields& below) {
    constexpr uint32_t kRateMost = 1'000'000;
    below.Integer("query", &serve.rates.query, 0, kRateMost);
    below.Integer("user", &serve.rates.user, 0, kRateMost);
    below.Integer("operator", &serve.rates.of_operator, 0, kRateMost);
  });
  fields.Integer("max_body_bytes", &serve.max_body_bytes, 1024, 1 << 30);
  fields.Section("versions", [&](Fields& below) {
    below.Integer("open", &serve.versions.open, 2, 16);
    below.Text("file", &serve.versions.file);
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
    if (host.empty() || host.find_first_of(":/ []") != std::string::npos)
      return place.Key("hosts").Fail(
          fmt::format("must be names without a port, or any; one is '{}'", host));
  }
  return {};
}

void DescribeDeadLetters(Fields& fields, DeadLetters& letters) {
  fields.Text("path", &letters.path);
  fields.Bytes("max_bytes", &letters.max_bytes, 64ull << 10, 1ull << 40);
  fields.Integer("files", &letters.files, 2, 100);
}

void DescribeTraining(Fields& fields, Training& training) {
  fields.Integer("workers", &training.workers, 1, 256);
  fields.Flag("idle_priority", &training.idle_priority);
}

void DescribeGpu(Fields& fields, Gpu& gpu) {
  static constexpr std::array<std::string_view, 3> kUses = {"never", "require", "prefer"};
  fields.Enum("use", &gpu.use, kUses);
  const Use used = UsedIf(gpu.use != Gpu::Use::kNever);
  fields.Integer("device", &gpu.device, 0, 63, used);
  static constexpr std::array<std::string_view, 3> kRows = {"auto", "whole", "cache"};
  fields.Enum("rows", &gpu.rows, kRows, used);
  fields.Bytes("cache_bytes", &gpu.cache_bytes, 0, 1ull << 50);
  static constexpr std::array<std::string_view, 3> kProducts = {"own", "library", "auto"};
  fields.Enum("gemm", &gpu.gemm, kProducts, used);
  fields.Integer("serve_rows", &gpu.serve_rows, 0, 4096, used);
  fields.Bytes("serve_cache_bytes", &gpu.serve_cache_bytes, 1 << 10, 1ull << 50);
}

void DescribeLog(Fields& fields, Log& log) {
  static constexpr std::array<std::string_view, 2> kFormats = {"text", "json"};
  static constexpr std::array<std::string_view, 7> kLevels = {
      "trace", "debug", "info", "warning", "error", "critical", "off"};
  fields.OneOf("format", &log.format, kFormats);
  fields.OneOf("level", &log.level, kLevels);
}

}  // namespace tacit::config
