// The templates of the public API: C++ types to WebAssembly types and back. Included by hindsight.h.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>

#include "runtime/engine/hindsight.h"

namespace hindsight {
namespace detail {

template <typename T>
requires((std::is_integral_v<T> && sizeof(T) == 4) || std::is_same_v<T, bool>) struct ValueTraits<T> {
  static constexpr ValueKind kKind = ValueKind::kI32;
  static uint64_t to_bits(T v) { return static_cast<uint32_t>(v); }
  static T from_bits(uint64_t bits) { return static_cast<T>(static_cast<uint32_t>(bits)); }
};
template <typename T>
requires(std::is_integral_v<T> && sizeof(T) == 8) struct ValueTraits<T> {
  static constexpr ValueKind kKind = ValueKind::kI64;
  static uint64_t to_bits(T v) { return static_cast<uint64_t>(v); }
  static T from_bits(uint64_t bits) { return static_cast<T>(bits); }
};
template <>
struct ValueTraits<float> {
  static constexpr ValueKind kKind = ValueKind::kF32;
  static uint64_t to_bits(float v) { return std::bit_cast<uint32_t>(v); }
  static float from_bits(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
};
template <>
struct ValueTraits<double> {
  static constexpr ValueKind kKind = ValueKind::kF64;
  static uint64_t to_bits(double v) { return std::bit_cast<uint64_t>(v); }
  static double from_bits(uint64_t bits) { return std::bit_cast<double>(bits); }
};

template <>
struct ValueTraits<V128> {
  static constexpr ValueKind kKind = ValueKind::kV128;
};

// Values in slots of 8 bytes, one after the other: the pointer moves past the value.
template <typename T>
inline constexpr size_t kSlots = ValueTraits<T>::kKind == ValueKind::kV128 ? 2 : 1;
template <typename T>
void put(const T& value, uint64_t*& slots) {
  if constexpr (kSlots<T> == 2)
    std::memcpy(slots, value.bytes.data(), 16);
  else
    *slots = ValueTraits<T>::to_bits(value);
  slots += kSlots<T>;
}
template <typename T>
T take(const uint64_t*& slots) {
  const uint64_t* const from = slots;
  slots += kSlots<T>;
  if constexpr (kSlots<T> == 2)
    return {std::bit_cast<std::array<uint8_t, 16>>(std::array{from[0], from[1]})};
  else
    return ValueTraits<T>::from_bits(from[0]);
}
template <typename T>
Value to_value(const T& value) {
  uint64_t words[2] = {};
  uint64_t* at = words;
  put(value, at);
  return {ValueTraits<T>::kKind, words[0], words[1]};
}
template <typename T>
T from_value(const Value& value) {
  const uint64_t words[2] = {value.bits, value.high};
  const uint64_t* at = words;
  return take<T>(at);
}

// What a function may return: nothing, one value, a tuple of values; as itself or in a Result.
template <typename R>
struct Results {
  static constexpr size_t kWords = kSlots<R>;
  static std::vector<ValueKind> kinds() { return {ValueTraits<R>::kKind}; }
  static R read(const uint64_t* slots) { return take<R>(slots); }
  static Status write(const R& value, std::span<Value> results) {
    results[0] = to_value(value);
    return {};
  }
};
template <>
struct Results<void> {
  static constexpr size_t kWords = 0;
  static std::vector<ValueKind> kinds() { return {}; }
  static void read(const uint64_t*) {}
};
template <typename... Ts>
struct Results<std::tuple<Ts...>> {
  static constexpr size_t kWords = (kSlots<Ts> + ... + 0);
  static std::vector<ValueKind> kinds() { return {ValueTraits<Ts>::kKind...}; }
  static std::tuple<Ts...> read(const uint64_t* slots) {
    return std::tuple<Ts...>{take<Ts>(slots)...};  // braces: from left to right
  }
  static Status write(const std::tuple<Ts...>& values, std::span<Value> results) {
    [&]<size_t... I>(std::index_sequence<I...>) {
      ((results[I] = to_value(std::get<I>(values))), ...);
    }
    (std::index_sequence_for<Ts...>{});
    return {};
  }
};
template <typename T>
struct Results<Result<T>> : Results<T> {
  static Status write(const Result<T>& value, std::span<Value> results) {
    if (!value) return std::unexpected(value.error());
    if constexpr (!std::is_void_v<T>) return Results<T>::write(*value, results);
    return {};
  }
};

template <typename R, typename... Args>
struct Signature_<R(Args...)> {
  using Return = R;
  static FunctionType type() { return {{ValueTraits<std::decay_t<Args>>::kKind...}, Results<R>::kinds()}; }

  template <typename F>
  static Status call(F& function, std::span<const Value> args, std::span<Value> results) {
    return [&]<size_t... I>(std::index_sequence<I...>)->Status {
      if constexpr (std::is_void_v<R>) {
        function(from_value<std::decay_t<Args>>(args[I])...);
        return {};
      } else {
        return Results<R>::write(function(from_value<std::decay_t<Args>>(args[I])...), results);
      }
    }
    (std::index_sequence_for<Args...>{});
  }
};

// The signature of a callable, and whether it wants the Caller first.
template <typename R, typename... Args>
struct Plain {
  static constexpr bool kWantsCaller = false;
  using Type = Signature_<R(Args...)>;
};
template <typename R, typename... Args>
struct Plain<R, Caller&, Args...> {
  static constexpr bool kWantsCaller = true;
  using Type = Signature_<R(Args...)>;
};
template <typename F>
struct CallableOf : CallableOf<decltype(&F::operator())> {};
template <typename R, typename... Args>
struct CallableOf<R (*)(Args...)> : Plain<R, Args...> {};
template <typename R, typename... Args>
struct CallableOf<R (*)(Args...) noexcept> : Plain<R, Args...> {};
template <typename C, typename R, typename... Args>
struct CallableOf<R (C::*)(Args...)> : Plain<R, Args...> {};
template <typename C, typename R, typename... Args>
struct CallableOf<R (C::*)(Args...) const> : Plain<R, Args...> {};
template <typename C, typename R, typename... Args>
struct CallableOf<R (C::*)(Args...) noexcept> : Plain<R, Args...> {};
template <typename C, typename R, typename... Args>
struct CallableOf<R (C::*)(Args...) const noexcept> : Plain<R, Args...> {};

}  // namespace detail

// An exported function whose type was checked once. Valid as long as its instance.
template <typename R, typename... Args>
class TypedFunction<R(Args...)> {
 public:
  TypedFunction(Instance& instance, Instance::Function* function)
      : instance_(&instance), function_(function) {}

  Result<R> operator()(Args... args) const {
    constexpr size_t kWords = (detail::kSlots<Args> + ... + 0);
    std::array<uint64_t, std::max({kWords, detail::Results<R>::kWords, size_t{1}})> slots{};
    [[maybe_unused]] uint64_t* at = slots.data();
    (detail::put<Args>(args, at), ...);
    if (Status status = instance_->call_raw(function_, slots); !status)
      return std::unexpected(status.error());
    if constexpr (std::is_void_v<R>)
      return {};
    else
      return detail::Results<R>::read(slots.data());
  }

 private:
  Instance* instance_;
  Instance::Function* function_;
};

template <typename Signature>
Result<TypedFunction<Signature>> Instance::typed_function(std::string_view export_name) {
  auto function = find_function(export_name);
  if (!function) return std::unexpected(function.error());
  auto type = function_type(export_name);
  if (!type) return std::unexpected(type.error());
  if (*type != detail::Signature_<Signature>::type())
    return make_error(ErrorKind::kUsage, "the exported function has another type", std::string(export_name));
  return TypedFunction<Signature>(*this, *function);
}

template <typename F>
void Linker::define_function(std::string_view module, std::string_view name, F function) {
  using Callable = detail::CallableOf<F>;
  using Signature = typename Callable::Type;
  // Shared: a HostFunction is copyable, a lambda need not be.
  auto shared = std::make_shared<F>(std::move(function));
  define_host(module, name, Signature::type(),
              [shared](Caller& caller, std::span<const Value> args, std::span<Value> results) -> Status {
                if constexpr (Callable::kWantsCaller) {
                  auto bound = [&](auto... values) { return (*shared)(caller, values...); };
                  return Signature::call(bound, args, results);
                } else {
                  return Signature::call(*shared, args, results);
                }
              });
}

}  // namespace hindsight
