#include "feedback/lwp/calibration/calibration_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <string_view>

#include "base/files.h"
#include "feedback/pmu/processor.h"

namespace hindsight::lwp {
namespace {

constexpr std::string_view kFirstLine = "hindsight-calibration 1";
constexpr std::string_view kLastLine = "end";
constexpr size_t kMostFileBytes = 8192;

// The one list of fields: name and member, written and read by the same walk.
template <typename C, typename Visit>
void visit_fields(C& c, Visit visit) {
  visit("tsc_ghz", c.tsc_ghz);
  visit("core_ghz", c.core_ghz);
  visit("mispredict_ns", c.mispredict_ns);
  visit("seconds", c.seconds);
  const auto level = [&](const std::string& name, auto& timing) {
    visit(name + ".bytes", timing.bytes);
    visit(name + ".latency_ns", timing.latency_ns);
    visit(name + ".timed_load_ticks", timing.timed_load_ticks);
  };
  level("l1", c.l1);
  level("l2", c.l2);
  level("l3", c.l3);
  level("memory", c.memory);
}

template <typename Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text;
}

std::string microcode() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("microcode")) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos) return line.substr(line.find_first_not_of(" \t", colon + 1));
  }
  return "unknown";
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// Every folder on the way, the missing ones for their owner alone.
bool make_folders(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    (void)::mkdir(path.substr(0, slash).c_str(), 0700);  // the last step tells whether it worked
  }
  return ::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

std::string environment(const char* name) {
  const char* const value = ::secure_getenv(name);
  return value ? value : "";
}

}  // namespace

std::string calibration_folder() {
  if (const std::string folder = environment("HINDSIGHT_CACHE_DIR"); !folder.empty()) return folder;
  // Relative ones are to be ignored (XDG Base Directory Specification).
  if (const std::string folder = environment("XDG_CACHE_HOME"); folder.starts_with('/'))
    return folder + "/hindsight";
  if (const std::string home = environment("HOME"); home.starts_with('/')) return home + "/.cache/hindsight";
  return {};
}

std::string machine_key() {
  const pmu::ProcessorInfo processor = pmu::identify_processor();
  utsname system{};
  ::uname(&system);
  return one_line(fmt::format(
      "{} family {} model {} stepping {}; microcode {}; kernel {}; {}",
      processor.brand.empty() ? std::string(to_string(processor.vendor)) : processor.brand,
      processor.signature.family, processor.signature.model, processor.signature.stepping, microcode(),
      system.release, processor.virtualized ? "hypervisor " + processor.hypervisor : "no hypervisor"));
}

std::string format_calibration(const Calibration& calibration, const std::string& key) {
  std::string text = fmt::format("{}\nkey {}\n", kFirstLine, key);
  visit_fields(calibration, [&](const std::string& name, const auto& value) {
    text += fmt::format("{} {}\n", name, value);
  });
  return text + std::string(kLastLine) + "\n";
}

Result<Calibration> parse_calibration(const std::string& text, const std::string& key,
                                      const std::string& name) {
  const auto bad = [&](const std::string& why) {
    return make_error(ErrorKind::kUsage, "not a usable calibration: " + why, name);
  };
  if (text.size() > kMostFileBytes) return bad("too long");
  std::string_view rest = text;
  const auto next_line = [&]() -> std::optional<std::string_view> {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return line;
  };
  if (next_line() != kFirstLine) return bad("the first line is another");
  if (next_line() != "key " + key) return bad("it is of another machine");
  std::map<std::string_view, std::string_view> fields;
  for (;;) {
    const auto line = next_line();
    if (!line) return bad("it ends too early");
    if (*line == kLastLine) break;
    const size_t space = line->find(' ');
    if (space == std::string_view::npos) return bad("a line without a value");
    if (!fields.emplace(line->substr(0, space), line->substr(space + 1)).second) return bad("a field twice");
  }
  if (!rest.empty()) return bad("it goes on after its end");
  Calibration calibration;
  std::string defect;
  visit_fields(calibration, [&](const std::string& field, auto& value) {
    const auto found = fields.find(field);
    if (found == fields.end()) {
      defect = "no " + field;
    } else if (!parse_number(found->second, value)) {
      defect = field + " is no number";
    } else {
      fields.erase(found);
    }
  });
  if (!defect.empty()) return bad(defect);
  if (!fields.empty()) return bad("a field that nobody knows");
  if (!plausible(calibration)) return bad("figures that no machine has");
  return calibration;
}

std::string calibration_path(const std::string& folder, const std::string& key) {
  uint64_t hash = 0xcbf2'9ce4'8422'2325;  // FNV-1a
  for (const char c : key) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100'0000'01b3;
  return fmt::format("{}/calibration-{:016x}", folder, hash);
}

Result<std::optional<Calibration>> load_calibration(const std::string& folder, const std::string& key) {
  const std::string path = calibration_path(folder, key);
  const auto ignored = [&](const std::string& why) {
    return make_error(ErrorKind::kUsage, why + "; ignored", path);
  };
  // Not through a link, and without waiting for whoever would write to a pipe.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) return std::nullopt;
    return ignored(error == ELOOP ? std::string("the calibration is a link")
                                  : fmt::format("the calibration cannot be read: {}", strerror(error)));
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return ignored("the calibration is no regular file");
  if (status.st_uid != ::geteuid()) return ignored("the calibration belongs to somebody else");
  if (status.st_mode & (S_IWGRP | S_IWOTH)) return ignored("the calibration may be written by others");
  std::string text(kMostFileBytes + 1, '\0');
  size_t length = 0;
  while (length < text.size()) {
    const ssize_t n = ::read(file.get(), text.data() + length, text.size() - length);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ignored(fmt::format("the calibration cannot be read: {}", strerror(errno)));
    if (n == 0) break;
    length += static_cast<size_t>(n);
  }
  text.resize(length);
  auto parsed = parse_calibration(text, key, path);
  if (!parsed) return ignored(parsed.error().message);
  return *parsed;
}

Status store_calibration(const std::string& folder, const std::string& key, const Calibration& calibration) {
  const std::string path = calibration_path(folder, key);
  const auto failed = [&](const std::string& what, int error) {
    return make_error(ErrorKind::kResource,
                      fmt::format("the calibration is not kept: {}: {}", what, strerror(error)), path);
  };
  if (!make_folders(folder)) return failed("its folder cannot be created", errno);
  const std::string text = format_calibration(calibration, key);
  const std::string_view parts[] = {text};
  if (const auto replaced = replace_file(AT_FDCWD, path, {.parts = parts}); !replaced)
    return failed(fmt::format("it cannot be {}", replaced.error().step), replaced.error().error);
  return {};
}

std::optional<MachineCalibration> known_calibration(std::string& note) {
  const std::string folder = calibration_folder();
  if (folder.empty()) return std::nullopt;
  const std::string key = machine_key();
  auto loaded = load_calibration(folder, key);
  if (!loaded) {
    note = loaded.error().describe();
    return std::nullopt;
  }
  if (!*loaded) return std::nullopt;
  return MachineCalibration{**loaded, false, calibration_path(folder, key), {}};
}

Result<MachineCalibration> machine_calibration(bool anew, const std::function<bool()>& stop) {
  std::string note;
  if (!anew) {
    if (auto known = known_calibration(note)) return *std::move(known);
  }
  HINDSIGHT_ASSIGN(const Calibration measured, calibrate(stop));
  MachineCalibration result{measured, true, {}, std::move(note)};
  const std::string folder = calibration_folder();
  if (folder.empty()) return result;
  const std::string key = machine_key();
  if (const Status stored = store_calibration(folder, key, measured); !stored) {
    if (result.note.empty()) result.note = stored.error().describe();
  } else {
    result.file = calibration_path(folder, key);
  }
  return result;
}

}  // namespace hindsight::lwp
