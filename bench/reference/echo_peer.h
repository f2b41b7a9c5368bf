// SPDX-License-Identifier: BSD-3-Clause
// The other process of the kernel-socket references: a child that echoes or sinks messages on
// commands over a socket pair. Loopback: both in one network namespace. veth: the child has a
// separate namespace, joined by a veth pair that disappears with it; that needs root. Bridge: the
// child enters the namespace of node 1 of `ulc run --wire bridge`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <sys/types.h>

namespace ulc::bench {

enum class Protocol : std::uint8_t { kUdp, kTcp };
enum class Waiting : std::uint8_t { kPolled, kBlocking };
enum class Link : std::uint8_t { kLoopback, kVeth, kBridge };

[[nodiscard]] const char* name_of(Protocol protocol);
[[nodiscard]] const char* name_of(Waiting waiting);
[[nodiscard]] const char* name_of(Link link);

/// One child process on one link. Ends with this object.
class EchoPeer {
public:
    /// Forks. nullptr when the link cannot be made here; why: one sentence.
    static std::unique_ptr<EchoPeer> start(Link link, std::string& why);
    ~EchoPeer();
    EchoPeer(const EchoPeer&) = delete;
    EchoPeer& operator=(const EchoPeer&) = delete;

    /// Tells the child to echo every message of `octets` until the connection ends; returns the
    /// connected socket, or -1. The caller closes it.
    [[nodiscard]] int connect_echo(Protocol protocol, Waiting waiting, std::uint32_t octets);
    /// TCP only: the child receives streams of `octets`, compares each byte with the pattern, and
    /// answers each with one byte: 1 if it was right.
    [[nodiscard]] int connect_sink(Waiting waiting, std::uint32_t octets);
    /// Ends the connection and waits until the child is free for the next.
    void disconnect(int socket, Protocol protocol);

private:
    struct Command;
    EchoPeer(Link link, pid_t child, int control) : link_(link), child_(child), control_(control) {}
    [[nodiscard]] int connect(const Command& command);
    static void serve(Link link, int control);
    static void serve_one(Link link, int control, const Command& command);

    Link link_;
    pid_t child_;
    int control_;
};

/// Byte i of every message.
[[nodiscard]] constexpr unsigned char pattern(std::size_t i) {
    return static_cast<unsigned char>(i * 131 + 7);
}

/// Moves all bytes, polling or blocking. False: the other side ended.
bool send_all(int socket, const void* data, std::size_t octets, Waiting waiting);
bool receive_all(int socket, void* data, std::size_t octets, Waiting waiting);
/// One datagram of at most `octets`; its size, or -1.
ssize_t receive_datagram(int socket, void* data, std::size_t octets, Waiting waiting);

/// Path of the network namespace of that node of `ulc run --wire bridge`; empty: there is none.
std::string bridge_network(unsigned node);

/// Puts this process into a separate network namespace with loopback up, so that nothing here
/// meets the machine's network. False without root.
bool enter_private_namespace();

}  // namespace ulc::bench
