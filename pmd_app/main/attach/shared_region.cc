// SPDX-License-Identifier: BSD-3-Clause
#include "main/attach/shared_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "abi/attach.h"
#include "abi/put_text.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U  // Linux 6.3
#endif

namespace ulc::daemon {
namespace {

/// Memory that can be sealed, and where the kernel has it never be executed.
int make_memfd(const char* name) {
    constexpr unsigned kUsual = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    const int fd = memfd_create(name, kUsual | MFD_NOEXEC_SEAL);
    return fd < 0 && errno == EINVAL ? memfd_create(name, kUsual) : fd;
}

std::string reason(const char* what, const char* advice) {
    return std::string(what) + ": " + std::strerror(errno) + advice;
}

}  // namespace

SharedRegion::~SharedRegion() {
    if (memory_ != nullptr) munmap(memory_, layout_.region_octets);
    close_fd();
}

void SharedRegion::close_fd() noexcept {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
}

void SharedRegion::swap(SharedRegion& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(fd_, other.fd_);
    std::swap(locked_, other.locked_);
    std::swap(layout_, other.layout_);
}

Result<SharedRegion> SharedRegion::make(const abi::RegionLayout& layout, std::string& why) {
    SharedRegion region;
    region.layout_ = layout;
    region.fd_ = make_memfd("ulc-endpoint");
    if (region.fd_ < 0) {
        const bool used_up = errno == EMFILE || errno == ENFILE;
        why = reason("memfd_create", "; raise the limit of open files (ulimit -n)");
        return used_up ? Err::kLimit : Err::kSystem;
    }
    if (ftruncate(region.fd_, static_cast<off_t>(layout.region_octets)) != 0) {
        why =
            reason("ftruncate of an endpoint's memory", "; free memory or ask for smaller arenas");
        return Err::kNoMemory;
    }
    // Before anybody else has the descriptor.
    if (fcntl(region.fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
        why = reason("sealing an endpoint's memory", "");
        return Err::kSystem;
    }
    void* memory =
        mmap(nullptr, layout.region_octets, PROT_READ | PROT_WRITE, MAP_SHARED, region.fd_, 0);
    if (memory == MAP_FAILED) {
        why = reason("mmap of an endpoint's memory", "; free memory or ask for smaller arenas");
        return Err::kNoMemory;
    }
    region.memory_ = memory;
    return region;
}

Err SharedRegion::seal_and_populate(std::string& why) {
    constexpr int kSeals = F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
    if (fcntl(fd_, F_ADD_SEALS, kSeals) != 0) {
        why = reason("sealing an endpoint's memory", "; this needs Linux 5.1 or later");
        return Err::kSystem;
    }
    if (madvise(memory_, layout_.region_octets, MADV_POPULATE_WRITE) != 0 && errno != EINVAL) {
        why = reason("populating an endpoint's memory", "; free memory or ask for smaller arenas");
        return Err::kNoMemory;
    }
    locked_ = mlock(memory_, layout_.region_octets) == 0;
    return Err::kOk;
}

int make_stream_page(std::span<const abi::StreamRow> rows, std::size_t all) noexcept {
    abi::StreamPageHeader header{};
    header.magic = abi::kStreamPageMagic;
    header.version = abi::kStreamPageVersion;
    header.count = static_cast<std::uint32_t>(rows.size());
    header.all = static_cast<std::uint32_t>(std::min<std::size_t>(all, UINT32_MAX));
    header.engine_pid = static_cast<std::uint32_t>(getpid());
    const int fd = make_memfd("ulc-streams");
    if (fd < 0) return -1;
    const auto octets = static_cast<ssize_t>(rows.size_bytes());
    const bool whole =
        write(fd, &header, sizeof header) == ssize_t{sizeof header} &&
        write(fd, rows.data(), rows.size_bytes()) == octets &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0;
    if (whole) return fd;
    close(fd);
    return -1;
}

CounterPage::~CounterPage() {
    if (memory_ != nullptr) munmap(memory_, octets_);
    if (fd_ >= 0) close(fd_);
}

Err CounterPage::make(const std::string& ports, std::string& why) {
    using abi::CounterPageHeader;
    constexpr std::uint32_t kNames = sizeof(CounterPageHeader);
    constexpr std::uint32_t kValues =
        (kNames + kCounterCount * abi::kCounterNameOctets + kCacheLine - 1) / kCacheLine *
        kCacheLine;
    constexpr std::uint32_t kRows =
        (kValues + sizeof(Counters) + kCacheLine - 1) / kCacheLine * kCacheLine;
    octets_ = kRows + abi::kRowsMax * sizeof(abi::EndpointRow);
    fd_ = make_memfd("ulc-counters");
    if (fd_ < 0 || ftruncate(fd_, octets_) != 0) {
        why = reason("making the counter page", "");
        return Err::kSystem;
    }
    void* memory = mmap(nullptr, octets_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (memory == MAP_FAILED) {
        why = reason("mapping the counter page", "");
        return Err::kNoMemory;
    }
    memory_ = memory;
    static_cast<void>(
        fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL));

    auto* header = ::new (memory_) CounterPageHeader{};
    header->version = abi::kCounterPageVersion;
    header->count = kCounterCount;
    header->names_offset = kNames;
    header->values_offset = kValues;
    header->rows_offset = kRows;
    header->engine_pid = static_cast<std::uint32_t>(getpid());
    put_text(header->ports, ports);
    char* names = static_cast<char*>(memory_) + kNames;
    for (const CounterInfo& info : kCounterInfo) {
        static_cast<void>(info.id.copy(names, abi::kCounterNameOctets - 1));
        names += abi::kCounterNameOctets;
    }
    counters_ = ::new (static_cast<char*>(memory_) + kValues) Counters;
    std::atomic_ref<std::uint64_t>(header->magic)
        .store(abi::kCounterPageMagic, std::memory_order_release);
    return Err::kOk;
}

int CounterPage::open_read_only() const noexcept {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd_);
    return open(path, O_RDONLY | O_CLOEXEC);
}

void CounterPage::set_endpoints(std::uint32_t endpoints) noexcept {
    auto* header = static_cast<abi::CounterPageHeader*>(memory_);
    std::atomic_ref<std::uint32_t>(header->endpoints).store(endpoints, std::memory_order_relaxed);
}

void CounterPage::set_rows(std::span<const abi::EndpointRow> rows) noexcept {
    auto* header = static_cast<abi::CounterPageHeader*>(memory_);
    const std::atomic_ref<std::uint32_t> sequence(header->rows_sequence);
    const std::uint32_t before = sequence.load(std::memory_order_relaxed);
    sequence.store(before + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);  // with the reader's acquire fence
    const auto count =
        static_cast<std::uint32_t>(std::min<std::size_t>(rows.size(), abi::kRowsMax));
    auto* to = reinterpret_cast<std::uint32_t*>(static_cast<char*>(memory_) + header->rows_offset);
    const auto* from = reinterpret_cast<const std::uint32_t*>(rows.data());
    const std::size_t words = count * (sizeof(abi::EndpointRow) / sizeof(std::uint32_t));
    for (std::size_t i = 0; i < words; ++i)
        std::atomic_ref<std::uint32_t>(to[i]).store(from[i], std::memory_order_relaxed);
    std::atomic_ref<std::uint32_t>(header->rows).store(count, std::memory_order_relaxed);
    sequence.store(before + 2, std::memory_order_release);  // with the reader's first load
}

}  // namespace ulc::daemon
