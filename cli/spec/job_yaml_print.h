// JobMetadata and JobSpec → job.yaml that ParseJob reads back to the same messages.
#pragma once

#include <string>

#include "mega/v1/job.pb.h"

namespace mega::cli {

std::string PrintJob(const v1::JobMetadata& metadata, const v1::JobSpec& spec);

}  // namespace mega::cli
