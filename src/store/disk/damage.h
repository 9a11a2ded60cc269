#pragma once

#include <string>

namespace tacit::store {

// A damaged file of a store, or the store's folder where values in it do not belong together.
struct Damage {
  std::string file;
  std::string what;  // words that follow the file's name
};

}  // namespace tacit::store
