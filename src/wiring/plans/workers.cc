#include "wiring/plans/workers.h"

#include <algorithm>
#include <string>
#include <string_view>
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

SipHash::Key FeedMarkKey(const workers::SharedKey& key) {
  SipHash::Key mark_key{};
  const std::string_view text(reinterpret_cast<const char*>(key.data()), key.size());
  const std::string made = workers::Hkdf(text, "", "tacit.workers.feed.v1", mark_key.size());
  std::ranges::copy(made, mark_key.begin());
  return mark_key;
}

}  // namespace tacit::wiring
