#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/ranking/ranked_learner.h"

namespace tacit::lab {

// The constants of transitions+ranker, by the names of the command line.
struct RankedConstants : train::RankerOptions {
  // Reads "ranker_steps=200", as TrainedConstants::Set does; all names begin with ranker_.
  Status Set(std::string_view setting);
  static std::vector<std::string_view> Names();
  // All constants as text.
  std::string Text() const;
};

}  // namespace tacit::lab
