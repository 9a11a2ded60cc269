#include "config/text_file.h"

#include <fmt/format.h>

#include "base/files/regular_file.h"

namespace tacit::config {

Result<std::string> ReadTextFile(const std::string& path, size_t mib_most) {
  auto text = ReadRegularFile(path, mib_most << 20);
  if (!text) {
    const std::string why = text.error().message.substr(path.size() + 2);
    return Fail(text.error().code, fmt::format("{}: cannot be read: {}", path, why));
  }
  if (text->size() > mib_most << 20)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: is longer than {} MiB", path, mib_most));
  return text;
}

}  // namespace tacit::config
