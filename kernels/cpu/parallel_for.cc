#include "kernels/parallel_for.h"

#include <algorithm>

#include "kernels/cpu/parallel_for.h"

#ifdef _OPENMP
#include <omp.h>
#else
#include <dlfcn.h>
#endif

namespace mega::kernels {
namespace {

#ifdef _OPENMP

int DefaultThreads() { return omp_get_max_threads(); }
void SetThreads(int threads) { omp_set_num_threads(threads); }

void RunChunks(int threads, int64_t chunks, absl::FunctionRef<void(int64_t)> chunk) {
#pragma omp parallel num_threads(threads)
  for (int64_t c = omp_get_thread_num(); c < chunks; c += omp_get_num_threads()) chunk(c);
}

#else

// Our loops are serial in this build, but oneDNN comes with libgomp and would start a team.
void SetThreads(int threads) {
  using Setter = void (*)(int);
  static const auto set = reinterpret_cast<Setter>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set != nullptr) set(threads);
}
int DefaultThreads() { return 1; }

void RunChunks(int, int64_t chunks, absl::FunctionRef<void(int64_t)> chunk) {
  for (int64_t c = 0; c < chunks; ++c) chunk(c);
}

#endif

}  // namespace

int TeamSize(const Stream& stream) {
#ifdef _OPENMP
  if (stream.threads() > 0) return stream.threads();
#endif
  return std::max(1, DefaultThreads());
}

ScopedTeam::ScopedTeam(const Stream& stream) : before_(DefaultThreads()) {
  SetThreads(TeamSize(stream));
}

ScopedTeam::~ScopedTeam() { SetThreads(before_); }

void ParallelFor(Stream& stream, int64_t n, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  if (n <= 0) return;
  grain = std::max<int64_t>(1, grain);
  const int64_t chunks = std::min<int64_t>(TeamSize(stream), (n - 1) / grain + 1);
  if (chunks == 1) return body(0, n);
  // The first n % chunks chunks get one element more.
  const int64_t size = n / chunks, longer = n % chunks;
  const auto start = [&](int64_t c) { return c * size + std::min(c, longer); };
  RunChunks(static_cast<int>(chunks), chunks, [&](int64_t c) { body(start(c), start(c + 1)); });
}

}  // namespace mega::kernels
