// SPDX-License-Identifier: BSD-3-Clause
// The octets of a fuzz target, read one value after the other. At their end all values are 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace ulc::fuzz {

class Input {
public:
    Input(const std::uint8_t* data, std::size_t size) : at_(data), left_(size) {}

    [[nodiscard]] bool done() const { return left_ == 0; }
    void read(void* out, std::size_t octets) {
        const std::size_t n = octets < left_ ? octets : left_;
        std::memset(out, 0, octets);
        if (n > 0) std::memcpy(out, at_, n);
        at_ += n;
        left_ -= n;
    }
    template <typename T>
    T get() {
        T value;
        read(&value, sizeof value);
        return value;
    }
    std::uint8_t octet() { return get<std::uint8_t>(); }
    /// Returns a value below the bound, of one octet.
    std::uint8_t below(unsigned bound) { return static_cast<std::uint8_t>(octet() % bound); }
    /// Returns the next octets, at most as many as are left.
    std::span<const std::uint8_t> take(std::size_t octets) {
        const std::size_t n = octets < left_ ? octets : left_;
        const std::span taken(at_, n);
        at_ += n;
        left_ -= n;
        return taken;
    }
    /// Returns all that is left, as text.
    std::string_view text() {
        const std::span all = take(left_);
        return {reinterpret_cast<const char*>(all.data()), all.size()};
    }

private:
    const std::uint8_t* at_;
    std::size_t left_;
};

}  // namespace ulc::fuzz
