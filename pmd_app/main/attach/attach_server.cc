// SPDX-License-Identifier: BSD-3-Clause
#include "main/attach/attach_server.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <spdlog/spdlog.h>

#include "base/check.h"
#include "main/clock.h"

namespace ulc::daemon {
namespace {

constexpr Nanos kSweep = 20 * kMillisecond;
/// A call that the engine begins and does not return from, and ends of clients.
constexpr Nanos kStopMax = 2 * EngineCalls::kCallMax + 5 * kSecond;
constexpr Nanos kAcceptPause = 100 * kMillisecond;  ///< after a shortage of descriptors
constexpr int kEventsAtOnce = 32;
constexpr int kAcceptsAtOnce = 4;
constexpr int kPacketsAtOnce = 4;
/// Doorbells wake the engine by arriving. They are read now and then, so that the socket's queue
/// takes more.
constexpr Nanos kDoorbellsEvery = 60 * kMillisecond;
constexpr std::uint32_t kDoorbellsOfUser = 512;
constexpr std::uint32_t kPacketsOfTheDead = 1024;  ///< more than a socket's queue holds

// A flood of anything costs less than a twentieth of a core: passes, and the handshakes of one
// user (attach_users.cc).
constexpr std::uint32_t kPassesPermille = 15;
constexpr Nanos kPassesBurst = 100 * kMillisecond;
constexpr Nanos kPassesWaitMax = 250 * kMillisecond;

// A line has at most 400 bytes, so a flood of both fills less than 1 MB an hour.
constexpr unsigned kWarningsAtOnce = 20;
constexpr unsigned kNoticesAtOnce = 256;
constexpr Nanos kWarningsGap = 5 * kSecond;
constexpr Nanos kNoticesGap = kSecond;
constexpr Nanos kShortageGap = 60 * kSecond;

Nanos thread_time() noexcept {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<Nanos>(now.tv_sec) * kSecond + now.tv_nsec;
}

bool is_shortage(int number) {
    return number == EMFILE || number == ENFILE || number == ENOMEM || number == ENOBUFS;
}

/// Raises the soft limit of open files as far as the hard one allows, if `wanted` is more.
void allow_descriptors(std::uint64_t wanted) {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
    limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
    static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
}

int open_spare() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

AttachServer::AttachServer(AttachOptions options, EngineLoop& loop, CounterPage& counters)
    : options_(std::move(options)),
      loop_(loop),
      counters_(counters),
      upgrader_(loop),
      passes_(kPassesPermille, kPassesBurst, kPassesWaitMax),
      warnings_(kWarningsAtOnce, kWarningsGap),
      notices_(kNoticesAtOnce, kNoticesGap),
      shortages_(1, kShortageGap) {}

AttachServer::~AttachServer() { stop(); }

Err AttachServer::start(std::string& why) {
    const SocketAccess access = access_for(allow_list(), geteuid());
    if (const Err error = listener_.open(options_.socket_path, access, why); error != Err::kOk)
        return error;
    if (!listener_.note().empty()) spdlog::warn("{}", listener_.note());
    constexpr std::uint64_t kEach = 3;  // socket, memory, process
    constexpr std::uint64_t kOthers = 128;
    allow_descriptors(kEach * options_.connections_max + kOthers);
    if (!listener_.refuses_descriptors()) disposer_ = std::make_unique<Disposer>();
    epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
    stop_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    spare_fd_ = open_spare();
    ULC_CHECK(epoll_fd_ >= 0 && stop_fd_ >= 0);
    ULC_CHECK(add_watch(listener_.fd(), on_listener_) && add_watch(stop_fd_, on_stop_));
    thread_.start([this] { thread(); });
    return Err::kOk;
}

bool AttachServer::stop() {
    if (thread_.joinable()) {
        const std::uint64_t one = 1;
        static_cast<void>(!write(stop_fd_, &one, sizeof one));
        if (!thread_.join(kStopMax)) {
            spdlog::error("the thread that lets clients in does not end");
            return false;
        }
    }
    if (!upgrader_.stop()) return false;  // no other begins after the thread has ended
    listener_.close();
    for (int* fd : {&epoll_fd_, &stop_fd_, &spare_fd_}) {
        if (*fd >= 0) close(*fd);
        *fd = -1;
    }
    return true;
}

// ---------------------------------------------------------------- the thread

void AttachServer::thread() {
    static_cast<void>(pthread_setname_np(pthread_self(), "ulc-attach"));
    while (!stopping_) {
        rest();
        const bool idle = connections_.empty() && accept_again_at_ == 0 &&
                          (disposer_ == nullptr || disposer_->waiting() == 0);
        epoll_event events[kEventsAtOnce];
        const int count = epoll_wait(epoll_fd_, events, kEventsAtOnce,
                                     idle ? -1 : static_cast<int>(kSweep / kMillisecond));
        const Nanos begun = thread_time();
        charged_to_users_ = 0;
        for (int i = 0; i < count; ++i)
            on_event(*static_cast<const Watch*>(events[i].data.ptr));
        const Nanos now = monotonic_now();
        if (now >= sweep_at_) sweep(now);
        if (ended_some_) forget_gone();
        passes_.charge(thread_time() - begun - charged_to_users_);
    }
    for (const auto& connection : connections_) {
        connection->bye =
            true;  // the engine ends, not the client: what was sent is still delivered
        end(*connection);
    }
    // The engine drains; regions go with it: this object outlives the loop's run().
}

// Waits until the budget of passes has something left. Only stop() ends this early.
void AttachServer::rest() {
    for (;;) {
        const Nanos left = passes_.wait(monotonic_now());
        if (left == 0) return;
        pollfd stop{stop_fd_, POLLIN, 0};
        const timespec timeout{static_cast<time_t>(left / kSecond),
                               static_cast<long>(left % kSecond)};
        if (ppoll(&stop, 1, &timeout, nullptr) > 0) return;
    }
}

void AttachServer::on_event(const Watch& watch) {
    switch (watch.kind) {
        case Watch::Kind::kStop:
            stopping_ = true;
            return;
        case Watch::Kind::kListener:
            accept_some();
            return;
        case Watch::Kind::kSocket:
            if (watch.connection->socket < 0) return;  // ended in this pass
            if (watch.connection->state == State::kAttached) {
                on_process_end(*watch.connection);
            } else if (watch.connection->parked) {
                end(*watch.connection);
            } else {
                on_readable(*watch.connection);
            }
            return;
        case Watch::Kind::kProcess:
            if (watch.connection->socket >= 0) on_process_end(*watch.connection);
            return;
    }
}

// A client that is attached or parked is not read from when it speaks, only when it ends.
std::uint32_t AttachServer::events_of(const Watch& watch) {
    const bool ends_only =
        watch.kind == Watch::Kind::kSocket &&
        (watch.connection->parked || watch.connection->state == State::kAttached);
    return ends_only ? EPOLLRDHUP : EPOLLIN | EPOLLRDHUP;
}

bool AttachServer::add_watch(int fd, Watch& watch) {
    epoll_event event{};
    event.events = events_of(watch);
    event.data.ptr = &watch;
    return epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) == 0;
}

// Watches the socket as its state wants; one that is not watched yet is left to add_watch().
void AttachServer::arm(Connection& connection) {
    epoll_event event{};
    event.events = events_of(connection.on_socket);
    event.data.ptr = &connection.on_socket;
    static_cast<void>(epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, connection.socket, &event));
}

// ---------------------------------------------------------------- taking in

void AttachServer::accept_some() {
    for (int n = 0; n < kAcceptsAtOnce; ++n) {
        const int s = accept_one();
        if (s < 0) return;
        take_in(s);
    }
}

// Descriptors may be used up, which leaves the listener readable: it is not looked at for a while,
// and the client that waits is refused with the spare one.
int AttachServer::accept_one() {
    constexpr int kFlags = SOCK_CLOEXEC | SOCK_NONBLOCK;
    const int s = accept4(listener_.fd(), nullptr, nullptr, kFlags);
    if (s >= 0 || !is_shortage(errno)) return s;
    const std::string why = std::strerror(errno);
    if (spare_fd_ >= 0) {
        close(spare_fd_);
        Connection refused;
        refused.socket = accept4(listener_.fd(), nullptr, nullptr, kFlags);
        if (refused.socket >= 0) {
            static_cast<void>(peer_of(refused.socket, false, refused.peer));
            refuse(refused, Err::kLimit, kNoDescriptor);
            close_socket(refused.socket);
        }
    }
    spare_fd_ = open_spare();
    pause_accepting(why);
    return -1;
}

void AttachServer::pause_accepting(const std::string& why) {
    std::uint64_t left_out = 0;  // each shortage ends when a client does, so there may be many
    if (shortages_.allows(monotonic_now(), left_out) && may_warn())
        spdlog::warn("no client can be taken in: {}; raise the limit of open files (ulimit -n)",
                     why);
    accept_again_at_ = monotonic_now() + kAcceptPause;
    static_cast<void>(epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, listener_.fd(), nullptr));
}

AllowList AttachServer::allow_list() const noexcept {
    return {options_.allow_uids, options_.allow_gids, options_.allow_all};
}

void AttachServer::take_in(int socket) {
    auto connection = std::make_unique<Connection>();
    connection->socket = socket;
    connection->connected_at = boottime_now();
    connection->deadline = monotonic_now() + options_.handshake_max;
    const auto refuse_and_close = [&](Err error, const char* text) {
        refuse(*connection, error, text);
        close_socket(socket);
    };
    if (!peer_of(socket, !options_.allow_gids.empty(), connection->peer) ||
        !may_attach(allow_list(), connection->peer))
        return refuse_and_close(
            Err::kPermission,
            "this user is not in the engine's allow list; add it with --allow-uid or --allow-gid");
    const std::size_t taken = connections_.size() + (disposer_ ? disposer_->waiting() : 0);
    User& user = user_of(connection->peer.uid);
    if (taken + user.connections >= options_.connections_max)
        return refuse_and_close(
            Err::kLimit, "this user has too many connections; close some, or raise --endpoints");
    ++user.connections;
    connections_.push_back(std::move(connection));
    Connection& taken_in = *connections_.back();
    on_readable(taken_in);  // most clients have spoken already, and some have gone
    if (taken_in.state != State::kLeaving && !add_watch(taken_in.socket, taken_in.on_socket)) {
        refuse(taken_in, Err::kLimit, kNoWatch);
        end(taken_in);
    }
    if (taken_in.state == State::kHello && !taken_in.parked) expect_hello(taken_in, user);
}

// ---------------------------------------------------------------- reading

// Octets, 0 at the end, or -1 with errno. Where the kernel lets descriptors in, a packet that holds
// some is not taken: dropping them could take as long as the client wants. The peek reports them by
// MSG_CTRUNC, since it offers no buffer for them.
ssize_t AttachServer::receive(Connection& connection, void* data, std::size_t octets) {
    if (disposer_ != nullptr) {
        char octet = 0;
        iovec part{&octet, 1};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        const ssize_t n = recvmsg(connection.socket, &message, MSG_PEEK | MSG_DONTWAIT);
        if (n < 0) return n;
        if ((message.msg_flags & MSG_CTRUNC) != 0) {
            refuse(connection, Err::kInvalid, "a client sends no descriptors");
            return 0;
        }
    }
    return recv(connection.socket, data, octets, MSG_DONTWAIT);
}

void AttachServer::on_readable(Connection& connection) {
    // The next pass reads the rest.
    for (int packets = 0; packets < kPacketsAtOnce && in_handshake(connection); ++packets) {
        User& user = user_of(connection.peer.uid);
        const bool begins = connection.state == State::kHello;  // one that has begun may end
        if (const Nanos wait = begins ? wait_of(user, monotonic_now()) : 0; wait > 0) {
            if (!park(connection, user, wait)) end(connection);
            return;
        }
        char data[sizeof(abi::Hello) + 1];
        const ssize_t n = receive(connection, data, sizeof data);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        user.silent.remove(connection);
        const Nanos begun = thread_time();
        const bool goes_on = n > 0 && on_packet(connection, data, static_cast<std::size_t>(n));
        if (!goes_on) end(connection);
        charge(user, thread_time() - begun);
        if (!goes_on) return;
    }
}

// Takes packets of an attached client, at most `most`. Doorbells have done their work by arriving;
// kBye is noted. False: the client is gone.
bool AttachServer::read_doorbells(Connection& connection, std::uint32_t& most) {
    for (; most > 0; --most) {
        char data[sizeof(abi::Hello) + 1];
        const ssize_t octets = receive(connection, data, sizeof data);
        if (octets < 0) return errno == EAGAIN || errno == EINTR;
        if (octets == 0) return false;
        if (octets == 1 && static_cast<unsigned char>(data[0]) == abi::kBye) connection.bye = true;
    }
    return true;
}

// The process that connected is gone, or its end of the socket. A child of it may hold the socket.
// It may have said goodbye.
void AttachServer::on_process_end(Connection& connection) {
    std::uint32_t most = kPacketsOfTheDead;
    if (connection.state == State::kAttached) static_cast<void>(read_doorbells(connection, most));
    end(connection);
}

// ---------------------------------------------------------------- ends

void AttachServer::close_socket(int socket) {
    if (disposer_ != nullptr) {
        disposer_->close(socket);
    } else {
        close(socket);
    }
}

// If the engine's thread does not come round, forget_gone() tells it later.
void AttachServer::end(Connection& connection) {
    if (connection.state == State::kLeaving) return;
    const bool attached = connection.state == State::kAttached;
    User& user = user_of(connection.peer.uid);
    user.silent.remove(connection);
    unpark(connection, user);
    connection.bye = connection.bye && attached;
    if (attached) loop_.remove_doorbell(connection.socket);
    connection.state = State::kLeaving;
    ended_some_ = true;
    if (connection.reserved)
        connection.told = loop_.calls().run([this, e = end_of(connection)](Core& core, Nanos now) {
            core.detach(e.endpoint, e.reason, now);
            counters_.set_endpoints(core.endpoints());
        });
    static_cast<void>(epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, connection.socket, nullptr));
    release_socket(connection);
    if (connection.process >= 0) close(connection.process);
    connection.process = -1;
    const LogFields fields = fields_of(connection);
    if (attached && may_note())
        spdlog::info("client {} {}", connection.peer.pid,
                     connection.bye ? "closed" : "ended without closing");
}

// The engine lets go of the socket, into which it makes upcalls, before that is closed.
void AttachServer::release_socket(Connection& connection) {
    const bool used = connection.reserved && !connection.told && !loop_.calls().closed();
    if (connection.socket < 0 || used) return;
    close_socket(connection.socket);
    connection.socket = -1;
}

void AttachServer::sweep(Nanos now) {
    sweep_at_ = now + kSweep;
    if (disposer_ != nullptr) disposer_->nudge();
    if (accept_again_at_ != 0 && now >= accept_again_at_) {
        accept_again_at_ = 0;
        static_cast<void>(add_watch(listener_.fd(), on_listener_));
    }
    const bool read_now = now >= doorbells_at_;
    if (read_now) {
        doorbells_at_ = now + kDoorbellsEvery;
        for (auto& [uid, user] : users_)
            user.doorbells_left = kDoorbellsOfUser;
    }
    for (const auto& connection : connections_) {
        if (connection->socket < 0) continue;
        User& user = user_of(connection->peer.uid);
        if (connection->parked) {
            connection->deadline = now + options_.handshake_max;
            if (wait_of(user, now) == 0) {
                unpark(*connection, user);
                expect_hello(*connection, user);
                arm(*connection);
            }
        }
        bool over = in_handshake(*connection) && now > connection->deadline;
        if (connection->state == State::kAttached) {
            // The engine closes the endpoint of a client whose records are nonsense; a client that
            // writes this itself closes itself.
            over = static_cast<abi::EndpointControl*>(connection->region.memory())
                       ->closed.load(std::memory_order_relaxed) != 0;
            if (!over && read_now) over = !read_doorbells(*connection, user.doorbells_left);
        }
        if (over) end_late(*connection);
    }
    count_silent();
    ended_some_ = ended_some_ || std::ranges::any_of(connections_, [](const auto& connection) {
                      return connection->state == State::kLeaving;
                  });
    for (auto user = users_.begin(); user != users_.end();) {
        const bool owes = user->second.handshakes.wait(now) > 0 || !user->second.handshakes.full();
        user = user->second.connections == 0 && !owes ? users_.erase(user) : std::next(user);
    }
}

// Drops connections whose endpoint the engine has let go of. It is asked on its thread; memory is
// unmapped here, which takes system calls.
void AttachServer::forget_gone() {
    ended_some_ = false;
    struct Leaving {
        std::vector<End> ends;
        std::vector<engine::EndpointId> gone;
    };
    const auto leaving = std::make_shared<Leaving>();
    for (const auto& connection : connections_)
        if (connection->state == State::kLeaving && connection->reserved)
            leaving->ends.push_back(end_of(*connection));
    const bool asked =
        !leaving->ends.empty() && loop_.calls().run([this, leaving](Core& core, Nanos now) {
            for (const End& end : leaving->ends) {
                core.detach(end.endpoint, end.reason, now);  // again, if it was heard of
                if (core.detached(end.endpoint)) leaving->gone.push_back(end.endpoint);
            }
            counters_.set_endpoints(core.endpoints());
        });
    const auto is_gone = [&](const Connection& connection) {
        if (connection.state != State::kLeaving || !connection.reserved)
            return connection.state == State::kLeaving;
        return asked &&
               std::ranges::find(leaving->gone, connection.endpoint) != leaving->gone.end();
    };
    for (const auto& connection : connections_) {
        if (connection->state != State::kLeaving) continue;
        connection->told = connection->told || (asked && connection->reserved);
        release_socket(*connection);
    }
    std::erase_if(connections_, [&](auto& connection) {
        if (!is_gone(*connection)) return false;
        User& user = user_of(connection->peer.uid);
        --user.connections;
        const Nanos begun = thread_time();
        connection.reset();  // unmaps
        charge(user, thread_time() - begun);
        return true;
    });
}

// ---------------------------------------------------------------- the log

LogFields AttachServer::fields_of(const Connection& connection) noexcept {
    return {{"ULC_CLIENT_PID", static_cast<std::uint64_t>(connection.peer.pid)},
            {"ULC_CLIENT_UID", connection.peer.uid},
            {"ULC_ENDPOINT", connection.endpoint}};
}

bool AttachServer::may_warn() {
    std::uint64_t left_out = 0;
    if (!warnings_.allows(monotonic_now(), left_out)) return false;
    if (left_out > 0) spdlog::warn("{} more warnings about clients were left out", left_out);
    return true;
}

bool AttachServer::may_note() {
    std::uint64_t left_out = 0;
    if (!notices_.allows(monotonic_now(), left_out)) return false;
    if (left_out > 0) spdlog::info("{} more lines about clients were left out", left_out);
    return true;
}

}  // namespace ulc::daemon
