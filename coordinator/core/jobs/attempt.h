// The life of one placement of a job: its ranks start, become ready, are connected, run, end.
// Whatever a message says about a rank counts only if it names the current attempt and its epoch.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "coordinator/core/draft.h"

namespace mega::core {

// A new attempt on `plan`, from the newest committed checkpoint: epoch, devices, a StartRanks for
// every node. The job has no live attempt, and the plan's devices are free.
void StartAttempt(Draft& draft, v1::Job& job, v1::Plan plan);
// Asks every rank that may still run to end: SIGTERM, then SIGKILL after `grace`. The attempt is
// over when the last one has. Does nothing if it is stopping already.
void StopAttempt(Draft& draft, v1::Job& job, absl::Duration grace, std::string cause);
// Says so again to the nodes whose ranks have not ended.
void SendStopRanks(Draft& draft, const v1::Job& job, absl::Duration grace);
// It is proven that the ranks of the live attempt on this node do not run, and no exit was seen.
// Which: all of them, or those in `only`.
void LoseRanks(Draft& draft, v1::Job& job, const NodeId& node, const std::string& why,
               const std::set<int64_t>* only = nullptr);

void OnRankReady(Draft& draft, const NodeId& node, const v1::RankReady& ready);
void OnRankExited(Draft& draft, const NodeId& node, const v1::RankExited& exited);
void OnStepReport(Draft& draft, const v1::StepReport& report);

// Ends every touched attempt none of whose ranks can run any more, and decides what comes next.
void SettleAttempts(Draft& draft);

// The job of a message about a rank, if the message is about its live attempt and comes from the
// node that the rank was given to; else null.
const v1::Job* FindRankJob(const Draft& draft, const NodeId& node, const v1::RankRef& ref);
// The newest attempt of the job, if (attempt, epoch) names it.
const v1::Attempt* CurrentAttempt(const Draft& draft, const v1::Job& job, int64_t attempt,
                                  int64_t epoch);
std::set<NodeId> NodesOf(const v1::Attempt& attempt);
// Makes the rank, which has exited, the one whose failure ends the attempt, with the cause as it is
// told to people.
void BlameRank(v1::Attempt& attempt, const v1::RankState& rank);
// A step that a rank may speak of: they count from 1, and every sum with one must fit.
inline bool IsStep(int64_t step) { return step > 0 && step <= int64_t{1} << 52; }
// False only when it is certain that the rank does not run.
bool MayRun(const v1::RankState& rank);

}  // namespace mega::core
