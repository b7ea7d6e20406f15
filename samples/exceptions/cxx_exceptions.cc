// What C++ programs need to throw in WebAssembly, for toolchains whose libc++abi was built without it.
// Debian's libc++abi-19-dev-wasm32 has the type information of C++, but neither __cxa_throw nor what unwinds.
//
//   clang++-19 --target=wasm32-wasi -O2 -fwasm-exceptions program.cc cxx_exceptions.cc -o program.wasm
//
// How clang uses it (ABI of Itanium C++, section "Exception Handling", with WebAssembly's own unwinding): an
// exception is a pointer, thrown under the tag __cpp_exception. A landing pad says in __wasm_lpad_context
// which it is and where its function's table lies. Then it asks _Unwind_CallPersonality which of its catch
// clauses takes the exception: that is the selector. Exception specifications are not supported; there is one
// thread.
#include <stdint.h>
#include <stdlib.h>

#include <exception>
#include <typeinfo>

namespace __cxxabiv1 {

// The part of libc++abi's type information that decides about catch clauses; its virtual functions are those
// of the library, in this order.
class __shim_type_info : public std::type_info {
 public:
  virtual ~__shim_type_info();
  virtual void noop1() const;
  virtual void noop2() const;
  virtual bool can_catch(const __shim_type_info* thrown, void*& object) const = 0;
};

}  // namespace __cxxabiv1

namespace {

using __cxxabiv1::__shim_type_info;

struct alignas(16) Header {  // in front of the object that is thrown
  std::type_info* type;
  void* (*destroy)(void*);  // destructors return their object here
  void* caught_as;          // the object, adjusted to the type of the clause that takes it
  Header* next;             // of those being handled, the one that was caught before
  int handlers;             // catch clauses that are handling it; negative: thrown again meanwhile
};

Header* g_caught = nullptr;  // innermost first

void* object_of(Header* header) {
  return header + 1;
}

uintptr_t read_uleb(const uint8_t*& p) {
  uintptr_t value = 0;
  unsigned shift = 0;
  uint8_t byte;
  do {
    byte = *p++;
    value |= uintptr_t(byte & 0x7f) << shift;
    shift += 7;
  } while (byte & 0x80);
  return value;
}

intptr_t read_sleb(const uint8_t*& p) {
  intptr_t value = 0;
  unsigned shift = 0;
  uint8_t byte;
  do {
    byte = *p++;
    value |= intptr_t(byte & 0x7f) << shift;
    shift += 7;
  } while (byte & 0x80);
  if ((byte & 0x40) && shift < 8 * sizeof value) value |= -(intptr_t(1) << shift);
  return value;
}

bool takes(const std::type_info* clause, Header* header) {
  if (clause == nullptr) {  // catch (...)
    header->caught_as = object_of(header);
    return true;
  }
  void* object = object_of(header);
  const bool can = static_cast<const __shim_type_info*>(clause)->can_catch(
      static_cast<const __shim_type_info*>(header->type), object);
  if (can) header->caught_as = object;
  return can;
}

// The 1-based index of the clause in the table `lsda` that takes the exception at landing pad `index`; 0:
// none.
uintptr_t select_clause(const uint8_t* lsda, uintptr_t index, Header* header) {
  constexpr uint8_t kOmitted = 0xff;
  const uint8_t* p = lsda;
  if (*p++ != kOmitted) abort();
  const uint8_t type_encoding = *p++;
  const uint8_t* types_end = nullptr;
  if (type_encoding != kOmitted) {
    const uintptr_t offset = read_uleb(p);
    types_end = p + offset;
  }
  ++p;  // encoding of the call sites: uleb128
  const uintptr_t sites_bytes = read_uleb(p);
  const uint8_t* const actions = p + sites_bytes;
  uintptr_t action = 0;
  for (uintptr_t i = 0; i <= index; ++i) {
    read_uleb(p);  // the landing pad, which is the index
    action = read_uleb(p);
  }
  if (action == 0) return 0;  // only cleans up
  p = actions + action - 1;
  for (;;) {
    const intptr_t clause = read_sleb(p);
    if (clause < 0) abort();  // an exception specification
    if (clause > 0) {
      const auto* type = reinterpret_cast<std::type_info* const*>(types_end) - clause;
      if (takes(*type, header)) return static_cast<uintptr_t>(clause);
    }
    const uint8_t* const here = p;
    const intptr_t next = read_sleb(p);
    if (next == 0) return 0;
    p = here + next;
  }
}

void release(Header* header) {
  if (header->destroy) header->destroy(object_of(header));
  free(header);
}

}  // namespace

extern "C" {

struct {
  uintptr_t index;  // of the landing pad in its function
  const uint8_t* lsda;
  uintptr_t selector;
} __wasm_lpad_context;

int _Unwind_CallPersonality(void* exception) {
  __wasm_lpad_context.selector =
      select_clause(__wasm_lpad_context.lsda, __wasm_lpad_context.index, static_cast<Header*>(exception));
  return 0;
}

void* __cxa_allocate_exception(size_t bytes) noexcept {
  auto* header =
      static_cast<Header*>(aligned_alloc(alignof(Header), (sizeof(Header) + bytes + 15) & ~size_t(15)));
  if (!header) abort();
  *header = {};
  return object_of(header);
}

void __cxa_free_exception(void* object) noexcept {
  free(static_cast<Header*>(object) - 1);
}

[[noreturn]] void __cxa_throw(void* object, std::type_info* type, void* (*destroy)(void*)) {
  Header* const header = static_cast<Header*>(object) - 1;
  header->type = type;
  header->destroy = destroy;
  __builtin_wasm_throw(0, header);
}

void* __cxa_begin_catch(void* exception) noexcept {
  auto* const header = static_cast<Header*>(exception);
  header->handlers = (header->handlers < 0 ? -header->handlers : header->handlers) + 1;
  if (g_caught != header) {
    header->next = g_caught;
    g_caught = header;
  }
  return header->caught_as;
}

void __cxa_end_catch() {
  Header* const header = g_caught;
  if (!header) return;
  if (header->handlers < 0) {  // on its way to another handler
    if (++header->handlers == 0) g_caught = header->next;
  } else if (--header->handlers == 0) {
    g_caught = header->next;
    release(header);
  }
}

[[noreturn]] void __cxa_rethrow() {
  Header* const header = g_caught;
  if (!header) std::terminate();
  header->handlers = -header->handlers;
  __builtin_wasm_throw(0, header);
}

void* __cxa_get_exception_ptr(void* exception) noexcept {
  return static_cast<Header*>(exception)->caught_as;
}

}  // extern "C"
