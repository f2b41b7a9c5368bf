// How much payload a stream from rank 0 to rank 1 carries: messages of 64 KiB, every octet compared, for SECONDS after a start
// that does not count. Rank 1 prints "bulk: B octets a second".
//   bulk SECONDS
#include <ulc.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kLimit = 30'000'000'000;  // ns
constexpr std::size_t kOctets = 65536;
constexpr std::size_t kUnderWay = 6;  ///< more than a window
constexpr std::uint64_t kData = 1;
constexpr std::uint64_t kLast = 2;
constexpr double kStartSeconds = 0.2;  ///< the window opens, caches fill
constexpr double kEndSeconds = 0.1;    ///< the receiver began later

void need(const char* what, int error) {
    if (error == ULC_OK) return;
    std::fprintf(stderr, "bulk: %s: %s (%s)\n", what, ulc_error_text(error), ulc_last_error_text());
    std::exit(1);
}

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

void fill(std::vector<unsigned char>& payload, std::uint64_t number) {
    std::memcpy(payload.data(), &number, sizeof number);
}

std::vector<unsigned char> payload() {
    std::vector<unsigned char> octets(kOctets);
    for (std::size_t i = 0; i < kOctets; ++i)
        octets[i] = static_cast<unsigned char>(i * 7 + i / 251);
    return octets;
}

/// Sends until the time is over; the last message has another tag.
void send_all(ulc_endpoint* ep, double seconds) {
    std::array<std::vector<unsigned char>, kUnderWay> memory;
    std::array<ulc_request, kUnderWay> requests;
    memory.fill(payload());
    const auto finish = [&](std::uint64_t number) {
        ulc_status status{};
        need("wait", ulc_wait_for(ep, &requests[number % kUnderWay], &status, kLimit));
        need("message", status.error);
    };
    const auto start = Clock::now();
    std::uint64_t number = 0;
    for (bool last = false; !last; ++number) {
        if (number >= kUnderWay) finish(number - kUnderWay);
        last = seconds_since(start) > kStartSeconds + seconds + kEndSeconds;
        std::vector<unsigned char>& octets = memory[number % kUnderWay];
        fill(octets, number);
        ulc_request* request = &requests[number % kUnderWay];
        int error = ULC_OK;
        while ((error = ulc_send(ep, 1, last ? kLast : kData, octets.data(), kOctets, request)) ==
               ULC_ERR_AGAIN)
            need("wait", ulc_wait(ep, kLimit));
        need("send", error);
    }
    for (std::uint64_t left = number - std::min<std::uint64_t>(number, kUnderWay); left < number;
         ++left)
        finish(left);
}

void receive_all(ulc_endpoint* ep, double seconds) {
    std::vector<unsigned char> expected = payload();
    std::array<std::vector<unsigned char>, kUnderWay> memory;
    std::array<ulc_request, kUnderWay> requests;
    const auto post = [&](std::size_t i) {
        need("receive", ulc_receive(ep, 0, 0, 0, memory[i].data(), kOctets, &requests[i]));
    };
    for (std::size_t i = 0; i < kUnderWay; ++i) {
        memory[i].resize(kOctets);
        post(i);
    }
    double octets = 0;
    double span = 0;
    const auto start = Clock::now();
    double from = 0;
    for (std::uint64_t number = 0;; ++number) {
        const std::size_t i = number % kUnderWay;
        ulc_status status{};
        need("wait", ulc_wait_for(ep, &requests[i], &status, kLimit));
        need("message", status.error);
        fill(expected, number);
        if (status.length != kOctets || memory[i] != expected) {
            std::fprintf(stderr, "bulk: message %llu arrived wrong\n",
                         static_cast<unsigned long long>(number));
            std::exit(1);
        }
        if (status.tag == kLast) break;
        const double now = seconds_since(start);
        if (from == 0 && now >= kStartSeconds) {
            from = now;
        } else if (from != 0 && span < seconds) {
            octets += kOctets;
            span = now - from;
        }
        post(i);
    }
    for (ulc_request& request : requests)
        (void)ulc_cancel(ep, &request);
    std::printf("bulk: %.0f octets a second\n", octets / span);
}

}  // namespace

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
    ulc_endpoint* ep = nullptr;
    need("open", ulc_open(nullptr, &ep));
    need("join", ulc_join_wait(ep, nullptr, ULC_RANK_ANY, 0, kLimit));
    if (ulc_rank(ep) == 0) {
        send_all(ep, seconds);
    } else {
        receive_all(ep, seconds);
    }
    need("leave", ulc_leave_wait(ep, kLimit));
    ulc_close(ep);
    return 0;
}
