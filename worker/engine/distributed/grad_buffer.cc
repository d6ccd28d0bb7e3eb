#include "worker/engine/distributed/grad_buffer.h"

#include <algorithm>
#include <ranges>

#include "base/check.h"
#include "fmt/ranges.h"
#include "kernels/elementwise.h"

namespace mega::distributed {
namespace {

// Parameters start on a cache line, as every tensor does.
constexpr int64_t kAlignElements = 64 / sizeof(float);

int64_t Padded(int64_t elements) {
  return (elements + kAlignElements - 1) / kAlignElements * kAlignElements;
}

Shape WholeShape(std::span<Parameter* const> parameters) {
  int64_t total = 0;
  for (const Parameter* parameter : parameters) total += Padded(parameter->value.elements());
  return Shape{total};
}

}  // namespace

absl::StatusOr<std::unique_ptr<GradBuffer>> GradBuffer::Make(Pool& pool,
                                                             std::span<Parameter* const> parameters,
                                                             int64_t buckets, Communicator* data,
                                                             bool overlap) {
  absl::StatusOr<Tensor> buffer =
      pool.TryZeros(DType::kF32, WholeShape(parameters), Purpose::kGrads);
  if (!buffer.ok()) return Annotate(buffer.status(), "the gradients");
  return std::unique_ptr<GradBuffer>(
      new GradBuffer(*std::move(buffer), parameters, buckets, data, overlap));
}

GradBuffer::GradBuffer(Pool& pool, std::span<Parameter* const> parameters, int64_t buckets,
                       Communicator* data, bool overlap)
    : GradBuffer(pool.Zeros(DType::kF32, WholeShape(parameters), Purpose::kGrads), parameters,
                 buckets, data, overlap) {}

GradBuffer::GradBuffer(Tensor buffer, std::span<Parameter* const> parameters, int64_t buckets,
                       Communicator* data, bool overlap)
    : data_(data), overlap_(overlap), buffer_(std::move(buffer)) {
  MEGA_CHECK_GT(buckets, 0);
  const int64_t total = buffer_.view().elements();
  const Device device = buffer_.view().device();
  float* const base = buffer_.view().ptr<float>();

  int64_t offset = 0, bucket_begin = 0;
  const auto close = [&] {
    buckets_.back().grads =
        TensorView(base + bucket_begin, DType::kF32, Shape{offset - bucket_begin}, device);
    bucket_begin = offset;
  };
  for (Parameter* parameter : parameters | std::views::reverse) {
    // A bucket ends at the first parameter that reaches its share of the bytes.
    const int64_t share_end = total * static_cast<int64_t>(buckets_.size()) / buckets;
    if (buckets_.empty() || offset >= share_end) {
      if (!buckets_.empty()) close();
      buckets_.emplace_back();
    }
    parameter->main_grad = TensorView(base + offset, DType::kF32, parameter->value.shape(), device);
    offset += Padded(parameter->value.elements());
    ++buckets_.back().parameters;
    const bool is_new = places_.emplace(parameter, Place{buckets_.size() - 1}).second;
    MEGA_CHECK(is_new);  // a tied parameter is listed once
  }
  if (!buckets_.empty()) close();
  for (Bucket& bucket : buckets_) bucket.unmarked = bucket.parameters;
}

void GradBuffer::Zero(Stream& stream) {
  kernels::Fill(stream, buffer_, 0.0f);
  for (Bucket& bucket : buckets_) {
    MEGA_CHECK(bucket.work.Done());  // Finish comes before the next step
    bucket.unmarked = bucket.parameters;
  }
  for (auto& [parameter, place] : places_) place.marked = false;
  started_ = 0;
}

void GradBuffer::MarkReady(const Parameter& parameter, Stream& stream) {
  const auto place = places_.find(&parameter);
  MEGA_CHECK(place != places_.end());
  if (place->second.marked)
    check::Fail(__FILE__, __LINE__, parameter.info.name + " was marked ready twice in a step");
  place->second.marked = true;
  --buckets_[place->second.bucket].unmarked;
  if (overlap_) StartFullBuckets(stream);
}

void GradBuffer::StartFullBuckets(Stream& stream) {
  for (; started_ < buckets_.size() && buckets_[started_].unmarked == 0; ++started_) {
    Bucket& bucket = buckets_[started_];
    if (data_ != nullptr) bucket.work = data_->AllReduce(bucket.grads, ReduceOp::kSum, stream);
  }
}

absl::Status GradBuffer::Finish(Stream& stream) {
  StartFullBuckets(stream);
  absl::Status first;
  for (size_t b = 0; b < started_; ++b) {
    const absl::Status status = buckets_[b].work.Wait();
    if (first.ok() && !status.ok()) first = status;
  }
  MEGA_RETURN_IF_ERROR(first);
  if (started_ == buckets_.size()) return absl::OkStatus();
  std::vector<std::string> missing;
  for (const auto& [parameter, place] : places_)
    if (!place.marked) missing.push_back(parameter->info.name);
  return FailedPrecondition(
      "gradients that backward never finished: {}; the backward pass must mark every parameter in "
      "the last micro-batch of a step",
      fmt::join(missing, ", "));
}

}  // namespace mega::distributed
