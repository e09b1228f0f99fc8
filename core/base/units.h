// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>

namespace evenkeel {

/// A number with a unit. Quantities of one unit add and compare; unlike units meet only where physics lets them (below).
template <class Tag, class Rep = double>
struct Quantity {
  Rep value = 0;

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) { value += other.value; return *this; }
  constexpr Quantity& operator-=(Quantity other) { value -= other.value; return *this; }

  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {static_cast<Rep>(a.value + b.value)}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {static_cast<Rep>(a.value - b.value)}; }
  friend constexpr Quantity operator*(Quantity a, Rep factor) { return {static_cast<Rep>(a.value * factor)}; }
  friend constexpr Quantity operator*(Rep factor, Quantity a) { return {static_cast<Rep>(a.value * factor)}; }
  friend constexpr Quantity operator/(Quantity a, Rep divisor) { return {static_cast<Rep>(a.value / divisor)}; }
  /// How many times b goes into a.
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value) / static_cast<double>(b.value);
  }
};

using Seconds = Quantity<struct SecondsTag>;
using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Flops = Quantity<struct FlopsTag>;                    // floating-point operations, multiply and add counted as two
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag>;  // always dense
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;  // always per direction

constexpr Seconds operator/(Flops work, FlopsPerSecond rate) { return {work.value / rate.value}; }
constexpr Seconds operator/(Bytes size, BytesPerSecond rate) { return {static_cast<double>(size.value) / rate.value}; }

constexpr double milliseconds(Seconds time) { return time.value * 1e3; }
constexpr double microseconds(Seconds time) { return time.value * 1e6; }
constexpr Seconds fromMilliseconds(double ms) { return {ms / 1e3}; }
constexpr Seconds fromMicroseconds(double us) { return {us / 1e6}; }
constexpr double gib(Bytes size) { return static_cast<double>(size.value) / (1024.0 * 1024.0 * 1024.0); }
inline Bytes fromGib(double gib) { return {static_cast<std::int64_t>(std::llround(gib * 1024.0 * 1024.0 * 1024.0))}; }
constexpr BytesPerSecond fromGbs(double gigabytesPerSecond) { return {gigabytesPerSecond * 1e9}; }
constexpr double gbs(BytesPerSecond rate) { return rate.value / 1e9; }
constexpr FlopsPerSecond fromTflops(double tflops) { return {tflops * 1e12}; }
constexpr double tflops(FlopsPerSecond rate) { return rate.value / 1e12; }

namespace literals {
constexpr Seconds operator""_s(long double value) { return {static_cast<double>(value)}; }
constexpr Seconds operator""_ms(long double value) { return {static_cast<double>(value) * 1e-3}; }
constexpr Bytes operator""_MiB(unsigned long long value) { return {static_cast<std::int64_t>(value) << 20}; }
constexpr Bytes operator""_GiB(unsigned long long value) { return {static_cast<std::int64_t>(value) << 30}; }
}  // namespace literals

}  // namespace evenkeel
