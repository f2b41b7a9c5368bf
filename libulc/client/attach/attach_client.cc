// SPDX-License-Identifier: BSD-3-Clause
#include "client/attach/attach_client.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "abi/attach.h"
#include "client/answers.h"
#include "client/attach/fork_guard.h"
#include "client/attach/waiting.h"
#include "client/error_text.h"

namespace ulc::client {
namespace {

constexpr int kStepSeconds = 5;        ///< for an answer of a running engine
constexpr int kLookMilliseconds = 50;  ///< without an answer: check whether it is stopped

/// Socket and mapping of one endpoint.
struct Attachment {
    int socket = -1;
    void* memory = nullptr;
    std::uint64_t octets = 0;

    Attachment() = default;
    Attachment(const Attachment&) = delete;
    Attachment& operator=(const Attachment&) = delete;
    ~Attachment() {
        if (memory != nullptr) munmap(memory, octets);
        if (socket >= 0) close(socket);
    }
};

/// The context of the hooks of one endpoint. Its guard is destroyed before the descriptor that it
/// closes.
struct Link : Attachment {
    ulc_endpoint* endpoint = nullptr;
    ForkGuard guard{in_child, this};

    /// Makes the socket show the engine the end of the parent, and keeps the child off the rings.
    static void in_child(void* context) noexcept {
        auto* link = static_cast<Link*>(context);
        if (link->socket >= 0) close(std::exchange(link->socket, -1));
        if (link->memory != nullptr &&
            mmap(link->memory, link->octets, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED)
            munmap(link->memory, link->octets);
        if (link->endpoint != nullptr) link->endpoint->abandon();
    }
};

void ring(void* context) noexcept {
    const unsigned char octet = abi::kDoorbell;
    // The engine has yet to read a full socket, so it will wake.
    static_cast<void>(
        send(static_cast<Link*>(context)->socket, &octet, 1, MSG_DONTWAIT | MSG_NOSIGNAL));
}

/// Takes upcalls (kUpcall), whose arrival was their purpose.
bool engine_alive(void* context) noexcept {
    for (;;) {
        char octet = 0;
        const ssize_t n = recv(static_cast<Link*>(context)->socket, &octet, 1, MSG_DONTWAIT);
        if (n > 0 || (n < 0 && errno == EINTR)) continue;
        return n < 0 && errno == EAGAIN;
    }
}

/// Makes a byte on the socket, which the engine uses only for upcalls, raise the signal at this
/// thread.
int interrupts(void* context, bool on) noexcept {
    const int socket = static_cast<Link*>(context)->socket;
    const int flags = fcntl(socket, F_GETFL);
    const f_owner_ex owner{F_OWNER_TID, gettid()};
    const bool done = flags >= 0 &&
                      (!on || (fcntl(socket, F_SETOWN_EX, &owner) == 0 &&
                               fcntl(socket, F_SETSIG, kUpcallSignal) == 0)) &&
                      fcntl(socket, F_SETFL, on ? flags | O_ASYNC : flags & ~O_ASYNC) == 0;
    if (done) return 0;
    set_last_error("the socket of the engine takes no owner of its signals: errno %d", errno);
    return static_cast<int>(Err::kSystem);
}

void close_in_order(void* context) noexcept {
    auto* link = static_cast<Link*>(context);
    const unsigned char octet = abi::kBye;
    static_cast<void>(send(link->socket, &octet, 1, MSG_DONTWAIT | MSG_NOSIGNAL));
    delete link;
}

Err connect_to(const char* path, Link& link) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (std::strlen(path) >= sizeof address.sun_path) {
        set_last_error("%s: the socket path is longer than %zu octets", path,
                       sizeof address.sun_path - 1);
        return Err::kInvalid;
    }
    std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    link.socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (link.socket < 0) {
        set_last_error("socket: errno %d; raise the limit of open files (ulimit -n)", errno);
        return Err::kSystem;
    }
    const timeval limit{kStepSeconds, 0};
    const timeval look{0, kLookMilliseconds * 1000};
    static_cast<void>(setsockopt(link.socket, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look));
    static_cast<void>(setsockopt(link.socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit));
    if (connect(link.socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
        return Err::kOk;
    switch (errno) {
        case EACCES:
        case EPERM:
            set_last_error(
                "%s: not permitted; add this user to the engine's allow list with --allow-uid or "
                "--allow-gid",
                path);
            return Err::kPermission;
        case ENOENT:
            set_last_error("%s: no such socket; start ulc-engine, or set ULC_ENGINE to its socket",
                           path);
            return Err::kNoEngine;
        case ECONNREFUSED:
            if (struct stat info{}; stat(path, &info) == 0 && !S_ISSOCK(info.st_mode)) {
                set_last_error("%s: this is no socket; set ULC_ENGINE to that of a ulc-engine",
                               path);
                return Err::kNoEngine;
            }
            set_last_error(
                "%s: no process listens there, its engine has ended; start ulc-engine again", path);
            return Err::kNoEngine;
        case EPROTOTYPE:
            set_last_error("%s: this is not an engine's socket", path);
            return Err::kNoEngine;
        default:
            set_last_error("%s: connect failed with errno %d", path, errno);
            return Err::kNoEngine;
    }
}

/// Returns the process that listens at the other end of a socket if it is stopped (SIGSTOP or a
/// debugger); 0 if it runs or is not visible here.
pid_t stopped_peer(int socket) {
    ucred peer{};
    socklen_t octets = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &octets) != 0 || peer.pid <= 0) return 0;
    char path[40];
    std::snprintf(path, sizeof path, "/proc/%d/stat", int{peer.pid});
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    char text[200] = "";
    const ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    // PID (NAME) STATE …, where NAME may contain anything.
    const char* behind_name = n > 0 ? std::strrchr(text, ')') : nullptr;
    if (behind_name == nullptr || behind_name[1] != ' ') return 0;
    return behind_name[2] == 'T' || behind_name[2] == 't' ? peer.pid : 0;
}

/// Receives one packet and, if it brings one, a descriptor. Returns bytes, or -1.
ssize_t receive_packet(int socket, void* data, std::size_t octets, int& fd) {
    iovec part{data, octets};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t n = -1;
    for (int looks = kStepSeconds * 1000 / kLookMilliseconds; looks > 0;) {
        n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
        if (n >= 0 || (errno != EINTR && errno != EAGAIN)) break;
        if (errno == EINTR) continue;
        --looks;
        if (stopped_peer(socket) != 0) {
            errno = EAGAIN;
            break;
        }
        errno = EAGAIN;
    }
    // The engine refused and closed before it had read our message: the refusal follows this error.
    if (n < 0 && errno == ECONNRESET) n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (n < 0) return n;
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof fd))
        std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return n;
}

Err no_answer(const char* path, int socket, ssize_t n) {
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        if (const pid_t pid = stopped_peer(socket); pid != 0) {
            set_last_error("%s: the engine (process %d) is stopped; continue it with kill -CONT %d",
                           path, int{pid}, int{pid});
            return Err::kTimeout;
        }
        set_last_error("%s: the engine did not answer within %d s", path, kStepSeconds);
        return Err::kTimeout;
    }
    if (n <= 0) {
        set_last_error("%s: the engine closed the connection; its log says why", path);
        return Err::kNoEngine;
    }
    set_last_error("%s: the answer is not that of an engine of this version", path);
    return Err::kVersion;
}

template <typename Reply>
Err refused(const char* path, const Reply& reply) {
    const std::string_view text = sentence(reply);
    set_last_error("%s: %.*s", path, static_cast<int>(text.size()), text.data());
    return refusal(reply.status);
}

Err map_region(const char* path, const abi::Offer& offer, int fd, Link& link) {
    const int seals = fcntl(fd, F_GET_SEALS);  // before the size, which may change until then
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
        set_last_error(
            "%s: the engine may cut off the memory that it gave; restart it, so that it "
            "has the version of libulc",
            path);
        return Err::kVersion;
    }
    struct stat info {};
    const std::uint64_t octets = fstat(fd, &info) == 0 ? octets_to_map(offer, info.st_size) : 0;
    if (octets == 0) {
        set_last_error("%s: the engine's layout does not fit the memory that it gave", path);
        return Err::kCorrupt;
    }
    void* memory = mmap(nullptr, octets, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        set_last_error("mapping %llu octets of endpoint memory failed with errno %d",
                       static_cast<unsigned long long>(octets), errno);
        return Err::kNoMemory;
    }
    link.memory = memory;
    link.octets = octets;
    const Err error = abi::validate_control(*static_cast<const abi::EndpointControl*>(memory));
    if (error != Err::kOk)
        set_last_error("%s: the control page is not that of this version of libulc", path);
    return error;
}

Err handshake(const char* path, const char* net, const Limits& limits, Link& link,
              abi::RegionLayout& layout) {
    abi::Hello hello{};
    hello.magic = abi::kHelloMagic;
    hello.abi_version = abi::kAbiVersion;
    hello.kind = abi::HelloKind::kAttach;
    hello.client_pid = static_cast<std::uint32_t>(getpid());
    hello.wanted = {0, 0, limits.offload != 0 ? kOffloadArenaOctets : 0, 0};
    std::strncpy(hello.net, net, sizeof hello.net - 1);
    // EPIPE: the engine has answered already, and refused.
    if (send(link.socket, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello && errno != EPIPE)
        return no_answer(path, link.socket, 0);

    abi::Offer offer{};
    int fd = -1;
    ssize_t n = receive_packet(link.socket, &offer, sizeof offer, fd);
    Err error = Err::kOk;
    if (!is_answer(offer, n)) {
        error = no_answer(path, link.socket, n);
    } else if (offer.status != 0 || fd < 0) {
        error = refused(path, offer);
    } else {
        error = map_region(path, offer, fd, link);
        layout = offer.layout;
    }
    if (fd >= 0) close(fd);
    if (error != Err::kOk) return error;

    const abi::Mapped mapped{abi::kHelloMagic, 0};
    if (send(link.socket, &mapped, sizeof mapped, MSG_NOSIGNAL) != sizeof mapped)
        return no_answer(path, link.socket, 0);
    abi::Ready ready{};
    n = receive_packet(link.socket, &ready, sizeof ready, fd);
    if (!is_answer(ready, n)) return no_answer(path, link.socket, n);
    if (ready.status != 0) return refused(path, ready);
    return Err::kOk;
}

}  // namespace

Result<std::unique_ptr<ulc_endpoint>> attach_daemon(const char* path, const char* net,
                                                    const Limits& limits) {
    std::unique_ptr<Link> link(new (std::nothrow) Link);
    if (!link) return Err::kNoMemory;
    abi::RegionLayout layout{};
    Err error = connect_to(path, *link);
    if (error == Err::kOk) error = handshake(path, net, limits, *link, layout);
    if (error != Err::kOk) return error;

    Hooks hooks;
    hooks.context = link.get();
    hooks.wake_engine = ring;
    hooks.sleep = futex_sleep;
    hooks.yield = yield_core;
    hooks.engine_alive = engine_alive;
    hooks.interrupts = interrupts;
    hooks.take_interrupt = engine_alive;
    hooks.now = monotonic_now;
    hooks.close = close_in_order;
    auto endpoint = make_endpoint(abi::Region(link->memory, layout), hooks, limits);
    if (!endpoint) {
        set_last_error("memory is exhausted");
        return Err::kNoMemory;
    }
    link->endpoint = endpoint.get();
    static_cast<void>(link.release());  // hooks.close has it
    return endpoint;
}

}  // namespace ulc::client
