// The parts of the running coordinator, as its RPCs see them. References only, but for one setting;
// coordinator.h owns.
#pragma once

#include "absl/time/time.h"
#include "coordinator/service/log_router.h"
#include "coordinator/service/loop.h"
#include "coordinator/service/read_model.h"
#include "coordinator/service/session_table.h"
#include "coordinator/service/step_recorder.h"
#include "coordinator/service/work_thread.h"
#include "coordinator/state/state_store.h"

namespace mega::service {

struct Shell {
  Loop& loop;
  ReadModel& reads;
  SessionTable& sessions;
  LogRouter& logs;
  StepRecorder& steps;
  WorkThread& checks;     // validation and planning asked for by clients
  WorkThread& forecasts;  // of the queue: who only looks at it keeps nobody from submitting
  WorkThread& history;    // reads of the store: a slow disk holds up nothing else
  const state::StateStore& store;
  const Clock& clock;
  absl::Duration hello_deadline;
};

}  // namespace mega::service
