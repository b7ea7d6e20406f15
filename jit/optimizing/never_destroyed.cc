// Nothing of LLVM's or of this library's is ever destroyed.
//
// Problem. exit() destroys static objects one after the other, the last made first, on the thread that calls it. Compile threads go on
// meanwhile. A handler that is registered after the library was opened runs before its objects are destroyed, and could wait for these
// threads. But it does not help with two kinds of objects. LLVM makes two and a half thousand while it is opened, for 50 ms and more. An
// exit() in this time destroys the first ones while others are still made from them, which has been seen to loop for ever. And some are
// made at their first use, in the midst of a compile, after any handler.
//
// Idea. None of them has to be destroyed. They hold memory alone, and neither library is ever unloaded. A destructor becomes known to exit()
// by one function of libc, __cxa_atexit. So the calls of that function from both libraries lead to one that forgets what it is told. Those
// of this library lead there when it is linked: it has a function of that name, which nobody outside sees (exports.map). LLVM is a library
// of its own, whose calls go through a slot that the loader fills. It is filled anew before the first of LLVM's constructors runs.
//
// Argument that this is in time. dlopen() fills the slots of all libraries that it loads (RTLD_NOW), and then runs their constructors. It
// begins with that of the one library that was linked to be the first (-z initfirst), which is this one. Invariant: nothing that runs there
// may need LLVM or another library than libc. So no static object of this library has a constructor to be run; what is below is the only
// thing that does.
//
// What if not: where a loader knows no such order, LLVM's objects are known to exit() as ever, and what remains is the handler
// (runtime/code/exit_gate.h). That is also so where the host has loaded LLVM itself before: what it has made then is destroyed, after the
// handler. Where LLVM is linked into this library there is no slot to be filled.
#include <elf.h>
#include <link.h>
#include <llvm/Support/ErrorHandling.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

extern "C" int __cxa_atexit(void (*destructor)(void*), void* object, void* library) noexcept;
extern "C" int __cxa_atexit(void (*)(void*), void*, void*) noexcept {
  return 0;
}

namespace hindsight::jit::optimizing {
namespace {

// A library's tables, as the loader uses them.
struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * slots = nullptr;  // of functions that are called
  uintptr_t slots_bytes = 0;
  const ElfW(Rela) * others = nullptr;  // addresses of functions, too
  uintptr_t others_bytes = 0;
  uintptr_t without_name = 0;  // how many of them, the first ones
};

template <typename T>
const T* pointer(uintptr_t base, uintptr_t value) {
  // glibc has made addresses of them already, others do not.
  return reinterpret_cast<const T*>(value < base ? base + value : value);
}

Tables tables_of(uintptr_t base, const ElfW(Dyn) * entry) {
  Tables tables;
  for (; entry->d_tag != DT_NULL; ++entry) {
    const uintptr_t value = entry->d_un.d_val;
    switch (entry->d_tag) {
      case DT_SYMTAB:
        tables.symbols = pointer<ElfW(Sym)>(base, value);
        break;
      case DT_STRTAB:
        tables.names = pointer<char>(base, value);
        break;
      case DT_JMPREL:
        tables.slots = pointer<ElfW(Rela)>(base, value);
        break;
      case DT_PLTRELSZ:
        tables.slots_bytes = value;
        break;
      case DT_RELA:
        tables.others = pointer<ElfW(Rela)>(base, value);
        break;
      case DT_RELASZ:
        tables.others_bytes = value;
        break;
      case DT_RELACOUNT:
        tables.without_name = value;
        break;
      default:
        break;
    }
  }
  return tables;
}

struct Range {
  uintptr_t begin = 0, end = 0;
  bool contains(uintptr_t address) const { return address - begin < end - begin; }
};

// `read_only`: what the loader has made so after it filled the slots.
void fill(uintptr_t slot, Range read_only) {
  const auto page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  auto* const page = reinterpret_cast<void*>(slot & ~(page_bytes - 1));
  const bool is_shut = read_only.contains(slot);
  // Invariant: nobody else calls through it yet, or gets one of the two functions. Where the page cannot be opened it stays.
  if (is_shut && ::mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return;
  __atomic_store_n(reinterpret_cast<uintptr_t*>(slot), reinterpret_cast<uintptr_t>(&__cxa_atexit),
                   __ATOMIC_RELAXED);
  if (is_shut) (void)::mprotect(page, page_bytes, PROT_READ);  // one that stays open is as other data
}

void fill_slots(const Tables& tables, const ElfW(Rela) * first, const ElfW(Rela) * end, uintptr_t base,
                Range read_only) {
  for (const ElfW(Rela)* at = first; at < end; ++at) {
    const auto type = ELF64_R_TYPE(at->r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
    const char* const name = tables.names + tables.symbols[ELF64_R_SYM(at->r_info)].st_name;
    if (std::strcmp(name, "__cxa_atexit") == 0) fill(base + at->r_offset, read_only);
  }
}

// For dl_iterate_phdr. `address` is one in the library that is looked for.
int fill_slots_of(dl_phdr_info* library, size_t, void* address) {
  const auto base = static_cast<uintptr_t>(library->dlpi_addr);
  const ElfW(Dyn)* dynamic = nullptr;
  Range read_only;
  bool is_it = false;
  for (size_t i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = library->dlpi_phdr[i];
    const uintptr_t begin = base + part.p_vaddr;
    const Range range{begin, begin + part.p_memsz};
    if (part.p_type == PT_LOAD) is_it = is_it || range.contains(reinterpret_cast<uintptr_t>(address));
    if (part.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    if (part.p_type == PT_GNU_RELRO) read_only = range;
  }
  if (!is_it) return 0;
  const Tables tables = dynamic != nullptr ? tables_of(base, dynamic) : Tables{};
  if (tables.symbols == nullptr || tables.names == nullptr) return 1;
  if (tables.slots != nullptr)
    fill_slots(tables, tables.slots, tables.slots + tables.slots_bytes / sizeof(ElfW(Rela)), base, read_only);
  if (tables.others != nullptr)
    fill_slots(tables, tables.others + tables.without_name,
               tables.others + tables.others_bytes / sizeof(ElfW(Rela)), base, read_only);
  return 1;
}

[[gnu::constructor]] void keep_llvm_from_destroying() {
  (void)dl_iterate_phdr(fill_slots_of, reinterpret_cast<void*>(&llvm::install_fatal_error_handler));
}

}  // namespace
}  // namespace hindsight::jit::optimizing
