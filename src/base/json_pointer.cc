#include "base/json_pointer.h"

namespace tacit {

Result<std::vector<std::string>> KeysOfPointer(std::string_view pointer) {
  if (!pointer.starts_with('/'))
    return Fail(ErrorCode::kInvalidArgument, "is no JSON pointer: it must begin with a slash");
  std::vector<std::string> keys;
  for (size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] == '/') {
      keys.emplace_back();
    } else if (pointer[i] != '~') {
      keys.back().push_back(pointer[i]);
    } else {
      const char escaped = i + 1 < pointer.size() ? pointer[++i] : '\0';
      if (escaped != '0' && escaped != '1')
        return Fail(ErrorCode::kInvalidArgument,
                    "is no JSON pointer: a ~ must be written ~0, a slash in a key ~1");
      keys.back().push_back(escaped == '0' ? '~' : '/');
    }
  }
  return keys;
}

}  // namespace tacit
