// What the planner is asked, and how its answer is told apart: a plan for the devices that are free
// is carried out; one for devices that might be is only looked at. AskPlan.revision comes back with
// the answer; that of a plan on what might be is negative. And what answers leave behind: two
// numbers of JobLive whose signs have a meaning, which only this file knows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/core/draft.h"

namespace mega::core {

enum class Question {
  kNow,      // the free devices
  kVictims,  // those, and the ones of jobs that could be made to yield
  kIdle,     // the whole fleet, as if nothing ran
};

inline int64_t ToRevision(Question question, int64_t cluster_revision) {
  if (question == Question::kNow) return cluster_revision;
  return -(2 * cluster_revision + (question == Question::kIdle ? 1 : 0));
}
inline Question QuestionOf(int64_t revision) {
  if (revision >= 0) return Question::kNow;
  return revision % 2 == 0 ? Question::kVictims : Question::kIdle;
}
inline int64_t ClusterRevisionOf(int64_t revision) {
  return revision >= 0 ? revision : -revision / 2;
}

// Puts the question, with these nodes. One is outstanding for a job at a time.
void PutQuestion(Draft& draft, const v1::Job& job, Question question,
                 const std::vector<v1::Node>& nodes);
// True: an answer is on its way. One that never came is not waited for any longer.
bool IsAsked(Draft& draft, v1::JobLive& live);
inline bool IsAskedIdle(const v1::JobLive& live) {
  return live.ask_revision() != 0 && QuestionOf(live.ask_revision()) == Question::kIdle;
}

// At this cluster revision there was no room for the job; 0: nothing like it is known.
inline int64_t RefusedAt(const v1::JobLive& live) {
  return std::max<int64_t>(live.refused_revision(), 0);
}
// At this one the fleet could not hold it, even idle; 0: nothing like it is known.
inline int64_t UnfitAt(const v1::JobLive& live) {
  return std::max<int64_t>(-live.refused_revision(), 0);
}
// Each in place of the other.
inline void SetRefusedAt(v1::JobLive& live, int64_t revision) {
  live.set_refused_revision(revision);
}
inline void SetUnfitAt(v1::JobLive& live, int64_t revision) {
  live.set_refused_revision(-revision);
}
inline void ForgetRefusal(v1::JobLive& live) {
  if (RefusedAt(live) != 0) live.set_refused_revision(0);
}
inline void ForgetUnfit(v1::JobLive& live) {
  if (UnfitAt(live) != 0) live.set_refused_revision(0);
}

// The time has come to ask again though the cluster has not changed.
bool IsDue(const Draft& draft, const v1::JobLive& live);
void AskAgainWithin(const Draft& draft, v1::JobLive& live, absl::Duration span);

}  // namespace mega::core
