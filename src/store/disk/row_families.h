#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// The names and folders of the column families that hold rows. A store has one family for each
// shard, `rows-G-S`, and its files are in `rows/G-S` inside the store: a folder, or a symbolic link
// to one on another disk. G is the generation, which counts how often shards were cut anew; S is
// the shard. Release checkpoints have all rows in one family, `rows`, whose files are in the
// checkpoint's own folder.
namespace tacit::store {

struct RowFamily {
  uint32_t generation = 0, shard = 0;

  std::string Name() const;    // rows-G-S
  std::string Folder() const;  // rows/G-S
  friend bool operator==(const RowFamily&, const RowFamily&) = default;
};
// The family of this name; nothing if it is another family's.
std::optional<RowFamily> RowFamilyOf(std::string_view name);

// The same for its folder, relative to the store.
std::optional<RowFamily> RowFamilyOfFolder(std::string_view folder);

// The folders with a store's or checkpoint's files, relative to it: "" is its own, and the others
// follow in order.
Result<std::vector<std::string>> FoldersOf(const std::string& store);
// FOLDER/NAME, or NAME in the store's own.
std::string NameIn(const std::string& folder, const std::string& name);

// Makes the family's folder inside the store. With `paths` it is a link to a new folder, which no
// other store has, in one of them: shards take turns.
Status MakeRowFolder(const std::string& store, const RowFamily& family,
                     const std::vector<std::string>& paths);
// Makes the folder if there is none: a checkpoint has none for a shard without rows. kIo: it is a
// link to a folder that is not there.
Status NeedRowFolder(const std::string& store, const RowFamily& family);
// Removes the folder, what is in it, and the folder that it is a link to.
Status RemoveRowFolder(const std::string& store, const std::string& folder);
// Removes a store, or what is left of one.
Status RemoveStore(const std::string& store);

}  // namespace tacit::store
