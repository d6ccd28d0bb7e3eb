// log::Info("checkpoint committed", {{"job", job}, {"step", step}});
// error = someone must act · warn = may heal · info = a life event · debug = per message.
// Lines go to stderr as "time level message key=value …"; values with blanks are quoted.
// Thread-safe. Logged once, where the event is first understood.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "fmt/core.h"

namespace mega::log {

enum class Level { kDebug, kInfo, kWarn, kError };

struct Field {
  std::string_view key;
  std::string value;

  template <typename T>
  Field(std::string_view key_in, const T& value_in)
      : key(key_in), value(fmt::format("{}", value_in)) {}
};
using Fields = std::initializer_list<Field>;

// Lines below `level` are dropped. `process` is printed in each line ("coordinator").
void Init(std::string_view process, Level level);

void Write(Level level, std::string_view message, Fields fields);
inline void Debug(std::string_view message, Fields fields = {}) {
  Write(Level::kDebug, message, fields);
}
inline void Info(std::string_view message, Fields fields = {}) {
  Write(Level::kInfo, message, fields);
}
inline void Warn(std::string_view message, Fields fields = {}) {
  Write(Level::kWarn, message, fields);
}
inline void Error(std::string_view message, Fields fields = {}) {
  Write(Level::kError, message, fields);
}

// Whether `line` was written as debug or info, by any process of this project.
bool IsRoutine(std::string_view line);

}  // namespace mega::log
