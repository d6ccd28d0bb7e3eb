#include "base/log.h"

#include <algorithm>
#include <cctype>
#include <memory>

#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace mega::log {
namespace {

spdlog::level::level_enum InSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::shared_ptr<spdlog::logger> MakeLogger(std::string_view process, Level level) {
  auto logger = spdlog::stderr_logger_mt(std::string(process) + "-log");
  logger->set_pattern(fmt::format("%Y-%m-%dT%H:%M:%S.%fZ %L {} %v", process),
                      spdlog::pattern_time_type::utc);
  logger->set_level(InSpdlog(level));
  logger->flush_on(spdlog::level::debug);
  return logger;
}

// The one process-wide logger: set once in main before threads start.
std::shared_ptr<spdlog::logger>& Logger() {
  static std::shared_ptr<spdlog::logger> logger = MakeLogger("mega", Level::kWarn);
  return logger;
}

// Values come from outside too: control characters must not forge lines.
void AppendValue(std::string& line, const std::string& value) {
  const bool plain = !value.empty() && std::all_of(value.begin(), value.end(), [](unsigned char c) {
    return c > 32 && c < 127 && c != '"' && c != '\\';
  });
  if (plain) {
    line += value;
    return;
  }
  line += '"';
  for (unsigned char c : value) {
    if (c == '"' || c == '\\') {
      line += '\\';
      line += static_cast<char>(c);
    } else if (c == '\n') {
      line += "\\n";
    } else if (c < 32 || c == 127) {
      line += fmt::format("\\x{:02x}", c);
    } else {
      line += static_cast<char>(c);
    }
  }
  line += '"';
}

}  // namespace

void Init(std::string_view process, Level level) { Logger() = MakeLogger(process, level); }

void Write(Level level, std::string_view message, Fields fields) {
  const auto spd_level = InSpdlog(level);
  const auto& logger = Logger();
  if (!logger->should_log(spd_level)) return;
  std::string line(message);
  for (const Field& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    AppendValue(line, field.value);
  }
  logger->log(spd_level, spdlog::string_view_t(line.data(), line.size()));
}

// The pattern of MakeLogger: 2026-01-31T12:00:00.000000Z I worker ...
bool IsRoutine(std::string_view line) {
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd.ddddddZ ";
  if (line.size() < kShape.size() + 2) return false;
  for (size_t i = 0; i < kShape.size(); ++i) {
    const bool fits = kShape[i] == 'd' ? line[i] >= '0' && line[i] <= '9' : line[i] == kShape[i];
    if (!fits) return false;
  }
  const char level = line[kShape.size()];
  return (level == 'I' || level == 'D') && line[kShape.size() + 1] == ' ';
}

}  // namespace mega::log
