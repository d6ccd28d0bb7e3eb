// On the CPU an op is done when it returns, so there is nothing to wait for.
#include "kernels/device/stream.h"

namespace mega::kernels {

void Stream::Synchronize() {}
void Stream::Wait(const Event&) {}

void Event::Record(Stream&) {}
bool Event::Done() const { return true; }
void Event::Synchronize() const {}

}  // namespace mega::kernels
