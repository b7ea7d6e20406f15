#include "jit/code/code_image.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "jit/code/cell_memory.h"
#include "jit/code/image_bytes.h"

namespace hindsight::jit {
namespace {

constexpr uint32_t kMostCodeBytes = uint32_t{256} << 20;  // of one version
constexpr uint32_t kMostCells = 65536;
constexpr uint32_t kNoEntry = ~uint32_t{0};  // of a version for running loops alone
constexpr uint32_t kCodeAlignment = 64;

uint32_t offset_of(const CodeVersion& version, const void* code) {
  return static_cast<uint32_t>(static_cast<const std::byte*>(code) - version.begin());
}

constexpr uint32_t kSlotBytes = sizeof(std::atomic<const void*>);
uint32_t slot_offset(const CodeVersion& version, const OsrExit& exit) {
  return static_cast<uint32_t>(reinterpret_cast<const std::byte*>(exit.slot) -
                               version.memory.writable().data());
}

// One version being read. Each part is checked against those before it.
class Reading {
 public:
  Reading(std::span<const std::byte> image, const wasm::Module& module)
      : in_(image), module_(module), version_(std::make_unique<CodeVersion>()) {}

  Result<std::unique_ptr<CodeVersion>> run(CodeArena& arena) {
    read_function();
    read_code();
    read_pc_map();
    read_handlers();
    read_answers();
    read_relocations();
    in_.check(in_.remaining() == 0, "has more bytes than it needs");
    if (in_.failed()) {
      return make_error(ErrorKind::kUsage, std::string("no usable image of a function: it ") + in_.defect(),
                        "code image", in_.defect_at());
    }
    return place(arena);
  }

 private:
  uint32_t u32() { return in_.number<uint32_t>(); }
  bool is_defined(FuncIndex f) const { return f.value < module_.function_count() && !module_.is_imported(f); }
  // After a list's elements everything is empty if something was wrong: then there is nothing to look at.
  const wasm::FunctionBody& body() const { return module_.body(version_->function); }
  CodeOffset code_offset() {
    const CodeOffset offset(u32());
    in_.check(offset.value < code_size_, "points outside of its code");
    return offset;
  }

  void read_function() {
    version_->tier = Tier::kOptimized;
    version_->function = FuncIndex(u32());
    in_.check(is_defined(version_->function), "is of a function that the module does not define");
    version_->compile_seconds = in_.number<double>();
    in_.check(std::isfinite(version_->compile_seconds) && version_->compile_seconds >= 0,
              "took no time that there is");
  }

  void read_code() {
    bytes_ = in_.block();
    code_size_ = u32();
    in_.check(!bytes_.empty() && bytes_.size() <= kMostCodeBytes && code_size_ <= bytes_.size(),
              "has no code of an acceptable size");
    version_->code_size = CodeOffset(code_size_);
    version_->hot_bytes = CodeOffset(u32());
    in_.check(version_->hot_bytes.value < code_size_, "runs mostly outside of its code");
    entry_ = CodeOffset(u32());
    in_.check(entry_.value < code_size_ || entry_.value == kNoEntry, "is entered outside of its code");
    in_.list(8, [&](uint32_t) {
      const LoopIndex loop(u32());
      in_.check(!in_.failed() && loop.value < body().loops.size(),
                "enters a loop that the function does not have");
      osr_.push_back({loop, code_offset()});
    });
    in_.check(entry_.value != kNoEntry || !osr_.empty(), "cannot be entered");
    in_.list(8, [&](uint32_t) {
      const LoopIndex loop(u32());
      in_.check(!in_.failed() && loop.value < body().loops.size(),
                "leaves a loop that the function does not have");
      const CodeOffset slot(u32());
      in_.check(slot.value >= code_size_ && slot.value % kSlotBytes == 0 &&
                    uint64_t{slot.value} + kSlotBytes <= bytes_.size(),
                "leaves a loop by what is no place of its own");
      exits_.push_back({loop, slot});
    });
    in_.list(4, [&](uint32_t) {
      const FuncIndex callee(u32());
      in_.check(is_defined(callee), "contains a function that the module does not define");
      version_->inlined.push_back(callee);
    });
  }

  void read_pc_map() {
    std::vector<InlineSite> sites;
    in_.list(13, [&](uint32_t i) {
      InlineSite site;
      site.callee = FuncIndex(u32());
      site.call_site = WasmOffset(u32());
      site.caller_site = u32();
      site.tail = in_.number<uint8_t>() != 0;
      in_.check(is_defined(site.callee), "inlines a function that the module does not define");
      in_.check(site.call_site.value < module_.bytes.size(), "inlines a call outside of the module");
      // Callers stand before what they call, which keeps the chains finite.
      in_.check(site.caller_site == kNoInlineSite || site.caller_site < i, "inlines into a later body");
      sites.push_back(site);
    });
    std::vector<PcRow> rows;
    in_.list(12, [&](uint32_t) {
      PcRow row;
      row.code = CodeOffset(u32());
      row.wasm = WasmOffset(u32());
      row.inline_site = u32();
      in_.check(row.code.value <= bytes_.size() && (rows.empty() || rows.back().code < row.code),
                "has rows out of order");
      in_.check(row.wasm == kNoWasmOffset || row.wasm.value < module_.bytes.size(),
                "has a row outside of the module");
      in_.check(row.inline_site == kNoInlineSite || row.inline_site == kLoopGoesOn ||
                    row.inline_site < sites.size(),
                "has a row in no function");
      rows.push_back(row);
    });
    PcMapBuilder map;
    for (const PcRow& row : rows) map.add_row(row);
    version_->pc_map = map.finish(std::move(sites));
  }

  void read_handlers() {
    CodeOffset last;
    in_.list(12, [&](uint32_t) {
      ExceptionHandler handler;
      handler.begin = CodeOffset(u32());
      handler.end = CodeOffset(u32());
      handler.landing = code_offset();
      in_.check(handler.begin >= last && handler.begin < handler.end && handler.end.value <= code_size_,
                "has handlers out of order");
      last = handler.end;
      version_->handlers.push_back(handler);
    });
  }

  void read_answers() {
    const uint32_t cells = u32();
    // Each cell is memory: no more of them than there are bytes that could speak of them.
    in_.check(cells <= kMostCells && cells <= in_.remaining() / 4, "has too many loop cells");
    if (in_.failed()) return;
    std::vector<uint32_t> site_of_cell;
    for (uint32_t i = 0; i < cells; ++i) site_of_cell.push_back(u32());
    in_.list(32, [&](uint32_t) {
      Answer answer;
      const auto kind = in_.number<uint8_t>();
      in_.check(is_change_kind(kind) && !is_of_version(static_cast<ChangeKind>(kind)),
                "answers what nobody asks for");
      answer.site.kind = static_cast<ChangeKind>(kind);
      answer.site.at = WasmOffset(u32());
      const auto state = in_.number<uint8_t>();
      in_.check(is_answer_state(state), "has an answer that nobody knows");
      answer.state = static_cast<Answer::State>(state);
      answer.loop = WasmOffset(u32());
      answer.cell = u32();
      answer.why = in_.text();
      answer.slice_loads = u32();
      answer.operations = u32();
      answer.has_distance = in_.number<uint8_t>() != 0;
      if (in_.number<uint8_t>() != 0) answer.timed = u32();
      in_.check(!answer.is_applied() || answer.cell < cells, "has a change without a loop cell");
      in_.check(!answer.timed || *answer.timed < kMostTimedLoads, "times a load that has no place");
      version_->answers.push_back(std::move(answer));
    });
    for (const uint32_t site : site_of_cell) {
      const bool known = site < version_->answers.size();
      in_.check(known, "has a loop cell without a change");
      const bool remembers = known && version_->answers[site].site.kind == ChangeKind::kJumpPointers;
      std::shared_ptr<LoopCell> cell = remembers ? make_loop_cell_with_history() : make_loop_cell();
      cell->site = site;
      cell_bytes_.push_back(sizeof(LoopCell) + (remembers ? sizeof(TraversalHistory) : 0));
      version_->loop_cells.push_back(std::move(cell));
    }
  }

  void read_relocations() {
    std::vector<CodeRelocation> relocations;
    in_.list(17, [&](uint32_t) {
      CodeRelocation r;
      const auto kind = in_.number<uint8_t>();
      in_.check(kind < kRelocationKinds, "has a relocation of a kind that nobody knows");
      r.kind = static_cast<CodeRelocation::Kind>(kind);
      r.at = u32();
      r.index = u32();
      r.value = in_.number<int64_t>();
      in_.check(uint64_t{r.at} + field_bytes(r.kind) <= bytes_.size(), "relocates outside of its code");
      switch (r.kind) {
        case CodeRelocation::Kind::kImageAddress:
        case CodeRelocation::Kind::kCall:
          in_.check(r.value >= 0 && r.value < static_cast<int64_t>(bytes_.size()),
                    "refers to what is not its own");
          break;
        case CodeRelocation::Kind::kFunctionAddress:
          in_.check(r.value == 0, "calls the middle of a function");
          break;
        case CodeRelocation::Kind::kDistance:
          break;
        case CodeRelocation::Kind::kCellAddress:
          in_.check(r.index < version_->loop_cells.size(), "refers to a loop cell that it does not have");
          in_.check(r.index < cell_bytes_.size() && r.value >= 0 &&
                        r.value < static_cast<int64_t>(cell_bytes_[r.index]),
                    "refers to what follows a loop cell");
          break;
      }
      const bool calls =
          r.kind == CodeRelocation::Kind::kFunctionAddress || r.kind == CodeRelocation::Kind::kCall;
      in_.check(!calls || r.index < kOutsideFunctions, "calls a function that nobody knows");
      relocations.push_back(r);
    });
    version_->relocations = std::move(relocations);
  }

  Result<std::unique_ptr<CodeVersion>> place(CodeArena& arena) {
    HINDSIGHT_ASSIGN(version_->memory, arena.allocate(bytes_.size(), kCodeAlignment));
    const CodeWriting writing = version_->memory.write();
    const std::span<std::byte> writable = writing.bytes();
    std::memcpy(writable.data(), bytes_.data(), bytes_.size());
    constexpr int kBreakpoint = 0xcc;
    std::memset(writable.data() + bytes_.size(), kBreakpoint, writable.size() - bytes_.size());
    relocate(*version_->relocations, version_->memory, version_->loop_cells);
    if (entry_.value != kNoEntry) version_->entry = version_->begin() + entry_.value;
    for (const auto& [loop, slot] : exits_) {
      std::memset(writable.data() + slot.value, 0, kSlotBytes);
      version_->add_exit(loop, slot);
    }
    for (const auto& [loop, offset] : osr_)
      version_->osr_entries.push_back({loop, version_->begin() + offset.value});
    return std::move(version_);
  }

  ImageReader in_;
  const wasm::Module& module_;
  std::unique_ptr<CodeVersion> version_;
  std::span<const std::byte> bytes_;
  uint32_t code_size_ = 0;
  CodeOffset entry_;
  std::vector<std::pair<LoopIndex, CodeOffset>> osr_, exits_;
  std::vector<size_t> cell_bytes_;
};

}  // namespace

std::vector<std::byte> bytes_without_place(const CodeVersion& version) {
  std::vector<std::byte> bytes(version.begin(), version.begin() + version.memory.size());
  unrelocate(*version.relocations, bytes);
  // Where running code is sent from here is of this process.
  for (const OsrExit& exit : version.osr_exits)
    std::memset(bytes.data() + slot_offset(version, exit), 0, kSlotBytes);
  return bytes;
}

Result<std::vector<std::byte>> write_code_image(const CodeVersion& version) {
  if (version.whole) return write_code_image(*version.whole);
  if (version.tier != Tier::kOptimized || !version.relocations)
    return make_error(ErrorKind::kUnsupported, "this code knows its place and cannot be moved",
                      "function " + std::to_string(version.function.value));
  ImageWriter out;
  const auto u32 = [&](uint32_t value) { out.number(value); };
  u32(version.function.value);
  out.number(version.compile_seconds);

  out.block(bytes_without_place(version));
  u32(version.code_size.value);
  u32(version.hot_bytes.value);
  u32(version.entry != nullptr ? offset_of(version, version.entry) : kNoEntry);
  out.list(version.osr_entries, [&](const OsrEntry& entry) {
    u32(entry.loop.value);
    u32(offset_of(version, entry.code));
  });
  out.list(version.osr_exits, [&](const OsrExit& exit) {
    u32(exit.loop.value);
    u32(slot_offset(version, exit));
  });
  out.list(version.inlined, [&](FuncIndex callee) { u32(callee.value); });

  out.list(version.pc_map.inline_sites(), [&](const InlineSite& site) {
    u32(site.callee.value);
    u32(site.call_site.value);
    u32(site.caller_site);
    out.number(static_cast<uint8_t>(site.tail));
  });
  out.list(version.pc_map.rows(), [&](const PcRow& row) {
    u32(row.code.value);
    u32(row.wasm.value);
    u32(row.inline_site);
  });
  out.list(version.handlers, [&](const ExceptionHandler& handler) {
    u32(handler.begin.value);
    u32(handler.end.value);
    u32(handler.landing.value);
  });

  out.list(version.loop_cells, [&](const std::shared_ptr<LoopCell>& cell) { u32(cell->site); });
  out.list(version.answers, [&](const Answer& answer) {
    out.number(static_cast<uint8_t>(answer.site.kind));
    u32(answer.site.at.value);
    out.number(static_cast<uint8_t>(answer.state));
    u32(answer.loop.value);
    u32(answer.cell);
    out.text(answer.why);
    u32(answer.slice_loads);
    u32(answer.operations);
    out.number(static_cast<uint8_t>(answer.has_distance));
    out.number(static_cast<uint8_t>(answer.timed.has_value()));
    if (answer.timed) u32(*answer.timed);
  });
  out.list(*version.relocations, [&](const CodeRelocation& r) {
    out.number(static_cast<uint8_t>(r.kind));
    u32(r.at);
    u32(r.index);
    out.number(r.value);
  });
  return out.take();
}

Result<std::unique_ptr<CodeVersion>> place_code_image(std::span<const std::byte> image,
                                                      const wasm::Module& module, CodeArena& arena) {
  return Reading(image, module).run(arena);
}

}  // namespace hindsight::jit
