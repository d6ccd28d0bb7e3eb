// Every series the coordinator exports, in one table. Labels are bounded: `training_job` (a name),
// `phase`, `state`, `node`.
#pragma once

#include <array>

#include "prometheus/metric_type.h"

namespace mega::service {

enum class Series {
  kCoordinatorInfo,
  kCertificateExpiry,
  kJobPhase,
  kQueueDepth,
  kDevices,
  kWorkerSessions,
  kHeartbeatAge,
  kSubmitToFirstStep,
  kRestarts,
  kRecovery,
  kJobGoodput,
  kJobStep,
  kStepSeconds,
  kTokens,
  kTokensPerSecond,
  kMfu,
  kLoss,
  kGradNorm,
  kLearningRate,
  kValidationLoss,
  kCheckpointAge,
  kCheckpointBytes,
  kCheckpointFailures,
  kStepReportsDropped,
  kWalSync,
  kLoopLag,
  kCount,
};

struct SeriesInfo {
  Series series;
  const char* name;
  prometheus::MetricType type;
  const char* help;  // what it is, and what to do when it is off
};

// In the order of the enum.
const std::array<SeriesInfo, static_cast<size_t>(Series::kCount)>& SeriesTable();

}  // namespace mega::service
