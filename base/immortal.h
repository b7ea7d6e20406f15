// Immortal<T>: an object with static storage that exit() does not destroy. For what threads of this library use: they go
// on while exit() destroys static objects. Its memory is the program's own, so nothing is lost by that.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace hindsight {

template <typename T>
class Immortal {
 public:
  template <typename... Arguments>
  explicit Immortal(Arguments&&... arguments) {
    new (static_cast<void*>(memory_)) T(std::forward<Arguments>(arguments)...);
  }
  Immortal(const Immortal&) = delete;
  Immortal& operator=(const Immortal&) = delete;

  T& operator*() { return *std::launder(reinterpret_cast<T*>(memory_)); }
  const T& operator*() const { return *std::launder(reinterpret_cast<const T*>(memory_)); }

 private:
  alignas(T) std::byte memory_[sizeof(T)];
};

}  // namespace hindsight
