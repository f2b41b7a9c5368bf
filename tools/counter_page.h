// An engine's counters, read from outside without stopping it: Hello(kCounters) on its socket brings a read-only memfd.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ulc::tools {

class CounterPage {
public:
    CounterPage() = default;
    ~CounterPage();
    CounterPage(const CounterPage&) = delete;
    CounterPage& operator=(const CounterPage&) = delete;

    /// False: `error` says what was wrong and what to do. The page stays readable after the engine has gone.
    [[nodiscard]] bool open(const std::string& socket, std::string* error);

    [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
    /// In the order of names(). Each value whole, not of a common instant.
    [[nodiscard]] std::vector<std::uint64_t> values() const;
    [[nodiscard]] unsigned engine_pid() const;
    [[nodiscard]] unsigned endpoints() const;
    [[nodiscard]] std::string ports() const;
    [[nodiscard]] bool engine_lives() const;

private:
    [[nodiscard]] bool map(int fd, std::string* error);

    const unsigned char* page_ = nullptr;
    std::size_t octets_ = 0;
    std::uint32_t values_offset_ = 0;
    std::vector<std::string> names_;
};

}  // namespace ulc::tools
