// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/quirks/memif_guard.h"

#include <elf.h>
#include <link.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <mutex>

#include "base/check.h"

namespace ulc::dpdk {
namespace {

constexpr std::size_t kBurstMarksMax = 256;
constexpr int kYieldsBeforeNap = 100;
constexpr const char* kDriver = "librte_net_memif";

std::mutex g_mutex;
std::array<BurstMark*, kBurstMarksMax> g_marks{};

#if defined(__x86_64__)
constexpr unsigned kJumpSlot = R_X86_64_JUMP_SLOT;
constexpr unsigned kGlobData = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr unsigned kJumpSlot = R_AARCH64_JUMP_SLOT;
constexpr unsigned kGlobData = R_AARCH64_GLOB_DAT;
#else
constexpr unsigned kJumpSlot = 0;
constexpr unsigned kGlobData = 0;
#endif

/// Returns when every poller has been outside a burst since the call. A poller never blocks inside
/// one, so this ends. The caller is EAL's interrupt thread, or a poller (outside) that closes its
/// port.
void wait_outside_bursts() {
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    const std::lock_guard lock(g_mutex);
    for (const BurstMark* mark : g_marks) {
        for (int turns = 0; mark != nullptr && mark->inside(); ++turns) {
            if (turns < kYieldsBeforeNap) {
                sched_yield();
            } else {
                const timespec nap{.tv_sec = 0, .tv_nsec = 50'000};
                nanosleep(&nap, nullptr);
            }
        }
    }
}

int munmap_outside_bursts(void* address, std::size_t length) {
    wait_outside_bursts();
    return munmap(address, length);
}

/// Reports success for a message to a peer that has hung up. If its greeting cannot be sent, the
/// driver frees a connection that its interrupt thread still watches, and the process aborts.
/// With this result the driver reads the end of the connection and closes it.
ssize_t sendmsg_to_peer(int fd, const msghdr* message, int flags) {
    const ssize_t sent = sendmsg(fd, message, flags | MSG_NOSIGNAL);
    if (sent >= 0 || (errno != EPIPE && errno != ECONNRESET && errno != ENOTCONN)) return sent;
    ssize_t octets = 0;
    for (std::size_t i = 0; i < message->msg_iovlen; ++i)
        octets += static_cast<ssize_t>(message->msg_iov[i].iov_len);
    return octets;
}

/// Makes a socket file to which only its owner may connect: a peer of memif maps memory of this
/// process. The mode of the socket before bind() becomes the mode of the file, at no moment wider.
int bind_for_owner(int fd, const sockaddr* address, socklen_t length) {
    fchmod(fd, S_IRUSR | S_IWUSR);
    return bind(fd, address, length);
}

struct Import {
    const char* name;
    void* replacement;
};
const std::array<Import, 3> kImports{{
    {"munmap", reinterpret_cast<void*>(&munmap_outside_bursts)},
    {"sendmsg", reinterpret_cast<void*>(&sendmsg_to_peer)},
    {"bind", reinterpret_cast<void*>(&bind_for_owner)},
}};

struct Image {
    const ElfW(Rela) * relocations[2] = {nullptr, nullptr};
    std::size_t counts[2] = {0, 0};
    const ElfW(Sym) * symbols = nullptr;
    const char* strings = nullptr;
};

/// Returns the dynamic section's tables. glibc has already made their addresses absolute.
Image read_dynamic(const dl_phdr_info& info) {
    Image image;
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        if (info.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        const auto* entry =
            reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; ++entry) {
            const auto value = entry->d_un.d_ptr;
            if (entry->d_tag == DT_JMPREL)
                image.relocations[0] = reinterpret_cast<const ElfW(Rela)*>(value);
            if (entry->d_tag == DT_PLTRELSZ) image.counts[0] = value / sizeof(ElfW(Rela));
            if (entry->d_tag == DT_RELA)
                image.relocations[1] = reinterpret_cast<const ElfW(Rela)*>(value);
            if (entry->d_tag == DT_RELASZ) image.counts[1] = value / sizeof(ElfW(Rela));
            if (entry->d_tag == DT_SYMTAB)
                image.symbols = reinterpret_cast<const ElfW(Sym)*>(value);
            if (entry->d_tag == DT_STRTAB) image.strings = reinterpret_cast<const char*>(value);
        }
    }
    return image;
}

bool redirect(void** slot, void* replacement) {
    const auto page_size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    auto* page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(slot) & ~(page_size - 1));
    if (mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) return false;
    *slot = replacement;
    // The page is read-only after relocation in a hardened build; in another, it must stay
    // writable.
    return true;
}

/// Callback of dl_iterate_phdr: 1 when the driver was found and its imports redirected.
int patch_driver(dl_phdr_info* info, std::size_t /*size*/, void* /*context*/) {
    if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, kDriver) == nullptr) return 0;
    const Image image = read_dynamic(*info);
    if (image.symbols == nullptr || image.strings == nullptr) return 0;
    std::size_t redirected = 0;
    for (int table = 0; table < 2; ++table) {
        for (std::size_t i = 0; image.relocations[table] != nullptr && i < image.counts[table];
             ++i) {
            const ElfW(Rela)& relocation = image.relocations[table][i];
            const auto type = ELF64_R_TYPE(relocation.r_info);
            if (type != kJumpSlot && type != kGlobData) continue;
            const ElfW(Sym)& symbol = image.symbols[ELF64_R_SYM(relocation.r_info)];
            for (const Import& import : kImports) {
                if (std::strcmp(image.strings + symbol.st_name, import.name) != 0) continue;
                void* slot = reinterpret_cast<void*>(info->dlpi_addr + relocation.r_offset);
                if (redirect(static_cast<void**>(slot), import.replacement)) ++redirected;
            }
        }
    }
    return redirected >= kImports.size() ? 1 : 0;
}

}  // namespace

BurstMark::BurstMark() {
    const std::lock_guard lock(g_mutex);
    for (BurstMark*& slot : g_marks) {
        if (slot != nullptr) continue;
        slot = this;
        return;
    }
    ULC_CHECK(!"more ports than kBurstMarksMax");
}

BurstMark::~BurstMark() {
    const std::lock_guard lock(g_mutex);
    for (BurstMark*& slot : g_marks) {
        if (slot == this) slot = nullptr;
    }
}

bool guard_memif() {
    static const bool installed =
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
        dl_iterate_phdr(patch_driver, nullptr) == 1;
    return installed;
}

}  // namespace ulc::dpdk
