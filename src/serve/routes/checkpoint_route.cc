#include "serve/routes/checkpoint_route.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <iterator>

#include "base/text.h"
#include "http/request_json.h"

namespace tacit::serve {
namespace {

std::string_view StateName(CheckpointJob::State state) {
  switch (state) {
    case CheckpointJob::State::kRunning:
      return "running";
    case CheckpointJob::State::kDone:
      return "done";
    case CheckpointJob::State::kFailed:
      break;
  }
  return "failed";
}

// JSON has no infinity.
std::string NumberOrNull(double number) {
  return std::isfinite(number) ? fmt::format("{}", number) : "null";
}

void AppendJob(const CheckpointJob& job, std::string* out) {
  auto to = std::back_inserter(*out);
  fmt::format_to(to, R"({{"job":{},"kind":"{}","state":"{}")", job.id, store::NameOf(job.kind),
                 StateName(job.state));
  if (job.state == CheckpointJob::State::kFailed) {
    *out += R"(,"error":)";
    http::AppendJsonString(job.error, out);
  }
  if (job.made) {
    fmt::format_to(
        to,
        R"(,"existed":{},"paused_ms":{:.3f},"took_ms":{:.3f},"files_read":{},"files_shared":{},"made":)",
        job.made->existed, job.made->paused_ms, job.made->took_ms, job.made->files_read,
        job.made->files_shared);
    AppendCheckpoint(job.made->place, out);
  }
  *out += '}';
}

Result<store::CheckpointKind> KindAsked(std::string_view body) {
  store::CheckpointKind kind = store::CheckpointKind::kFull;
  if (body.empty()) return kind;
  const auto take = [&kind](const http::JsonValue& name) -> Status {
    TACIT_ASSIGN(kind, store::CheckpointKindOf(name.text));
    return {};
  };
  const http::JsonKey keys[] = {{"kind", {.kind = http::JsonPlace::Kind::kText, .take = take}}};
  TACIT_RETURN_IF_ERROR(http::ReadSmallJson(body, keys));
  return kind;
}

}  // namespace

void AppendCheckpoint(const store::CheckpointPlace& place, std::string* out) {
  const store::CheckpointManifest& manifest = place.manifest;
  auto to = std::back_inserter(*out);
  *out += R"({"folder":)";
  http::AppendJsonString(std::filesystem::absolute(place.folder).lexically_normal().string(), out);
  fmt::format_to(to, R"(,"kind":"{}","version":{},"head":"sha256:{}","lineage":)",
                 store::NameOf(manifest.kind), manifest.commit.value, ToHex(manifest.head));
  http::AppendJsonString(manifest.lineage, out);
  fmt::format_to(to, R"(,"epsilon":{},"delta":{},"files":{},"bytes":{},"time_ms":{}}})",
                 NumberOrNull(manifest.epsilon), manifest.delta, manifest.files.size(),
                 manifest.bytes(), manifest.time_ms);
}

void AnswerMakeCheckpoint(const CheckpointCommands& commands, std::string_view body,
                          http::Reply* reply) {
  const auto kind = KindAsked(body);
  if (!kind) return http::SetFailure(kind.error(), reply);
  const auto job = commands.start(*kind);
  if (!job) return http::SetFailure(job.error(), reply);
  reply->status = 202;
  AppendJob(*job, &reply->body);
  reply->body += '\n';
}

void AnswerCheckpoints(const CheckpointCommands& commands, http::Reply* reply) {
  const auto report = commands.report();
  if (!report) return http::SetServerFailure(report.error(), reply);
  std::string& out = reply->body;
  out = R"({"path":)";
  http::AppendJsonString(report->path, &out);
  out += R"(,"last":)";
  if (report->last)
    AppendJob(*report->last, &out);
  else
    out += "null";
  out += R"(,"checkpoints":[)";
  for (const store::CheckpointPlace& place : report->places) {
    if (&place != &report->places.front()) out += ',';
    AppendCheckpoint(place, &out);
  }
  out += R"(],"unreadable":[)";
  for (const std::string& message : report->unreadable) {
    if (&message != &report->unreadable.front()) out += ',';
    http::AppendJsonString(message, &out);
  }
  out += "]}\n";
}

}  // namespace tacit::serve
