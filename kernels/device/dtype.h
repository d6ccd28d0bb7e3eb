// Element types. Names in checkpoints are safetensors' ("F32", "BF16").
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mega::kernels {

enum class DType : uint8_t {
  kF32,
  kF64,
  kBF16,
  kF16,
  kI32,
  kI64,
  kU16,
  kU8,
  kI8,
  kI16,
  kU32,
  kU64
};

int64_t SizeOf(DType dtype);
std::string_view NameOf(DType dtype);
// Nothing when `name` is no name of a DType.
std::optional<DType> DTypeFromName(std::string_view name);

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kI32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kI64;
};
template <>
struct DTypeOf<uint16_t> {
  static constexpr DType value = DType::kU16;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kU8;
};
template <>
struct DTypeOf<uint32_t> {
  static constexpr DType value = DType::kU32;
};

}  // namespace mega::kernels
