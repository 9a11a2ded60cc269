#include "daemon/version_choice.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <filesystem>

#include "base/files/regular_file.h"
#include "console/atomic_file.h"

namespace tacit::daemon {

namespace json = boost::json;

Result<std::optional<VersionChoice>> ReadChoice(const std::string& path) {
  const auto text = ReadRegularFile(path);
  if (!text && text.error().code == ErrorCode::kNotFound) return std::optional<VersionChoice>();
  if (!text)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("serve.versions.file {}; remove it to serve what is newest",
                            text.error().message));
  const auto refuse = [&](std::string_view what) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("serve.versions.file {}: {}; remove it to serve what is newest", path, what));
  };
  try {
    const json::value value = json::parse(*text);
    VersionChoice choice;
    choice.lineage = value.at("lineage").as_string();
    choice.serving = value.at("serving").to_number<uint64_t>();
    if (const json::value& canary = value.at("canary"); !canary.is_null()) {
      choice.canary = serve::Canary{canary.at("version").to_number<uint64_t>(),
                                    canary.at("share").to_number<double>()};
      if (!(choice.canary->share > 0 && choice.canary->share <= 1))
        return refuse("the canary's share must be above 0, at most 1");
    }
    return std::optional(std::move(choice));
  } catch (const std::exception&) {  // no JSON, or of another shape
    return refuse("is not what tacitd writes there");
  }
}

Status WriteChoice(const std::string& path, const std::optional<VersionChoice>& choice) {
  if (!choice) {
    std::error_code error;
    std::filesystem::remove(path, error);
    if (!error) return {};
    return Fail(ErrorCode::kIo, fmt::format("serve.versions.file {}: {}", path, error.message()));
  }
  json::object object{{"lineage", choice->lineage}, {"serving", choice->serving}};
  if (choice->canary)
    object["canary"] = {{"version", choice->canary->version}, {"share", choice->canary->share}};
  else
    object["canary"] = nullptr;
  auto file = console::AtomicFile::Create(path);
  if (!file) return Fail(std::move(file.error()).Context("serve.versions.file"));
  TACIT_RETURN_IF_ERROR((*file)->Write(json::serialize(object) + "\n"));
  return (*file)->Commit();
}

}  // namespace tacit::daemon
