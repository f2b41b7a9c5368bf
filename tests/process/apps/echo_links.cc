// SPDX-License-Identifier: BSD-3-Clause
// An endpoint that is open for links: prints its address, and sends every message back to its peer.
//   echo_links          waits for a peer
//   echo_links ADDRESS  calls that address (64 hexadecimal digits), and says "hello" with tag 1
// Exit 0 when the peer has left.
#include <ulc.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kLongest = 1U << 20;

ulc_link_address address_of(const std::string& digits) {
    ulc_link_address address{};
    for (std::size_t at = 0; at < sizeof address.bytes && 2 * at + 1 < digits.size(); ++at)
        address.bytes[at] =
            static_cast<unsigned char>(std::stoul(digits.substr(2 * at, 2), nullptr, 16));
    return address;
}

void echo(const char* to) {
    ulc::Endpoint endpoint;
    endpoint.open_links(2);
    for (const unsigned char octet : endpoint.address().bytes)
        std::printf("%02x", octet);
    std::printf("\n");
    std::fflush(stdout);
    std::uint16_t peer = 0;
    if (to != nullptr) {
        peer = endpoint.link(address_of(to));
        endpoint.send(peer, 1, std::as_bytes(std::span("hello", 5)));
    } else {
        while (!endpoint.next_peer(peer))
            ulc_wait(endpoint.handle(), ULC_WAIT_FOREVER);
    }
    std::vector<std::byte> buffer(kLongest);
    for (;;) {
        ulc::Request request;
        endpoint.start_receive(peer, 0, buffer, request, 0);
        ulc_status status;
        ulc_wait_for(endpoint.handle(), request.handle(), &status, ULC_WAIT_FOREVER);
        if (status.error == ULC_ERR_PEER_LEFT) break;
        if (status.error != ULC_OK) throw ulc::Error(status.error, "receiving");
        endpoint.send(peer, status.tag, std::span(buffer.data(), status.length));
    }
    endpoint.unlink(peer);
    endpoint.leave();
}

}  // namespace

int main(int argc, char** argv) {
    try {
        echo(argc > 1 ? argv[1] : nullptr);
    } catch (const ulc::Error& error) {
        std::fprintf(stderr, "echo_links: %s\n", error.what());
        return 1;
    }
    return 0;
}
