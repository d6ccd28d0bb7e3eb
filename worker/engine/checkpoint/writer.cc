#include "worker/engine/checkpoint/writer.h"

#include <unistd.h>
#include <xxhash.h>

#include <string>

#include "kernels/elementwise.h"
#include "manifest/slice_file.h"
#include "manifest/step_folder.h"
#include "worker/engine/checkpoint/durable_file.h"
#include "worker/engine/checkpoint/hash.h"
#include "worker/engine/checkpoint/safetensors.h"

namespace mega::checkpoint {
namespace {

// More than can be under way; an older one is not written any more.
constexpr size_t kMostDiscarded = 16;

std::span<const std::byte> BytesOf(const TensorView& view) {
  return {view.data(), static_cast<size_t>(view.bytes())};
}

// Slices of one tensor need names of their own inside the file.
std::string NameInFile(const NamedSlice& slice) {
  if (slice.view.shape() == Shape(slice.global_shape)) return slice.name;
  std::string name = slice.name + "@";
  for (size_t d = 0; d < slice.offset.size(); ++d) {
    name += fmt::format("{}{}", d == 0 ? "" : ",", slice.offset[d]);
  }
  return name;
}

}  // namespace

std::string StepFolder(const std::string& directory, int64_t step) {
  return directory + "/" + manifest::StepFolderName(step);
}

Writer::Writer(std::string directory, v1::RankRef rank, Pool& pool, Stream& stream, Done done)
    : directory_(std::move(directory)),
      rank_(std::move(rank)),
      pool_(pool),
      stream_(stream),
      done_(std::move(done)),
      thread_([this](std::stop_token stop) { Run(stop); }) {}

Writer::~Writer() {
  thread_.request_stop();
  changed_.NotifyAll();
  thread_.join();
}

absl::Status Writer::Prepare(std::span<const NamedSlice> share) {
  {
    MutexLock lock(mu_);
    if (job_) {
      return Unavailable(
          "the save of step {} is still being written; raise checkpoint.interval_steps, or choose "
          "a "
          "faster disk for {}",
          job_->step, directory_);
    }
  }
  int64_t bytes = 0;
  for (const NamedSlice& slice : share) bytes += slice.view.bytes();
  if (snapshot_.defined() && snapshot_.view().bytes() >= bytes) return absl::OkStatus();
  snapshot_ = Tensor();
  absl::StatusOr<Tensor> fresh = pool_.TryAllocate(DType::kU8, Shape{bytes}, Purpose::kWorkspace);
  if (!fresh.ok()) return Annotate(fresh.status(), "the snapshot of a checkpoint");
  snapshot_ = *std::move(fresh);
  return absl::OkStatus();
}

absl::Status Writer::Save(int64_t step, std::span<const NamedSlice> share,
                          std::optional<v1::TrainerState> state) {
  MEGA_RETURN_IF_ERROR(Prepare(share));
  Job job{.step = step, .slices = {share.begin(), share.end()}, .state = std::move(state)};
  std::byte* to = snapshot_.view().data();
  for (NamedSlice& slice : job.slices) {
    const TensorView copy(to, slice.view.dtype(), slice.view.shape(), slice.view.device());
    kernels::Copy(stream_, slice.view, copy);
    slice.view = copy;
    to += copy.bytes();
  }
  stream_.Synchronize();  // from here on the thread reads it
  MutexLock lock(mu_);
  job_ = std::move(job);
  changed_.NotifyAll();
  return absl::OkStatus();
}

bool Writer::WaitIdle(absl::Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout);
  MutexLock lock(mu_);
  while (job_ || !to_remove_.empty()) {
    if (!changed_.WaitUntil(mu_, deadline)) return !job_ && to_remove_.empty();
  }
  return true;
}

void Writer::Discard(int64_t step) {
  MutexLock lock(mu_);
  discarded_.insert(step);
  if (discarded_.size() > kMostDiscarded) discarded_.erase(discarded_.begin());
  to_remove_.push_back(step);
  changed_.NotifyAll();
}

void Writer::Run(std::stop_token stop) {
  while (true) {
    const Job* job = nullptr;
    int64_t unwanted = 0;
    {
      MutexLock lock(mu_);
      while (!job_ && to_remove_.empty() && !stop.stop_requested()) {
        changed_.WaitFor(mu_, std::chrono::milliseconds(100));
      }
      if (job_) {
        job = &*job_;  // stays until this thread clears it
      } else if (!to_remove_.empty()) {
        unwanted = to_remove_.front();
      } else {
        return;
      }
    }
    if (job == nullptr) {
      Remove(unwanted);
      MutexLock lock(mu_);
      to_remove_.erase(to_remove_.begin());
      changed_.NotifyAll();
      continue;
    }
    done_(job->step, Write(*job));
    MutexLock lock(mu_);
    // It was told to take this step back before it had it.
    if (discarded_.contains(job->step)) to_remove_.push_back(job->step);
    job_.reset();
    changed_.NotifyAll();
  }
}

std::string Writer::FileName() const {
  return manifest::SliceFileName({.attempt = rank_.attempt(), .rank = rank_.rank()});
}

void Writer::Remove(int64_t step) const {
  const std::string folder = StepFolder(directory_, step);
  const std::string path = folder + "/" + FileName();
  unlink(path.c_str());
  unlink(TemporaryName(path).c_str());
  rmdir(folder.c_str());  // only if nobody else has written there
}

absl::StatusOr<v1::CheckpointPart> Writer::Write(const Job& job) const {
  const std::string folder = StepFolder(directory_, job.step);
  if (const absl::Status made = MakeFolderDurably(folder); !made.ok()) {
    rmdir(folder.c_str());  // only if nobody else has written there
    return made;
  }

  v1::CheckpointPart part;
  part.set_job_uid(rank_.job_uid());
  part.set_attempt(rank_.attempt());
  part.set_epoch(rank_.epoch());
  part.set_rank(rank_.rank());
  part.set_step(job.step);
  part.set_directory(folder);
  if (job.state) *part.mutable_state() = *job.state;
  if (job.slices.empty()) return part;

  v1::CheckpointFile& file = *part.add_files();
  file.set_name(FileName());
  std::vector<TensorDeclaration> declarations;
  for (const NamedSlice& slice : job.slices) {
    declarations.push_back({NameInFile(slice), slice.view.dtype(), slice.view.shape()});
    v1::TensorInfo& tensor = *part.add_tensors();
    tensor.set_name(slice.name);
    tensor.mutable_global_shape()->Add(slice.global_shape.begin(), slice.global_shape.end());
    tensor.set_dtype(std::string(kernels::NameOf(slice.view.dtype())));
    v1::TensorSlice& entry = *part.add_slices();
    entry.set_tensor(slice.name);
    entry.mutable_offset()->Add(slice.offset.begin(), slice.offset.end());
    for (const int64_t dim : slice.view.shape().dims()) entry.add_shape(dim);
    entry.set_file(file.name());
    entry.set_name_in_file(declarations.back().name);
    const auto bytes = BytesOf(slice.view);
    entry.set_xxh64(XXH64(bytes.data(), bytes.size(), 0));
  }

  const std::string path = folder + "/" + file.name();
  const auto write = [&]() -> absl::Status {
    MEGA_ASSIGN_OR_RETURN(const std::string header, SafetensorsHeader(declarations));
    Hash hash;
    hash.Add(header.data(), header.size());
    MEGA_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                          SafetensorsWriter::Create(TemporaryName(path), declarations));
    for (const NamedSlice& slice : job.slices) {
      const auto bytes = BytesOf(slice.view);
      hash.Add(bytes.data(), bytes.size());
      MEGA_RETURN_IF_ERROR(writer.Append(bytes));
    }
    MEGA_RETURN_IF_ERROR(writer.Finish());
    file.set_bytes(writer.file_bytes());
    file.set_xxh64(hash.value());
    return RenameInto(path);
  };
  const absl::Status status = write();
  if (!status.ok()) {
    Remove(job.step);
    return status;
  }
  return part;
}

}  // namespace mega::checkpoint
