// hindsight-wat: WebAssembly text on standard input, a WatAnswer on standard output.
//
// A program of its own for two reasons. The parser of the WebAssembly Binary Toolkit ends the process on some
// malformed inputs and recurses without bound on others, which must not happen inside an embedder; and the
// library that Debian ships is not position independent, so that it cannot be part of a shared library.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wabt/binary-writer.h>
#include <wabt/error.h>
#include <wabt/feature.h>
#include <wabt/ir.h>
#include <wabt/stream.h>
#include <wabt/validator.h>
#include <wabt/wast-lexer.h>
#include <wabt/wast-parser.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "jit/wasm/wat_protocol.h"

namespace {

using hindsight::wasm::WatAnswer;

// Enough to see what is wrong; a parser that lost its way reports hundreds.
constexpr size_t kMaxReportedErrors = 5;

void limit(__rlimit_resource resource, uint64_t value) {
  rlimit current{};
  if (getrlimit(resource, &current) != 0) return;
  if (current.rlim_max != RLIM_INFINITY && current.rlim_max < value) value = current.rlim_max;
  const rlimit lowered{value, value};
  (void)setrlimit(resource, &lowered);  // without the limit the work is the same, only less bounded
}

bool read_input(std::vector<char>& out) {
  struct stat info {};
  if (fstat(STDIN_FILENO, &info) != 0) return false;
  out.resize(static_cast<size_t>(info.st_size));
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = pread(STDIN_FILENO, out.data() + done, out.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

bool write_at(const void* data, size_t size, uint64_t offset) {
  const char* p = static_cast<const char*>(data);
  while (size != 0) {
    const ssize_t n = pwrite(STDOUT_FILENO, p, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
  return true;
}

int answer(WatAnswer::Status status, const void* data, size_t size) {
  if (!write_at(data, size, sizeof(WatAnswer))) return 1;
  const WatAnswer header{WatAnswer::kMagic, status, size};
  return write_at(&header, sizeof(header), 0) ? 0 : 1;
}

int answer_errors(const wabt::Errors& errors) {
  std::string text;
  size_t reported = 0;
  for (const wabt::Error& error : errors) {
    if (reported++ == kMaxReportedErrors) break;
    if (!text.empty()) text += "; ";
    if (error.loc.line != 0)
      text += std::to_string(error.loc.line) + ":" + std::to_string(error.loc.first_column) + ": ";
    text += error.message;
  }
  if (text.empty()) text = "not a WebAssembly text module";
  return answer(WatAnswer::kError, text.data(), text.size());
}

}  // namespace

int main() {
  (void)prctl(PR_SET_DUMPABLE, 0);  // dying is an ordinary answer here: no core file, no crash reporter
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_AS, hindsight::wasm::kWatMemoryLimit);
  limit(RLIMIT_CPU, hindsight::wasm::kWatCpuSeconds);
  limit(RLIMIT_FSIZE, hindsight::wasm::kWatMaxAnswerBytes);

  std::vector<char> text;
  if (!read_input(text)) return 1;

  wabt::Errors errors;
  wabt::Features features;  // the defaults are those of WebAssembly 2.0
  features.enable_extended_const();
  features.enable_tail_call();
  features.enable_multi_memory();
  features.enable_memory64();
  features.enable_threads();
  features.enable_relaxed_simd();
  features.enable_annotations();  // passed over, except branch hints:
  features.enable_code_metadata();
  features.enable_exceptions();  // the form with try; try_table it does not know
  auto lexer = wabt::WastLexer::CreateBufferLexer("", text.data(), text.size(), &errors);
  wabt::WastParseOptions parse_options(features);
  std::unique_ptr<wabt::Module> module;
  if (wabt::Failed(wabt::ParseWatModule(lexer.get(), &module, &errors, &parse_options)))
    return answer_errors(errors);
  // The runtime's own validator decides in the end; this one knows lines and columns.
  if (wabt::Failed(wabt::ValidateModule(module.get(), &errors, wabt::ValidateOptions(features))))
    return answer_errors(errors);

  wabt::MemoryStream stream;
  wabt::WriteBinaryOptions write_options;
  write_options.features = features;
  write_options.write_debug_names = true;  // for backtraces
  if (wabt::Failed(wabt::WriteBinaryModule(&stream, module.get(), write_options)))
    return answer_errors(errors);
  const auto& bytes = stream.output_buffer().data;
  return answer(WatAnswer::kModule, bytes.data(), bytes.size());
}
