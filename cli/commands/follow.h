// Streams that outlive a coordinator: read, note the position, and on UNAVAILABLE open again from
// there.
#pragma once

#include <functional>

#include "base/status.h"
#include "cli/client/client.h"

namespace mega::cli {

// How long a coordinator may be away before following gives up.
inline constexpr absl::Duration kFollowPatience = absl::Minutes(2);

// Calls `open()` and hands each message to `take` until the stream ends well, an error that waiting
// does not heal, or `kFollowPatience` without a message. `take` returns false to stop reading.
// `is_final(status)` may end it earlier.
template <typename Message, typename Open, typename Take>
absl::Status Follow(const Open& open, const Take& take, bool again,
                    const std::function<bool(const absl::Status&)>& is_final = nullptr);

// Blocks between two tries: 0.1 s, doubling to 2 s.
class Pause {
 public:
  // False when patience is over since the last Reset.
  bool Wait();
  void Reset();

 private:
  absl::Duration next_ = absl::Milliseconds(100);
  absl::Duration waited_;
};

template <typename Message, typename Open, typename Take>
absl::Status Follow(const Open& open, const Take& take, bool again,
                    const std::function<bool(const absl::Status&)>& is_final) {
  for (Pause pause;;) {
    Stream<Message> stream = open();
    for (Message message; stream.Next(&message);) {
      pause.Reset();
      if (take(message)) continue;
      stream.Cancel();
      stream.Finish().IgnoreError();
      return absl::OkStatus();
    }
    absl::Status status = stream.Finish();
    if (!again || !absl::IsUnavailable(status)) return status;
    if ((is_final && is_final(status)) || !pause.Wait()) return status;
  }
}

}  // namespace mega::cli
