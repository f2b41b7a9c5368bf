// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/watch/counter_page.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "abi/attach.h"
#include "tools/ulc/engine_socket.h"
#include "tools/ulc/programs.h"

namespace ulc::tools {
CounterPage::~CounterPage() {
    if (page_ != nullptr) ::munmap(const_cast<unsigned char*>(page_), octets_);
}

bool CounterPage::open(const std::string& socket, std::string* error) {
    Descriptor memory;
    return ask_for_page(socket, abi::HelloKind::kCounters, &memory, error) &&
           map(memory.get(), error);
}

bool CounterPage::map(int fd, std::string* error) {
    // Headers of other versions have other lengths.
    constexpr std::size_t kVersionEnd = offsetof(abi::CounterPageHeader, count);
    struct stat info {};
    *error = "the engine's counter page is malformed; restart that engine";
    const int seals = ::fcntl(fd, F_GET_SEALS);  // before the size, which may change until then
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(fd, &info) != 0 ||
        info.st_size < static_cast<off_t>(kVersionEnd))
        return false;
    octets_ = static_cast<std::size_t>(info.st_size);
    void* memory = ::mmap(nullptr, octets_, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return false;
    page_ = static_cast<const unsigned char*>(memory);
    abi::CounterPageHeader header{};
    std::memcpy(&header, page_, std::min(sizeof header, octets_));
    if (header.magic == abi::kCounterPageMagic && header.version != abi::kCounterPageVersion) {
        *error = fmt::format(
            "the engine's counter page has version {}, this ulc reads version {}; use the ulc that "
            "was installed with the engine",
            header.version, abi::kCounterPageVersion);
        return false;
    }
    const std::uint64_t names_end =
        header.names_offset + std::uint64_t{header.count} * abi::kCounterNameOctets;
    const std::uint64_t values_end =
        header.values_offset + std::uint64_t{header.count} * sizeof(std::uint64_t);
    const std::uint64_t rows_end =
        header.rows_offset + std::uint64_t{abi::kRowsMax} * sizeof(abi::EndpointRow);
    if (header.magic != abi::kCounterPageMagic || octets_ < sizeof header || names_end > octets_ ||
        values_end > octets_ || rows_end > octets_ ||
        header.values_offset % sizeof(std::uint64_t) != 0 ||
        header.rows_offset % sizeof(std::uint64_t) != 0) {
        return false;
    }
    values_offset_ = header.values_offset;
    rows_offset_ = header.rows_offset;
    for (std::uint32_t i = 0; i < header.count; ++i) {
        const auto* name = reinterpret_cast<const char*>(page_) + header.names_offset +
                           i * abi::kCounterNameOctets;
        names_.emplace_back(name, ::strnlen(name, abi::kCounterNameOctets));
    }
    error->clear();
    return true;
}

std::vector<std::uint64_t> CounterPage::values() const {
    std::vector<std::uint64_t> out(names_.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
        // Pairs with the engine's relaxed stores: nothing is ordered, each value is whole.
        auto* cell = reinterpret_cast<const std::uint64_t*>(page_ + values_offset_) + i;
        out[i] = __atomic_load_n(cell, __ATOMIC_RELAXED);
    }
    return out;
}

std::vector<abi::EndpointRow> CounterPage::rows() const {
    const auto* header = reinterpret_cast<const abi::CounterPageHeader*>(page_);
    const auto* from = reinterpret_cast<const std::uint32_t*>(page_ + rows_offset_);
    std::vector<abi::EndpointRow> out;
    // The engine writes rows at most ten times a second: the second attempt succeeds.
    for (int attempt = 0; attempt < 100; ++attempt) {
        const std::uint32_t before = __atomic_load_n(&header->rows_sequence, __ATOMIC_ACQUIRE);
        out.resize(std::min(__atomic_load_n(&header->rows, __ATOMIC_RELAXED), abi::kRowsMax));
        auto* to = reinterpret_cast<std::uint32_t*>(out.data());
        const std::size_t words = out.size() * (sizeof(abi::EndpointRow) / sizeof *to);
        for (std::size_t i = 0; i < words; ++i)
            to[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);  // with the release fence of the engine's set_rows
        const std::uint32_t after = __atomic_load_n(&header->rows_sequence, __ATOMIC_RELAXED);
        if (before % 2 == 0 && before == after) return out;
    }
    return {};
}

unsigned CounterPage::engine_pid() const {
    return reinterpret_cast<const abi::CounterPageHeader*>(page_)->engine_pid;
}

unsigned CounterPage::endpoints() const {
    return __atomic_load_n(&reinterpret_cast<const abi::CounterPageHeader*>(page_)->endpoints,
                           __ATOMIC_RELAXED);
}

std::string CounterPage::ports() const {
    const auto& ports = reinterpret_cast<const abi::CounterPageHeader*>(page_)->ports;
    return {ports, ::strnlen(ports, sizeof ports)};
}

bool CounterPage::engine_lives() const {
    return ::kill(static_cast<pid_t>(engine_pid()), 0) == 0 || errno == EPERM;
}

CounterInfo info_of(const std::string& name) {
    const auto* found = std::find_if(std::begin(kCounterInfo), std::end(kCounterInfo),
                                     [&](const CounterInfo& c) { return c.id == name; });
    return found == std::end(kCounterInfo) ? CounterInfo{name, "", ""} : *found;
}

std::string counter_socket(const std::string& named, std::string* error) {
    std::string socket = named.empty() ? environment_of("ULC_ENGINE") : named;
    if (socket.empty()) socket = abi::kDefaultSocketPath;
    if (socket.starts_with("embedded:")) {
        *error = "an engine inside an application has no socket; name the socket of a ulc-engine";
        return {};
    }
    return socket;
}

}  // namespace ulc::tools
