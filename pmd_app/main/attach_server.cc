#include "main/attach_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <spdlog/spdlog.h>

#include "base/check.h"
#include "main/clock.h"

namespace ulc::daemon {
namespace {

constexpr int kSweepMilliseconds = 20;

/// One packet with an optional descriptor. Never blocks; false: the client is not listening.
bool send_packet(int socket, const void* data, std::size_t octets, int fd = -1) {
    iovec part{const_cast<void*>(data), octets};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
    if (fd >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof fd);
        std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(octets);
}

template <typename Reply>
Reply reply_with(Err error, const std::string& text) {
    Reply reply{};
    reply.magic = abi::kHelloMagic;
    reply.status = static_cast<std::int32_t>(error);
    std::strncpy(reply.text, text.c_str(), sizeof reply.text - 1);
    return reply;
}

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    return address;
}

bool somebody_listens(const sockaddr_un& address) {
    const int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int status = connect(s, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    const bool refused = status != 0 && (errno == ECONNREFUSED || errno == ENOENT);
    close(s);
    return !refused;
}

void watch(int epoll_fd, int fd, void* context) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.ptr = context;
    ULC_CHECK(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0);
}

}  // namespace

AttachServer::AttachServer(AttachOptions options, EngineLoop& loop, CounterPage& counters)
    : options_(std::move(options)), loop_(loop), counters_(counters) {}

AttachServer::~AttachServer() { stop(); }

Err AttachServer::start(std::string& why) {
    if (const Err error = bind_socket(why); error != Err::kOk) return error;
    epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
    stop_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ULC_CHECK(epoll_fd_ >= 0 && stop_fd_ >= 0);
    watch(epoll_fd_, listener_, &listener_);
    watch(epoll_fd_, stop_fd_, &stop_fd_);
    thread_ = std::thread([this] { thread(); });
    return Err::kOk;
}

Err AttachServer::bind_socket(std::string& why) {
    const std::string& path = options_.socket_path;
    const sockaddr_un address = address_of(path);
    if (path.size() >= sizeof address.sun_path) {
        why = "the socket path is longer than 107 octets; choose a shorter one with --socket";
        return Err::kInvalid;
    }
    if (somebody_listens(address)) {
        why =
            "an engine already serves " + path + "; stop it, or choose another path with --socket";
        return Err::kInvalid;
    }
    struct stat status {};
    if (lstat(path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode)) {
        why = path + " exists and is not a socket; choose another path with --socket";
        return Err::kInvalid;
    }
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    unlink(path.c_str());  // a socket left by a crash: nobody listens on it
    listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener_ < 0 ||
        bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_, 64) != 0) {
        const bool denied = errno == EACCES || errno == EPERM;
        why = "cannot listen on " + path + ": " + std::strerror(errno) +
              "; choose a directory that you may write with --socket";
        if (listener_ >= 0) close(listener_);
        listener_ = -1;
        return denied ? Err::kPermission : Err::kSystem;
    }
    // Who may attach is decided by credentials, so that the answer can be a sentence.
    static_cast<void>(chmod(path.c_str(), 0666));
    return Err::kOk;
}

void AttachServer::stop() {
    if (thread_.joinable()) {
        const std::uint64_t one = 1;
        static_cast<void>(!write(stop_fd_, &one, sizeof one));
        thread_.join();
        unlink(options_.socket_path.c_str());
    }
    for (int* fd : {&listener_, &epoll_fd_, &stop_fd_}) {
        if (*fd >= 0) close(*fd);
        *fd = -1;
    }
}

void AttachServer::thread() {
    while (!stopping_) {
        epoll_event events[32];
        const int count =
            epoll_wait(epoll_fd_, events, 32, connections_.empty() ? -1 : kSweepMilliseconds);
        for (int i = 0; i < count; ++i) {
            if (events[i].data.ptr == &stop_fd_) {
                stopping_ = true;
            } else if (events[i].data.ptr == &listener_) {
                accept_all();
            } else {
                on_readable(*static_cast<Connection*>(events[i].data.ptr));
            }
        }
        sweep();
    }
    for (const auto& connection : connections_) {
        connection->bye =
            true;  // the engine ends, not the client: what was sent is still delivered
        end(*connection);
    }
    // The engine drains; regions go with it: this object outlives the loop's run().
}

void AttachServer::accept_all() {
    for (;;) {
        const int s = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (s < 0) return;
        auto connection = std::make_unique<Connection>();
        connection->socket = s;
        connection->deadline = monotonic_now() + options_.handshake_max;
        if (connections_.size() >= options_.connections_max) {
            refuse(*connection, Err::kLimit, "too many connections; close some");
            close(s);
            continue;
        }
        if (!allowed(s, connection->pid)) {
            refuse(*connection, Err::kPermission,
                   "this user is not in the engine's allow list; add it with --allow-uid or "
                   "--allow-gid");
            close(s);
            continue;
        }
        watch(epoll_fd_, s, connection.get());
        connections_.push_back(std::move(connection));
    }
}

bool AttachServer::allowed(int socket, pid_t& pid) const {
    ucred peer{};
    socklen_t length = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
    pid = peer.pid;
    const auto has = [](const auto& list, auto id) {
        return std::find(list.begin(), list.end(), id) != list.end();
    };
    return options_.allow_all || peer.uid == 0 || peer.uid == geteuid() ||
           has(options_.allow_uids, peer.uid) || has(options_.allow_gids, peer.gid);
}

void AttachServer::on_readable(Connection& connection) {
    // A client may ring often; what is left is read in the next turn.
    for (int packets = 0; packets < 16 && connection.socket >= 0; ++packets) {
        char data[sizeof(abi::Hello) + 1];
        const ssize_t n = recv(connection.socket, data, sizeof data, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n <= 0 || !on_packet(connection, data, static_cast<std::size_t>(n))) {
            end(connection);
            return;
        }
    }
}

bool AttachServer::on_packet(Connection& connection, const char* data, std::size_t octets) {
    switch (connection.state) {
        case State::kHello: {
            abi::Hello hello{};
            if (octets != sizeof hello)
                return refuse(connection, Err::kVersion,
                              "this is not a ULC client of this version");
            std::memcpy(&hello, data, sizeof hello);
            return on_hello(connection, hello);
        }
        case State::kMapping: {
            abi::Mapped mapped{};
            if (octets != sizeof mapped) return false;
            std::memcpy(&mapped, data, sizeof mapped);
            return on_mapped(connection, mapped);
        }
        case State::kAttached:
            if (octets == 1 && static_cast<unsigned char>(data[0]) == abi::kBye)
                connection.bye = true;
            return true;  // doorbells have done their work by arriving
        case State::kLeaving:
            return true;
    }
    return false;
}

bool AttachServer::refuse(Connection& connection, Err error, const std::string& text) {
    spdlog::warn("client {} refused: {}", connection.pid, text);
    auto offer = reply_with<abi::Offer>(error, text);
    offer.abi_version = abi::kAbiVersion;
    static_cast<void>(send_packet(connection.socket, &offer, sizeof offer));
    return false;
}

Result<std::uint32_t> AttachServer::net_of(const abi::Hello& hello) const {
    const std::string name(hello.net, strnlen(hello.net, sizeof hello.net));
    if (name.empty()) return std::uint32_t{0};
    const auto at = std::find(options_.nets.begin(), options_.nets.end(), name);
    if (at == options_.nets.end()) return Err::kInvalid;
    return static_cast<std::uint32_t>(at - options_.nets.begin());
}

std::string AttachServer::no_such_net(const abi::Hello& hello) const {
    std::string text = "this engine has no net called ";
    text.append(hello.net, strnlen(hello.net, sizeof hello.net));
    text += "; it has:";
    for (const std::string& net : options_.nets)
        text += " " + net;
    return text;
}

abi::RegionSizes AttachServer::sizes_for(const abi::RegionSizes& wanted) const {
    const auto choose = [](std::uint32_t wish, std::uint32_t usual, std::uint32_t most) {
        return std::min(wish == 0 ? usual : wish, most);
    };
    const abi::RegionSizes& usual = options_.sizes;
    const abi::RegionSizes& most = options_.sizes_max;
    return {choose(wanted.sq_slots, usual.sq_slots, most.sq_slots),
            choose(wanted.cq_slots, usual.cq_slots, most.cq_slots),
            // Who offloads asks for more; an engine that was given more than that keeps it.
            choose(std::max(wanted.tx_arena_octets, usual.tx_arena_octets), usual.tx_arena_octets,
                   most.tx_arena_octets),
            choose(wanted.rx_arena_octets, usual.rx_arena_octets, most.rx_arena_octets)};
}

bool AttachServer::on_hello(Connection& connection, const abi::Hello& hello) {
    if (hello.magic != abi::kHelloMagic)
        return refuse(connection, Err::kVersion, "this is not a ULC client");
    if (hello.abi_version != abi::kAbiVersion)
        return refuse(connection, Err::kVersion,
                      "the client's libulc and this engine are of different versions; rebuild or "
                      "restart the older one");
    if (hello.kind == abi::HelloKind::kCounters) return serve_counters(connection);
    if (hello.kind != abi::HelloKind::kAttach)
        return refuse(connection, Err::kInvalid, "unknown request");
    const auto net = net_of(hello);
    if (!net) return refuse(connection, Err::kInvalid, no_such_net(hello));
    const auto layout = abi::compute_layout(sizes_for(hello.wanted));
    if (!layout)
        return refuse(connection, Err::kInvalid,
                      "ring sizes must be powers of two from 8 to 65536");

    Result<engine::EndpointId> endpoint = Err::kClosed;
    loop_.calls().run(
        [&](engine::Engine& engine, Nanos) { endpoint = engine.reserve(net.value()); });
    if (!endpoint)
        return refuse(connection, endpoint.error(),
                      endpoint.error() == Err::kLimit
                          ? "the engine has no endpoint left; raise --endpoints or close some"
                          : "the engine is stopping");
    connection.endpoint = endpoint.value();
    connection.reserved = true;
    std::string why;
    auto region = SharedRegion::make(layout.value(), why);
    if (!region) return refuse(connection, region.error(), why);
    connection.region = std::move(region.value());
    abi::initialise_control(connection.region.memory(), layout.value(), connection.endpoint,
                            static_cast<std::uint32_t>(getpid()));
    auto offer = reply_with<abi::Offer>(Err::kOk, "");
    offer.abi_version = abi::kAbiVersion;
    offer.endpoint = connection.endpoint;
    offer.layout = layout.value();
    connection.state = State::kMapping;
    return send_packet(connection.socket, &offer, sizeof offer, connection.region.fd());
}

bool AttachServer::on_mapped(Connection& connection, const abi::Mapped& mapped) {
    if (mapped.magic != abi::kHelloMagic || mapped.status != 0) return false;
    std::string why;
    Err error = connection.region.seal_and_populate(why);
    if (error == Err::kOk && !connection.region.locked())
        spdlog::warn(
            "client {}: its memory could not be locked; raise the memlock limit (ulimit -l)",
            connection.pid);
    if (error == Err::kOk) {
        connection.region.close_fd();
        const bool ran = loop_.calls().run([&](engine::Engine& engine, Nanos) {
            error = engine.admit(connection.endpoint, connection.region.memory(),
                                 connection.region.layout());
            counters_.set_endpoints(engine.endpoints());
        });
        if (!ran) error = Err::kClosed;
        if (error != Err::kOk) why = std::string(text_of(error));
    }
    const auto ready = reply_with<abi::Ready>(error, why);
    if (!send_packet(connection.socket, &ready, sizeof ready) || error != Err::kOk) return false;
    connection.state = State::kAttached;
    loop_.add_doorbell(connection.socket);
    spdlog::info("client {} attached as endpoint {:#x}", connection.pid, connection.endpoint);
    return true;
}

bool AttachServer::serve_counters(Connection& connection) {
    const int fd = counters_.open_read_only();
    auto offer = reply_with<abi::Offer>(fd < 0 ? Err::kSystem : Err::kOk, "");
    offer.abi_version = abi::kAbiVersion;
    offer.layout.region_octets = counters_.octets();
    static_cast<void>(send_packet(connection.socket, &offer, sizeof offer, fd));
    if (fd >= 0) close(fd);
    return false;  // that is all this connection was for
}

void AttachServer::end(Connection& connection) {
    if (connection.socket < 0) return;
    close(connection.socket);  // leaves both epoll sets
    connection.socket = -1;
    if (!connection.reserved) {
        connection.state = State::kLeaving;
        return;
    }
    const bool closed = connection.state == State::kAttached && connection.bye;
    if (connection.state == State::kAttached)
        spdlog::info("client {} {}", connection.pid, closed ? "closed" : "ended without closing");
    connection.state = State::kLeaving;
    loop_.calls().run([&](engine::Engine& engine, Nanos now) {
        engine.detach(connection.endpoint,
                      closed ? engine::DetachReason::kClosed : engine::DetachReason::kDied, now);
        counters_.set_endpoints(engine.endpoints());
    });
}

void AttachServer::sweep() {
    const Nanos now = monotonic_now();
    bool leaving = false;
    for (const auto& connection : connections_) {
        const bool in_handshake =
            connection->state == State::kHello || connection->state == State::kMapping;
        // The engine closes the endpoint of a client whose records are nonsense; a client that writes this itself closes
        // itself.
        const bool expelled = connection->state == State::kAttached &&
                              connection->region.layout().region_octets > 0 &&
                              static_cast<abi::EndpointControl*>(connection->region.memory())
                                      ->closed.load(std::memory_order_relaxed) != 0;
        if ((in_handshake && now > connection->deadline) || expelled) end(*connection);
        leaving = leaving || connection->state == State::kLeaving;
    }
    if (!leaving) return;
    std::vector<const Connection*> gone;  // asked there, unmapped here: that takes system calls
    loop_.calls().run([&](engine::Engine& engine, Nanos) {
        for (const auto& connection : connections_) {
            if (connection->state == State::kLeaving &&
                (!connection->reserved || engine.detached(connection->endpoint)))
                gone.push_back(connection.get());
        }
        counters_.set_endpoints(engine.endpoints());
    });
    std::erase_if(connections_, [&](const auto& connection) {
        return std::find(gone.begin(), gone.end(), connection.get()) != gone.end();
    });
}

}  // namespace ulc::daemon
