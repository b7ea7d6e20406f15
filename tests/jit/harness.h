// TestInstance: the smallest runtime in which code of either tier can run. It builds a VmContext for a
// Module, memory with guard pages, tables, globals and host functions, and a Builtins table whose failures
// unwind. It calls exports with typed values. The tier under test is a function from FuncIndex to code.
//
// Header only, one thread at a time per instance.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jit/abi/builtins.h"
#include "jit/abi/call_layout.h"
#include "jit/abi/trampolines.h"
#include "jit/abi/type_registry.h"
#include "jit/abi/vm_context.h"
#include "jit/baseline/baseline_compiler.h"
#include "jit/code/code_arena.h"
#include "jit/wasm/module.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace hindsight::jit::testing {

struct Value {
  wasm::ValType type = wasm::ValType::kI32;
  uint64_t bits = 0;  // i32 and f32: upper half zero; v128: the low half
  uint64_t high = 0;
  friend bool operator==(const Value&, const Value&) = default;
  friend void PrintTo(const Value& v, std::ostream* out) {
    *out << wasm::to_string(v.type) << ":0x" << std::hex;
    if (v.type == wasm::ValType::kV128) *out << v.high << '_';
    *out << v.bits << std::dec;
  }
};
inline Value i32(uint32_t v) {
  return {wasm::ValType::kI32, v};
}
inline Value i64(uint64_t v) {
  return {wasm::ValType::kI64, v};
}
inline Value f32(float v) {
  return {wasm::ValType::kF32, std::bit_cast<uint32_t>(v)};
}
inline Value f64(double v) {
  return {wasm::ValType::kF64, std::bit_cast<uint64_t>(v)};
}
inline Value f32_bits(uint32_t v) {
  return {wasm::ValType::kF32, v};
}
inline Value f64_bits(uint64_t v) {
  return {wasm::ValType::kF64, v};
}
inline Value v128(uint64_t low, uint64_t high) {
  return {wasm::ValType::kV128, low, high};
}
inline Value funcref(void* v) {
  return {wasm::ValType::kFuncRef, reinterpret_cast<uint64_t>(v)};
}
inline Value externref(uint64_t v) {
  return {wasm::ValType::kExternRef, v};
}

struct Outcome {
  TrapCode trap = TrapCode::kNone;
  std::vector<Value> results;
  friend bool operator==(const Outcome&, const Outcome&) = default;
  friend void PrintTo(const Outcome& o, std::ostream* out) {
    if (o.trap != TrapCode::kNone) *out << "trap: " << to_string(o.trap);
    for (const Value& v : o.results) {
      PrintTo(v, out);
      *out << ' ';
    }
  }
};
inline Outcome returns(std::vector<Value> results) {
  return {TrapCode::kNone, std::move(results)};
}
inline Outcome traps(TrapCode code) {
  return {code, {}};
}

struct BranchRecord {
  uint32_t taken;
  const void* target;
  const void* pc;
};

class TestInstance {
 public:
  // Returns the code of a defined function, or null (a test failure). Called at a function's first call.
  using Compile = std::function<const void*(const wasm::Module&, FuncIndex)>;
  // Arguments in slots, results out; returns false to fail with kHostError.
  using HostFunction = std::function<bool(TestInstance&, uint64_t* slots)>;

  struct Options {
    std::map<std::string, HostFunction> host = {};          // "module.name"
    std::map<std::string, uint64_t> imported_globals = {};  // "module.name" -> bits; absent: 0
    size_t stack_bytes = size_t{512} << 10;
    int32_t instruction_period = INT32_MAX;  // of the LWP counters
    int32_t branch_period =
        3;  // short, so that code goes over to the body that records, and back, all the time
  };

  static std::shared_ptr<const wasm::Module> module_of(std::string_view wat) {
    auto bytes = wasm::assemble_text(wat, "test.wat");
    EXPECT_TRUE(bytes) << (bytes ? "" : bytes.error().describe());
    if (!bytes) return nullptr;
    auto module = wasm::decode_module(*bytes, "test.wat");
    EXPECT_TRUE(module) << (module ? "" : module.error().describe());
    return module ? *module : nullptr;
  }

  TestInstance(std::shared_ptr<const wasm::Module> module, CodeArena& arena, Compile compile)
      : TestInstance(std::move(module), arena, std::move(compile), Options{}) {}

  TestInstance(std::shared_ptr<const wasm::Module> module, CodeArena& arena, Compile compile, Options options)
      : module_(std::move(module)),
        arena_(arena),
        compile_(std::move(compile)),
        options_(std::move(options)) {
    install_fault_handler();
    trampolines_ = std::move(*make_trampolines(arena_));
    thread_ = std::make_unique<ThreadState>();
    thread_->lwp_instructions = options_.instruction_period;
    thread_->lwp_branches = options_.branch_period;
    const VmLayout layout(*module_);
    context_ = new (std::aligned_alloc(64, (layout.total_bytes() + 63) & ~size_t{63})) VmContext{};
    std::memset(static_cast<void*>(context_ + 1), 0, layout.total_bytes() - sizeof(VmContext));
    builtins_ = make_builtins();
    trampolines_->prepare(*thread_);
    context_->thread = thread_.get();
    context_->builtins = &builtins_;
    context_->instance = this;
    type_ids_ = *TypeIds::of(*module_);
    context_->type_ids = type_ids_.data();
    make_memory();
    make_globals(layout);
    make_functions();
    make_tables();
    initialize();
  }
  ~TestInstance() {
    if (memory_.base) munmap(memory_.base, memory_.reserved_bytes);
    std::free(context_);
  }
  TestInstance(const TestInstance&) = delete;

  Outcome call(std::string_view name, std::vector<Value> args = {}) {
    const wasm::Export* found = module_->find_export(name);
    if (!found || found->kind != wasm::ExternKind::kFunc) {
      ADD_FAILURE() << "no exported function " << name;
      return {};
    }
    return call(FuncIndex(found->index), std::move(args));
  }

  Outcome call(FuncIndex function, std::vector<Value> args) {
    const wasm::FuncType& type = module_->type_of(function);
    EXPECT_EQ(type.params.size(), args.size());
    std::vector<uint64_t> slots(std::max(call_words(type), 1u), 0xdeadbeefcafef00d);
    size_t slot = 0;
    for (size_t i = 0; i < args.size(); ++i) {
      EXPECT_EQ(args[i].type, type.params[i]);
      slots[slot] = args[i].bits;
      // Upper halves are undefined by contract: poison them, so that code which relies on them fails.
      if (type.params[i] == wasm::ValType::kI32) slots[slot] |= 0xbad0bad000000000;
      if (type.params[i] == wasm::ValType::kV128) slots[slot + 1] = args[i].high;
      slot += words_of(type.params[i]);
    }
    auto invoke = trampolines_->invoke(type);
    if (!invoke) {
      ADD_FAILURE() << invoke.error().describe();
      return {};
    }
    const FuncRef& ref = func_refs(context_)[function.value];
    TestInstance* const outer = std::exchange(current(), this);
    const auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
    if (!outer) thread_->stack_limit.store(here - options_.stack_bytes, std::memory_order_relaxed);
    thread_->pending_trap = TrapCode::kNone;
    const uint32_t trapped =
        (*invoke)(thread_.get(), ref.code.load(std::memory_order_relaxed), ref.callee_context, slots.data());
    current() = outer;
    Outcome outcome;
    if (trapped) {
      EXPECT_NE(thread_->pending_trap, TrapCode::kNone);
      outcome.trap = thread_->pending_trap;
      return outcome;
    }
    slot = 0;
    for (const wasm::ValType result : type.results) {
      const bool wide = result == wasm::ValType::kV128;
      outcome.results.push_back({result, slots[slot], wide ? slots[slot + 1] : 0});
      slot += words_of(result);
    }
    return outcome;
  }

  const wasm::Module& module() const { return *module_; }
  VmContext* context() { return context_; }
  ThreadState& thread() { return *thread_; }
  uint8_t* memory() { return memory_.base; }
  MemoryRecord& memory_record() { return memory_; }
  TableRecord& table(uint32_t i) { return *tables_[i]; }
  GlobalCell& global(uint32_t index) {
    if (index < module_->imported_globals) return *imported_global_pointers_[index];
    return *reinterpret_cast<GlobalCell*>(reinterpret_cast<char*>(context_) +
                                          VmLayout(*module_).global(index));
  }
  Builtins& builtins() { return builtins_; }
  Trampolines& trampolines() { return *trampolines_; }

  // Where the last trap happened: the faulting instruction or the return address of the builtin's call.
  const void* trap_pc = nullptr;
  std::vector<BranchRecord> branch_records;
  uint64_t instruction_records = 0;
  uint64_t stack_checks = 0;
  std::function<void()> on_stack_check;  // called before the usual decision
  uint64_t strips_ended = 0;

  // Sets the trap and goes back to the innermost call().
  [[noreturn]] void raise(TrapCode code) {
    thread_->pending_trap = code;
#if defined(__SANITIZE_ADDRESS__)
    __asan_handle_no_return();
#endif
    asm volatile("jmp *%1" : : "D"(thread_.get()), "a"(trampolines_->unwind()) : "memory");
    __builtin_unreachable();
  }

 private:
  struct Host : HostCallee {
    TestInstance* instance;
    HostFunction function;
  };

  static TestInstance*& current() {
    static thread_local TestInstance* instance = nullptr;
    return instance;
  }
  static TestInstance& of(VmContext* context) {
    return *static_cast<TestInstance*>(context->instance);
  }

  void make_memory() {
    if (module_->memories.empty()) return;
    const wasm::Limits& limits = module_->memories[0].limits;
    memory_.reserved_bytes = (uint64_t{8} << 30) + wasm::kPageBytes;
    memory_.max_pages = std::min<uint64_t>(limits.max.value_or(wasm::kMaxPages), wasm::kMaxPages);
    void* base =
        mmap(nullptr, memory_.reserved_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(base, MAP_FAILED);
    memory_.base = static_cast<uint8_t*>(base);
    memory_.byte_length.store(0, std::memory_order_relaxed);
    EXPECT_NE(grow_memory(limits.min), ~uint64_t{0});
    context_->memory_base = memory_.base;
    context_->memory = &memory_;
    new (reinterpret_cast<std::byte*>(context_) + VmLayout(*module_).memory_cell(0))
        MemoryCell{memory_.base, &memory_, memory_.max_pages * wasm::kPageBytes, 0};
  }

  uint64_t grow_memory(uint64_t delta) {
    const uint64_t old_bytes = memory_.byte_length.load(std::memory_order_relaxed);
    const uint64_t old_pages = old_bytes / wasm::kPageBytes;
    if (delta > memory_.max_pages - old_pages) return ~uint64_t{0};
    const uint64_t more = delta * wasm::kPageBytes;
    if (more && mprotect(memory_.base + old_bytes, more, PROT_READ | PROT_WRITE) != 0) return ~uint64_t{0};
    memory_.byte_length.store(old_bytes + more, std::memory_order_relaxed);
    return old_pages;
  }

  uint64_t evaluate(const wasm::ConstExpr& expr) {
    switch (expr.kind) {
      case wasm::ConstExpr::Kind::kGlobalGet: {
        uint64_t bits;
        std::memcpy(&bits, global(expr.index).bytes, 8);
        return bits;
      }
      case wasm::ConstExpr::Kind::kRefNull:
        return 0;
      case wasm::ConstExpr::Kind::kRefFunc:
        return reinterpret_cast<uint64_t>(&func_refs(context_)[expr.index]);
      case wasm::ConstExpr::Kind::kCode:
        ADD_FAILURE() << "the harness runs no code of constant expressions";
        return 0;
      default:
        return expr.bits;
    }
  }

  void make_globals(const VmLayout&) {
    imported_globals_ = std::vector<GlobalCell>(module_->imported_globals);
    for (GlobalCell& cell : imported_globals_) imported_global_pointers_.push_back(&cell);
    context_->imported_globals = imported_global_pointers_.data();
    size_t next = 0;
    for (const wasm::Import& import : module_->imports) {
      if (import.kind != wasm::ExternKind::kGlobal) continue;
      const auto found = options_.imported_globals.find(import.module + "." + import.name);
      const uint64_t bits = found == options_.imported_globals.end() ? 0 : found->second;
      std::memcpy(imported_globals_[next++].bytes, &bits, 8);
    }
    for (uint32_t i = module_->imported_globals; i < module_->globals.size(); ++i) {
      const uint64_t bits = evaluate(module_->globals[i].init);
      std::memcpy(global(i).bytes, &bits, 8);
      std::memcpy(global(i).bytes + 8, &module_->globals[i].init.high, 8);
    }
  }

  void make_functions() {
    std::vector<const wasm::Import*> imports;
    for (const wasm::Import& import : module_->imports)
      if (import.kind == wasm::ExternKind::kFunc) imports.push_back(&import);
    for (uint32_t i = 0; i < module_->function_count(); ++i) {
      FuncRef& ref = func_refs(context_)[i];
      ref.type_id = type_ids_[module_->functions[i].value];
      ref.func_index = i;
      ref.owner = this;
      if (i < module_->imported_functions) {
        auto host = std::make_unique<Host>();
        host->dispatch = [](HostCallee* callee, uint64_t* slots) -> uint32_t {
          auto* h = static_cast<Host*>(callee);
          if (h->function && h->function(*h->instance, slots)) return 0;
          if (h->thread->pending_trap == TrapCode::kNone) h->thread->pending_trap = TrapCode::kHostError;
          return 1;
        };
        host->thread = thread_.get();
        host->instance = this;
        const auto found = options_.host.find(imports[i]->module + "." + imports[i]->name);
        if (found != options_.host.end()) host->function = found->second;
        ref.callee_context = static_cast<HostCallee*>(host.get());
        ref.code.store(*trampolines_->host_call(module_->type_of(FuncIndex(i))), std::memory_order_relaxed);
        hosts_.push_back(std::move(host));
      } else {
        ref.callee_context = context_;
        ref.code.store(*trampolines_->lazy_stub(i), std::memory_order_relaxed);
      }
    }
  }

  void make_tables() {
    for (const wasm::TableType& type : module_->tables) {
      auto table = std::make_unique<TableRecord>();
      table->max = type.limits.max.value_or(~0u);
      table->size = type.limits.min;
      table_elements_.emplace_back(std::make_unique<std::vector<void*>>(type.limits.min, nullptr));
      table->elements = table_elements_.back()->data();
      table_pointers_.push_back(table.get());
      tables_.push_back(std::move(table));
    }
    context_->tables = table_pointers_.data();
  }

  void initialize() {
    dropped_elements_.resize(module_->elements.size());
    dropped_data_.resize(module_->data.size());
    for (uint32_t i = 0; i < module_->elements.size(); ++i) {
      const wasm::ElementSegment& segment = module_->elements[i];
      if (segment.mode != wasm::ElementSegment::Mode::kActive) continue;
      const auto offset = static_cast<uint32_t>(evaluate(segment.offset));
      ASSERT_LE(offset + segment.items.size(), tables_[segment.table]->size);
      for (size_t k = 0; k < segment.items.size(); ++k)
        tables_[segment.table]->elements[offset + k] = reinterpret_cast<void*>(evaluate(segment.items[k]));
      dropped_elements_[i] = true;
    }
    for (uint32_t i = 0; i < module_->data.size(); ++i) {
      const wasm::DataSegment& segment = module_->data[i];
      if (!segment.active) continue;
      const auto offset = static_cast<uint32_t>(evaluate(segment.offset));
      ASSERT_LE(uint64_t{offset} + segment.size, memory_.byte_length.load());
      if (segment.size)
        std::memcpy(memory_.base + offset, &module_->bytes[segment.begin.value], segment.size);
      dropped_data_[i] = true;
    }
  }

  static void check(TestInstance& self, bool inside, TrapCode code, const void* pc) {
    if (inside) return;
    self.trap_pc = pc;
    self.raise(code);
  }

#define HINDSIGHT_TEST_PC __builtin_return_address(0)
  static Builtins make_builtins() {
    Builtins b{};
    b.trap = [](VmContext * c, uint32_t code) __attribute__((always_inline)) {
      of(c).trap_pc = HINDSIGHT_TEST_PC;
      of(c).raise(static_cast<TrapCode>(code));
    };
    b.stack_check_failed = [](VmContext* c) {
      TestInstance& self = of(c);
      ++self.stack_checks;
      self.trap_pc = HINDSIGHT_TEST_PC;
      if (self.on_stack_check) return self.on_stack_check();
      self.raise(TrapCode::kStackExhausted);
    };
    b.compile_lazily = [](VmContext* c, uint32_t index) -> const void* {
      TestInstance& self = of(c);
      const void* code = self.compile_(*self.module_, FuncIndex(index));
      if (!code) self.raise(TrapCode::kOutOfResources);
      // Publishes the code's bytes, written before.
      func_refs(c)[index].code.store(code, std::memory_order_release);
      return code;
    };
    // Grows the one memory that an instance has here.
    b.memory_grow = [](VmContext* c, uint32_t, uint64_t delta) { return of(c).grow_memory(delta); };
    b.memory_init = [](VmContext* c, uint64_t data_memory, uint64_t dst, uint32_t src, uint32_t n) {
      TestInstance& self = of(c);
      const uint64_t data = data_memory >> 32;
      const wasm::DataSegment& segment = self.module_->data[data];
      const uint64_t size = self.dropped_data_[data] ? 0 : segment.size;
      check(self, uint64_t{src} + n <= size && dst + n <= self.memory_.byte_length,
            TrapCode::kMemoryOutOfBounds, HINDSIGHT_TEST_PC);
      if (n) std::memcpy(self.memory_.base + dst, &self.module_->bytes[segment.begin.value + src], n);
    };
    b.data_drop = [](VmContext* c, uint32_t data) { of(c).dropped_data_[data] = true; };
    b.memory_copy = [](VmContext* c, uint64_t, uint64_t dst, uint64_t src, uint64_t n) {
      TestInstance& self = of(c);
      const uint64_t length = self.memory_.byte_length;
      const bool inside = n <= length && src <= length - n && dst <= length - n;
      check(self, inside, TrapCode::kMemoryOutOfBounds, HINDSIGHT_TEST_PC);
      std::memmove(self.memory_.base + dst, self.memory_.base + src, n);
    };
    b.memory_fill = [](VmContext* c, uint32_t, uint64_t dst, uint32_t value, uint64_t n) {
      TestInstance& self = of(c);
      const uint64_t length = self.memory_.byte_length;
      check(self, n <= length && dst <= length - n, TrapCode::kMemoryOutOfBounds, HINDSIGHT_TEST_PC);
      std::memset(self.memory_.base + dst, static_cast<int>(value), n);
    };
    b.table_get = [](VmContext* c, uint32_t table, uint32_t index) -> void* {
      TestInstance& self = of(c);
      check(self, index < self.tables_[table]->size, TrapCode::kTableOutOfBounds, HINDSIGHT_TEST_PC);
      return self.tables_[table]->elements[index];
    };
    b.table_set = [](VmContext* c, uint32_t table, uint32_t index, void* value) {
      TestInstance& self = of(c);
      check(self, index < self.tables_[table]->size, TrapCode::kTableOutOfBounds, HINDSIGHT_TEST_PC);
      self.tables_[table]->elements[index] = value;
    };
    b.table_grow = [](VmContext* c, uint32_t table, void* init, uint32_t delta) -> uint32_t {
      TestInstance& self = of(c);
      TableRecord& t = *self.tables_[table];
      if (t.size + delta > std::min<uint64_t>(t.max, 10'000'000)) return ~0u;
      const auto old = static_cast<uint32_t>(t.size);
      self.table_elements_[table]->resize(t.size + delta, init);
      t.size += delta;
      t.elements = self.table_elements_[table]->data();
      return old;
    };
    b.table_fill = [](VmContext* c, uint32_t table, uint32_t index, void* value, uint32_t n) {
      TestInstance& self = of(c);
      TableRecord& t = *self.tables_[table];
      check(self, uint64_t{index} + n <= t.size, TrapCode::kTableOutOfBounds, HINDSIGHT_TEST_PC);
      std::fill_n(t.elements + index, n, value);
    };
    b.table_copy = [](VmContext* c, uint64_t tables, uint32_t dst, uint32_t src, uint32_t n) {
      TestInstance& self = of(c);
      TableRecord& d = *self.tables_[tables >> 32];
      TableRecord& s = *self.tables_[static_cast<uint32_t>(tables)];
      check(self, uint64_t{dst} + n <= d.size && uint64_t{src} + n <= s.size, TrapCode::kTableOutOfBounds,
            HINDSIGHT_TEST_PC);
      if (n) std::memmove(d.elements + dst, s.elements + src, sizeof(void*) * n);
    };
    b.table_init = [](VmContext* c, uint64_t elem_table, uint32_t dst, uint32_t src, uint32_t n) {
      TestInstance& self = of(c);
      const auto elem = static_cast<uint32_t>(elem_table >> 32);
      TableRecord& t = *self.tables_[static_cast<uint32_t>(elem_table)];
      const auto& items = self.module_->elements[elem].items;
      const uint64_t size = self.dropped_elements_[elem] ? 0 : items.size();
      check(self, uint64_t{dst} + n <= t.size && uint64_t{src} + n <= size, TrapCode::kTableOutOfBounds,
            HINDSIGHT_TEST_PC);
      for (uint32_t i = 0; i < n; ++i)
        t.elements[dst + i] = reinterpret_cast<void*>(self.evaluate(items[src + i]));
    };
    b.elem_drop = [](VmContext* c, uint32_t elem) { of(c).dropped_elements_[elem] = true; };
    b.lwp_instructions_retired = [](VmContext* c, const void*) {
      TestInstance& self = of(c);
      ++self.instruction_records;
      self.thread_->lwp_instructions += self.options_.instruction_period;
    };
    b.lwp_branch_retired = [](VmContext* c, const void* pc, uint32_t taken, const void* target) {
      TestInstance& self = of(c);
      self.branch_records.push_back({taken, target, pc});
      self.thread_->lwp_branches += self.options_.branch_period;
    };
    b.lwp_value_sampled = [](VmContext*, const void*, uint32_t, uint64_t, uint32_t) {};
    b.strip_ended = [](VmContext* c, LoopCell* cell) {
      ++of(c).strips_ended;
      cell->countdown += static_cast<int32_t>(cell->strip_length);
    };
    return b;
  }
#undef HINDSIGHT_TEST_PC

  // A fault of generated code inside a guest memory's reservation becomes a trap; anything else is a bug and
  // goes to whoever handled it before.
  static void on_fault(int signal, siginfo_t* info, void* raw) {
    auto* context = static_cast<ucontext_t*>(raw);
    TestInstance* self = current();
    const auto rip = reinterpret_cast<const void*>(context->uc_mcontext.gregs[REG_RIP]);
    const auto* address = static_cast<const uint8_t*>(info->si_addr);
    if (self && self->arena_.contains(rip) && self->memory_.base && address >= self->memory_.base &&
        address < self->memory_.base + self->memory_.reserved_bytes) {
      self->trap_pc = rip;
      self->thread_->pending_trap = TrapCode::kMemoryOutOfBounds;
      context->uc_mcontext.gregs[REG_RIP] = reinterpret_cast<greg_t>(self->trampolines_->unwind());
      context->uc_mcontext.gregs[REG_RDI] = reinterpret_cast<greg_t>(self->thread_.get());
      return;
    }
    sigaction(signal, &previous_handler(), nullptr);  // the instruction faults again
  }
  static struct sigaction& previous_handler() {
    static struct sigaction previous {};
    return previous;
  }
  static void install_fault_handler() {
    static const bool installed = [] {
      struct sigaction action {};
      action.sa_sigaction = on_fault;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
      return sigaction(SIGSEGV, &action, &previous_handler()) == 0;
    }();
    (void)installed;
  }

  std::shared_ptr<const wasm::Module> module_;
  CodeArena& arena_;
  Compile compile_;
  Options options_;
  std::unique_ptr<Trampolines> trampolines_;
  std::unique_ptr<ThreadState> thread_;
  VmContext* context_ = nullptr;
  Builtins builtins_{};
  TypeIds type_ids_;
  MemoryRecord memory_{};
  std::vector<GlobalCell> imported_globals_;
  std::vector<GlobalCell*> imported_global_pointers_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::unique_ptr<TableRecord>> tables_;
  std::vector<std::unique_ptr<std::vector<void*>>> table_elements_;
  std::vector<TableRecord*> table_pointers_;
  std::vector<bool> dropped_elements_;
  std::vector<bool> dropped_data_;
};

}  // namespace hindsight::jit::testing
