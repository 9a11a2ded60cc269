#include "console/version_text.h"

#include <fmt/format.h>

#include "base/cpu.h"

namespace tacit::console {

std::string VersionText(std::string_view version, const BuildInfo& build) {
  const std::string commit =
      build.commit.empty()
          ? "not known"
          : fmt::format("{}{}", build.commit, build.changed ? ", changed since" : "");
  const bool v3 = build.processor == "x86_64" || build.processor == "AMD64";
  return fmt::format(
      "{}\n"
      "commit: {}\n"
      "with: {}cuda, +tls (OpenSSL {}), +kafka (librdkafka {}), +zstd ({}), +rocksdb ({})\n"
      "built by: {}, {}{}{}, for {}\n"
      "kernels here: {}",
      version, commit, build.cuda ? "+" : "-", build.openssl, build.kafka, build.zstd,
      build.rocksdb, build.compiler, build.build, build.sanitizer.empty() ? "" : ", sanitizer ",
      build.sanitizer, v3 ? "x86-64-v3" : build.processor, KernelText(ThisCpu()));
}

}  // namespace tacit::console
