#include "wiring/plans/ground_truth.h"

#include <boost/json.hpp>
#include <filesystem>
#include <set>

#include "base/files/regular_file.h"

namespace tacit::wiring {

std::map<std::string, double> ReadBestAuc(const std::vector<std::string>& files) {
  std::map<std::string, double> best;
  std::set<std::filesystem::path> folders;
  for (const std::string& file : files) folders.insert(std::filesystem::path(file).parent_path());
  for (const auto& folder : folders) {
    const auto text = ReadRegularFile(folder / kGroundTruthFile);
    if (!text) continue;
    boost::json::error_code error;
    const boost::json::value value = boost::json::parse(*text, error);
    const auto* object = error ? nullptr : value.if_object();
    const auto* table = object == nullptr ? nullptr : object->if_contains("best_auc");
    if (table == nullptr || !table->is_object()) continue;
    for (const auto& [name, auc] : table->get_object())
      if (auc.is_double()) best[std::string(name)] = auc.get_double();
  }
  return best;
}

}  // namespace tacit::wiring
