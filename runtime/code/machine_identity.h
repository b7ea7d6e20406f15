// Who makes optimized code here and for what, in words that are equal exactly where the code may be shared.
// It is found without opening the optimizing tier, because the point of kept code is not to open it.
#pragma once

#include <string>

namespace hindsight::rt {

// The processor as programs see it: family, model, stepping, and every feature bit. Each bit is there once
// as CPUID has it and once as the kernel lets programs use it. A cloud machine of the same name with one
// feature less is another processor. It comes from what the C library found out when the process began:
// CPUID itself costs microseconds in a virtual machine.
std::string processor_identity();

// One build of a file: its inode, length and time of change; other contents under the same name are another
// file. Empty: it is not there.
std::string file_identity(const std::string& path);

// All of it, of the two files' identities. Empty if one of them is: then nobody can say who compiled.
std::string machine_identity(const std::string& optimizer, const std::string& llvm);

}  // namespace hindsight::rt
