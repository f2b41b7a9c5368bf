// SPDX-License-Identifier: BSD-3-Clause
// A plain libulc program for the tests of launchers: opens the engine and joins the job of its
// launcher without an argument, and says hello to the next rank round.
//   hello          exit 0 if the greeting of the rank before came
#include <ulc.h>

#include <cstdint>
#include <cstdio>

namespace {

constexpr std::int64_t kLimit = 60'000'000'000;  // ns

int fail(const char* what, int error) {
    std::fprintf(stderr, "hello: %s: %s (%s)\n", what, ulc_error_text(error),
                 ulc_last_error_text());
    return 1;
}

}  // namespace

int main() {
    ulc_endpoint* ep = nullptr;
    if (const int error = ulc_open(nullptr, &ep); error != ULC_OK) return fail("open", error);
    if (const int error = ulc_join_wait(ep, nullptr, ULC_RANK_ANY, 0, kLimit); error != ULC_OK)
        return fail("join", error);
    const std::uint16_t rank = ulc_rank(ep);
    const std::uint16_t size = ulc_size(ep);
    const auto next = static_cast<std::uint16_t>((rank + 1) % size);
    const auto before = static_cast<std::uint16_t>((rank + size - 1) % size);
    std::uint32_t said = 1000U + rank;
    std::uint32_t heard = 0;
    if (size > 1) {
        ulc_request sent;
        ulc_request received;
        int error = ulc_receive(ep, before, 1, ULC_TAG_MAX, &heard, sizeof heard, &received);
        if (error == ULC_OK) error = ulc_send(ep, next, 1, &said, sizeof said, &sent);
        if (error == ULC_OK) error = ulc_wait_for(ep, &received, nullptr, kLimit);
        if (error == ULC_OK) error = ulc_wait_for(ep, &sent, nullptr, kLimit);
        if (error != ULC_OK) return fail("exchange", error);
        if (heard != 1000U + before) return fail("the greeting is another rank's", ULC_ERR_CORRUPT);
    }
    std::printf("hello from rank %u of %u\n", unsigned{rank}, unsigned{size});
    const int error = ulc_leave_wait(ep, kLimit);
    ulc_close(ep);
    return error == ULC_OK ? 0 : fail("leave", error);
}
