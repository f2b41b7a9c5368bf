// SPDX-License-Identifier: BSD-3-Clause
#include "client/near/near_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <new>

#include "base/process_start.h"

namespace ulc::client {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// Closes a descriptor at the end of its scope.
struct Descriptor {
    int number;
    ~Descriptor() {
        if (number >= 0) ::close(number);
    }
};

std::byte* map_descriptor(int descriptor) noexcept {
    // A child of fork() keeps the mapping, so that ulc_close() there unmaps this and nothing else.
    void* memory = ::mmap(nullptr, kNearBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

/// True if the number means the process that the engine saw, not one that came after it.
bool is_there(const abi::ProcessRow& row) noexcept {
    return row.start_ticks != 0 && process_start_ticks(row.pid) == row.start_ticks;
}

bool sees(const abi::NearRows& rows) noexcept {
    return rows.self.pid == static_cast<std::uint32_t>(::getpid()) && is_there(rows.self) &&
           rows.peer.uid == rows.self.uid && is_there(rows.peer);
}

/// True if a file, opened as a path, is kernel memory. All such memory is on one device, which no
/// user can imitate. Asks no file system: a hostile one (FUSE) never answers.
bool is_kernel_memory(int path) noexcept {
    const Descriptor own{::memfd_create("ulc-near", MFD_CLOEXEC)};
    struct stat memory {};
    struct statx found {};
    constexpr int kAsk = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
    if (path < 0 || own.number < 0 || ::fstat(own.number, &memory) != 0 ||
        ::statx(path, "", kAsk, STATX_TYPE, &found) != 0)
        return false;
    return makedev(found.stx_dev_major, found.stx_dev_minor) == memory.st_dev &&
           S_ISREG(found.stx_mode);
}

/// True if the memory has a ring's size for good. The seals are read first: before, its owner can
/// still shrink it.
bool keeps_its_size(int memory) noexcept {
    struct stat found {};
    const int seals = ::fcntl(memory, F_GET_SEALS);  // the kernel may have added some
    return seals >= 0 && (seals & kSeals) == kSeals && ::fstat(memory, &found) == 0 &&
           found.st_size == static_cast<off_t>(kNearBytes);
}

void unmap(std::byte* memory) noexcept { ::munmap(memory, kNearBytes); }

std::byte* make(NearOffer& offer) noexcept {
    NearToken token;
    if (::getrandom(token.data(), token.size(), GRND_NONBLOCK) !=
        static_cast<ssize_t>(token.size()))
        return nullptr;
    Descriptor made{::memfd_create("ulc-near", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    if (made.number < 0 || ::ftruncate(made.number, kNearBytes) != 0 ||
        ::fcntl(made.number, F_ADD_SEALS, kSeals) != 0)
        return nullptr;
    std::byte* memory = map_descriptor(made.number);
    if (memory == nullptr) return nullptr;
    auto* control = ::new (static_cast<void*>(memory)) NearControl{};
    control->token = token;
    control->magic = kNearMagic;
    offer.descriptor = static_cast<std::uint32_t>(made.number);
    offer.token = token;
    made.number = -1;
    return memory;
}

std::byte* map(const abi::ProcessRow& owner, const NearOffer& offer) noexcept {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%u/fd/%u", unsigned{owner.pid},
                  unsigned{offer.descriptor});
    // The name may mean anything: opening a device has effects, and opening a pipe waits.
    const Descriptor named{::open(path, O_PATH | O_CLOEXEC)};
    // A process that still has its number now had it when the path was opened.
    if (!is_kernel_memory(named.number) || !is_there(owner)) return nullptr;
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", named.number);
    const Descriptor opened{::open(path, O_RDWR | O_CLOEXEC)};
    if (opened.number < 0 || !keeps_its_size(opened.number)) return nullptr;
    std::byte* memory = map_descriptor(opened.number);
    if (memory == nullptr) return nullptr;
    const auto* control = reinterpret_cast<const NearControl*>(memory);
    if (control->magic == kNearMagic && control->token == offer.token) return memory;
    unmap(memory);
    return nullptr;
}

void hide(const NearOffer& offer) noexcept { ::close(static_cast<int>(offer.descriptor)); }

}  // namespace

const NearMemory& kernel_memory() noexcept {
    static constexpr NearMemory kKernel{sees, make, map, hide, unmap};
    return kKernel;
}

}  // namespace ulc::client
