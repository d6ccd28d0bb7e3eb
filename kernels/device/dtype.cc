#include "kernels/device/dtype.h"

#include "base/check.h"

namespace mega::kernels {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  int64_t bytes;
};
// In the order of the enum, so that a dtype indexes its row.
constexpr Row kRows[] = {
    {DType::kF32, "F32", 4}, {DType::kF64, "F64", 8}, {DType::kBF16, "BF16", 2},
    {DType::kF16, "F16", 2}, {DType::kI32, "I32", 4}, {DType::kI64, "I64", 8},
    {DType::kU16, "U16", 2}, {DType::kU8, "U8", 1},   {DType::kI8, "I8", 1},
    {DType::kI16, "I16", 2}, {DType::kU32, "U32", 4}, {DType::kU64, "U64", 8},
};

const Row& RowOf(DType dtype) {
  const auto i = static_cast<size_t>(dtype);
  MEGA_CHECK_LT(i, std::size(kRows));
  MEGA_CHECK(kRows[i].dtype == dtype);
  return kRows[i];
}

}  // namespace

int64_t SizeOf(DType dtype) { return RowOf(dtype).bytes; }

std::string_view NameOf(DType dtype) { return RowOf(dtype).name; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

}  // namespace mega::kernels
