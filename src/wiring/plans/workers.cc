#include "wiring/plans/workers.h"

#include <string>
#include <utility>

#include "http/kept_file.h"

namespace tacit::wiring {

Result<workers::SharedKey> ReadWorkersKey(const config::Workers& config) {
  static const std::string kName = "workers.key_file";
  http::FileStamp stamp;
  TACIT_ASSIGN(const std::string text, http::ReadKeptFile(kName, config.key_file, &stamp));
  auto key = workers::ParseKey(text);
  if (!key) return Fail(std::move(key.error()).Context(kName + ": " + config.key_file));
  return workers::KeyOfTopics(*key, config.topic);
}

}  // namespace tacit::wiring
