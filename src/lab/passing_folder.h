#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace tacit::lab {

// A folder that is removed with everything in it, for the store of a run that leaves none.
class PassingFolder {
 public:
  // Makes it where TMPDIR says. kIo names the place.
  static Result<PassingFolder> Make();
  ~PassingFolder();
  PassingFolder(PassingFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  PassingFolder& operator=(PassingFolder&&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit PassingFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace tacit::lab
