// SPDX-License-Identifier: BSD-3-Clause
// Two ranks: one sends and ends at once, without ulc_leave() or ulc_close().
//   last_words SENDER return|exit|kill
// The other prints how many messages came, or that there was no job. Its time limits are longer
// than those of the test, so that a wait is a failure.
#include <ulc.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr std::int64_t kLimit = 120'000'000'000;  // ns
constexpr unsigned kMessages = 100;
constexpr std::size_t kOctets = 1000;
constexpr std::uint64_t kTag = 7;

void end(const char* how) {
    if (std::strcmp(how, "exit") == 0) ::_exit(0);
    if (std::strcmp(how, "kill") != 0) return;
    ::kill(::getpid(), SIGKILL);
}

int take(ulc_endpoint* ep, std::uint16_t from) {
    unsigned came = 0;
    for (; came < kMessages; ++came) {
        unsigned char bytes[kOctets] = {};
        ulc_request request;
        ulc_status status{};
        if (ulc_receive(ep, from, kTag, UINT64_MAX, bytes, sizeof bytes, &request) != ULC_OK) break;
        if (ulc_wait_for(ep, &request, &status, kLimit) != ULC_OK || status.error != ULC_OK) break;
        if (status.length != kOctets || bytes[kOctets - 1] != came) return 1;
    }
    if (came == kMessages) {
        std::printf("came: %u messages\n", came);
        return 0;
    }
    const bool died = ulc_peer_state(ep, from) == ULC_ERR_PEER_DIED;
    std::printf("came: %u messages, then %s\n", came, died ? "PEER_DIED" : "another error");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    ulc_endpoint* ep = nullptr;
    int error = ulc_open(nullptr, &ep);
    if (error == ULC_OK) error = ulc_join_wait(ep, nullptr, ULC_RANK_ANY, 0, kLimit);
    if (error != ULC_OK) {
        const bool died = error == ULC_ERR_PEER_DIED;
        std::printf("no job: %s\n", died ? "PEER_DIED" : ulc_last_error_text());
        return 0;
    }
    const auto sender = static_cast<std::uint16_t>(std::atoi(argv[1]));
    if (ulc_rank(ep) != sender) return take(ep, sender);
    for (unsigned n = 0; n < kMessages; ++n) {
        unsigned char bytes[kOctets] = {};
        bytes[kOctets - 1] = static_cast<unsigned char>(n);
        int sent = ULC_ERR_AGAIN;
        while ((sent = ulc_send(ep, static_cast<std::uint16_t>(1 - sender), kTag, bytes,
                                sizeof bytes, nullptr)) == ULC_ERR_AGAIN)
            ulc_poll(ep);
        if (sent != ULC_OK) return 1;
    }
    end(argv[2]);
    return 0;
}
