// Namespaces: how much the jobs of one may hold together. A job that would hold too much waits, and
// nobody of another namespace for it; one that would be too many, or stand too high, is refused.
#pragma once

#include <string>
#include <vector>

#include "coordinator/core/draft.h"

namespace mega::core {

// Why the job cannot have its devices before others of its namespace give some back; empty: it can.
std::string OverQuota(const State& state, const v1::Job& job);
// The same of so many devices.
std::string OverQuota(const State& state, const v1::Job& job, int64_t devices);

// RESOURCE_EXHAUSTED: a new job would be one too many (max_jobs); INVALID_ARGUMENT: it would stand
// too high (max_priority).
absl::Status CheckQuota(const State& state, const std::string& name_space, int64_t priority);

// Answer their calls.
void UpdateNamespace(Draft& draft, const v1::CoreRequest& request);
void DeleteNamespace(Draft& draft, const v1::CoreRequest& request);

// The namespace as users see it, with what it holds now; also of one without limits.
v1::Namespace NamespaceView(const State& state, const std::string& name);
// All that have limits or unfinished jobs, by name.
std::vector<v1::Namespace> NamespaceViews(const State& state);

}  // namespace mega::core
