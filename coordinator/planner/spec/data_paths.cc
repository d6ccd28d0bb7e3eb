#include "coordinator/planner/spec/data_paths.h"

namespace mega::spec {

bool IsJsonl(std::string_view path) {
  return path.ends_with(".jsonl") || path.ends_with(".ndjson");
}

}  // namespace mega::spec
