// Figures as people read them.
#pragma once

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "google/protobuf/timestamp.pb.h"
#include "mega/v1/cluster.pb.h"
#include "mega/v1/job.pb.h"

namespace mega::cli {

std::string PhaseName(v1::JobPhase phase);        // "Running"
std::string AttemptName(v1::AttemptState state);  // "Stopping"
std::string NodeName(v1::NodeState state);        // "Ready"

std::string FormatSpan(absl::Duration span);  // "42s", "3m12s", "2h05m", "4d03h"
std::string FormatCount(double count);        // "950", "1.25M", "12.3k"
// Since `time`, "-" when it is unset.
std::string FormatAge(const google::protobuf::Timestamp& time, bool is_set, absl::Time now);
// RFC 3339, UTC, seconds.
std::string FormatTime(const google::protobuf::Timestamp& time);

// "code 1", "signal 9 (SIGKILL)", with "by the worker" when it ended the rank itself.
std::string FormatExit(const v1::ExitStatus& exit);

// A line that says `name: value`, in columns; none where there is no value.
void AddLine(std::string& out, std::string_view name, std::string_view value);

}  // namespace mega::cli
