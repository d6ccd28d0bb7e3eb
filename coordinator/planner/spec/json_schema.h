// A JSON Schema of the job file (draft 2020-12), made from the KeyRules: editors complete keys and
// mark mistakes with it. The envelope (apiVersion, kind, metadata, spec) included.
#pragma once

#include "nlohmann/json_fwd.hpp"

namespace mega::spec {

// Rules between keys are not in it: Validate knows those.
nlohmann::ordered_json JsonSchema();

}  // namespace mega::spec
