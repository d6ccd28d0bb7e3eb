// What the name of a file in data.paths says about it.
#pragma once

#include <string_view>

namespace mega::spec {

// Lines of JSON, of which each holds a document; other files are text, or built.
bool IsJsonl(std::string_view path);

}  // namespace mega::spec
