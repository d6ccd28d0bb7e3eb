// What the planner is asked, and how its answer is told apart: a plan for the devices that are free
// is carried out; one for devices that might be is only looked at. AskPlan.revision comes back with
// the answer; that of a plan on what might be is negative.
#pragma once

#include <cstdint>

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

}  // namespace mega::core
