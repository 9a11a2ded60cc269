#include "cuda/device/tensor_map.h"

#include "base/check.h"
#include "cuda/device/device.h"
#include "cuda/device/runtime.h"

namespace tacit::cuda {

Result<TensorMap> MakeTensorMap(Device& device, const TileFacts& facts) {
  device.CheckOwner();
  TACIT_CHECK(facts.rows > 0 && facts.cols > 0 && facts.stride % 8 == 0 &&
                  facts.stride >= facts.cols && reinterpret_cast<uintptr_t>(facts.data) % 16 == 0,
              "a matrix of which no tiles can be brought");
  TACIT_CHECK(facts.tile_rows <= 256 && facts.tile_cols <= 64, "a tile that is too large");
  TensorMap map;
  const runtime::Tiles tiles{.data = facts.data,
                             .cols = facts.cols,
                             .rows = facts.rows,
                             .stride_bytes = facts.stride * sizeof(uint16_t),
                             .tile_cols = facts.tile_cols,
                             .tile_rows = facts.tile_rows};
  TACIT_RETURN_IF_ERROR(
      device.Check(runtime::MakeTensorMap(tiles, &map), "describing a matrix to the copy engine"));
  return map;
}

}  // namespace tacit::cuda
