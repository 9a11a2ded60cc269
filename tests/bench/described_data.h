#pragma once

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/next_item/sequence_data.h"

namespace tacit {

struct DescribedData {
  model::Histories histories;
  model::transitions::PublicItems catalogue;
};

// Reads DATA, or DATA ITEMS ITEM_IDS, as a benchmark's command line names them, and prints what
// they have.
inline Result<DescribedData> ReadDescribedData(const std::vector<std::string>& paths,
                                               double epsilon) {
  TACIT_ASSIGN(lab::SequenceData data, lab::ReadSequences(paths[0]));
  model::transitions::PublicItems catalogue(data.histories.catalogue);
  if (paths.size() == 3) {
    TACIT_ASSIGN(catalogue, lab::ReadCatalogue(data, paths[1], paths[2]));
  }
  std::printf("%s: %u items, %zu users, %zu events, epsilon %g\n", paths[0].c_str(),
              catalogue.items(), data.histories.units(), data.histories.items.size(), epsilon);
  return DescribedData{std::move(data.histories), std::move(catalogue)};
}

}  // namespace tacit
